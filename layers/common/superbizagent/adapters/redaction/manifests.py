"""Secrets that a manifest calls so as a whole: every value of a Kubernetes Secret, whatever its name is."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from superbizagent.adapters.redaction.spans import Detector, Span, Subject
from superbizagent.adapters.redaction.values import is_secret
from superbizagent.domain.pattern import Pattern

_QUOTE: Final = r"(?:\\{0,15}[\"'])?"
_KIND: Final = Pattern(rf"(?:(?<![a-z])|(?<=\\n))kind{_QUOTE}\s{{0,4}}:\s{{0,4}}{_QUOTE}secret(?![\w-])")
# Each object has one; in what kubectl prints it comes before the data, and the kind after them.
_OBJECT: Final = Pattern(r"apiversion(?![a-z])|(?:\n|\\{1,7}n)---")
_BLOCK: Final = Pattern(
    r"(?:^|\n|\\n)(?P<indent>[ -]{0,40})(?:string)?data:[ \t]{0,8}(?P<break>\r?\n|(?:\\{1,7}r)?\\{1,7}n)"
)
_ENTRY: Final = Pattern(rf"{_QUOTE}[\w.-]{{1,253}}{_QUOTE}:(?:\s{{1,8}}|\Z)[|>]?[+-]?\s{{0,8}}{_QUOTE}")
_OBJECT_OF_JSON: Final = Pattern(
    r"\\{0,15}[\"'](?:string)?data\\{0,15}[\"']\s{0,4}:\s{0,4}\{(?P<body>[^{}]{1,65536})\}"
)
_VALUE_OF_JSON: Final = Pattern(r":\s{0,4}\\{0,15}[\"'](?P<secret>[^\"'\\]{1,65536})")


def _find(subject: Subject) -> Iterator[Span]:
    starts = [0, *(match.start() for match in _OBJECT.finditer(subject.lowered)), len(subject.text)]
    for begin, end in pairwise(starts):
        if _KIND.search(subject.lowered, begin, end):
            yield from sorted((*_block_values(subject, begin, end), *_object_values(subject, begin, end)))


def _object_values(subject: Subject, begin: int, end: int) -> Iterator[Span]:
    for data in _OBJECT_OF_JSON.finditer(subject.lowered, begin, end):
        for value in _VALUE_OF_JSON.finditer(subject.text, *data.span("body")):
            if is_secret(value.group("secret")):
                yield Span(*value.span("secret"))


def _block_values(subject: Subject, begin: int, end: int) -> Iterator[Span]:
    for block in _BLOCK.finditer(subject.lowered, begin, end):
        indent, line_break = len(block.group("indent")), block.group("break")
        at = block.end()
        while at < end:
            found = subject.text.find(line_break, at, end)
            line_end = end if found < 0 else found
            line = subject.text[at:line_end]
            if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
                break
            yield from _line_value(line, at)
            at = line_end + len(line_break)


def _line_value(line: str, at: int) -> Iterator[Span]:
    name = _ENTRY.match(line.lstrip(" "))
    begin = len(line) - len(line.lstrip(" ")) + (name.end() if name else 0)
    value = line[begin:].rstrip("\"'\\ \t}")
    if value and is_secret(value):
        yield Span(at + begin, at + begin + len(value))


DETECTOR: Final = Detector(_find, ("secret",))
