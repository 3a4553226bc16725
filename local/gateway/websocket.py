"""The WebSocket port: handshakes, messages, limits and the end of connections."""

import asyncio
import http
import json
import logging
import socket as sockets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import CONNECTING

from local.gateway.authorizer import Refused, authorize
from local.gateway.clock import Clock, Tasks
from local.gateway.config import FRAME_LIMIT, MESSAGE_LIMIT, GatewayConfig
from local.gateway.connections import Client, Connection, Connections, Socket, new_id
from local.gateway.errors import Gone
from local.gateway.events import Event, Events
from local.gateway.integrations import Answer, IntegrationFailed, Integrations
from local.gateway.model import CONNECT, DISCONNECT, Route, Stack
from local.gateway.routing import select_route
from local.gateway.runtime import Functions

log = logging.getLogger("local.gateway")
GOING_AWAY = (1001, "Going away")
ABNORMAL = (1006, "Connection closed abnormally")
NO_STATUS = "Client-side close frame status not set"
# The server's own part of a handshake, which no function may set.
RESERVED = {"connection", "upgrade", "sec-websocket-accept", "content-length", "transfer-encoding", "date"}


class WebSocketSide:
    def __init__(
        self,
        stack: Stack,
        config: GatewayConfig,
        clock: Clock,
        *,
        events: Events,
        connections: Connections,
        functions: Functions,
        integrations: Integrations,
    ) -> None:
        self._stack = stack
        self._api = stack.api
        self._config = config
        self._clock = clock
        self._events = events
        self._connections = connections
        self._functions = functions
        self._integrations = integrations
        self._tasks = Tasks()
        self._farewells = Tasks()
        self._running: set[asyncio.Task[None] | None] = set()
        self._server: Server

    async def start(self, listener: sockets.socket) -> None:
        self._server = await serve(
            self._run,
            sock=listener,
            create_connection=Socket,
            process_response=self._admit,
            max_size=(MESSAGE_LIMIT, FRAME_LIMIT),
            compression=None,  # API Gateway offers no extension
            ping_interval=None,  # nor does it ping
            open_timeout=None,  # the integration time-out bounds $connect
            close_timeout=2,
            server_header=None,
        )

    async def close(self) -> None:
        """Says good-bye to every client and lets $disconnect handlers end, but nothing else."""
        self._server.close(True, *GOING_AWAY)
        running = [task for task in self._running if task is not None]
        if running:
            await asyncio.wait(running, timeout=self._config.shutdown_grace)
        await self._farewells.finish(self._config.shutdown_grace)
        await self._farewells.cancel()
        await self._tasks.cancel()

    async def closed(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    # The handshake

    async def _admit(self, socket: ServerConnection, request: Request, response: Response) -> Response | None:
        """Runs $connect before the client learns that it is connected."""
        if response.status_code != http.HTTPStatus.SWITCHING_PROTOCOLS:
            return None
        if urlsplit(request.path).path.strip("/") != self._api.stage:
            return _refusal(403, "Forbidden")
        connection = self._arriving(socket, request)
        try:
            answer = await self._connect(connection, request)
        except (Refused, IntegrationFailed) as error:
            return _refusal(error.status, str(error), connection.id)
        for name, value in answer.headers.items():
            if name.lower() not in RESERVED:
                response.headers[name] = value
        if socket.state is CONNECTING:
            assert isinstance(socket, Socket)  # noqa: S101 - create_connection makes them
            socket.peer = connection
        else:  # the client did not wait
            self._leave(connection, *ABNORMAL)
        return None

    def _arriving(self, socket: ServerConnection, request: Request) -> Connection:
        source_ip = socket.remote_address[0]
        client = Client(source_ip=source_ip, user_agent=request.headers.get("User-Agent"))
        return Connection(client=client, clock=self._clock, connected_at=self._clock.now())

    async def _connect(self, connection: Connection, request: Request) -> Answer:
        route = self._api.routes.get(CONNECT)
        if route is None:
            return Answer()
        request_id = new_id()
        event = self._events.connect(connection, request, request_id)
        authorizer = await self._authorize(route, event)
        if authorizer is not None:
            connection.client = replace(connection.client, authorizer=authorizer)
            event = self._events.connect(connection, request, request_id)
        answer = await self._integrations.call(route, event)
        if not 200 <= answer.status < 300:
            raise IntegrationFailed(_phrase(answer.status), answer.status)
        return answer

    async def _authorize(self, route: Route, event: Event) -> Mapping[str, Any] | None:
        """What the connection's events say of its client; None where nobody is asked."""
        if self._config.principal is not None:
            return {"principalId": self._config.principal}
        if route.authorizer is None:
            return None
        arn = self._arn(route.key)
        asked = self._events.authorize(event, arn)
        return await authorize(route.authorizer, self._functions, self._api, asked, arn)

    def _arn(self, route: str) -> str:
        stack = self._stack
        return f"arn:aws:execute-api:{stack.region}:{stack.account}:{self._api.api_id}/{self._api.stage}/{route}"

    # The connection

    async def _run(self, socket: ServerConnection) -> None:
        assert isinstance(socket, Socket)  # noqa: S101 - create_connection makes them
        connection = socket.peer
        assert connection is not None  # noqa: S101 - set by _admit
        self._running.add(task := asyncio.current_task())
        self._connections.add(connection)
        connection.open(socket)
        guard = self._tasks.start(self._end_in_time(connection))
        try:
            await self._receive(connection, socket)
        finally:
            guard.cancel()
            self._leave(connection, *_ending(socket))
            self._running.discard(task)

    async def _receive(self, connection: Connection, socket: Socket) -> None:
        try:
            async for message in socket:
                if isinstance(message, bytes):
                    await socket.close(1003, "Binary is not supported")
                    return
                # In order of arrival: tasks start in the order in which they are made, and a function's
                # pool serves in that order. No message waits for the answer to another one.
                self._tasks.start(self._dispatch(connection, message))
        except ConnectionClosed:
            pass

    async def _dispatch(self, connection: Connection, body: str) -> None:
        request_id = new_id()
        route = select_route(self._api, body)
        if route is None:
            await self._tell(connection, "Forbidden", request_id)
            return
        event = self._events.message(connection, route.key, body, request_id)
        try:
            answer = await self._integrations.call(route, event)
        except IntegrationFailed as error:
            await self._tell(connection, str(error), request_id)
            return
        await self._answer(connection, route, answer, request_id)

    async def _answer(self, connection: Connection, route: Route, answer: Answer, request_id: str) -> None:
        if not route.responds or answer.body is None:
            return
        if len(answer.body.encode()) > MESSAGE_LIMIT:
            log.warning("An answer of route %s is over the limit of a message", route.key)
            await self._tell(connection, "Internal server error", request_id)
            return
        await _send(connection, answer.body)

    async def _tell(self, connection: Connection, message: str, request_id: str) -> None:
        frame = {"message": message, "connectionId": connection.id, "requestId": request_id}
        await _send(connection, json.dumps(frame))

    async def _end_in_time(self, connection: Connection) -> None:
        """Idle means that no frame, data or control, went either way."""
        death = connection.connected_at + self._config.connection_life
        while True:
            idle_since = connection.last_active_at
            end = min(death, idle_since + self._config.idle_timeout)
            remaining = end - self._clock.now()
            if remaining <= 0:
                break
            await self._clock.sleep(remaining)
        await connection.close(*GOING_AWAY)

    def _leave(self, connection: Connection, code: int, reason: str) -> None:
        self._connections.remove(connection)
        if route := self._api.routes.get(DISCONNECT):
            event = self._events.disconnect(connection, code, reason, new_id())
            self._farewells.start(self._farewell(route, event))

    async def _farewell(self, route: Route, event: Event) -> None:
        try:
            await self._integrations.call(route, event)
        except IntegrationFailed as error:
            log.warning("$disconnect: %s", error)


async def _send(connection: Connection, text: str) -> None:
    try:
        await connection.send(text)
    except Gone:
        log.debug("%s left before it could be answered", connection.id)


def _ending(socket: Socket) -> tuple[int, str]:
    """Who closed first decides the code."""
    protocol = socket.protocol
    received, sent = protocol.close_rcvd, protocol.close_sent
    first = received if protocol.close_rcvd_then_sent else sent or received
    if first is None:
        return ABNORMAL
    if first.code == 1005:
        return 1005, NO_STATUS
    normal = "Connection Closed Normally" if first.code == 1000 else ""
    return int(first.code), first.reason or normal


def _refusal(status: int, message: str, connection_id: str | None = None) -> Response:
    body = {"message": message, "requestId": new_id()} | ({"connectionId": connection_id} if connection_id else {})
    content = json.dumps(body).encode()
    headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(content)), "Connection": "close"})
    return Response(status, _phrase(status), headers, content)


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:  # a function may answer with a status of its own
        return "Refused"
