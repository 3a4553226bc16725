"""What a search found, as evidence: the summary, the records and the coverage."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from superbizagent.adapters.cloudwatch_logs.events import Event
from superbizagent.adapters.cloudwatch_logs.window import Window, iso
from superbizagent.domain.evidence import Coverage, Evidence, LogLevel, QueryLogs, Unit

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)
WIDTHS: Final = (
    (_MINUTE, "1 min"),
    (10 * _MINUTE, "10 min"),
    (60 * _MINUTE, "1 h"),
    (_DAY, "1 d"),
    (7 * _DAY, "7 d"),
    (30 * _DAY, "30 d"),
    (365 * _DAY, "365 d"),
    (3_650 * _DAY, "3650 d"),
)
_MAX_BUCKETS: Final = 12
_MAX_PATTERNS: Final = 8
_LEVEL_ORDER: Final[tuple[LogLevel | None, ...]] = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", None)
_SEVERE: Final = ("FATAL", "ERROR", "WARN")
_VARIABLE: Final = re.compile(
    r"\b(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[A-Za-z_]{0,40}\d[\w]{0,80})\b|\d+"
)
_JOINED: Final = re.compile(r"<\*>(?:[.:/_,-]{1,2}<\*>)+")


@dataclass(frozen=True)
class Found:
    """What a search found. `read` are the events that came back, in order of time, at least the first ones.

    `matched` is how many there are, or at least are when not `exact`. `levels` and `slots` are counts
    over all of them, None where nobody knows; `last` is the last one's time, likewise. `unread` events
    lie before the one at the place `gap` of those read, or behind them all.
    """

    read: Sequence[Event]
    matched: int
    exact: bool
    scanned: int | None
    levels: Mapping[LogLevel | None, int] | None
    slots: Counter[datetime] | None
    last: datetime | None
    gap: int = 0
    notes: tuple[str, ...] = ()
    partial: bool = False

    @property
    def unread(self) -> int:
        return max(self.matched - len(self.read), 0)


def chosen(found: Found, limit: int) -> list[int]:
    """Which of the events read are shown: all, or examples of severe shapes, and the first and last."""
    events = found.read
    if len(events) <= limit:
        return list(range(len(events)))
    shapes: dict[tuple[LogLevel | None, str], list[int]] = {}
    for place, event in enumerate(events):
        if event.level in _SEVERE:
            shapes.setdefault((event.level, template_of(event.message)), []).append(place)
    rare = sorted(shapes.values(), key=lambda places: (events[places[0]].level == "WARN", len(places), places[0]))
    places = {places[0] for places in rare[: limit // 2]}
    for early in range(len(events)):
        for place in (early, len(events) - 1 - early):
            if len(places) < limit:
                places.add(place)
        if len(places) >= limit:
            break
    return sorted(places)


def evidence_of(query: QueryLogs, window: Window, found: Found, shown: Mapping[int, str]) -> Evidence:
    """`shown` are the texts of the chosen events by their place among those read."""
    notes = [*window.notes, *found.notes]
    if not found.exact:
        notes.append("the number of matches is a lower bound: more events matched the search than were read")
    return Evidence(
        title=f"logs {query.source}",
        summary=tuple(_summary(window, found, len(shown))),
        lines=tuple(_lines(found, shown)),
        coverage=Coverage(
            unit=Unit.LINES,
            start=window.start,
            end=window.covered,
            scanned=found.scanned,
            matched=found.matched,
            shown=len(shown),
            truncated=len(shown) < found.matched,
            partial=window.partial or found.partial or not found.exact,
            filtered=bool(query.levels or query.contains or query.excludes),
            notes=tuple(notes),
        ),
    )


def _summary(window: Window, found: Found, shown: int) -> Iterator[str]:
    yield f"window: {iso(window.start)} to {iso(window.covered)} (UTC)"
    scanned = "unknown" if found.scanned is None else found.scanned
    yield f"lines scanned: {scanned}; matched: {'' if found.exact else 'at least '}{found.matched}; shown: {shown}"
    if not found.matched:
        return
    all_read = found.exact and found.matched == len(found.read)
    yield from _level_lines(found)
    if found.slots:
        yield _bucket_line(found.slots)
    if found.read:
        yield f"first match: {iso(found.read[0].at)}"
    if found.last is not None:
        yield f"last match: {iso(found.last)}"
    yield from _pattern_lines(found.read, all_read=all_read)
    yield "records:"


def _level_lines(found: Found) -> Iterator[str]:
    if found.levels is not None:
        yield f"levels: {_levels(found.levels)}"
    elif found.read:
        yield f"levels of the {len(found.read)} records read: {_levels(Counter(event.level for event in found.read))}"


def _levels(levels: Mapping[LogLevel | None, int]) -> str:
    return ", ".join(f"{level or 'none'} {levels[level]}" for level in _LEVEL_ORDER if levels.get(level))


def slot_of(at: datetime, width: timedelta) -> datetime:
    return at - (at - _EPOCH) % width


def _bucket_line(slots: Counter[datetime]) -> str:
    width, name = next(
        (width, name) for width, name in WIDTHS if _buckets(slots, width) <= _MAX_BUCKETS or (width, name) == WIDTHS[-1]
    )
    counts: Counter[datetime] = Counter()
    for slot, count in slots.items():
        counts[slot_of(slot, width)] += count
    begin = min(counts)
    times = [begin + width * step for step in range(min(_buckets(slots, width), _MAX_BUCKETS))]
    style = "%H:%M" if begin.date() == max(counts).date() else "%Y-%m-%d %H:%M"
    style = "%Y-%m-%d" if width >= _DAY else style
    return f"per {name}: " + ", ".join(f"{time.strftime(style)} {counts[time]}" for time in times)


def _buckets(slots: Counter[datetime], width: timedelta) -> int:
    """How many buckets of a width there are from the first to the last slot."""
    return (slot_of(max(slots), width) - slot_of(min(slots), width)) // width + 1


@dataclass
class _Pattern:
    level: LogLevel | None
    template: str
    count: int
    first: datetime
    last: datetime


def _patterns(events: Sequence[Event]) -> list[_Pattern]:
    patterns: dict[tuple[LogLevel | None, str], _Pattern] = {}
    for event in events:
        key = (event.level, template_of(event.message))
        pattern = patterns.get(key)
        if pattern is None:
            patterns[key] = _Pattern(*key, 1, event.at, event.at)
        else:
            pattern.count += 1
            pattern.last = event.at
    return sorted(patterns.values(), key=lambda pattern: -pattern.count)


def _pattern_lines(events: Sequence[Event], *, all_read: bool) -> Iterator[str]:
    patterns = _patterns(events)
    if not patterns:
        return
    if not all_read:
        yield f"patterns: of the {len(events)} records read"
    dated = events[0].at.date() != events[-1].at.date()
    style = "%Y-%m-%d %H:%M:%S" if dated else "%H:%M:%S"
    rare = [p for p in sorted(patterns, key=lambda p: p.count) if p.level in _SEVERE][: _MAX_PATTERNS // 2]
    keep = {id(pattern) for pattern in rare} if len(patterns) > _MAX_PATTERNS else set()
    for pattern in patterns:
        if len(keep) < _MAX_PATTERNS:
            keep.add(id(pattern))
    for pattern in patterns:
        if id(pattern) in keep:
            when = f"first {pattern.first.strftime(style)} last {pattern.last.strftime(style)}"
            yield f"pattern: {pattern.count}x {pattern.level or 'none'} {when}: {pattern.template}"
    if len(patterns) > _MAX_PATTERNS:
        yield f"other patterns: {len(patterns) - _MAX_PATTERNS}"


def template_of(message: str) -> str:
    """The message with `<*>` for each number and identifier, on one line, bounded."""
    head = _JOINED.sub("<*>", _VARIABLE.sub("<*>", message[:300]))
    return " ".join(head.split())[:200]


def _lines(found: Found, shown: Mapping[int, str]) -> Iterator[str]:
    expected = 0
    for place, text in shown.items():
        rank = place + (found.unread if place >= found.gap else 0)
        if rank > expected:
            yield f"… {rank - expected} records not shown …"
        yield text
        expected = rank + 1
    if found.matched > expected:
        yield f"… {found.matched - expected} records not shown …"
