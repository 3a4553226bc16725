"""The Lambda Runtime API. Each child has a port of its own, because clients take only HOST:PORT."""

import socket
from typing import Protocol

from aiohttp import web

from local.gateway.runtime.invocation import Invocation, Result

RESPONSE_LIMIT = 6 * 1024 * 1024 + 1024
TOO_LARGE = "Function.ResponseSizeTooLarge"


class RuntimeClient(Protocol):
    """What a child process does through the Runtime API."""

    async def next(self) -> tuple[Invocation, float, str] | None:
        """The event, its deadline and the function's ARN; None when the process is to end."""
        ...

    def respond(self, request_id: str, body: bytes) -> bool: ...

    def fail(self, request_id: str, kind: str, body: bytes) -> bool: ...

    def fail_init(self, kind: str, body: bytes) -> None: ...


class RuntimeServer:
    def __init__(self) -> None:
        self._clients: dict[int, RuntimeClient] = {}
        app = web.Application(client_max_size=RESPONSE_LIMIT)
        root = "/2018-06-01/runtime"
        app.router.add_get(f"{root}/invocation/next", self._next)
        app.router.add_post(f"{root}/invocation/{{id}}/response", self._response)
        app.router.add_post(f"{root}/invocation/{{id}}/error", self._error)
        app.router.add_post(f"{root}/init/error", self._init_error)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        self._sites: dict[int, web.SockSite] = {}

    async def start(self) -> None:
        await self._runner.setup()

    async def close(self) -> None:
        await self._runner.cleanup()

    async def attach(self, client: RuntimeClient) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        try:
            site = web.SockSite(self._runner, listener)
            await site.start()
        except BaseException:
            listener.close()
            raise
        self._clients[port], self._sites[port] = client, site
        return port

    async def detach(self, port: int) -> None:
        self._clients.pop(port, None)
        if site := self._sites.pop(port, None):
            await site.stop()

    def _client(self, request: web.Request) -> RuntimeClient:
        port = request.get_extra_info("sockname")[1]
        try:
            return self._clients[port]
        except KeyError:
            raise web.HTTPGone from None

    async def _next(self, request: web.Request) -> web.Response:
        event = await self._client(request).next()
        if event is None:
            raise web.HTTPGone
        invocation, deadline, arn = event
        headers = {
            "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
            "Lambda-Runtime-Deadline-Ms": str(int(deadline * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": arn,
            "Lambda-Runtime-Trace-Id": invocation.trace_id,
        }
        if invocation.client_context is not None:
            headers["Lambda-Runtime-Client-Context"] = invocation.client_context
        return web.Response(body=invocation.payload, content_type="application/json", headers=headers)

    async def _response(self, request: web.Request) -> web.Response:
        client, request_id = self._client(request), request.match_info["id"]
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            failed = Result.failed(request_id, TOO_LARGE, "The response is larger than 6 MB")
            client.fail(request_id, TOO_LARGE, failed.payload)
            raise
        return _accepted(client.respond(request_id, body))

    async def _error(self, request: web.Request) -> web.Response:
        body = await request.read()
        done = self._client(request).fail(request.match_info["id"], _kind(request), body)
        return _accepted(done)

    async def _init_error(self, request: web.Request) -> web.Response:
        self._client(request).fail_init(_kind(request), await request.read())
        return _accepted(True)


def _kind(request: web.Request) -> str:
    return request.headers.get("Lambda-Runtime-Function-Error-Type", "Unhandled")


def _accepted(done: bool) -> web.Response:
    if done:
        return web.json_response({"status": "OK"}, status=202)
    error = {"errorType": "InvalidRequestID", "errorMessage": "This process has no such event."}
    return web.json_response(error, status=400)
