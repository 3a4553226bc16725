"""A search's text in the language of Logs Insights, composed from typed arguments only (SEC-2).

A literal is the one place where outside text enters a query. It stands in double quotes; a quote in
it is escaped, and what can't be written so that every reader of the language must agree on where the
literal ends is not written at all: backslashes (AWS doesn't document what they mean before other
characters), control and invisible characters. Nor is what `tolower` might fold otherwise than we do.
Such a text is asked for by its other parts, and compared as a whole here, over what comes back. What comes
back is compared in any case: AWS looks at what is hidden from a model, and a text that stands in a secret
only is not found.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from superbizagent.adapters.cloudwatch_logs.levels import NUMBERS, WORDS, level_of_field, level_of_text, stems
from superbizagent.adapters.log_projection import ALARM_STEMS, TextFilter, may_be_secret, unhidden
from superbizagent.domain.evidence import LogLevel, QueryLogs
from superbizagent.domain.pattern import Pattern
from superbizagent.errors import InvalidToolArguments

MAX_QUERY: Final = 10_000
"""Characters that StartQuery takes."""

LEVEL: Final = "sbaLevel"
SIZE: Final = "sbaSize"
COUNT: Final = "sbaCount"
SLOT: Final = "sbaSlot"

_TROUBLE: Final[tuple[LogLevel, ...]] = ("WARN", "ERROR", "FATAL")
_FOLDED: Final = "tolower(@message)"
_TIME: Final = "toMillis(@timestamp)"
_PLAIN_FIELD: Final = Pattern(r"[A-Za-z0-9_@]+")


@dataclass(frozen=True)
class Search:
    """One search. `texts` are compared here once more; `levels` empty: any.

    `compares_texts`: the query finds more than what was asked for, because of some text.
    """

    filters: tuple[str, ...]
    level_field: str
    levels: frozenset[LogLevel]
    texts: TextFilter
    compares_texts: bool

    def records(self, order: str, limit: int) -> str:
        """The events themselves; raises InvalidToolArguments."""
        fields = f"fields @timestamp, @message, strlen(@message) as {SIZE}"
        if self.level_field:
            fields += f", {self.level_field} as {LEVEL}"
        return _bounded([fields, *self.filters, f"sort @timestamp {order}", f"limit {limit}"])

    @property
    def finds_trouble_only(self) -> bool:
        return bool(self.levels) and self.levels <= frozenset(_TROUBLE)

    def trouble(self, limit: int) -> str:
        """Those of the events that tell of trouble, by level or by wording, the first ones."""
        severe = _level_condition(_TROUBLE, self.level_field)
        alarming = " or ".join(f"{_FOLDED} like {literal(stem)}" for stem in ALARM_STEMS)
        found = replace(self, filters=(*self.filters, f"filter {severe} or {alarming}"))
        return found.records("asc", limit)

    def counts(self, width: str, limit: int) -> str:
        """Their number by time slot and spelling of the level."""
        by = f"bin({width}) as {SLOT}" + (f", {LEVEL}" if self.level_field else "")
        fields = [f"fields {self.level_field} as {LEVEL}"] if self.level_field else []
        return _bounded([*fields, *self.filters, f"stats count(*) as {COUNT} by {by}", f"limit {limit}"])

    def level(self, field: str | None, text: str) -> LogLevel | None:
        """The level by the field, where the event has it; else by its text."""
        return level_of_field(field) if field else level_of_text(text)


def compose(query: QueryLogs, level_field: str, start: int, end: int, redact: Callable[[str], str]) -> Search:
    """The search for what is asked, in the window of milliseconds since 1970 from `start` to before `end`.

    The window is in the query too: StartQuery knows whole seconds only, and includes the last.
    """
    field = _field(level_field) if level_field else ""
    filters = [f"filter {_TIME} >= {start} and {_TIME} < {end}"]
    for text in query.contains:
        filters += [f"filter {_FOLDED} like {literal(part)}" for part in _parts(text)]
    # AWS compares with what is hidden from a model: to exclude a guessed secret there would tell if it is right.
    excludes = [text for text in query.excludes if _whole(text) and not may_be_secret(text, redact)]
    filters += [f"filter {_FOLDED} not like {literal(text.lower())}" for text in excludes]
    if query.levels:
        filters.append(f"filter {_level_condition(query.levels, field)}")
    return Search(
        filters=tuple(filters),
        level_field=field,
        levels=frozenset(query.levels),
        texts=TextFilter(query.contains, query.excludes, redact),
        compares_texts=len(excludes) < len(query.excludes) or not all(map(_whole, query.contains)),
    )


def literal(text: str) -> str:
    """`text` as a string of the query language; only for text without backslashes and controls."""
    if not all(_carried(character) for character in text):
        raise ValueError("this text has no literal")
    return '"' + text.replace('"', '\\"') + '"'


def _carried(character: str) -> bool:
    if character == "\\" or unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return False
    if character.isascii():
        return True
    lower = character.lower()
    # Σ becomes one of two letters, by its place in the word.
    return len(lower) == 1 and lower == character.casefold() and character not in "Σσς"


def _whole(text: str) -> bool:
    return unhidden(text) == [text] and all(_carried(character) for character in text)


def _parts(text: str) -> list[str]:
    runs = (groupby(part, _carried) for part in unhidden(text))
    parts = ("".join(run).lower() for groups in runs for carried, run in groups if carried)
    return [part for part in parts if part.strip()]


def _field(name: str) -> str:
    """A configured field's name; what has other characters than letters stands in backticks."""
    return ".".join(part if _PLAIN_FIELD.fullmatch(part) else f"`{part}`" for part in name.split("."))


def _level_condition(levels: Sequence[LogLevel], field: str) -> str:
    in_text = " or ".join(f"{_FOLDED} like {literal(stem)}" for stem in stems(levels))
    if not field:
        return in_text
    words = ", ".join(literal(word) for level in levels for word in WORDS[level])
    numbers = ", ".join(str(number) for level in levels for number in NUMBERS[level])
    return f"tolower({field}) in [{words}] or {field} in [{numbers}] or (not ispresent({field}) and ({in_text}))"


def _bounded(commands: list[str]) -> str:
    text = "\n| ".join(commands)
    if len(text) > MAX_QUERY:
        raise InvalidToolArguments("The texts to look for are too long for one search. Use fewer or shorter ones.")
    return text
