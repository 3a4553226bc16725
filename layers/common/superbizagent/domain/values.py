"""The checkable values in a text: quotations, times, identifiers and numbers.

One reading for both sides of the evidence guard, so that what a claim says and what the evidence
says are compared in the same terms. ASCII classes on purpose: digits between CJK characters are
numbers too, and `\\w` would swallow them.
"""

import re
import unicodedata
from dataclasses import dataclass

from superbizagent.domain.folding import normalise
from superbizagent.domain.identifiers import (
    LONGEST_NUMBER,
    STATUS_CLASS,
    identifier_pattern,
    long_words,
    take_identifiers,
)
from superbizagent.domain.moments import Moment, take_moments
from superbizagent.domain.numerals import in_digits
from superbizagent.domain.pattern import Pattern
from superbizagent.domain.quantities import Number, claimed_numbers, numbers_of
from superbizagent.domain.quotations import code_words, take_quotations

__all__ = [
    "Moment",
    "Number",
    "Values",
    "identifier_pattern",
    "moments_in",
    "normalise",
    "numbers_in",
    "read_prose",
    "values_in",
]


@dataclass(frozen=True)
class Values:
    """`status_classes` are those of HTTP, by first digit (5xx); `words` its long ones."""

    quotations: tuple[str, ...] = ()
    moments: tuple[Moment, ...] = ()
    identifiers: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()
    status_classes: tuple[int, ...] = ()
    words: tuple[str, ...] = ()


_HASH = Pattern(
    r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"
    rf"|\b(?=[a-f]*[0-9])[0-9a-f]{{{LONGEST_NUMBER + 1},}}\b",
    re.IGNORECASE,
)
_LONG_ID = Pattern(r"(?<![A-Za-z0-9_-])[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+){2,}")
_CHINESE_COMMA = Pattern("(?<=[0-9\uff10-\uff19])，(?=[0-9\uff10-\uff19])")
_CIRCLED = Pattern("[\u2460-\u2473]")
_MARKER = Pattern(r"(?:^|(?<=\n)|(?<=[;；。:，])|(?<=[;:,.]\s))[ \t]*\(?([1-9][0-9]?)(?:[.)](?=\s|[^0-9\s])|、)")


def values_in(text: str) -> Values:
    """The values of a claim, in which each character counts for one value at most.

    Quotations are taken first, then times, identifiers and numbers, each blanking what it took: the
    digits of a time are no number, and those of an identifier neither.
    """
    rest = _folded(_CIRCLED.sub(" ", text))
    named = tuple(word for word in code_words(rest) if re.fullmatch(r"[A-Za-z][A-Za-z-]*", word))
    rest, quotations = take_quotations(rest)
    rest = in_digits(_without_markers(rest))
    classes = tuple(int(match[1]) for match in STATUS_CLASS.finditer(rest))
    rest, moments = take_moments(STATUS_CLASS.sub(" ", rest), prose=True)
    rest, identifiers = take_identifiers(rest)
    identifiers = tuple(dict.fromkeys((*identifiers, *named)))
    return Values(quotations, moments, identifiers, claimed_numbers(rest), classes, long_words(rest))


def _folded(text: str) -> str:
    """Compatibility forms folded; a Chinese comma never becomes one inside a number (5000，5 分钟后)."""
    return unicodedata.normalize("NFKC", _CHINESE_COMMA.sub("， ", text))


def read_prose(text: str) -> str:
    """`text` as its values are read: folded, number words in digits, its quotations in place."""
    return in_digits(_folded(text))


def _without_markers(text: str) -> str:
    """`text` without the numbers of a list's items, where they count up from one."""
    counted = [int(match[1]) for match in _MARKER.finditer(text)]
    return _MARKER.sub(" ", text) if counted and counted == list(range(1, len(counted) + 1)) else text


def moments_in(text: str) -> tuple[Moment, ...]:
    """Every time in an evidence text."""
    return take_moments(_folded(text))[1]


def numbers_in(text: str) -> frozenset[Number]:
    """Every number in an evidence text that is no part of a time, a word or a hash.

    A claim of 30 errors is not shown by the date 2026-11-30, nor one of 7 by the request id 7f3a, nor one of
    42 by the order ORD-2026-0042.
    """
    rest, _ = take_moments(_folded(text))
    return frozenset(numbers_of(in_digits(_LONG_ID.sub(" ", _HASH.sub(" ", rest)))))
