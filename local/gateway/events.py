"""Events in the shape that API Gateway gives them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from websockets.http11 import Request

from local.gateway.connections import Connection, new_id
from local.gateway.model import CONNECT, DISCONNECT, Api

Event = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Addresses:
    """Where the gateway is; known once its ports are."""

    websocket: str  # HOST:PORT
    http: str  # HOST:PORT


class Events:
    def __init__(self, api: Api, addresses: Addresses) -> None:
        self._api = api
        self._addresses = addresses

    def connect(self, connection: Connection, request: Request, request_id: str) -> Event:
        return {
            **_handshake(request, connection),
            "requestContext": self._context(connection, CONNECT, "CONNECT", request_id),
            **self._stage_variables(),
            "isBase64Encoded": False,
        }

    def message(self, connection: Connection, route: str, body: str, request_id: str) -> Event:
        context = self._context(connection, route, "MESSAGE", request_id) | {"messageId": new_id()}
        return {
            "requestContext": context,
            **self._stage_variables(),
            "body": body,
            "isBase64Encoded": False,
        }

    def disconnect(self, connection: Connection, code: int, reason: str, request_id: str) -> Event:
        context = self._context(connection, DISCONNECT, "DISCONNECT", request_id)
        headers = {
            "Host": self._addresses.websocket,
            "X-Forwarded-For": connection.client.source_ip,
            "x-api-key": "",
            "x-restapi": "",
        }
        return {
            "headers": headers,
            "multiValueHeaders": {name: [value] for name, value in headers.items()},
            "requestContext": context | {"disconnectStatusCode": code, "disconnectReason": reason},
            **self._stage_variables(),
            "isBase64Encoded": False,
        }

    def authorize(self, event: Event, arn: str) -> Event:
        """From the event that $connect will get."""
        rest = {key: value for key, value in event.items() if key != "isBase64Encoded"}
        return {"type": "REQUEST", "methodArn": arn, **rest}

    def _context(self, connection: Connection, route: str, kind: str, request_id: str) -> Event:
        now = connection.clock.now()
        client = connection.client
        agent = {"userAgent": client.user_agent} if client.user_agent else {}
        return {
            "routeKey": route,
            "eventType": kind,
            "extendedRequestId": request_id,
            "requestTime": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
            "messageDirection": "IN",
            "stage": self._api.stage,
            "connectedAt": int(connection.connected_at * 1000),
            "requestTimeEpoch": int(now * 1000),
            "identity": {"sourceIp": client.source_ip, **agent},
            "requestId": request_id,
            # The host of the API, so that a handler that builds its endpoint from the event comes here
            # once it takes the scheme from its settings.
            "domainName": self._addresses.http,
            "connectionId": connection.id,
            "apiId": self._api.api_id,
            **({"authorizer": dict(client.authorizer)} if client.authorizer is not None else {}),
        }

    def _stage_variables(self) -> Event:
        return {"stageVariables": dict(self._api.stage_variables)} if self._api.stage_variables else {}


def query_parameters(request: Request) -> dict[str, list[str]]:
    return _grouped(parse_qsl(urlsplit(request.path).query, keep_blank_values=True))


def _handshake(request: Request, connection: Connection) -> Event:
    forwarded = [("X-Forwarded-For", connection.client.source_ip), ("X-Forwarded-Proto", "http")]
    headers = _grouped([*request.headers.raw_items(), *forwarded])
    query = query_parameters(request)
    return {
        "headers": _last(headers),
        "multiValueHeaders": headers,
        **({"queryStringParameters": _last(query), "multiValueQueryStringParameters": query} if query else {}),
    }


def _grouped(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name, value in pairs:
        grouped.setdefault(name, []).append(value)
    return grouped


def _last(grouped: Mapping[str, list[str]]) -> dict[str, str]:
    return {name: values[-1] for name, values in grouped.items()}
