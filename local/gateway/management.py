"""The HTTP port: @connections, the Lambda Invoke API and, if asked for, static files."""

import base64
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from aiohttp import web

from local.gateway.config import MESSAGE_LIMIT
from local.gateway.connections import Connections
from local.gateway.errors import BadRequest, CallError, Forbidden
from local.gateway.model import Api
from local.gateway.runtime import Functions, Invocation

INVOKE_LIMIT = 6 * 1024 * 1024
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def errors_as_aws(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except CallError as error:
        headers = {"x-amzn-ErrorType": error.code, "x-amzn-RequestId": "local"}
        return web.json_response({"message": str(error)}, status=error.status, headers=headers)


class Management:
    def __init__(self, api: Api, connections: Connections, functions: Functions) -> None:
        self._api = api
        self._connections = connections
        self._functions = functions

    def application(self) -> web.Application:
        app = web.Application(client_max_size=INVOKE_LIMIT, middlewares=[errors_as_aws])
        connection = "/{stage}/@connections/{id}"
        app.router.add_post(connection, self._post)
        app.router.add_get(connection, self._get)
        app.router.add_delete(connection, self._delete)
        app.router.add_post("/2015-03-31/functions/{name}/invocations", self._invoke)
        return app

    async def _post(self, request: web.Request) -> web.Response:
        self._check(request)
        # Read at most what tells a message over the limit from one at it.
        data = await request.content.read(MESSAGE_LIMIT + 1) if request.can_read_body else b""
        while len(data) <= MESSAGE_LIMIT and not request.content.at_eof():
            data += await request.content.read(MESSAGE_LIMIT + 1 - len(data))
        await self._connections.post(request.match_info["id"], data)
        return web.Response()

    async def _get(self, request: web.Request) -> web.Response:
        self._check(request)
        connection = self._connections.get(request.match_info["id"])
        client = connection.client
        return web.json_response(
            {
                "connectedAt": _iso(connection.connected_at),
                "identity": {"sourceIp": client.source_ip, "userAgent": client.user_agent or ""},
                "lastActiveAt": _iso(connection.last_active_at),
            }
        )

    async def _delete(self, request: web.Request) -> web.Response:
        self._check(request)
        connection = self._connections.get(request.match_info["id"])
        await connection.close(1000, "Connection Closed Normally")
        return web.Response(status=204)

    async def _invoke(self, request: web.Request) -> web.Response:
        _check_signed(request)
        logical_id = self._functions.find(request.match_info["name"])
        payload = await request.read() or b"{}"
        try:
            json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise BadRequest("The payload is not JSON.") from error
        invocation = Invocation(payload=payload, client_context=_client_context(request))
        headers = {"x-amzn-RequestId": invocation.request_id, "X-Amz-Executed-Version": "$LATEST"}
        match request.headers.get("X-Amz-Invocation-Type", "RequestResponse"):
            case "Event":
                self._functions.submit(logical_id, invocation)
                return web.Response(status=202, headers=headers)
            case "DryRun":
                return web.Response(status=204, headers=headers)
        result = await self._functions.invoke(logical_id, invocation)
        if result.error is not None:
            headers["X-Amz-Function-Error"] = "Unhandled"
        return web.Response(body=result.payload, headers=headers, content_type="application/json")

    def _check(self, request: web.Request) -> None:
        _check_signed(request)
        if request.match_info["stage"] != self._api.stage:
            raise Forbidden(f"The API has no stage {request.match_info['stage']}; it has {self._api.stage}.")


def _check_signed(request: web.Request) -> None:
    """Unsigned calls are refused as on AWS, which keeps web pages of other sites out too; the signature
    itself is not checked."""
    if not request.headers.get("Authorization", "").startswith("AWS4-"):
        raise Forbidden("Missing Authentication Token")


def _client_context(request: web.Request) -> str | None:
    encoded = request.headers.get("X-Amz-Client-Context")
    try:
        return base64.b64decode(encoded, validate=True).decode() if encoded else None
    except ValueError as error:
        raise BadRequest("X-Amz-Client-Context is not base64 of UTF-8.") from error


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
