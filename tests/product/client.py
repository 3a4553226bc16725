"""A browser's side of the wire, for tests: real sockets, decoded frames, bounded waits."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

Frame = dict[str, Any]
TERMINAL = ("done", "error", "cancelled")
WAIT = 120.0
"""Seconds; a bound for a machine under load, not an expectation."""


class Client:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    @property
    def socket(self) -> ClientConnection:
        return self._socket

    async def send(self, **message: Any) -> None:
        await self._socket.send(json.dumps(message, ensure_ascii=False))

    async def ask(self, query: str, session_id: str | None = None, request_id: str | None = None) -> str:
        """Sends a question; its request id."""
        request_id = request_id or uuid.uuid4().hex
        session = {} if session_id is None else {"sessionId": session_id}
        await self.send(action="chat", requestId=request_id, query=query, **session)
        return request_id

    async def receive(self) -> Frame:
        frame: Frame = json.loads(await asyncio.wait_for(self._socket.recv(), WAIT))
        return frame

    async def until(self, *wanted: str) -> list[Frame]:
        """Frames up to the first whose type, or status code, is wanted."""
        frames = []
        while True:
            frames.append(await self.receive())
            if frames[-1].get("type") in wanted or frames[-1].get("code") in wanted:
                return frames

    async def run(self, query: str, session_id: str | None = None) -> list[Frame]:
        await self.ask(query, session_id)
        return await self.until(*TERMINAL)

    async def history(self, **fields: Any) -> list[Frame]:
        await self.send(action="history", **fields)
        frames: list[Frame] = []
        while not frames or frames[-1]["kind"] != "end":
            frames.append(await self.receive())
        return frames


@contextlib.asynccontextmanager
async def client(websocket_url: str, token: str | None = None) -> AsyncIterator[Client]:
    offered = None if token is None else [Subprotocol("superbizagent"), Subprotocol(f"bearer.{token}")]
    async with connect(websocket_url, max_size=None, subprotocols=offered, open_timeout=WAIT) as socket:
        yield Client(socket)
