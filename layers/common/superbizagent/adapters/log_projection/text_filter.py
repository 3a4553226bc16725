"""Which records have the texts that a search asks for."""

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

_PLACEHOLDER: Final = re.compile(r"\[secret:[^\]\s]*\]?")
_JUDGED: Final = 5_000
"""Records: redaction costs more than the search. Nobody learns of a secret by what is found after so many."""


class TextFilter:
    """Looks for texts, in any case, in what a model may see of a record, not in what is hidden from it.

    Otherwise a search would tell whether a guessed password is right, or how one begins: a text that stands
    in a secret only is not found, and does not exclude. A placeholder is found where it is shown.
    For one search; not to be shared by threads.
    """

    def __init__(self, contains: Sequence[str], excludes: Sequence[str], redact: Callable[[str], str] = str) -> None:
        self._contains = tuple(text.casefold() for text in contains)
        self._excludes = tuple(text.casefold() for text in excludes)
        self._parts = tuple(part.casefold() for part in chain.from_iterable(map(unhidden, contains)))
        self._shown_only = any(map(_PLACEHOLDER.search, (*self._contains, *self._excludes)))
        self._redact = redact
        self._left = _JUDGED

    @property
    def asks(self) -> bool:
        """Whether it asks for anything."""
        return bool(self._contains or self._excludes)

    def accepts(self, text: str) -> bool:
        folded = text.casefold()
        if not all(part in folded for part in self._parts):
            return False
        unwanted = [excluded for excluded in self._excludes if excluded in folded or _PLACEHOLDER.search(excluded)]
        if not self._contains and not unwanted:
            return True
        if self._left <= 0 and not self._shown_only:
            return not unwanted
        self._left -= 1
        shown = self._redact(text).casefold()
        return all(wanted in shown for wanted in self._contains) and not any(map(shown.__contains__, unwanted))


def unhidden(text: str) -> list[str]:
    """What of a text to look for stands in the record itself: all but the placeholders in it."""
    return [part for part in _PLACEHOLDER.split(text) if part.strip()]
