"""Many clients at once: open sockets, questions on some of them, and a record of what each was told."""

import asyncio
import contextlib
import itertools
import json
import random
import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

TERMINAL = frozenset({"done", "error", "cancelled"})
OPENING = 8
"""Handshakes at a time: each costs a function call."""
QUESTIONS: Sequence[tuple[str, str]] = (
    ("SYSTEM_CHAT", "What can you do?"),
    ("KNOWLEDGE_QUERY", "What does the runbook say about an exhausted connection pool?"),
    ("DIAGNOSIS", "Why are checkouts failing since 14:00 on 2026-11-30?"),
    ("DIAGNOSIS", "为什么2026-11-30 14:00之后结账一直失败?"),
)


@dataclass
class Asked:
    """One question and all that its client saw. Times are seconds since the epoch, as the database's are."""

    intent: str
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    sent_at: float = 0.0
    frames: list[tuple[float, dict[str, Any]]] = field(default_factory=list)

    @property
    def terminal(self) -> dict[str, Any] | None:
        return self.frames[-1][1] if self.frames and self.frames[-1][1]["type"] in TERMINAL else None

    def received_at(self, *kinds: str) -> float | None:
        return next((moment for moment, frame in self.frames if frame["type"] in kinds), None)


class Line:
    """One client with its socket and its session."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._socket: ClientConnection | None = None
        self._session_id: str | None = None
        self.asked: Asked | None = None

    async def open(self) -> None:
        while True:
            # The gateway refuses the handshake where the function fails; a client tries again.
            with contextlib.suppress(InvalidHandshake, OSError, TimeoutError):
                self._socket = await connect(self._url, max_size=None, ping_interval=None, open_timeout=120)
                return
            await asyncio.sleep(1)

    def drop(self) -> None:
        """Ends the connection as a lost network does: without a word."""
        if self._socket is not None:
            self._socket.transport.abort()

    async def close(self) -> None:
        if self._socket is not None:
            await self._socket.close()

    async def ask(self, intent: str, query: str, patience: float) -> Asked:
        """Waits for the run's last frame, for the end of the connection, or for `patience` seconds."""
        self.asked = asked = Asked(intent)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._exchange(asked, query)
        except ConnectionClosed:
            await self.open()
        finally:
            self.asked = None
        return asked

    async def _exchange(self, asked: Asked, query: str) -> None:
        assert self._socket is not None  # noqa: S101
        session = {} if self._session_id is None else {"sessionId": self._session_id}
        message = {"action": "chat", "requestId": asked.request_id, "query": query, **session}
        asked.sent_at = time.time()  # noqa: TID251
        await self._socket.send(json.dumps(message))
        while asked.terminal is None:
            frame = json.loads(await self._socket.recv())
            # Late frames of a run that this client gave up.
            if frame.get("requestId") in (None, asked.request_id):
                asked.frames.append((time.time(), frame))  # noqa: TID251
                self._session_id = frame.get("sessionId", self._session_id)


@dataclass(kw_only=True)
class Traffic:
    """`runs` questions over `sockets` connections, at most `concurrency` at a time, for at most `seconds`."""

    url: str
    sockets: int
    runs: int
    concurrency: int
    seconds: float
    ramp: float  # seconds between the first questions of two workers: each starts a process
    patience: float
    seed: int
    asked: list[Asked] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    _free: deque[Line] = field(default_factory=deque)
    _left: "itertools.count[int]" = field(default_factory=itertools.count)

    async def open(self) -> None:
        limit = asyncio.Semaphore(OPENING)

        async def open_one(line: Line) -> None:
            async with limit:
                await line.open()

        self.lines = [Line(self.url) for _ in range(self.sockets)]
        await asyncio.gather(*map(open_one, self.lines))
        self._free.extend(self.lines)

    async def run(self) -> None:
        self._until = time.monotonic() + self.seconds
        await asyncio.gather(*(self._work(number) for number in range(self.concurrency)))

    async def close(self) -> None:
        limit = asyncio.Semaphore(OPENING)

        async def close_one(line: Line) -> None:
            async with limit:
                await line.close()

        await asyncio.gather(*map(close_one, self.lines))

    @property
    def busy(self) -> list[Line]:
        return [line for line in self.lines if line.asked is not None]

    async def _work(self, number: int) -> None:
        await asyncio.sleep(number * self.ramp)
        choose = random.Random(f"{self.seed} {number}")  # noqa: S311
        while time.monotonic() < self._until and next(self._left) < self.runs:
            # The one that was quiet longest: none gets to the gateway's idle limit.
            line = self._free.popleft()
            self.asked.append(await line.ask(*choose.choice(QUESTIONS), self.patience))
            self._free.append(line)
