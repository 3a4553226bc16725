"""API Gateway's WebSocket events, by Powertools' models, less their habit of quoting what doesn't fit."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from aws_lambda_powertools.utilities.parser.models import (
    APIGatewayWebSocketConnectEventModel,
    APIGatewayWebSocketConnectEventRequestContext,
    APIGatewayWebSocketMessageEventModel,
    APIGatewayWebSocketMessageEventRequestContext,
)
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from superbizagent.errors import TokenMalformed, TokenMissing

SUBPROTOCOL = "superbizagent"
"""What both sides speak. A browser that offers subprotocols closes a socket whose handshake selects none of them."""
TOKEN_PREFIX = "bearer."  # noqa: S105
"""A browser can set no header of a WebSocket but the subprotocols: the one that starts so is its token."""
TOKEN_PARAMETER = "token"  # noqa: S105

# An error's text ends in the platform's log, and the event holds the question (SEC-4).
# Built when one is read: each function takes one kind.
_EVENT = ConfigDict(hide_input_in_errors=True, defer_build=True)


class AuthorizerEvent(BaseModel):
    """The handshake as a REQUEST authorizer sees it. Absent headers and parameters may be null."""

    model_config = _EVENT
    method_arn: str = Field(alias="methodArn")
    multi_value_headers: dict[str, list[str]] | None = Field(default=None, alias="multiValueHeaders")
    parameters: dict[str, list[str]] | None = Field(default=None, alias="multiValueQueryStringParameters")

    @property
    def token(self) -> str:
        """The one token, offered as a subprotocol or in the query; raises TokenMissing or TokenMalformed.

        Two may be two people's: none of them is the sender's beyond doubt.
        """
        offered = subprotocols(self.multi_value_headers or {})
        tokens = [one.removeprefix(TOKEN_PREFIX) for one in offered if one.startswith(TOKEN_PREFIX)]
        tokens += (self.parameters or {}).get(TOKEN_PARAMETER, [])
        if not tokens:
            raise TokenMissing
        if len(tokens) > 1:
            raise TokenMalformed("there is more than one")
        return tokens[0]


def subprotocols(headers: Mapping[str, list[str]]) -> Iterator[str]:
    """What the client offers, in its order; several headers are one list (RFC 6455, 11.3.4)."""
    for name, values in headers.items():
        if name.lower() == "sec-websocket-protocol":
            yield from (offered.strip() for value in values for offered in value.split(","))


class _ConnectContext(APIGatewayWebSocketConnectEventRequestContext):
    model_config = _EVENT
    # Nothing reads it, and the address's parser fails by RecursionError on what is nested deeply enough.
    identity: Any = None
    authorizer: dict[str, Any] | None = None


class ConnectEvent(APIGatewayWebSocketConnectEventModel):
    model_config = _EVENT
    request_context: _ConnectContext = Field(alias="requestContext")

    @property
    def connection_id(self) -> str:
        return self.request_context.connection_id

    @property
    def principal(self) -> str | None:
        """Who the authorizer says is connecting; None without an authorizer. Nobody else can say."""
        principal = (self.request_context.authorizer or {}).get("principalId")
        return principal if isinstance(principal, str) and principal else None

    @property
    def subprotocol(self) -> str | None:
        """What the handshake has to select; None for a client that offers nothing we speak."""
        return SUBPROTOCOL if SUBPROTOCOL in subprotocols(self.multi_value_headers) else None


class _EndedContext(BaseModel):
    model_config = _EVENT
    connection_id: str = Field(alias="connectionId")


class DisconnectEvent(BaseModel):
    """The end of a connection, heard whatever else its event lacks: nobody would send it again.

    Powertools' model of it asks for a reason, which a connection that just vanished doesn't give.
    """

    model_config = _EVENT
    request_context: _EndedContext = Field(alias="requestContext")

    @property
    def connection_id(self) -> str:
        return self.request_context.connection_id


def _flag(value: object) -> object:
    """A mapping template has no booleans of its own: it may hand over the word."""
    return value == "true" if isinstance(value, str) else value


class _MessageContext(APIGatewayWebSocketMessageEventRequestContext):
    model_config = _EVENT
    identity: Any = None  # as above


class MessageEvent(APIGatewayWebSocketMessageEventModel):
    """A client's message: by AWS_PROXY as text, by the chat route's mapping template in base64."""

    model_config = _EVENT
    request_context: _MessageContext = Field(alias="requestContext")
    is_base64_encoded: Annotated[bool, BeforeValidator(_flag)] = Field(default=False, alias="isBase64Encoded")
    body: str | None = None

    @property
    def connection_id(self) -> str:
        return self.request_context.connection_id

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
