"""Sends garbage over many sockets and holds each answer against the published contract."""

import asyncio
import contextlib
import json
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed

from tests.faults.garbage.contract import Verdict, frame_errors, judge
from tests.faults.garbage.frames import Sending, text_message
from tests.product.client import TERMINAL, Client, Frame, client
from tests.product.running import Product

SOCKETS = 4
PATIENT = 30
"""Refusals in a row on one socket after which a last message shows that nothing else was sent on it."""


EVENTS = Path(__file__).parents[3] / "events"
WARMED = {
    "ConnectFunction": "connect",
    "DefaultFunction": "default",
    "CancelFunction": "cancel",
    "HistoryFunction": "history_turns",
    "ChatFunction": "chat",
    "DisconnectFunction": "disconnect",
}


class Wrong(AssertionError):
    """An answer that the contract doesn't know, with what it answered."""


class Logs(logging.Handler):
    """Keeps the lines that must not be there: errors of any part, and tracebacks of any process."""

    _ERROR = re.compile(r'Traceback|"level":\s*"(?:ERROR|CRITICAL)"|\[ERROR\]|Unhandled')

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines = 0
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += 1
        text = record.getMessage()
        if record.levelno >= logging.ERROR or record.exc_info or self._ERROR.search(text):
            self.found.append(f"{record.name}: {text[:2_000]}")

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """To the gateway and to what its processes write."""
        logger, root = logging.getLogger("local.gateway"), logging.getLogger()
        level = logger.level
        logger.setLevel(logging.INFO)
        root.addHandler(self)
        try:
            yield
        finally:
            root.removeHandler(self)
            logger.setLevel(level)


