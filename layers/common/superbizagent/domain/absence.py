"""Claims that something is not there, and what it takes to show them (GUARD-2)."""

import json
import re
from collections.abc import Sequence
from datetime import date, datetime, timezone

from superbizagent.domain.evidence import Coverage, Observation, ToolName
from superbizagent.domain.evidence_text import EvidenceText
from superbizagent.domain.values import Moment, normalise, values_in

_ABSENCE = re.compile(
    r"\b(?:no(?!\s+(?:longer|more\s+than|later\s+than|sooner|matter|doubt)\b)"
    r"|without(?:\s+any)?|zero|none\s+of|not\s+a\s+single|not\s+any|free\s+of"
    r"|never|nothing|nobody|neither)\b[\s,]*(?P<what>(?:[\w-]+\s*){0,3})"
    r"|\b(?:(?:is|are|was|were|has|have)\s+(?:been\s+)?(?:absent|missing|none)"
    r"|did\s+not\s+(?:occur|appear|happen|show)|(?:was|were)\s+not\s+(?:seen|found|logged|recorded|observed))\b"
    r"|(?:没有|沒有|并无|並無|毫无|从未|從未|未见|未見|未发现|未發現|未出现|未出現|未记录|不存在|无任何|無任何|零)(?P<cjk>[\u4e00-\u9fff]{0,4})"
    r"|(?<![\u4e00-\u9fff])[无無](?P<cjk2>[\u4e00-\u9fff]{0,4})",
    re.IGNORECASE,
)
_LEVEL_WORDS = {
    "ERROR": re.compile(r"error|exception|failure|错误|錯誤|异常|異常|报错|失败", re.IGNORECASE),
    "WARN": re.compile(r"warn|警告|告警", re.IGNORECASE),
    "FATAL": re.compile(r"fatal|critical|致命", re.IGNORECASE),
}


def says_absent(prose: str, texts: Sequence[EvidenceText] = ()) -> bool:
    """Whether `prose` says that something is not there.

    A phrase that the evidence itself uses ("no leader") is a report of what was found, not of absence.
    """
    rest = re.sub(r'"[^"]*"|“[^”]*”|「[^」]*」|`[^`]*`', " ", prose)
    for match in _ABSENCE.finditer(rest):
        phrase = normalise(match.group()).casefold()
        words = phrase.split()
        said = " ".join(words[:2]) if len(words) > 1 else phrase
        if len(said) > 3 and any(said in text.folded.casefold() for text in texts):
            continue
        return True
    return False


def covers_absence(prose: str, observation: Observation) -> bool:
    """Whether the observation looked completely at what `prose` says is not there (GUARD-2)."""
    coverage = observation.coverage
    if coverage is None or not observation.safe or not coverage.complete:
        return False
    if not all(_inside(moment, coverage) for moment in values_in(prose).moments):
        return False
    if observation.tool == ToolName.QUERY_LOGS:
        return _log_search_covers(prose, observation)
    return True


def _log_search_covers(prose: str, observation: Observation) -> bool:
    """A filtered search proves the absence of what it searched for, and of nothing else."""
    arguments = json.loads(observation.arguments)
    if arguments.get("excludes"):
        return False
    folded = normalise(prose).casefold()
    if any(normalise(text).casefold() not in folded for text in arguments.get("contains", ())):
        return False
    named = {level for level, words in _LEVEL_WORDS.items() if words.search(prose)}
    levels = set(arguments.get("levels", ()))
    if levels and not (named and named <= levels):
        return False
    if observation.ready and not arguments.get("contains"):
        return not any(_count_of_level(level, observation.projection) for level in named)
    return True


def _count_of_level(level: str, projection: str) -> int:
    line = re.search(r"^levels: (.*)$", projection, re.MULTILINE)
    count = line and re.search(rf"\b{level} ([0-9]+)", line[1])
    return int(count[1]) if count else 0


def _inside(moment: Moment, coverage: Coverage) -> bool:
    """Whether the moment lies in the covered window; without a date, on some day of it."""
    if coverage.start is None or coverage.end is None:
        return True
    zone = coverage.start.tzinfo
    first, last = coverage.start, coverage.end.astimezone(zone)
    if moment.day is not None and moment.hour is None:
        return first.date() <= moment.day <= last.date()
    days = [moment.day] if moment.day is not None else [first.date(), last.date()]
    return any(first <= _instant(day, moment, first) <= last for day in days)


def _instant(day: date, moment: Moment, window_start: datetime) -> datetime:
    """The moment on that day, in its own zone or else in the window's."""
    zone = timezone(moment.offset) if moment.offset is not None else window_start.tzinfo
    return datetime(day.year, day.month, day.day, moment.hour or 0, moment.minute or 0, moment.second or 0, tzinfo=zone)
