"""API Gateway's WebSocket events as the functions need them, by Powertools' models."""

import base64
import binascii
from typing import Annotated, Any

from aws_lambda_powertools.utilities.parser.models import (
    APIGatewayWebSocketConnectEventModel,
    APIGatewayWebSocketConnectEventRequestContext,
    APIGatewayWebSocketDisconnectEventModel,
    APIGatewayWebSocketMessageEventModel,
)
from pydantic import BeforeValidator, Field

DisconnectEvent = APIGatewayWebSocketDisconnectEventModel


class _ConnectContext(APIGatewayWebSocketConnectEventRequestContext):
    authorizer: dict[str, Any] | None = None


class ConnectEvent(APIGatewayWebSocketConnectEventModel):
    request_context: _ConnectContext = Field(alias="requestContext")

    @property
    def connection_id(self) -> str:
        return self.request_context.connection_id

    @property
    def principal(self) -> str | None:
        """Who the authorizer says is connecting; None without an authorizer."""
        return (self.request_context.authorizer or {}).get("principalId") or None


def _flag(value: object) -> object:
    """A mapping template has no booleans of its own: it may hand over the word."""
    return value == "true" if isinstance(value, str) else value


class MessageEvent(APIGatewayWebSocketMessageEventModel):
    is_base64_encoded: Annotated[bool, BeforeValidator(_flag)] = Field(alias="isBase64Encoded")

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
        body = self.body if isinstance(self.body, str) else ""
        if not self.is_base64_encoded:
            return body.encode("utf-8", "replace")
        try:
            return base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            return b""
