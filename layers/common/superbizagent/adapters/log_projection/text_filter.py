"""Which records have the texts that a search asks for."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

from superbizagent.domain.pattern import Pattern

_PLACEHOLDER: Final = Pattern(r"\[secret:[^\]\s]*\]?")


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
        self._redact = redact

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
        # Each record, however many there are: one that is believed unseen tells of the secret in it.
        shown = self._redact(text).casefold()
        return all(wanted in shown for wanted in self._contains) and not any(map(shown.__contains__, unwanted))


def may_be_secret(text: str, redact: Callable[[str], str]) -> bool:
    """Whether `text` would be hidden where a secret is expected. It depends on nothing that is in a log."""
    return redact(named := f"token: {text}") != named


def hidden_notes(texts: Sequence[str], redact: Callable[[str], str]) -> tuple[str, ...]:
    """What to say of a search for `texts`: that one is not found proves nothing about what is hidden.

    By the texts alone: said only where one was found in a secret, it would tell that a guess is right.
    """
    if not any(may_be_secret(text, redact) for text in texts):
        return ()
    return ("secrets were hidden before the search: a text that stands only inside one is not found",)


def unhidden(text: str) -> list[str]:
    """What of a text to look for stands in the record itself: all but the placeholders in it."""
    return [part for part in _PLACEHOLDER.split(text) if part.strip()]
