"""A TCP proxy in front of one peer: forwards, cuts what is idle, and resets when told to."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Self

CHUNK = 65_536
Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Proxy:
    """Use `start`. `target` may be set after the start: who connects before waits in the backlog of nobody."""

    def __init__(self, idle: float | None) -> None:
        self.target = ("127.0.0.1", 0)
        self.address = ("127.0.0.1", 0)
        self._idle = idle
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers_before_reset: int | None = None
        self._instead: Converse | None = None
        self._bad = range(0)
        self._requests = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def start(cls, idle: float | None = None) -> AsyncIterator[Self]:
        """`idle`: seconds of silence after which a connection is cut, as peers and networks do."""
        proxy = cls(idle)
        server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
        proxy.address = server.sockets[0].getsockname()[:2]
        try:
            yield proxy
        finally:
            server.close()
            for task in proxy._tasks:
                task.cancel()
            await asyncio.gather(*proxy._tasks, return_exceptions=True)

    def reset_all(self) -> None:
        """Every open connection dies at once."""
        for writer in list(self._open):
            reset(writer)

    def reset_after(self, answers: int) -> None:
        """The peer gets what is sent; its answer that comes after so many is lost, with the connection."""
        self._answers_before_reset = answers

    def misbehave(self, converse: Converse, requests: range) -> None:
        """In the connections to come whose number, from 1, is in `requests`, this is spoken in the peer's place.

        Of those that are let through each is closed after one answer, so that a connection is a request.
        """
        self._instead, self._bad, self._requests = converse, requests, 0
        self.reset_all()

    def settle(self) -> None:
        """The peer is as it was; conversations in its place end."""
        self._answers_before_reset = None
        if self._instead is not None:
            self._instead = None
            self.reset_all()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        try:
            self._requests += 1
            if self._instead is not None and self._requests in self._bad:
                await self._instead(reader, writer)
            else:
                await self._forward(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(writer)
            self._tasks.discard(task)
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer_reader, peer_writer = await asyncio.open_connection(*self.target)
        try:
            ways = [
                asyncio.ensure_future(self._pump(reader, peer_writer, writer)),
                asyncio.ensure_future(self._pump(peer_reader, writer, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            peer_writer.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            while data := await asyncio.wait_for(reader.read(CHUNK), self._idle):
                if writer is client and self._lost():
                    reset(writer)
                    return
                writer.write(data)
                await writer.drain()
                if self._instead is not None and writer is client:
                    return

    def _lost(self) -> bool:
        if self._answers_before_reset is None:
            return False
        self._answers_before_reset -= 1
        if self._answers_before_reset >= 0:
            return False
        self._answers_before_reset = None
        return True


def reset(writer: asyncio.StreamWriter) -> None:
    """Closes with RST rather than FIN."""
    connection: socket.socket | None = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
