"""What a detector is: something that finds the spans of secrets in a text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from superbizagent.domain.pattern import Pattern

PLACEHOLDER_TEXT: Final = r"\[secret:[a-z-]{1,20}:[0-9a-f]{8}\]"
PLACEHOLDER: Final = Pattern(PLACEHOLDER_TEXT)


class Span(NamedTuple):
    """Where a secret stands. `kind` depends on its own form only, never on its surroundings."""

    begin: int
    end: int
    kind: str = "value"


@dataclass(frozen=True)
class Subject:
    """A text to look at. `lowered` has the same length, so that a place in one is a place in the other."""

    text: str
    lowered: str

    @classmethod
    def of(cls, text: str) -> "Subject":
        # U+0130 is the only character whose lower case is two characters.
        return cls(text, text.replace("\u0130", "i").lower())


Find = Callable[[Subject], Iterator[Span]]
"""The secrets of one sort in a text, left to right and without overlaps."""


@dataclass(frozen=True)
class Detector:
    """`hints` are cheap proof that it has nothing to do: none of them is in the lowered text."""

    find: Find
    hints: tuple[str, ...] = ()

    def concerns(self, subject: Subject) -> bool:
        return not self.hints or any(map(subject.lowered.__contains__, self.hints))


def matching(
    pattern: Pattern, accept: Callable[[str], bool] = bool, *, lowered: bool = False, kind: str = "value"
) -> Find:
    """By a pattern whose group `secret` is the secret; with `lowered`, it is written in lower case."""

    def find(subject: Subject) -> Iterator[Span]:
        for match in pattern.finditer(subject.lowered if lowered else subject.text):
            begin, end = match.span("secret")
            if accept(subject.text[begin:end]):
                yield Span(begin, end, kind)

    return find
