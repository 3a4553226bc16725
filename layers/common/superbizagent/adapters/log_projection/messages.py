"""Where a structured record keeps what it says."""

from collections.abc import Mapping
from typing import Final

_MESSAGE_KEYS: Final = (
    "message",
    "msg",
    "@m",
    "@mt",
    "MESSAGE",
    "log",
    "event",
    "body",
    "Body",
    "text",
    "error",
)


def message_of(fields: Mapping[str, object]) -> str | None:
    """The text of a JSON record's message, by the keys that loggers use; None where it has none."""
    for key in _MESSAGE_KEYS:
        value = fields.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return None
