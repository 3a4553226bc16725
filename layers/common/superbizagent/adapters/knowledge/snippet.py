"""The part of a passage that answers a query."""

from collections.abc import Mapping, Sequence

from superbizagent.adapters.knowledge.pieces import in_pieces
from superbizagent.adapters.knowledge.tokens import document_terms
from superbizagent.domain.text import ELLIPSIS

MOST_BYTES = 1_200
LEAST_BYTES = 300


def snippet(text: str, weights: Mapping[str, float], room: int) -> list[str]:
    """The lines of `text`, or those around the lines with the weightiest terms, where it is long.

    What is left out shows as a line with an ellipsis. Fits `room` bytes of UTF-8 (from LEAST_BYTES to
    MOST_BYTES of them, whatever `room` is).
    """
    room = min(max(room, LEAST_BYTES), MOST_BYTES)
    lines = text.split("\n")
    if _size(lines) <= room:
        return lines
    room -= 2 * _size([ELLIPSIS])
    lines = _short(lines, room)
    first, end = _best(lines, weights, room)
    before = [ELLIPSIS] if first else []
    after = [ELLIPSIS] if end < len(lines) else []
    return [*before, *lines[first:end], *after]


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _short(lines: Sequence[str], room: int) -> list[str]:
    """A line that doesn't fit is shown in part: it is cut into lines of at most `room` / 2 bytes."""
    return [
        piece for line in lines for piece in ([line] if _size([line]) <= room // 2 else in_pieces([line], room // 8))
    ]


def _best(lines: Sequence[str], weights: Mapping[str, float], room: int) -> tuple[int, int]:
    """The run of whole lines that fits `room` and has the most weight; of equal ones the first."""
    found = [{term for term in document_terms(line) if term in weights} for line in lines]
    best = (-1.0, 0, 0)
    for first in range(len(lines)):
        end = _end_of_window(lines, first, room)
        terms = set[str]().union(*found[first:end])
        weight = sum(weights[term] for term in sorted(terms))
        if weight > best[0]:
            best = (weight, first, end)
    return best[1], best[2]


def _end_of_window(lines: Sequence[str], first: int, room: int) -> int:
    used = 0
    for at in range(first, len(lines)):
        used += _size([lines[at]])
        if used > room:
            return at
    return len(lines)
