"""Log events as Logs Insights returns them, and counts of them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from superbizagent.adapters.cloudwatch_logs.levels import level_of_field
from superbizagent.adapters.cloudwatch_logs.query import COUNT, LEVEL, SIZE, SLOT, Search
from superbizagent.adapters.cloudwatch_logs.window import instant_of
from superbizagent.adapters.log_projection import LogRecord, message_of, micros_of
from superbizagent.domain.evidence import LogLevel
from superbizagent.domain.pattern import Pattern

MESSAGE_LIMIT: Final = 1_000
"""Characters to which AWS may cut a message in results, where it doesn't tell its size."""

_CONTINUATION: Final = 400
_LEADING_TIME: Final = Pattern(r"^[\[(]?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S*\s+")
_TIME_IN_TEXT: Final = Pattern(r"\d:\d\d|\d{10}")


@dataclass(frozen=True)
class Event:
    """`missing` is how many characters of the message were cut off; None: some, nobody knows how many."""

    at: datetime
    level: LogLevel | None
    message: str
    pointer: str
    missing: int | None = 0

    @property
    def cut(self) -> bool:
        return self.missing != 0

    def whole(self, message: str) -> "Event":
        return replace(self, message=message, missing=0)

    @property
    def text(self) -> str:
        """The message as it is; with the event's own time in front where it shows none."""
        message = self.message.rstrip("\n")
        if self.cut:
            message += f" …[{self.missing or 'more'} characters cut]…"
        if _TIME_IN_TEXT.search(message[:300]):
            return message
        return f"{self.at.strftime('%Y-%m-%dT%H:%M:%S')}.{self.at.microsecond // 1_000:03}Z {message}"

    @property
    def record(self) -> LogRecord:
        """For the projection; what CloudWatch cut is no JSON any more, and shown as text."""
        text = self.text
        first, *others = text.split("\n")
        fields = _fields(self.message)
        message = (message_of(fields) if fields else None) or _LEADING_TIME.sub("", first, count=1)
        return LogRecord(micros_of(self.at), self.level, message, text, others[:_CONTINUATION], fields)


def _fields(message: str) -> dict[str, Any] | None:
    if not message.startswith("{"):
        return None
    try:
        value = json.loads(message)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@dataclass(frozen=True)
class Selected:
    """The events of a query's rows that were asked for, by the rows' keys; `unlike`: others had not their texts."""

    events: Mapping[str, Event]
    unlike: int

    def count(self, keys: Iterable[str]) -> int:
        return sum(key in self.events for key in keys)


def selected(rows: Iterable[Mapping[str, str]], search: Search) -> Selected:
    """A row without a time is left out. Takes a moment for thousands of rows: not for the event loop."""
    events: dict[str, Event] = {}
    unlike = 0
    for row in rows:
        event = _event(row, search)
        if event is None or (search.levels and event.level not in search.levels):
            continue
        if _alike(event, search):
            events[key_of(row)] = event
        else:
            unlike += 1
    return Selected(events, unlike)


def key_of(row: Mapping[str, str]) -> str:
    """What tells an event from all others."""
    return row.get("@ptr") or repr(row)


def _event(row: Mapping[str, str], search: Search) -> Event | None:
    at = instant_in(row.get("@timestamp", ""))
    if at is None:
        return None
    message = row.get("@message", "")
    return Event(
        at=at,
        level=search.level(row.get(LEVEL), message),
        message=message,
        pointer=row.get("@ptr", ""),
        missing=_missing(row.get(SIZE), message),
    )


def _missing(size: str | None, message: str) -> int | None:
    try:
        return max(int(float(size)) - len(message), 0) if size else _unknown(message)
    except (ValueError, OverflowError):
        return _unknown(message)


def _unknown(message: str) -> int | None:
    return None if len(message) >= MESSAGE_LIMIT else 0


def _alike(event: Event, search: Search) -> bool:
    # What was cut off may hold any text: the query, which saw all of it, is believed.
    return event.cut or not search.texts.asks or search.texts.accepts(event.message)


def instant_in(value: str) -> datetime | None:
    """A time in results: UTC without a zone, or milliseconds since 1970."""
    try:
        if value.isdigit():
            return instant_of(int(value))
        return datetime.fromisoformat(value.strip()).replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class Counts:
    """Matching events by slot of time and by level; `unlevelled` of them carry no level field."""

    slots: Counter[datetime]
    levels: Counter[LogLevel | None]
    unlevelled: int

    @property
    def total(self) -> int:
        return self.slots.total()


def counts_of(rows: Iterable[Mapping[str, str]]) -> Counts:
    """The counting query's rows. Levels are those that a field tells."""
    counts = Counts(Counter(), Counter(), 0)
    unlevelled = 0
    for row in rows:
        slot, number = instant_in(row.get(SLOT, "")), _number(row.get(COUNT, ""))
        if slot is None:
            continue
        counts.slots[slot] += number
        if field := row.get(LEVEL):
            counts.levels[level_of_field(field)] += number
        else:
            unlevelled += number
    return replace(counts, unlevelled=unlevelled)


def _number(value: str) -> int:
    try:
        return int(float(value))
    except (ValueError, OverflowError):
        return 0
