"""What a search found, as evidence: the summary, the records and the coverage."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from superbizagent.adapters.log_files.findings import Findings
from superbizagent.adapters.log_files.projection import Projection, Room, project, spans_days
from superbizagent.adapters.log_files.reading import ReadProblems
from superbizagent.adapters.log_files.spans import FileSpan, Listing
from superbizagent.adapters.log_files.timestamps import MICROSECONDS, instant_of, micros_of
from superbizagent.domain.evidence import Coverage, Evidence, QueryLogs, Unit

_MAX_NOTES: Final = 12
_CUT_LINE: Final = 200
# A secret may be recognised only across the records that the room was measured for one by one.
_SLACK: Final = 100
_LEVEL_ORDER: Final = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "none")


@dataclass(frozen=True)
class Report:
    """A finished search. Instants are microseconds since 1970; `offsets` are seconds from UTC.

    `late_after` is the time in seconds that it was given, when that ended it.
    """

    query: QueryLogs
    listing: Listing
    findings: Findings
    scanned: int
    continued: int
    undated: int
    offsets: frozenset[int]
    assumed: bool
    reached: int | None
    read_bytes: int
    late_after: float | None
    problems: tuple[tuple[FileSpan, ReadProblems], ...]
    gone: tuple[str, ...]

    @property
    def start(self) -> int | None:
        return micros_of(self.query.start) if self.query.start else self.listing.first

    @property
    def end(self) -> int | None:
        return micros_of(self.query.end) if self.query.end else self.listing.last

    @property
    def windowed(self) -> bool:
        return self.query.start is not None or self.query.end is not None

    @property
    def exhausted(self) -> bool:
        return any(problems.exhausted for _, problems in self.problems)


def iso(micros: int) -> str:
    """ISO 8601 in UTC with Z and no more digits than needed."""
    text = instant_of(micros).replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if "." in text else text) + "Z"


def evidence_of(report: Report, room: Room) -> Evidence:
    """Composed to the room, so that nobody has to cut it."""
    title = f"logs {report.query.source}"
    head = list(_summary(report))
    # The line of counts is the one that isn't known before the records are chosen.
    taken = sum(map(room.bytes_of, (title, *head, _count_line(report, report.findings.limit), "records:")))
    projection = project(report.findings, room, taken + _CUT_LINE + room.size // _SLACK)
    return Evidence(
        title=title,
        summary=(*head[:1], _count_line(report, projection.shown), *head[1:], *_tail(report, projection)),
        lines=projection.lines,
        coverage=_coverage(report, projection),
    )


def _coverage(report: Report, projection: Projection) -> Coverage:
    notes, partial = _notes(report)
    query = report.query
    if len(notes) > _MAX_NOTES:
        notes = [*notes[:_MAX_NOTES], f"and {len(notes) - _MAX_NOTES} more notes"]
    return Coverage(
        unit=Unit.LINES,
        start=query.start or (instant_of(report.start) if report.start is not None else None),
        end=query.end or (instant_of(report.end) if report.end is not None else None),
        scanned=report.scanned,
        matched=report.findings.matched,
        shown=projection.shown,
        truncated=projection.shown < report.findings.matched or projection.shortened > 0,
        partial=partial,
        filtered=bool(query.levels or query.contains or query.excludes),
        notes=tuple(notes),
    )


def _notes(report: Report) -> tuple[list[str], bool]:
    """The coverage notes, and whether something in the window was not looked at."""
    notes: list[str] = []
    partial = report.listing.unread > 0 or bool(report.gone) or report.exhausted
    if report.exhausted:
        late = f"{report.late_after:g} seconds and " if report.late_after is not None else ""
        reached = f" near {iso(report.reached)}" if report.reached is not None else ""
        notes.append(
            f"stopped after {late}{report.read_bytes} bytes of text{reached}; later lines were not searched: "
            "ask for a shorter window"
        )
    notes += [*report.gone, *report.listing.notes]
    for span, problems in report.problems:
        notes += [f"{span.name} {note}" for note in problems.notes]
        partial = partial or bool(problems.notes)
        if problems.cut_lines:
            notes.append(f"{span.name}: {problems.cut_lines} lines exceed 64 KB; the rest of each was not read")
            partial = partial or bool(report.query.contains)
        if problems.undecodable_lines:
            notes.append(f"{span.name}: {problems.undecodable_lines} lines hold bytes that are not text")
    if report.undated and report.windowed:
        notes.append(f"{report.undated} lines carry no time and were left out of the window")
        partial = True
    return notes + list(_edges(report)), partial


def _edges(report: Report) -> Iterator[str]:
    """Where the asked window reaches past what the source has."""
    first, last, query = report.listing.first, report.listing.last, report.query
    if first is None or last is None:
        return
    early = query.start is not None and micros_of(query.start) < first
    late = query.end is not None and micros_of(query.end) > last + MICROSECONDS
    if early or late:
        yield f"the source's lines run from {iso(first)} to {iso(last)}"


def _summary(report: Report) -> Iterator[str]:
    """All but what depends on the records that are shown."""
    findings = report.findings
    start = iso(report.start) if report.start is not None else "unknown"
    end = iso(report.end) if report.end is not None else "unknown"
    yield f"window: {start} to {end} (UTC)"
    yield from _zone_lines(report)
    if not findings.matched:
        return
    yield "levels: " + ", ".join(
        f"{level} {findings.levels[level]}" for level in _LEVEL_ORDER if findings.levels[level]
    )
    if findings.first is not None and findings.last is not None:
        yield _bucket_line(findings)
        yield f"first match: {iso(findings.first)}"
        yield f"last match: {iso(findings.last)}"


def _count_line(report: Report, shown: int) -> str:
    return f"lines scanned: {report.scanned}; matched: {report.findings.matched}; shown: {shown}"


def _tail(report: Report, projection: Projection) -> Iterator[str]:
    if not report.findings.matched:
        return
    yield from projection.patterns
    if cut := ", ".join(_cuts(report, projection)):
        yield f"cut: {cut}"
    yield "records:"


def _cuts(report: Report, projection: Projection) -> Iterator[str]:
    hidden = report.findings.matched - projection.shown
    if hidden:
        yield f"{hidden} matching records are not shown; rare, new and severe ones, the first and the last were kept"
    if projection.shortened:
        yield f"{projection.shortened} of the records shown are shortened where marked"


def _zone_lines(report: Report) -> Iterator[str]:
    foreign = sorted(offset for offset in report.offsets if offset)
    if foreign:
        names = ", ".join(_offset_text(offset) for offset in sorted(report.offsets))
        origin = "as configured; the lines carry no zone" if report.assumed else "as the lines say"
        yield f"zone: the lines' own times are at UTC{names} ({origin}); the times in this summary are UTC"
    elif report.assumed:
        yield "zone: the lines carry no zone and are read as UTC"


def _offset_text(offset: int) -> str:
    sign = "-" if offset < 0 else "+"
    minutes = abs(offset) // 60
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"


def _bucket_line(findings: Findings) -> str:
    name, buckets = findings.histogram.buckets()
    time_style = "%Y-%m-%d %H:%M" if spans_days(findings) else "%H:%M"
    style = "%Y-%m-%d" if name.endswith(" d") else time_style
    return f"per {name}: " + ", ".join(f"{instant_of(begin):{style}} {count}" for begin, count in buckets)
