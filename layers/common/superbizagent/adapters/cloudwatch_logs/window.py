"""Which window a search covers, and what the source is known to hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from superbizagent.adapters.log_projection import iso
from superbizagent.domain.evidence import QueryLogs
from superbizagent.errors import InvalidToolArguments

INGESTION: Final = timedelta(minutes=3)
"""Events may become searchable so long after they happened."""

LISTING_LAG: Final = timedelta(hours=2)
"""So long the times of last events, as streams are listed with them, may lag behind."""

_FUTURE: Final = timedelta(hours=2)
"""CloudWatch takes no events further ahead of its time than this."""

_SECOND: Final = timedelta(seconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Range:
    """The times of a source's first and last known events; None: not known, or none.

    `whole`: all streams were listed, so that nothing is older than `first`.
    """

    first: datetime | None = None
    last: datetime | None = None
    whole: bool = False


def range_of(listings: Iterable[tuple[Iterable[Mapping[str, Any]], bool]]) -> Range:
    """What lists of streams say, each with whether it is whole."""
    firsts: list[int] = []
    lasts: list[int] = []
    all_whole = True
    for streams, whole in listings:
        all_whole = all_whole and whole
        for stream in streams:
            first, last = stream.get("firstEventTimestamp"), stream.get("lastEventTimestamp")
            firsts += [first] if first is not None else []
            lasts += [value for value in (first, last) if value is not None]
    return Range(
        first=instant_of(min(firsts)) if firsts and all_whole else None,
        last=instant_of(max(lasts)) if lasts else None,
        whole=all_whole,
    )


@dataclass(frozen=True)
class Window:
    """`start` to before `end` is searched; `covered` is the end up to which that proves something.

    `partial`: something that was asked for lies outside, or may still arrive.
    """

    start: datetime
    end: datetime
    covered: datetime
    notes: tuple[str, ...] = ()
    partial: bool = False

    @property
    def start_millis(self) -> int:
        return millis_of(self.start)

    @property
    def end_millis(self) -> int:
        return millis_of(self.end)

    @property
    def start_second(self) -> int:
        """Rounded outwards, as `end_second` is."""
        return self.start_millis // 1_000

    @property
    def end_second(self) -> int:
        return -(-self.end_millis // 1_000)


def resolve(query: QueryLogs, known: Range, now: datetime, lookback: timedelta) -> Window:
    """The window of a query; raises InvalidToolArguments for one in which there can be nothing."""
    start, notes, partial = _start(query, known, now - lookback, lookback)
    if start >= now:
        raise InvalidToolArguments(f"start lies in the future: it is {iso(now)} now.")
    end = min(query.end, now + _FUTURE) if query.end is not None else now + _SECOND
    if end <= start:
        raise InvalidToolArguments(f"Only the last {lookback.days} days of this source are searched: ask for later.")
    covered = min(end, now)
    if query.end is None:
        quiet = known.last is not None and known.last >= start and now - known.last > LISTING_LAG
        covered = known.last if quiet and known.last is not None else now
    if covered > now - INGESTION:
        partial = True
        notes.append(
            f"events of the last {INGESTION.seconds // 60} minutes before {iso(now)} may not have arrived yet: "
            "that none is found there proves nothing"
        )
    return Window(start, end, covered, tuple(notes), partial)


def _start(query: QueryLogs, known: Range, floor: datetime, lookback: timedelta) -> tuple[datetime, list[str], bool]:
    """Where the search begins, with notes, and whether older events are left out that were asked for."""
    if query.start is not None and query.start >= floor:
        return query.start, [], False
    nothing_older = known.whole and (known.first is None or known.first >= floor)
    if nothing_older:
        return (known.first if query.start is None else None) or floor, [], False
    return floor, [f"what is older than {lookback.days} days, before {iso(floor)}, was not searched"], True


def needs_range(query: QueryLogs, now: datetime, lookback: timedelta) -> bool:
    """Whether the query's window depends on what the source holds."""
    return query.start is None or query.end is None or query.start < now - lookback


def millis_of(instant: datetime) -> int:
    """Milliseconds since 1970, rounded up: no event lies between two of them."""
    return -((_EPOCH - instant) // _MILLISECOND)


def instant_of(millis: int) -> datetime:
    return _EPOCH + millis * _MILLISECOND
