"""A relay in front of a database server: what happens to the answers is a test's to say."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Literal, Self

from sqlalchemy.engine import make_url

Loss = Literal["question", "answer", "silence"]
_COM_QUERY = b"\x03"


class Proxy:
    """Speaks the client's half of the MySQL protocol just far enough to find a statement in it.

    A loss happens to the next statement of that text, once, and is one of: the question never arrives; the
    answer never does, and the connection ends; or it doesn't and the connection stays open in silence.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._losses: list[tuple[str, Loss]] = []
        self._connections: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.lost = 0
        self.port = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def before(cls, url: str) -> AsyncIterator[tuple[Self, str]]:
        """The relay in front of the server of this DSN, and the DSN that leads through it."""
        parsed = make_url(url)
        proxy = cls(parsed.host or "", parsed.port or 3306)
        server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy, parsed.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        finally:
            server.close()
            await proxy.cut()

    def lose(self, loss: Loss, statement: str = "COMMIT") -> None:
        self._losses.append((statement, loss))

    async def cut(self) -> None:
        """Ends every connection."""
        for task in self._connections.copy():
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.connections += 1
        server, to_server = await asyncio.open_connection(*self._target)
        answers = asyncio.create_task(_relay(server, to_client))
        try:
            await self._questions(client, server, to_server, answers)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # a hang-up is an end like any other
        finally:
            answers.cancel()
            await asyncio.gather(answers, return_exceptions=True)
            to_client.close()
            to_server.close()
            self._connections.discard(task)

    async def _questions(
        self,
        client: asyncio.StreamReader,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        answers: "asyncio.Task[None]",
    ) -> None:
        while True:
            head = await client.readexactly(4)
            body = await client.readexactly(int.from_bytes(head[:3], "little"))
            loss = self._loss_of(body)
            if loss == "question":
                return
            if loss is not None:
                answers.cancel()
                await asyncio.gather(answers, return_exceptions=True)
            to_server.write(head + body)
            await to_server.drain()
            if loss is not None:
                # The server has done what it was asked for; nobody else will hear of it.
                await server.read(1)
            if loss == "answer":
                return
            if loss == "silence":
                await client.read()

    def _loss_of(self, packet: bytes) -> Loss | None:
        for statement, loss in self._losses:
            if packet.startswith(_COM_QUERY + statement.encode()):
                self._losses.remove((statement, loss))
                self.lost += 1
                return loss
        return None


async def _relay(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    target.close()
