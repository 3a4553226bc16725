"""HTTP servers that answer what a test tells them to, on a free port of this machine."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Reply:
    """One answer; `body` is sent as it is when it is bytes, else as JSON."""

    body: Any = b""
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    def response(self) -> web.Response:
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        return web.Response(status=self.status, body=body, headers={"Content-Type": self.content_type, **self.headers})


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    peer: int
    """The client's port: the same on the same connection."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Received], Reply | Awaitable[Reply]]


@dataclass
class HttpStub:
    """`answer` may be set anew between requests; `received` has every request."""

    answer: Answer
    url: str = ""
    received: list[Received] = field(default_factory=list)

    def script(self, *replies: Reply) -> None:
        """These replies in turn, the last one for good."""
        turns: Iterator[Reply] = iter(replies)
        last = replies[-1]
        self.answer = lambda _: next(turns, last)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        received = Received(
            path=request.raw_path,
            headers=dict(request.headers),
            body=await request.read(),
            peer=request.transport.get_extra_info("peername")[1],
        )
        self.received.append(received)
        reply = self.answer(received)
        return (reply if isinstance(reply, Reply) else await reply).response()


@contextlib.asynccontextmanager
async def http_stub(
    answer: Answer | None = None,
    *,
    host: str = "127.0.0.1",
    known_as: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[HttpStub]:
    """`host` is the address it listens on, `known_as` the name its callers have for it."""
    stub = HttpStub(answer or (lambda _: Reply()))
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", stub._handle)
    # The process may be one that Lambda would have frozen; an aborted request must not hold up the end.
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        stub.url = f"{'https' if tls else 'http'}://{known_as or host}:{port}"
        yield stub
    finally:
        await runner.cleanup()


Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def tcp_stub(converse: Conversation) -> AsyncIterator[str]:
    """The http address of a server that speaks just the bytes that `converse` writes."""
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read_request_head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """The body of one HTTP request, read to its end."""
    head = await read_request_head(reader)
    lines = head.lower().split(b"\r\n")
    length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
    return await reader.readexactly(length)


def completion(content: Any = "", *, tokens: int | None = 7, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion body."""
    usage = {} if tokens is None else {"usage": {"total_tokens": tokens}}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, **message},
        "finish_reason": finish,
    }
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **usage}
