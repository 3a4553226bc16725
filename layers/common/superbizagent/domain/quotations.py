"""Passages that a text puts in quotation marks, and where they occur verbatim."""

import re

from superbizagent.domain.folding import normalise
from superbizagent.domain.pattern import Pattern

_QUOTATION = Pattern(
    r'"([^"\n]{2,})"|“([^”]{2,})”|「([^」]{2,})」|『([^』]{2,})』|«([^»]{2,})»|‘([^’\n]{2,})’|《([^》]{2,})》'
    r"|(?<![A-Za-z0-9])'([^'\n]{2,600})'(?![A-Za-z0-9])"
)
_CODE = Pattern(r"`([^`\n]+)`")
_GROUPED = Pattern(r"[0-9][.,][0-9]")
_ELLIPSIS = Pattern(r"\[?(?:\.{3,}|…+)\]?")
_LEAST_PIECE = 8
_MOST_LEFT_OUT = 200
_CLOSING = ".,;:!?。，；：！？"


def take_quotations(text: str) -> tuple[str, tuple[str, ...]]:
    """The quotations of a text, and the text with a blank for each.

    One word in code ticks is a name set in code type, not a quotation: it stays in the text.
    """
    found: list[str] = []

    def take(match: re.Match[str]) -> str:
        found.append(next(group for group in match.groups() if group))
        return " "

    def take_code(match: re.Match[str]) -> str:
        if " " not in match[1].strip() and len(re.findall(r"[\u4e00-\u9fff]", match[1])) < _LEAST_PIECE // 2:
            return f" {match[1]} "
        found.append(match[1])
        return " "

    return _CODE.sub(take_code, _QUOTATION.sub(take, text)), tuple(found)


def code_words(text: str) -> tuple[str, ...]:
    """The single words in code ticks: names, whatever they look like."""
    rest = _QUOTATION.sub(" ", text)
    return tuple(word for match in _CODE.finditer(rest) if (word := match[1].strip()) and " " not in word)


def holds(record: str, quotation: str) -> bool:
    """Whether a folded record has the quotation, from the beginning of a word to the end of one."""
    quote = normalise(quotation)
    if _whole(record, quote) or (quote[-1:] in _CLOSING and _whole(record, quote.rstrip(_CLOSING).rstrip())):
        return True
    pieces = [piece.strip() for piece in _ELLIPSIS.split(quote)]
    return len(pieces) > 1 and _in_order(record, [piece for piece in pieces if piece])


def _in_order(record: str, pieces: list[str]) -> bool:
    """Whether a quotation that says it leaves something out does so within one record, and little of it."""
    if not pieces or not all(map(_is_passage, pieces)):
        return False
    text = rf".{{0,{_MOST_LEFT_OUT}}}?".join(rf"(?<![A-Za-z0-9]){re.escape(piece)}" for piece in pieces)
    return re.search(rf"{text}(?![A-Za-z0-9])", record) is not None


def _is_passage(piece: str) -> bool:
    """Whether it is long enough to be found only where it was taken from."""
    return (" " in piece and len(piece) >= _LEAST_PIECE) or len(
        re.findall(r"[\u4e00-\u9fff]", piece)
    ) >= _LEAST_PIECE // 2


def _whole(record: str, quote: str) -> bool:
    at = record.find(quote) if quote else -1
    while at >= 0:
        if not _cuts(record, at) and not _cuts(record, at + len(quote)):
            return True
        at = record.find(quote, at + 1)
    return False


def _cuts(record: str, at: int) -> bool:
    """Whether a word or number runs on across this place."""
    if at <= 0 or at >= len(record):
        return False
    if _ascii_word(record[at - 1]) and _ascii_word(record[at]):
        return True
    # Before or after the point of 3.5 and the comma of 1,200.
    return any(_GROUPED.fullmatch(record, max(begin, 0), begin + 3) for begin in (at - 2, at - 1))


def _ascii_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")
