"""Which source a claim of absence is about, and whether an observation looked there (GUARD-2)."""

import re
from collections.abc import Collection, Iterator

from superbizagent.domain.codes import ToolName
from superbizagent.domain.evidence import Observation
from superbizagent.domain.folding import normalise
from superbizagent.domain.pattern import Pattern

_NAME = r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9])"
_NAMED = tuple(
    Pattern(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:in|by|from|of|for|on|across)\s+(?:the\s+)?{_NAME}",
        rf"\b{_NAME}(?:['’]s)?\s+(?:services?|logs?|servers?|hosts?|nodes?|pods?|source|tables?|database|cluster)\b",
        rf"\b{_NAME}\s+(?:logged|reported|recorded|had|has|showed|shows|did|does|ran|saw|was|is|stayed|remained)\b",
        rf"(?<![A-Za-z0-9_.-]){_NAME}\s?(?:的|服务|日志|在|中|里|内|无|没|未|从|期间|自)",
        rf"(?:在|从|的|，|,)\s?{_NAME}\s?(?:服务|日志|中|里|内)",
    )
)
_DOING = _NAMED[2]
_ORDINARY = frozenset(
    [
        "a",
        "all",
        "an",
        "and",
        "any",
        "at",
        "between",
        "by",
        "check",
        "checks",
        "claim",
        "data",
        "day",
        "deadlock",
        "end",
        "entire",
        "error",
        "errors",
        "evidence",
        "exception",
        "exceptions",
        "failure",
        "failures",
        "hour",
        "hours",
        "info",
        "interval",
        "it",
        "its",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "kind",
        "last",
        "line",
        "lines",
        "log",
        "logs",
        "logged",
        "matched",
        "midnight",
        "minute",
        "minutes",
        "month",
        "morning",
        "afternoon",
        "evening",
        "night",
        "noon",
        "none",
        "nor",
        "not",
        "observation",
        "one",
        "order",
        "orders",
        "other",
        "our",
        "output",
        "period",
        "query",
        "range",
        "record",
        "records",
        "request",
        "requests",
        "result",
        "results",
        "row",
        "rows",
        "search",
        "second",
        "seconds",
        "server",
        "service",
        "services",
        "show",
        "shown",
        "start",
        "stretch",
        "system",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "time",
        "timeframe",
        "timeout",
        "timeouts",
        "today",
        "total",
        "tomorrow",
        "traffic",
        "type",
        "utc",
        "gmt",
        "was",
        "were",
        "is",
        "ever",
        "only",
        "have",
        "has",
        "had",
        "be",
        "do",
        "does",
        "did",
        "user",
        "users",
        "warn",
        "warning",
        "warnings",
        "fatal",
        "debug",
        "trace",
        "weekend",
        "week",
        "what",
        "which",
        "window",
        "yesterday",
        "nothing",
        "anything",
        "something",
        "everything",
        "monitoring",
        "logging",
        "processing",
        "polling",
        "single",
        "several",
        "most",
        "each",
        "both",
        "half",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "twelve",
        "application",
        "app",
        "beijing",
        "china",
        "status",
        "level",
        "levels",
        "message",
        "messages",
        "source",
        "sources",
        "table",
        "whole",
        "full",
    ]
)
_OF_LOGS = Pattern(
    r"\b(?:error|warning|exception|log|stack\s?trace)s?\b|\blogged\b|报错|日志|告警|警告|异常|異常|错误|錯誤",
    re.IGNORECASE,
)


def looks_where_said(prose: str, observation: Observation, sources: Collection[str]) -> bool:
    """Whether the source that `prose` names, if it names one, is the one that was observed."""
    arguments = observation.asked() or {}
    own = str(arguments.get("source") or "").casefold()
    known = {name for name in sources if _mentions(prose, name)}
    if observation.tool == ToolName.QUERY_LOGS and known and own not in known:
        return False
    seen = normalise(f"{observation.title}\n{observation.arguments}\n{observation.projection}").casefold()
    if observation.tool == ToolName.QUERY_MYSQL and not _rows_tell(prose, seen):
        return False
    return all(name in seen or name.removesuffix("s") in seen for name in _named(prose) if name not in known)


def _mentions(prose: str, source: str) -> bool:
    return bool(re.search(rf"(?<![A-Za-z0-9_-]){re.escape(source)}(?![A-Za-z0-9_-])", prose, re.IGNORECASE))


def _rows_tell(prose: str, seen: str) -> bool:
    """Rows say nothing of what is in logs, unless they are about it themselves."""
    return all(match.group().casefold().rstrip("s") in seen for match in _OF_LOGS.finditer(prose))


def _named(prose: str) -> Iterator[str]:
    """What stands where the name of a service, log or table stands, in lower case."""
    for pattern in _NAMED:
        for match in pattern.finditer(prose):
            name = match["name"].casefold()
            # The first word of a sentence is a name even where it looks like a verb: billing logged no errors.
            acting = pattern is _DOING and match.start("name") == 0 and not name.endswith("ed")
            if name not in _ORDINARY and (acting or not name.endswith(("ed", "ing"))):
                yield name
