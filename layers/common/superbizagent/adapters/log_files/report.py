"""What a search found, as evidence: the summary, the records and the coverage."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from superbizagent.adapters.log_files.findings import Findings, clock_text
from superbizagent.adapters.log_files.reading import ReadProblems
from superbizagent.adapters.log_files.spans import FileSpan, Listing
from superbizagent.adapters.log_files.timestamps import MICROSECONDS, instant_of, micros_of
from superbizagent.domain.evidence import Coverage, Evidence, QueryLogs, Unit

_MAX_NOTES: Final = 12
_LEVEL_ORDER: Final = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "none")


@dataclass(frozen=True)
class Report:
    """A finished search. Instants are microseconds since 1970; `offsets` are seconds from UTC."""

    query: QueryLogs
    listing: Listing
    findings: Findings
    scanned: int
    continued: int
    undated: int
    offsets: frozenset[int]
    assumed: bool
    reached: int | None
    max_bytes: int
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


def evidence_of(report: Report) -> Evidence:
    shown = report.findings.shown()
    return Evidence(
        title=f"logs {report.query.source}",
        summary=tuple(_summary(report, len(shown))),
        lines=tuple(_lines(shown, report.findings.matched)),
        coverage=_coverage(report, len(shown)),
    )


def _coverage(report: Report, shown: int) -> Coverage:
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
        shown=shown,
        truncated=shown < report.findings.matched,
        partial=partial,
        filtered=bool(query.levels or query.contains or query.excludes),
        notes=tuple(notes),
    )


def _notes(report: Report) -> tuple[list[str], bool]:
    """The coverage notes, and whether something in the window was not looked at."""
    notes: list[str] = []
    partial = report.listing.unread > 0 or bool(report.gone) or report.exhausted
    if report.exhausted:
        reached = f" near {iso(report.reached)}" if report.reached is not None else ""
        notes.append(
            f"stopped after {report.max_bytes} bytes of text{reached}; later lines were not searched: "
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


def _summary(report: Report, shown: int) -> Iterator[str]:
    findings = report.findings
    start = iso(report.start) if report.start is not None else "unknown"
    end = iso(report.end) if report.end is not None else "unknown"
    yield f"window: {start} to {end} (UTC)"
    yield f"lines scanned: {report.scanned}; matched: {findings.matched}; shown: {shown}"
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
    yield from _pattern_lines(findings)
    yield "records:"


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


def _spans_days(findings: Findings) -> bool:
    if findings.first is None or findings.last is None:
        return False
    return instant_of(findings.first).date() != instant_of(findings.last).date()


def _bucket_line(findings: Findings) -> str:
    name, buckets = findings.histogram.buckets()
    time_style = "%Y-%m-%d %H:%M" if _spans_days(findings) else "%H:%M"
    style = "%Y-%m-%d" if name.endswith(" d") else time_style
    return f"per {name}: " + ", ".join(f"{instant_of(begin):{style}} {count}" for begin, count in buckets)


def _pattern_lines(findings: Findings) -> Iterator[str]:
    dated = _spans_days(findings)
    for shape in findings.top_shapes():
        when = ""
        if shape.first is not None and shape.last is not None:
            when = f" first {clock_text(shape.first, dated=dated)} last {clock_text(shape.last, dated=dated)}"
        yield f"pattern: {shape.count}x {shape.level or 'none'}{when}: {shape.template}"
    rest = len(findings.shapes) - len(findings.top_shapes())
    if rest > 0:
        yield f"other patterns: {'more than ' if findings.more_shapes else ''}{rest}"


def _lines(shown: dict[int, str], matched: int) -> Iterator[str]:
    expected = 0
    for rank, text in shown.items():
        if rank > expected:
            yield f"… {rank - expected} records not shown …"
        yield text
        expected = rank + 1
    if matched > expected:
        yield f"… {matched - expected} records not shown …"
