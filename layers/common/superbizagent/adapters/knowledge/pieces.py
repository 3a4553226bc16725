"""Text in pieces of a bounded length."""

from collections.abc import Iterator, Sequence


def in_pieces(blocks: Sequence[str], limit: int) -> Iterator[str]:
    """The blocks joined to texts of at most `limit` characters; only longer blocks are cut themselves."""
    piece = ""
    for block in blocks:
        for part in _cut(block, limit):
            if piece and len(piece) + 2 + len(part) > limit:
                yield piece
                piece = ""
            piece = f"{piece}\n\n{part}" if piece else part
    if piece:
        yield piece


def _cut(block: str, limit: int) -> Iterator[str]:
    """Cut at the ends of lines where there are any, else between words, else anywhere."""
    while len(block) > limit:
        at = max(block.rfind("\n", 1, limit + 1), 0) or max(block.rfind(" ", 1, limit + 1), 0) or limit
        yield block[:at].rstrip()
        block = block[at:].lstrip("\n") if block[at] == "\n" else block[at:].lstrip(" ")
    if block:
        yield block
