"""Bounding of text by characters and by encoded bytes, never inside a code point; text without links."""

import json
import re
from bisect import bisect_right
from collections.abc import Collection

from superbizagent.domain.pattern import Pattern

ELLIPSIS = "…"
REMOVED_LINK = "[link removed]"

_LINK = Pattern(
    # A definition, which an image or a link elsewhere would take its target from.
    r"(?m:^[ >]{0,8}\[[^\]\n]+\]:\s*<?(?P<defined>(?://|www\.|mailto:|tel:|javascript:|data:|vbscript:|file:|[a-z][a-z0-9+.-]{1,15}://)"
    r"[^\s>]*)>?)"
    r"|!?\[(?P<label>[^\]\n]*)\]\s?\(\s*<?(?P<target>[^)\s>]*)[^)\n]*\)|(?P<url>\b[a-z][a-z0-9+.-]{1,15}://[^\s<>\"'`]+)"
    # Readers make links of these without a scheme.
    r"|(?P<bare>(?<![\w./@-])(?:www\.|mailto:)[^\s<>\"'`]+)",
    re.IGNORECASE,
)


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


def bound_json(text: str, limit: int) -> str:
    """`text`, cut so that it has at most `limit` bytes once it is JSON, where quotes and controls grow."""
    if _json_bytes(text) <= limit:
        return text
    room = limit - _json_bytes(ELLIPSIS)
    end = bisect_right(range(len(text)), room, key=lambda length: _json_bytes(text[:length])) - 1
    return text[: max(end, 0)] + ELLIPSIS


def _json_bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) - 2


def without_links(text: str, sources: Collection[str] = (), evidence: str = "") -> str:
    """`text` in which only verified `sources` are still links (SEC-3).

    An address that the evidence shows stays readable without its scheme; any other is taken out, and so is one
    that would still have a link in it then (https://a.test/?next=https://b.test).
    """

    def replace(match: re.Match[str]) -> str:
        address = match["url"] or match["bare"]
        target = (address or match["defined"] or match["target"] or "").rstrip(".,;:!?)")
        tail = match.group()[len(target) :] if address else ""
        if target in sources:
            return match.group()
        readable = target.partition("://")[2] if target in evidence else ""
        shown = "" if _LINK.search(readable) else readable
        return f"{match['label'] or ''} {shown or REMOVED_LINK}".strip() + tail

    return _LINK.sub(replace, text)


def fold_whitespace(text: str) -> str:
    """`text` with every run of white space made one space: how quotations are compared."""
    return " ".join(text.split())
