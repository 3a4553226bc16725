"""The level of a log record, as services spell it."""

import re
from typing import Any, Final

from superbizagent.domain.evidence import LogLevel
from superbizagent.domain.pattern import Pattern

_WORDS: Final[dict[LogLevel, tuple[str, ...]]] = {
    "FATAL": ("fatal", "crit", "critical", "emerg", "emergency", "panic", "alert", "ftl", "dpanic"),
    "ERROR": ("error", "err", "severe", "eror"),
    "WARN": ("warn", "warning", "wrn"),
    "INFO": ("info", "information", "informational", "notice", "note", "inf", "log", "default", "config"),
    "DEBUG": ("debug", "dbg", "fine", "verbose"),
    "TRACE": ("trace", "finer", "finest", "vrb", "trc", "silly"),
}
_LEVEL_OF: Final[dict[str, LogLevel]] = {word: level for level, words in _WORDS.items() for word in words}
_LETTERS: Final[dict[str, LogLevel]] = {
    "I": "INFO",
    "W": "WARN",
    "E": "ERROR",
    "F": "FATAL",
    "D": "DEBUG",
    "V": "TRACE",
}

# Upper-case words stand anywhere near the time; others only in brackets, after a key, or as a line's
# first word with a colon, because prose has them too.
_UPPER: Final = (
    "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|SEVERE|FATAL|CRIT|CRITICAL|EMERG|EMERGENCY|PANIC|ALERT"
    "|FINE|FINER|FINEST"
)
_ANY: Final = "|".join(sorted(_LEVEL_OF, key=len, reverse=True))
_IN_TEXT: Final = Pattern(
    rf"(?<![\w/.$=&?\"'-])(?P<upper>{_UPPER})(?![\w/.$=-])"
    rf"|[\[<(](?:\w{{1,20}}:)?\s{{0,2}}(?P<bracketed>(?i:{_ANY}))\s{{0,2}}[\]>)]"
    rf"|(?<![\w.])[\"']?(?i:level|lvl|severity|loglevel|log\.level|levelname)[\"']?\s?[=:]\s?[\"']?"
    rf"(?P<keyed>(?i:{_ANY}))\b"
    rf"|\s(?P<serilog>INF|WRN|DBG|VRB|FTL|TRC)(?=[\s\]])"
)
_FIRST_WORD: Final = Pattern(
    rf"[\s:|,-]{{0,4}}(?:\[\d+\]:?\s)?(?:[\w./:-]{{1,60}}(?:\[\d+\])?:\s)?(?P<word>(?i:{_ANY}))(?P<colon>[:!])?\s"
)
_PLAIN: Final = frozenset(("error", "warn", "warning", "info", "debug", "trace", "fatal", "notice"))
# Right behind the time an upper-case word is a level whatever follows: `: ERROR/MainProcess]`.
_DIRECT: Final = Pattern(rf"[\s:|,\])-]{{0,6}}(?P<word>{_UPPER})(?!\w)")
_LOGCAT: Final = Pattern(r"\s+\d+\s+\d+\s+(?P<letter>[VDIWEF])\s")
_REACH: Final = 160

_KEYS: Final = (
    "level",
    "severity",
    "lvl",
    "loglevel",
    "log_level",
    "log.level",
    "logLevel",
    "levelname",
    "level_name",
    "severityText",
    "severity_text",
    "SeverityText",
    "Level",
    "LEVEL",
    "LogLevel",
    "Severity",
    "@l",
    "l",
    "priority",
    "PRIORITY",
)


def level_of_text(line: str, begin: int, format_name: str) -> LogLevel | None:
    """The level in a plain line whose time ends at `begin`; None when it names none."""
    if format_name in ("klog", "glog"):
        letter = re.search(r"[IWEFD](?=\d{4})", line[:begin])
        return _LETTERS[letter.group()] if letter else None
    if format_name == "clf":
        return _after_clf(line, begin)
    if format_name == "logcat" and (logcat := _LOGCAT.match(line, begin)):
        return _LETTERS[logcat.group("letter")]
    if direct := _DIRECT.match(line, begin):
        return _LEVEL_OF[direct.group("word").lower()]
    # A line that begins with its time has no level before it.
    before = None if line[:1].isdigit() else _in_text(line, 0, begin)
    return before or _in_text(line, begin, begin + _REACH)


def level_of_message(text: str) -> LogLevel | None:
    """The level a message begins with, where no field says it."""
    return _in_text(text, 0, _REACH)


def level_of_fields(fields: dict[str, Any]) -> LogLevel | None:
    """The level in the fields of a JSON record; None when no field holds one."""
    for key in _KEYS:
        if key in fields and (level := _level_of_value(fields[key])):
            return level
    nested = fields.get("log")
    if isinstance(nested, dict):
        return _level_of_value(nested.get("level"))
    return None


def _after_clf(line: str, begin: int) -> LogLevel | None:
    # An access line's request may hold any word; its own level can only stand before the quotes.
    quote = line.find('"', begin)
    return _in_text(line, begin, begin + _REACH) if quote < 0 else None


def _in_text(text: str, begin: int, end: int) -> LogLevel | None:
    match = _IN_TEXT.search(text, begin, end)
    if match and match.lastgroup:
        return _LEVEL_OF[match.group(match.lastgroup).lower()]
    first = _FIRST_WORD.match(text, begin, end)
    if first and (first.group("colon") or first.group("word").lower() in _PLAIN):
        return _LEVEL_OF[first.group("word").lower()]
    return None


def _level_of_value(value: Any) -> LogLevel | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        word = value.strip().lower()
        return _level_of_number(int(word)) if re.fullmatch(r"[0-9]{1,2}", word) else _LEVEL_OF.get(word)
    return _level_of_number(int(value)) if isinstance(value, int | float) and 0 <= value <= 100 else None


def _level_of_number(value: int) -> LogLevel | None:
    """Syslog's 0 to 7, or the tens of pino and bunyan."""
    if 0 <= value <= 7:
        names: tuple[LogLevel, ...] = ("FATAL", "FATAL", "FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")
        return names[value]
    tens: dict[int, LogLevel] = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}
    return tens.get(value)
