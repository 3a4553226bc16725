"""What a search found, as evidence: the summary, the records and the coverage."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from superbizagent.adapters.log_files.reading import ReadProblems
from superbizagent.adapters.log_files.spans import FileSpan, Listing
from superbizagent.adapters.log_projection import (
    MICROSECONDS,
    Findings,
    Room,
    Searched,
    compose,
    hidden_notes,
    instant_of,
    iso,
    micros_of,
)
from superbizagent.domain.codes import Unit
from superbizagent.domain.evidence import Coverage, Evidence, QueryLogs

_MAX_NOTES: Final = 12


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


def evidence_of(report: Report, room: Room) -> Evidence:
    searched = Searched(
        title=f"logs {report.query.source}",
        head=(_window_line(report), *_zone_lines(report)),
        findings=report.findings,
        coverage=_coverage(report, hidden_notes((*report.query.contains, *report.query.excludes), room.redact)),
    )
    return compose(searched, room).evidence


def _coverage(report: Report, hidden: tuple[str, ...]) -> Coverage:
    """What is shown is not known yet."""
    notes, partial = _notes(report)
    notes = [*hidden, *notes]
    query = report.query
    if len(notes) > _MAX_NOTES:
        notes = [*notes[:_MAX_NOTES], f"and {len(notes) - _MAX_NOTES} more notes"]
    return Coverage(
        unit=Unit.LINES,
        start=query.start or (instant_of(report.start) if report.start is not None else None),
        end=query.end or (instant_of(report.end) if report.end is not None else None),
        scanned=report.scanned,
        matched=report.findings.matched,
        shown=0,
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
        reached = f" near {iso(instant_of(report.reached))}" if report.reached is not None else ""
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
        yield f"the source's lines run from {iso(instant_of(first))} to {iso(instant_of(last))}"


def _window_line(report: Report) -> str:
    start = iso(instant_of(report.start)) if report.start is not None else "unknown"
    end = iso(instant_of(report.end)) if report.end is not None else "unknown"
    return f"window: {start} to {end} (UTC)"


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
