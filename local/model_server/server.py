"""The scripted model over HTTP, and the knobs that tests turn."""

import asyncio
import ipaddress
import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, Self

from aiohttp import web

from local.model_server.answers import Kind, answer, kind_of
from local.model_server.protocol import MODEL, ApiError, completion, envelope, models, read_request

__all__ = ["MODEL", "RequestRecord", "ScriptedModelServer"]

_log = logging.getLogger(__name__)

_MOST_BYTES = 32 * 1024 * 1024
_LOOPBACK_NAMES = {"localhost"}
DEFAULT_LATENCY = 0.15
"""Seconds before an answer: enough to see the steps of a run go by."""


@dataclass
class RequestRecord:
    """One request. `started` and `finished` are seconds on the event loop's clock.

    `dropped`: the client closed the connection, or the server stopped, before the answer was sent.
    """

    kind: str
    started: float
    finished: float | None = None
    status: int | None = None
    dropped: bool = False


@dataclass(frozen=True)
class _Reply:
    """What to send instead of an answer. Without `body` the script answers, after `latency` and `after`."""

    body: bytes | None
    status: int = 200
    content_type: str = "application/json"
    kind: str | None = None
    latency: float | None = None
    after: asyncio.Event | None = None


class ScriptedModelServer:
    """Use `start`. `requests` is the log of chat requests, in order of arrival."""

    def __init__(self, latency: float = DEFAULT_LATENCY) -> None:
        self.latency = latency
        self.requests: list[RequestRecord] = []
        self.bodies: list[Mapping[str, Any]] = []
        self._address = ("127.0.0.1", 0)
        self._number = 0
        self._replies: deque[_Reply] = deque()

    @classmethod
    @asynccontextmanager
    async def start(
        cls, *, host: str = "127.0.0.1", port: int = 0, latency: float = DEFAULT_LATENCY
    ) -> AsyncIterator[Self]:
        """Serves until the block ends; requests still waiting then are dropped. `latency` in seconds."""
        server = cls(latency)
        # Without handler cancellation a closed connection would go unnoticed until the answer is written.
        runner = web.AppRunner(server._application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port)
            await site.start()
            server._address = runner.addresses[0][:2]
            yield server
        finally:
            await runner.cleanup()

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        host, port = self._address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"

    def reset(self) -> None:
        """Forgets the log and what is queued."""
        self.requests.clear()
        self.bodies.clear()
        self._replies.clear()

    def enqueue(
        self,
        reply: str | bytes | Mapping[str, Any] | None = None,
        *,
        status: int = 200,
        kind: str | None = None,
        latency: float | None = None,
        content_type: str = "application/json",
        after: asyncio.Event | None = None,
    ) -> None:
        """Queues an answer for the next chat request, or the next one of `kind`, a value of Kind.

        A text is the content of an assistant message; a mapping with `role`, `content` or `tool_calls` is
        such a message; any other mapping and bytes are the whole body. None leaves the answer to the script
        and changes only its `latency` (seconds), or that it comes `after` an event.
        """
        body = None if reply is None and status == 200 else self._encoded(reply)
        self._replies.append(_Reply(body, status, content_type, kind, latency, after))

    def enqueue_calls(self, calls: Sequence[tuple[str, Any]], *, kind: str | None = None) -> None:
        """Queues a message with these tool calls: name and arguments, which a text leaves as they are."""
        self._number += 1
        listed = [
            {
                "id": f"call_q{self._number}_{index}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
                },
            }
            for index, (name, arguments) in enumerate(calls)
        ]
        self.enqueue({"role": "assistant", "content": None, "tool_calls": listed}, kind=kind)

    def _encoded(self, reply: str | bytes | Mapping[str, Any] | None) -> bytes:
        if isinstance(reply, bytes):
            return reply
        if reply is None:
            return json.dumps(ApiError(500, "a queued failure").body()).encode()
        message = {"role": "assistant", "content": reply} if isinstance(reply, str) else dict(reply)
        if {"role", "content", "tool_calls"} & message.keys():
            self._number += 1
            message = envelope(self._number, {"role": "assistant", **message}, prompt_tokens=1)
        return json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")

    # HTTP ----------------------------------------------------------------------------------------

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=_MOST_BYTES, middlewares=[_errors_as_json])
        application.add_routes(
            [
                web.get("/v1/models", self._models),
                web.get("/v1/models/{model}", self._model),
                web.post("/v1/chat/completions", self._complete),
                web.get("/control/requests", self._requests),
                web.post("/control", self._control),
            ]
        )
        return application

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response(models())

    async def _model(self, request: web.Request) -> web.Response:
        for entry in models()["data"]:
            if entry["id"] == request.match_info["model"]:
                return web.json_response(entry)
        raise ApiError(404, "There is no such model.", "model", "model_not_found")

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        clock = asyncio.get_running_loop().time
        record = RequestRecord("unknown", started=clock())
        self.requests.append(record)
        try:
            response = await self._answered(request, record)
            # Written here rather than by the framework, so that a client that left meanwhile is noticed.
            await response.prepare(request)
            await response.write_eof()
        except (asyncio.CancelledError, ConnectionError):
            record.dropped = True
            raise
        except (ApiError, web.HTTPException) as error:
            record.status = error.status
            raise
        finally:
            record.finished = clock()
        record.status = response.status
        return response

    async def _answered(self, request: web.Request, record: RequestRecord) -> web.Response:
        asked = read_request(await request.read())
        kind = kind_of(asked)
        record.kind = kind.value
        self.bodies.append(await request.json())
        reply = self._queued(kind)
        await asyncio.sleep(self.latency if reply is None or reply.latency is None else reply.latency)
        if reply is not None and reply.after is not None:
            await reply.after.wait()
        if reply is not None and reply.body is not None:
            return web.Response(status=reply.status, body=reply.body, content_type=reply.content_type)
        self._number += 1
        number = self._number
        try:
            return web.json_response(completion(number, asked, answer(asked)))
        except ValueError as error:
            raise ApiError(400, f"The messages don't have the expected form: {error}.", "messages") from error

    def _queued(self, kind: Kind) -> _Reply | None:
        for reply in self._replies:
            if reply.kind in (None, kind.value):
                self._replies.remove(reply)
                return reply
        return None

    async def _requests(self, request: web.Request) -> web.Response:
        _require_local(request)
        return web.json_response({"requests": [asdict(record) for record in self.requests]})

    async def _control(self, request: web.Request) -> web.Response:
        """`{"latency": seconds, "reset": true, "replies": [{"reply", "status", "kind", "latency"}, …]}`."""
        _require_local(request)
        try:
            wanted = _Control.read(await request.json())
        except ValueError as error:
            raise ApiError(400, str(error)) from error
        if wanted.reset:
            self.reset()
        if wanted.latency is not None:
            self.latency = wanted.latency
        for reply in wanted.replies:
            self.enqueue(**reply)
        return web.json_response({"latency": self.latency, "queued": len(self._replies)})


