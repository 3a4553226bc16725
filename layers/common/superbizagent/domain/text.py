"""Bounding of text by characters and by encoded bytes, never inside a code point."""

ELLIPSIS = "…"


def bound_characters(text: str, limit: int) -> str:
    """`text`, cut to `limit` characters; a cut shows as an ellipsis inside the limit."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + ELLIPSIS


def bound_bytes(text: str, limit: int) -> str:
    """`text`, cut to `limit` bytes of UTF-8; a cut shows as an ellipsis inside the limit."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return text
    room = max(limit - len(ELLIPSIS.encode()), 0)
    return encoded[:room].decode("utf-8", "ignore") + ELLIPSIS


def fold_whitespace(text: str) -> str:
    """`text` with every run of white space made one space: how quotations are compared."""
    return " ".join(text.split())
