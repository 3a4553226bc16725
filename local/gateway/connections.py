"""The sockets that are open now."""

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame

from local.gateway.clock import Clock
from local.gateway.errors import BadRequest, Gone, PayloadTooLarge


def new_id() -> str:
    """Ids of connections, requests and messages look alike on AWS: base64 with a padding sign."""
    return urlsafe_b64encode(secrets.token_bytes(11)).decode()


class Socket(ServerConnection):
    """Reports every frame that arrives, pings too, which the library would answer by itself."""

    peer: "Connection | None" = None

    def process_event(self, event: Any) -> None:
        if self.peer is not None and isinstance(event, Frame):
            self.peer.touch()
        super().process_event(event)


@dataclass(frozen=True, kw_only=True)
class Client:
    """What is known of the other side since the handshake."""

    source_ip: str
    user_agent: str | None
    authorizer: Mapping[str, Any] | None = None


@dataclass(kw_only=True, eq=False)
class Connection:
    client: Client
    clock: Clock
    connected_at: float
    last_active_at: float = 0.0
    id: str = field(default_factory=new_id)
    socket: Socket | None = None  # None until $connect has returned

    def __post_init__(self) -> None:
        self.last_active_at = self.connected_at

    def open(self, socket: Socket) -> None:
        self.socket, socket.peer = socket, self
        self.touch()

    def touch(self) -> None:
        self.last_active_at = self.clock.now()

    async def send(self, text: str) -> None:
        if self.socket is None:
            raise Gone(f"Connection {self.id} is not open yet.")
        try:
            await self.socket.send(text)
        except ConnectionClosed as error:
            raise Gone(f"Connection {self.id} has closed.") from error
        self.touch()

    async def close(self, code: int, reason: str) -> None:
        if self.socket is not None:
            await self.socket.close(code, reason)


class Connections:
    """Holds a connection from the end of its handshake to its close: while $connect runs, there is none to
    post to, as on AWS."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: dict[str, Connection] = {}

    def add(self, connection: Connection) -> None:
        self._open[connection.id] = connection

    def remove(self, connection: Connection) -> None:
        self._open.pop(connection.id, None)

    def get(self, connection_id: str) -> Connection:
        connection = self._open.get(connection_id)
        if connection is None:
            raise Gone(f"There is no open connection {connection_id}.")
        return connection

    def all(self) -> list[Connection]:
        return list(self._open.values())

    async def post(self, connection_id: str, data: bytes) -> None:
        connection = self.get(connection_id)
        if len(data) > self._limit:
            raise PayloadTooLarge(f"{len(data)} bytes are more than the {self._limit} that a message may have.")
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise BadRequest("The data is not UTF-8; messages to the client are text.") from error
        await connection.send(text)
