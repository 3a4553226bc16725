"""A finished search as evidence: its summary, its records and its coverage, composed to the room there is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from superbizagent.adapters.log_projection.findings import Findings, Histogram, Totals, Unread
from superbizagent.adapters.log_projection.instants import instant_of, iso
from superbizagent.adapters.log_projection.projection import Projection, Room, project
from superbizagent.domain.evidence import Coverage, Evidence

# The lines that tell what was cut, and of how many records the patterns are.
_CUT_LINES: Final = 250
# A secret may be recognised only across the records that the room was measured for one by one.
_SLACK: Final = 100
_LEVEL_ORDER: Final = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "none")


@dataclass(frozen=True)
class Searched:
    """A finished search. `head` are the lines on its window and its zone.

    `coverage` is as the source knows it; what is shown and what is truncated is told here. `totals`
    are None when all that matched was read; `unread` otherwise says where the rest lies.
    """

    title: str
    head: tuple[str, ...]
    findings: Findings
    coverage: Coverage
    totals: Totals | None = None
    unread: Unread | None = None

    @property
    def counts(self) -> Totals:
        return self.totals or self.findings.totals()


@dataclass(frozen=True)
class Composed:
    """`ranks` are the places of the records shown among those read, in order."""

    evidence: Evidence
    ranks: tuple[int, ...]


def compose(searched: Searched, room: Room) -> Composed:
    """Fits the room, so that nobody has to cut it."""
    head = (*searched.head, *_counts(searched))
    # The line of counts is the one that isn't known before the records are chosen.
    before = (searched.title, *head, _count_line(searched, searched.findings.limit), "records:")
    taken = sum(map(room.bytes_of, before)) + _CUT_LINES + room.size // _SLACK
    projection = project(searched.findings, searched.unread, room, taken)
    shown = len(projection.ranks)
    truncated = shown < searched.counts.matched or projection.shortened > 0
    evidence = Evidence(
        title=searched.title,
        summary=(*head[:1], _count_line(searched, shown), *head[1:], *_tail(searched, projection)),
        lines=projection.lines,
        coverage=searched.coverage.model_copy(update={"shown": shown, "truncated": truncated}),
    )
    return Composed(evidence, projection.ranks)


def _count_line(searched: Searched, shown: int) -> str:
    counts = searched.counts
    scanned = "unknown" if searched.coverage.scanned is None else searched.coverage.scanned
    return f"lines scanned: {scanned}; matched: {'' if counts.exact else 'at least '}{counts.matched}; shown: {shown}"


def _counts(searched: Searched) -> Iterator[str]:
    findings, counts = searched.findings, searched.counts
    if counts.levels:
        yield f"levels: {_levels(counts.levels)}"
    elif findings.matched:
        yield f"levels of the {findings.matched} records read: {_levels(findings.levels)}"
    if counts.histogram:
        yield _bucket_line(counts.histogram)
    if findings.first is not None:
        yield f"first match: {iso(instant_of(findings.first))}"
    if counts.last is not None:
        yield f"last match: {iso(instant_of(counts.last))}"


def _levels(levels: Mapping[str, int]) -> str:
    return ", ".join(f"{level} {levels[level]}" for level in _LEVEL_ORDER if levels.get(level))


def _bucket_line(histogram: Histogram) -> str:
    name, buckets = histogram.buckets()
    begins = [instant_of(begin) for begin, _ in buckets]
    dated = begins[0].date() != begins[-1].date()
    style = "%Y-%m-%d" if name.endswith(" d") else "%Y-%m-%d %H:%M" if dated else "%H:%M"
    counts = zip(begins, (count for _, count in buckets), strict=True)
    return f"per {name}: " + ", ".join(f"{begin:{style}} {count}" for begin, count in counts)


def _tail(searched: Searched, projection: Projection) -> Iterator[str]:
    if not searched.findings.matched:
        return
    if searched.unread is not None and projection.patterns:
        yield f"patterns: of the {searched.findings.matched} records read"
    yield from projection.patterns
    if cut := ", ".join(_cuts(searched, projection)):
        yield f"cut: {cut}"
    yield "records:"


def _cuts(searched: Searched, projection: Projection) -> Iterator[str]:
    hidden = searched.counts.matched - len(projection.ranks)
    if hidden:
        yield f"{hidden} matching records are not shown; rare, new and severe ones, the first and the last were kept"
    if projection.shortened:
        yield f"{projection.shortened} of the records shown are shortened where marked"