@dataclass(frozen=True)
class _Control:
    latency: float | None
    replies: tuple[dict[str, Any], ...]
    reset: bool

    @classmethod
    def read(cls, body: Any) -> Self:
        """Raises ValueError."""
        if not isinstance(body, dict) or set(body) - {"latency", "replies", "reset"}:
            raise ValueError("the body has to be an object of latency, replies and reset")
        replies = body.get("replies", [])
        if not isinstance(replies, list) or not all(isinstance(reply, dict) for reply in replies):
            raise ValueError("replies has to be a list of objects")
        return cls(_seconds(body.get("latency")), tuple(map(_read_reply, replies)), body.get("reset") is True)


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 3600:
        raise ValueError("latency has to be a number of seconds")
    return float(value)


def _read_reply(reply: dict[str, Any]) -> dict[str, Any]:
    if set(reply) - {"reply", "status", "kind", "latency"}:
        raise ValueError("a reply has only reply, status, kind and latency")
    status, kind = reply.get("status", 200), reply.get("kind")
    if not isinstance(status, int) or not 200 <= status <= 599:
        raise ValueError("status has to be an HTTP status")
    if kind is not None and kind not in set(Kind):
        raise ValueError(f"kind has to be one of {', '.join(Kind)}")
    content = reply.get("reply")
    if not isinstance(content, str | dict | None):
        raise ValueError("reply has to be a text or an object")
    return {"reply": content, "status": status, "kind": kind, "latency": _seconds(reply.get("latency"))}


def _require_local(request: web.Request) -> None:
    """Only this machine, and no web page in a browser on it: such a request names another host or origin."""
    peer = request.transport.get_extra_info("peername") if request.transport else None
    host = (request.url.host or "").strip("[]")
    if not peer or not _is_loopback(peer[0]) or not _is_loopback(host) or request.headers.get("Origin"):
        raise ApiError(403, "Only programs on this machine may use this.")


def _is_loopback(host: str) -> bool:
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@web.middleware
async def _errors_as_json(request: web.Request, handler: Any) -> web.StreamResponse:
    """Every refusal has OpenAI's shape, also those of the HTTP library."""
    try:
        response: web.StreamResponse = await handler(request)
    except ApiError as error:
        return web.json_response(error.body(), status=error.status)
    except ConnectionError:
        raise  # the client is gone: nobody reads an answer
    except web.HTTPException as error:
        return web.json_response(ApiError(error.status, error.reason).body(), status=error.status)
    except Exception:
        _log.exception("the script failed")
        return web.json_response(ApiError(500, "The script failed.").body(), status=500)
    return response
