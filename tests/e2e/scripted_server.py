"""A server for the page alone: web/ under a strict policy, and a WebSocket whose frames the test writes.

Frames are made by the models of the wire contract, so that the page is tested against what is sent.
"""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from aiohttp import WSMsgType, web
from pydantic import BaseModel

from superbizagent.domain.content import PublicContent
from superbizagent.domain.run import Intent, ReleaseOutcome, RunStatus
from superbizagent.frames import CancelledFrame, ContentFrame, DoneFrame, StartedFrame, StatusFrame
from superbizagent.history_frames import HistoryFrame, SessionEntry, Turn
from superbizagent.websocket import ErrorFrame

WEB = Path(__file__).parents[2] / "web"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' ws: {provider}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
BEGINNING = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)
PATIENCE = 10.0

Message = dict[str, Any]


def as_text(frame: object) -> str:
    """A frame as it is sent: models as the service encodes them, anything else as JSON or as it is."""
    if isinstance(frame, BaseModel):
        return frame.model_dump_json(exclude_none=True, by_alias=True)
    return frame if isinstance(frame, str) else json.dumps(frame)


class Peer:
    """One connection of the page, as the server sees it."""

    def __init__(self, socket: web.WebSocketResponse, server: "ScriptedServer") -> None:
        self._socket = socket
        self._server = server
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self.received: list[Message] = []

    async def expect(self, action: str) -> Message:
        """The next message of that action; `history` is answered by the server unless it is told not to."""
        async with asyncio.timeout(PATIENCE):
            while (message := await self._inbox.get())["action"] != action:
                pass
        return message

    async def send(self, *frames: object) -> None:
        for frame in frames:
            await self._socket.send_str(as_text(frame))

    async def close(self, code: int = 1001) -> None:
        await self._socket.close(code=code)

    def sent(self, action: str) -> list[Message]:
        """What has come of that action so far."""
        return [message for message in self.received if message["action"] == action]

    async def listen(self) -> None:
        async for received in self._socket:
            if received.type is not WSMsgType.TEXT:
                self._server.problems.append(f"a {received.type.name} message")
                continue
            message = json.loads(received.data)
            self.received.append(message)
            self._inbox.put_nowait(message)
            if message["action"] == "history" and self._server.answers_history:
                await self.send(*self._server.history(message))


class Run:
    """Makes the frames of one run, numbered."""

    def __init__(self, request_id: str, session_id: str = "s1", run_id: str = "r1") -> None:
        self.ids = {"session_id": session_id, "run_id": run_id, "request_id": request_id}
        self.seq = 0

    def _numbered(self) -> dict[str, Any]:
        self.seq += 1
        return {**self.ids, "seq": self.seq}

    def started(self, **more: Any) -> StartedFrame:
        return StartedFrame(**self._numbered(), **more)

    def status(self, code: Any, **more: Any) -> StatusFrame:
        return StatusFrame(**self._numbered(), code=code, **more)

    def content(self, content: PublicContent, **more: Any) -> ContentFrame:
        return ContentFrame(**self._numbered(), content_type=content.type, content=content, **more)

    def done(self, outcome: ReleaseOutcome = ReleaseOutcome.SUCCESS, **more: Any) -> DoneFrame:
        return DoneFrame(**self._numbered(), outcome=outcome, **more)

    def cancelled(self) -> CancelledFrame:
        return CancelledFrame(**self._numbered())

    def error(self, code: str, message: str = "The service's text.") -> ErrorFrame:
        return ErrorFrame(**self._numbered(), code=code, message=message)

    def turn(self, query: str, content: PublicContent | None = None, **more: Any) -> Turn:
        """The stored run: finished with `content`, or as `more` says."""
        number = int("".join(filter(str.isdigit, self.ids["run_id"])) or 0)
        created = BEGINNING + timedelta(minutes=number)
        fields: dict[str, Any] = {
            "run_id": self.ids["run_id"],
            "request_id": self.ids["request_id"],
            "query": query,
            "status": RunStatus.SUCCESS,
            "intent": Intent.DIAGNOSIS,
            "outcome": ReleaseOutcome.SUCCESS,
            "content": content,
            "created_at": created,
            "finished_at": created + timedelta(seconds=12),
        }
        return Turn(**(fields | more))

    def running_turn(self, query: str) -> Turn:
        return self.turn(query, status=RunStatus.RUNNING, outcome=None, finished_at=None, intent=None)


