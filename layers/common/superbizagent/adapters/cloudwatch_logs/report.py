"""What a search found, as evidence: composed like that of log files, with a coverage that tells what was read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from superbizagent.adapters.cloudwatch_logs.events import Counts, Event
from superbizagent.adapters.cloudwatch_logs.window import Window
from superbizagent.adapters.log_projection import (
    Composed,
    Findings,
    Histogram,
    Room,
    Searched,
    Totals,
    Unread,
    compose,
    hidden_notes,
    iso,
    micros_of,
)
from superbizagent.domain.codes import Unit
from superbizagent.domain.evidence import Coverage, QueryLogs


@dataclass(frozen=True)
class Found:
    """What a search found. `read` are the events that came back, in order of time.

    `totals` and `unread` are None when these are all that matched.
    """

    read: Sequence[Event]
    scanned: int | None
    totals: Totals | None = None
    unread: Unread | None = None
    notes: tuple[str, ...] = ()
    partial: bool = False

    @property
    def exact(self) -> bool:
        return self.totals is None or self.totals.exact

    def with_whole(self, events: Mapping[int, Event]) -> "Found":
        """With those events, by their place among those read, in the place of what was cut off."""
        return replace(self, read=[events.get(place, event) for place, event in enumerate(self.read)])


def totals_of(matched: int, *, exact: bool, counts: Counts | None, last: Event | None) -> Totals:
    """`counts` count for an exact number only, and levels only where each event has the field that tells them."""
    counted = counts if exact else None
    return Totals(
        matched=matched,
        exact=exact,
        levels=_levels(counted) if counted and not counted.unlevelled else None,
        histogram=_histogram(counted) if counted and counted.slots else None,
        last=micros_of(last.at) if last else None,
    )


def _levels(counts: Counts) -> dict[str, int]:
    return {level or "none": number for level, number in counts.levels.items()}


def _histogram(counts: Counts) -> Histogram:
    histogram = Histogram()
    for slot, number in counts.slots.items():
        histogram.add(micros_of(slot), number)
    return histogram


def composed(query: QueryLogs, window: Window, found: Found, room: Room) -> Composed:
    """Takes a moment for thousands of events: not for the event loop."""
    findings = Findings(query.limit, query.contains, room.redact)
    for order, event in enumerate(found.read):
        findings.add(order, event.record)
    findings.finish()
    searched = Searched(
        title=f"logs {query.source}",
        head=(f"window: {iso(window.start)} to {iso(window.covered)} (UTC)",),
        findings=findings,
        coverage=_coverage(query, window, found, hidden_notes((*query.contains, *query.excludes), room.redact)),
        totals=found.totals,
        unread=found.unread,
    )
    return compose(searched, room)


def _coverage(query: QueryLogs, window: Window, found: Found, hidden: tuple[str, ...]) -> Coverage:
    """What is shown is not known yet."""
    notes = [*hidden, *window.notes, *found.notes]
    if not found.exact:
        notes.append("the number of matches is a lower bound: more events matched the search than were read")
    return Coverage(
        unit=Unit.LINES,
        start=window.start,
        end=window.covered,
        scanned=found.scanned,
        matched=found.totals.matched if found.totals else len(found.read),
        shown=0,
        partial=window.partial or found.partial or not found.exact,
        filtered=bool(query.levels or query.contains or query.excludes),
        notes=tuple(notes),
    )
