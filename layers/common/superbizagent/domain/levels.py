"""Levels of log records that a claim names, and how many it says there are."""

import re
from collections.abc import Iterator, Sequence

from superbizagent.domain.codes import ToolName
from superbizagent.domain.evidence import Observation
from superbizagent.domain.evidence_text import asked_text, evidence_text
from superbizagent.domain.pattern import Pattern
from superbizagent.domain.values import read_prose, values_in

_SPELLINGS = {"WARN": "WARN(?:ING)?", "WARNING": "WARN(?:ING)?", "CRITICAL": "CRIT(?:ICAL)?", "CRIT": "CRIT(?:ICAL)?"}
_COMMON = {"WARNING": "WARN", "CRITICAL": "FATAL", "CRIT": "FATAL", "SEVERE": "ERROR"}
_LEVEL = r"(?:FATAL|CRITICAL|CRIT|PANIC|EMERG|SEVERE|ERROR|WARNING|WARN|INFO|DEBUG|TRACE)"
_NAMED = Pattern(rf"(?<![A-Za-z0-9_.:/-]){_LEVEL}(?![A-Za-z0-9_]|[.:/-]\w)")
_COUNTED = Pattern(
    rf"(?<![A-Za-z0-9_.,:-])(?P<count>[0-9][0-9,]*)\s?(?:[条條次个個]\s?)?(?P<level>{_LEVEL})(?![A-Za-z0-9_-])"
    rf"|(?<![A-Za-z0-9_.:/-])(?P<before>{_LEVEL})\s?(?:级别|日志|记录)?\s?(?P<after>[0-9][0-9,]*)\s?[条條次个個]"
)
_QUOTED = Pattern(r'"[^"]*"|“[^”]*”|「[^」]*」|`[^`]* [^`]*`')
_LEVELS_LINE = Pattern(r"^levels: (.*)$", re.MULTILINE)
_PATTERN_LINE = Pattern(r"^pattern: ([0-9]+)x ([A-Za-z]+)", re.MULTILINE)


def shows_levels(prose: str, cited: Sequence[Observation]) -> bool:
    """Whether the levels that are named are those of the evidence or of the search, and as many."""
    text = read_prose(_QUOTED.sub(" ", prose))
    shown = "\n".join(part for observation in cited for part in _texts(observation))
    named = {match.group() for match in _NAMED.finditer(text)}
    return all(_occurs(level, shown) for level in named) and _counts_agree(text, prose, cited)


def _texts(observation: Observation) -> tuple[str, str]:
    return evidence_text(observation).folded, asked_text(observation).folded


def _occurs(level: str, text: str) -> bool:
    spelling = _SPELLINGS.get(level, level)
    return re.search(rf"(?<![A-Za-z]){spelling}(?![A-Za-z])", text, re.IGNORECASE) is not None


def _counts_agree(text: str, prose: str, cited: Sequence[Observation]) -> bool:
    """Only where nothing but the level is said of what is counted: of a part of the window there are fewer."""
    by_level = [_LEVELS_LINE.search(observation.projection) for observation in cited]
    logs = all(observation.tool == ToolName.QUERY_LOGS for observation in cited)
    if not logs or not all(by_level) or any(moment.hour is not None for moment in values_in(prose).moments):
        return True
    totals = [count for line in by_level if line for count in _of_line(line[1])]
    counts = [*totals, *(count for observation in cited for count in _of_patterns(observation.projection))]
    for match in _COUNTED.finditer(text):
        level = match["level"] or match["before"]
        stated = int((match["count"] or match["after"]).replace(",", ""))
        of_level = [count for count, of in counts if of == _common(level)]
        total = sum(count for count, of in totals if of == _common(level))
        if stated not in (*of_level, total) and not _told(stated, level, cited):
            return False
    return True


def _told(stated: int, level: str, cited: Sequence[Observation]) -> bool:
    """Whether a record says so itself."""
    told = re.compile(rf"(?<![0-9]){stated} {level}", re.IGNORECASE)
    return any(told.search(observation.projection) for observation in cited)


def _of_patterns(projection: str) -> Iterator[tuple[int, str]]:
    return ((int(count), _common(level)) for count, level in _PATTERN_LINE.findall(projection))


def _of_line(line: str) -> Iterator[tuple[int, str]]:
    return ((int(count), _common(level)) for level, count in re.findall(r"([A-Z]+) ([0-9]+)", line))


def _common(level: str) -> str:
    """As the counts have it."""
    return _COMMON.get(level.upper(), level.upper())