class ScriptedServer:
    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.turns: dict[str, list[Turn]] = {}
        self.titles: dict[str, str] = {}
        self.answers_history = True
        self.refusal: int | None = None
        self.provider = ""
        self.offered: list[str] = []
        self.on_connect: Callable[[Peer], Any] | None = None
        self.peers: list[Peer] = []
        self.handshakes = 0
        self.problems: list[str] = []
        self.url = ""
        self._arrived: asyncio.Queue[Peer] = asyncio.Queue()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/", self._index)
        app.router.add_get("/blank", self._blank)
        app.router.add_get("/config.json", self._config)
        app.router.add_get("/ws", self._websocket)
        app.router.add_static("/", WEB)
        app.on_response_prepare.append(self._harden)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://localhost:{self._runner.addresses[0][1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        for peer in self.peers:
            await peer.close()
        if self._runner:
            await self._runner.cleanup()

    async def peer(self) -> Peer:
        """The next connection that the page opens."""
        async with asyncio.timeout(PATIENCE):
            return await self._arrived.get()

    def history(self, message: Message) -> list[HistoryFrame]:
        """The answer to a `history` message, out of `turns` and `titles`."""
        session_id = message.get("sessionId")
        if session_id is None:
            entries = tuple(self._entry(session_id) for session_id in self.turns)[: message["limit"]]
            return [HistoryFrame(kind="sessions", sessions=entries), HistoryFrame(kind="end")]
        turns = self.turns.get(session_id, [])
        before = message.get("before")
        if before is not None:
            turns = turns[: [turn.run_id for turn in turns].index(before)]
        page = turns[-message["limit"] :]
        return [
            *(HistoryFrame(kind="turn", session_id=session_id, turn=turn) for turn in page),
            HistoryFrame(
                kind="end",
                session_id=session_id,
                before=page[0].run_id if len(page) < len(turns) else None,
            ),
        ]

    def _entry(self, session_id: str) -> SessionEntry:
        turns = self.turns[session_id]
        return SessionEntry(
            session_id=session_id,
            title=self.titles.get(session_id) or (turns[0].query if turns else "Empty"),
            message_pairs=len(turns),
            created_at=BEGINNING,
            last_active_at=turns[-1].created_at if turns else BEGINNING,
        )

    async def _index(self, _: web.Request) -> web.FileResponse:
        return web.FileResponse(WEB / "index.html")

    async def _blank(self, _: web.Request) -> web.Response:
        """A page of the same origin on which modules can be tried alone."""
        return web.Response(text="<!doctype html><title>blank</title>", content_type="text/html")

    async def _config(self, request: web.Request) -> web.Response:
        return web.json_response({"websocketUrl": f"ws://{request.host}/ws", **self.config})

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        self.handshakes += 1
        self.offered.append(request.headers.get("Sec-WebSocket-Protocol", ""))
        if self.refusal:
            return web.Response(status=self.refusal)
        socket = web.WebSocketResponse(protocols=("superbizagent",))
        await socket.prepare(request)
        peer = Peer(socket, self)
        self.peers.append(peer)
        if self.on_connect:
            await self.on_connect(peer)
        self._arrived.put_nowait(peer)
        await peer.listen()
        return socket

    async def _harden(self, _: web.Request, response: web.StreamResponse) -> None:
        response.headers["Content-Security-Policy"] = POLICY.replace("{provider}", self.provider)
        response.headers["X-Content-Type-Options"] = "nosniff"
