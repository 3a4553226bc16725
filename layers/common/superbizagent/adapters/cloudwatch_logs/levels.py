"""The level of a log event: a field that Logs Insights discovered, or else a word in its text."""

import re
from collections.abc import Iterable
from typing import Final

from superbizagent.domain.evidence import LogLevel
from superbizagent.domain.pattern import Pattern

WORDS: Final[dict[LogLevel, tuple[str, ...]]] = {
    "FATAL": ("fatal", "critical", "crit", "emergency", "emerg", "panic", "alert"),
    "ERROR": ("error", "err", "severe"),
    "WARN": ("warning", "warn"),
    "INFO": ("information", "informational", "info", "notice"),
    "DEBUG": ("debug", "fine", "verbose"),
    "TRACE": ("trace", "finer", "finest"),
}
NUMBERS: Final[dict[LogLevel, tuple[int, ...]]] = {
    "FATAL": (0, 1, 2, 60),
    "ERROR": (3, 50),
    "WARN": (4, 40),
    "INFO": (5, 6, 30),
    "DEBUG": (7, 20),
    "TRACE": (10,),
}
"""Syslog's 0 to 7, and the tens of pino and bunyan."""

_LEVEL_OF: Final[dict[str, LogLevel]] = {
    **{word: level for level, words in WORDS.items() for word in words},
    **{str(number): level for level, numbers in NUMBERS.items() for number in numbers},
}
_ANY: Final = "|".join(sorted((word for words in WORDS.values() for word in words), key=len, reverse=True))
# A key says it wherever it stands; without one only an upper-case or bracketed word near the front,
# or the first word of the line, because prose has such words too.
_KEYED: Final = Pattern(
    rf"(?<![\w.])[\"']?(?:level|lvl|severity|log_?level|log\.level|level_?name|severity_?text)[\"']?\s?[:=]\s?[\"']?({_ANY})\b",
    re.IGNORECASE,
)
_PLAIN: Final = Pattern(
    rf"(?<![\w/.$=&?\"'-])({_ANY.upper()})(?![\w/.$=-])"
    rf"|[\[<(](?i:({_ANY}))[\]>)]"
    rf"|^(?i:({_ANY}))(?::\s|\s)"
)
_REACH: Final = 200


def level_of_field(value: str) -> LogLevel | None:
    """The level that a discovered field's value means."""
    return _LEVEL_OF.get(value.strip().lower().removesuffix(".0"))


def level_of_text(text: str) -> LogLevel | None:
    """The level that a message names."""
    keyed = _KEYED.search(text[:1_000])
    if keyed:
        return _LEVEL_OF[keyed[1].lower()]
    plain = _PLAIN.search(text[:_REACH])
    return _LEVEL_OF[plain[plain.lastindex or 0].lower()] if plain else None


def stems(levels: Iterable[LogLevel]) -> list[str]:
    """Texts of which every message of these levels, as `level_of_text` tells it, has one, in any case."""
    words = sorted({word for level in levels for word in WORDS[level]})
    return [word for word in words if not any(other != word and other in word for other in words)]
