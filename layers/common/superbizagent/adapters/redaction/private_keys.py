"""PEM blocks and their like, whole or cut at either end."""

import re
from collections.abc import Iterator
from typing import Final

from superbizagent.adapters.redaction.spans import Detector, Span, Subject
from superbizagent.domain.pattern import Pattern

_NAME: Final = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?"
_BEGIN: Final = Pattern(rf"-{{4,5}} ?BEGIN {_NAME} ?-{{4,5}}|PuTTY-User-Key-File-\d")
_END: Final = Pattern(rf"-{{4,5}} ?END {_NAME} ?-{{4,5}}|Private-MAC: ?[0-9a-fA-F]{{1,128}}")
_LONGEST: Final = 20_000
"""Characters of a block: an RSA key of 16,384 bits has 13,000."""

_BREAK: Final = r"(?:\s|\\{1,7}[nrt]|[\"'>|,+]){0,40}"
# A body without an end: lines of Base64 and header lines; prose after a lone first line is none.
_BODY: Final = Pattern(
    rf"{_BREAK}(?:[A-Za-z0-9+/=]{{6,}}|(?:Proc-Type|DEK-Info|Comment|Version|Hash|Encryption|Public-Lines):[^\n\\]{{0,200}})"
    rf"(?:{_BREAK}(?:(?:Proc-Type|DEK-Info|Comment|Version|Public-Lines|Private-Lines)\s?:[^\n\\]{{0,200}}"
    r"|[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/=]{1,}(?=[\s\"']*(?:\Z|…))))*"
)
_BASE64: Final = Pattern(r"[A-Za-z0-9+/=]+")
_BASE64_LINE: Final = Pattern(r"[A-Za-z0-9+/=]{16,}")
_LINE_ENDS: Final = Pattern(r"\\{1,7}[nr]|\s+")


def _find(subject: Subject) -> Iterator[Span]:
    text, done = subject.text, 0
    ends = list(_END.finditer(text))
    at = 0
    begins = list(_BEGIN.finditer(text))
    for number, begin in enumerate(begins):
        while at < len(ends) and ends[at].start() < begin.end():
            # An end without a begin: the begin was cut off.
            yield from _before(text, ends[at], done)
            done = max(done, ends[at].end())
            at += 1
        limit = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        if at < len(ends) and ends[at].end() <= min(limit, begin.end() + _LONGEST):
            if text[begin.end() : ends[at].start()].strip():
                yield _span(begin.start(), ends[at].end())
            done = ends[at].end()
            at += 1
        elif body := _BODY.match(text, begin.end(), min(limit, begin.end() + _LONGEST)):
            yield _span(begin.start(), body.end())
            done = body.end()
    for end in ends[at:]:
        yield from _before(text, end, done)
        done = end.end()


def _before(text: str, end: re.Match[str], done: int) -> Iterator[Span]:
    """The lines of Base64 right before `end`; only the last of them may be short."""
    begin = end.start()
    for first, last in reversed(_pieces(text, max(done, begin - _LONGEST), begin)):
        line = text[first:last].strip("\"' ")
        if line and not (_BASE64_LINE if begin < end.start() else _BASE64).fullmatch(line):
            break
        begin = first if line else begin
    if begin < end.start():
        yield _span(begin, end.end())


def _span(begin: int, end: int) -> Span:
    return Span(begin, end, "private-key")


def _pieces(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    at = begin
    for separator in _LINE_ENDS.finditer(text, begin, end):
        pieces.append((at, separator.start()))
        at = separator.end()
    return [*pieces, (at, end)]


DETECTOR: Final = Detector(_find, ("private key", "putty-user-key", "private-mac"))
