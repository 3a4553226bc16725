"""API Gateway's WebSocket events, of which the functions need little.

Only what is used is asked for: an event that lacks a field nobody reads is still an event. Powertools'
models ask for every field, and to import one of them is to build all of them, which doubles the time
that the function for $connect takes to start.
"""

import base64
import binascii
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

Required = Annotated[str, StringConstraints(min_length=1)]


class _Part(BaseModel):
    # What doesn't fit is not quoted in the error: it ends in the platform's log (SEC-4).
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, hide_input_in_errors=True)


class _Context(_Part):
    connection_id: Required


class _ConnectContext(_Context):
    authorizer: dict[str, Any] | None = None


class _MessageContext(_Context):
    request_id: Required


class _Event(_Part):
    request_context: _Context

    @property
    def connection_id(self) -> str:
        return self.request_context.connection_id


class ConnectEvent(_Event):
    request_context: _ConnectContext

    @property
    def principal(self) -> str | None:
        """Who the authorizer says is connecting; None without an authorizer."""
        principal = (self.request_context.authorizer or {}).get("principalId")
        return principal if isinstance(principal, str) and principal else None


class DisconnectEvent(_Event):
    """The end of a connection."""


def _flag(value: object) -> object:
    """A mapping template has no booleans of its own: it may hand over the word."""
    return value == "true" if isinstance(value, str) else value


class MessageEvent(_Event):
    """A client's message: by AWS_PROXY as text, by the chat route's mapping template in base64."""

    request_context: _MessageContext
    is_base64_encoded: Annotated[bool, BeforeValidator(_flag)] = Field(default=False, alias="isBase64Encoded")
    body: str | None = None

    @property
    def gateway_request_id(self) -> str:
        """New for each message a client sends; the same when the platform delivers one message again."""
        return self.request_context.request_id

    @property
    def message(self) -> bytes:
        """The client's message as it came; empty when its encoding is broken, which no parser accepts."""
        body = self.body or ""
        if not self.is_base64_encoded:
            return body.encode("utf-8", "replace")
        try:
            return base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            return b""
