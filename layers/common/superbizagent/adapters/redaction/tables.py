"""Secrets in tables as text, whose columns are named once: Markdown, what database clients print, CSV."""

from collections.abc import Iterator
from typing import Final

from superbizagent.adapters.redaction.spans import Detector, Span, Subject
from superbizagent.adapters.redaction.values import is_secret
from superbizagent.domain.pattern import Pattern

# A cell that holds such a name and nothing else.
_HEAD: Final = Pattern(
    r"(?m:(?P<before>^|[|,\t;])[ \t*\"'`]{0,40}"
    r"(?:[a-z0-9 ._-]{0,30}(?:passw(?:or)?d|passcode|passphrase|secret|api[ _-]?key|token)|密码|口令)"
    r"[ \t*\"'`]{0,40}(?=[|,\t;]|$))"
)
_MAX_ROWS: Final = 200
_RULE: Final = Pattern(r"[\s|+:=-]*")
_MARGIN: Final = " \t*\"'`"


def _find(subject: Subject) -> Iterator[Span]:
    if "\n" not in subject.text:
        # Most texts are single lines, and have no columns.
        return
    spans: list[Span] = []
    done = -1
    for head in _HEAD.finditer(subject.lowered):
        begin, end = _line(subject.text, head.end())
        if begin == done:
            continue
        done = begin
        spans += _column_spans(subject.text, begin, end)
    yield from sorted(spans)


def _column_spans(text: str, begin: int, end: int) -> Iterator[Span]:
    header = text[begin:end]
    separator = max("|\t,;", key=header.count)
    if not header.count(separator):
        return
    cells = header.split(separator)
    secret = [place for place, cell in enumerate(cells) if _HEAD.fullmatch(cell.lower())]
    for _ in range(_MAX_ROWS):
        begin = end + 1
        if begin >= len(text):
            return
        begin, end = _line(text, begin)
        row = text[begin:end]
        if row.count(separator) != header.count(separator):
            if _RULE.fullmatch(row) and row.strip():
                continue
            return
        yield from _cells(row, begin, separator, secret)


def _cells(row: str, begin: int, separator: str, places: list[int]) -> Iterator[Span]:
    at = begin
    for place, cell in enumerate(row.split(separator)):
        value = cell.strip(_MARGIN)
        # A sentence in such a column tells about secrets.
        if place in places and " " not in value and is_secret(value):
            start = at + cell.index(value)
            yield Span(start, start + len(value))
        at += len(cell) + 1


def _line(text: str, at: int) -> tuple[int, int]:
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


DETECTOR: Final = Detector(_find, ("passw", "passcode", "passphrase", "secret", "api", "token", "密码", "口令"))
