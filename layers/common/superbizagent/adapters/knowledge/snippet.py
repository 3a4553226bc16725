"""The part of a passage that answers a query."""

from collections.abc import Mapping, Sequence

from superbizagent.adapters.knowledge.plain_text import in_pieces
from superbizagent.adapters.knowledge.tokens import document_terms
from superbizagent.domain.text import ELLIPSIS

SNIPPET_CHARACTERS = 1_200


def snippet(text: str, weights: Mapping[str, float]) -> list[str]:
    """The lines of `text`, or those around the lines with the weightiest terms, where it is long.

    What is left out shows as a line with an ellipsis. At most SNIPPET_CHARACTERS characters.
    """
    lines = text.split("\n")
    if len(text) <= SNIPPET_CHARACTERS:
        return lines
    room = SNIPPET_CHARACTERS - 2 * len(f"{ELLIPSIS}\n")
    # A line that is too long itself is shown in part.
    lines = [piece for line in lines for piece in (in_pieces([line], room // 2) if line else [""])]
    first, end = _window(lines, weights, room)
    before = [ELLIPSIS] if first else []
    after = [ELLIPSIS] if end < len(lines) else []
    return [*before, *lines[first:end], *after]


def _window(lines: Sequence[str], weights: Mapping[str, float], room: int) -> tuple[int, int]:
    """The run of whole lines that fits `room` and has the most weight; of equal ones the first."""
    found = [{term for term in document_terms(line) if term in weights} for line in lines]
    best = (-1.0, 0, 0)
    for first in range(len(lines)):
        end = _end_of_window(lines, first, room)
        terms = set().union(*found[first:end])
        weight = sum(weights[term] for term in sorted(terms))
        if weight > best[0]:
            best = (weight, first, end)
    return best[1], best[2]


def _end_of_window(lines: Sequence[str], first: int, room: int) -> int:
    used = 0
    for at in range(first, len(lines)):
        used += len(lines[at]) + 1
        if used > room:
            return at
    return len(lines)