class Attack:
    """`outcomes` counts what has been answered, by code or type."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._lanes = [_Lane(product.gateway.websocket_url) for _ in range(SOCKETS)]
        # Valid questions by their request ids: only they may become runs. One at a time: of two that are the same
        # request the second would be told no end.
        self._asked: dict[str, str] = {}
        self._asking = asyncio.Lock()
        self.outcomes: Counter[str] = Counter()

    @classmethod
    @contextlib.asynccontextmanager
    async def on(cls, product: Product) -> AsyncIterator["Attack"]:
        attack = cls(product)
        try:
            await attack._warm()
            yield attack
        finally:
            for lane in attack._lanes:
                await lane.close()

    async def _warm(self) -> None:
        """Has each function started, and asked a question, as often as it may be needed at once.

        Cold starts all at the same time outlast the gateway's patience, and what a process loads for its first
        question would pass for something that the garbage left behind.
        """
        for function, name in WARMED.items():
            event = json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8")) | {"body": ""}
            event["requestContext"]["connectionId"] = "nobody="
            payload = json.dumps(event).encode()
            calls = (self._product.gateway.invoke(function, payload) for _ in self._lanes)
            for result in await asyncio.gather(*calls):
                assert result.error is None, result
        await asyncio.gather(*(self._first_question(number) for number in range(len(self._lanes))))

    async def _first_question(self, number: int) -> None:
        self._asked[f"first-{number}"] = "What can you do?"
        async with client(self._product.gateway.websocket_url) as asking:
            await asking.ask(self._asked[f"first-{number}"], request_id=f"first-{number}")
            assert (await asking.until(*TERMINAL))[-1]["type"] == "done"

    @property
    def sent(self) -> int:
        return self.outcomes.total()

    async def run(self, sendings: Sequence[Sending]) -> None:
        """Raises Wrong, which names the sending, once each socket has had its share."""
        shares = [sendings[start::SOCKETS] for start in range(SOCKETS)]
        results = await asyncio.gather(
            *(self._share(lane, share) for lane, share in zip(self._lanes, shares, strict=True)), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _share(self, lane: "_Lane", sendings: Sequence[Sending]) -> None:
        for sending in sendings:
            try:
                self.outcomes[await self._one(lane, sending)] += 1
            except (AssertionError, TimeoutError, ConnectionClosed) as error:
                await lane.close()
                raise Wrong(f"{sending!r}: {type(error).__name__} {error}") from error

    async def _one(self, lane: "_Lane", sending: Sending) -> str:
        if sending.text is None:
            await lane.send(sending.wire)
            return await lane.closed(sending.closes)
        verdict = judge(sending.text)
        if verdict.codes or verdict.message is None:
            await lane.send(sending.wire)
            return await lane.refusal(verdict)
        if verdict.message["action"] != "chat":
            await lane.send(sending.wire)
            return await lane.answer(verdict.message)
        async with self._asking:
            self._asked.setdefault(verdict.message["requestId"], verdict.message["query"])
            await lane.send(sending.wire)
            return await lane.answer(verdict.message)

    async def check(self, logs: Logs) -> None:
        """What holds at the end: nothing more was sent, no run was made of garbage, and everybody is alive."""
        for lane in self._lanes:
            await lane.quiet()
        rows = await self._product.rows()
        assert {row["request_id"] for row in rows} <= self._asked.keys()
        assert all(row["query"] == self._asked[row["request_id"]] for row in rows)
        assert {row["status"] for row in rows} <= {"SUCCESS"}
        assert logs.found == []


class _Lane:
    """One socket at a time, on which each message waits for the answer to the one before."""

    def __init__(self, websocket_url: str) -> None:
        self._url = websocket_url
        self._stack = contextlib.AsyncExitStack()
        self._client: Client | None = None
        self._unproved = 0

    async def send(self, wire: bytes) -> None:
        if self._client is None:
            self._client = await self._stack.enter_async_context(client(self._url))
        # As it is: the library would not send most of this.
        self._client.socket.transport.write(wire)

    async def closed(self, codes: frozenset[int]) -> str:
        client = self._opened
        try:
            frame = await client.receive()
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd is not None else None
            assert code in codes, f"closed with {code}, not {sorted(codes)}"
            await self.close()
            return f"closed {code}"
        raise AssertionError(f"answered by {frame}")

    async def refusal(self, verdict: Verdict) -> str:
        frame = await self._receive()
        assert frame["type"] == "error", frame
        assert frame["code"] in verdict.codes, f"{frame['code']}, not {sorted(verdict.codes)}"
        assert not {"runId", "seq"} & frame.keys(), frame
        message = verdict.message or {}
        for name in ("requestId", "sessionId"):
            assert frame.get(name) in (None, message.get(name)), frame
        await self._prove()
        return str(frame["code"])

    async def answer(self, message: Mapping[str, Any]) -> str:
        """Of a valid message: all its frames, up to the last."""
        action = message["action"]
        frames = [await self._receive()]
        while not _last(action, frames[-1]):
            frames.append(await self._receive())
        end = frames[-1]
        if action == "cancel":
            assert end.get("code") == "RUN_NOT_FOUND", end
        if "seq" in end:
            assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
        return f"{action} {end.get('code') or end['type']}"

    async def quiet(self) -> None:
        """The answer to a last message is the next frame: no other one was on its way."""
        if self._client is None:
            return
        marker = f"marker-{id(self)}"
        message = {"action": "no such action", "requestId": marker}
        await self.send(text_message(json.dumps(message).encode()).wire)
        frame = await self._receive()
        assert frame.get("requestId") == marker, f"one frame too many: {frame}"
        self._unproved = 0

    async def close(self) -> None:
        self._client = None
        await self._stack.aclose()

    async def _prove(self) -> None:
        self._unproved += 1
        if self._unproved >= PATIENT:
            await self.quiet()

    async def _receive(self) -> Frame:
        frame = await self._opened.receive()
        assert "type" in frame, f"the gateway's own answer: {frame}"
        assert frame_errors(frame) == [], frame
        return frame

    @property
    def _opened(self) -> Client:
        assert self._client is not None
        return self._client


def _last(action: str, frame: Frame) -> bool:
    if action == "history":
        return frame.get("kind") == "end" or frame["type"] == "error"
    return frame["type"] in TERMINAL


# Memory --------------------------------------------------------------------------------------------


def resident(pid: int | str = "self") -> int:
    """Bytes of memory that the process holds now; 0 when it has gone."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(pages) * 4_096


@dataclass(frozen=True)
class Memory:
    """Bytes by process; the gateway is this one, with its clients."""

    gateway: int
    children: dict[int, tuple[str, int]]

    @classmethod
    def of(cls, product: Product) -> "Memory":
        children = {child.pid: (child.function, resident(child.pid)) for child in product.gateway.children}
        return cls(resident(), children)

    def growth(self, later: "Memory") -> dict[str, int]:
        """Bytes each process grew by, those that are in both: of a function's processes the one that grew most."""
        grown = {"gateway": later.gateway - self.gateway}
        for pid, (function, before) in self.children.items():
            if pid in later.children:
                grown[function] = max(grown.get(function, -before), later.children[pid][1] - before)
        return grown
