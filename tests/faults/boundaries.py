"""The harness's side of the boundaries: hears each, holds the one that a case is about."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

Phase = Literal["before", "after"]
Instruction = dict[str, Any]
GO_ON: Instruction = {}


@dataclass(frozen=True, order=True)
class Boundary:
    """One moment of a run: the `ordinal`-th call of this name, before or after it."""

    name: str
    ordinal: int
    phase: Phase

    @property
    def port(self) -> str:
        return self.name.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.phase} {self.name}" + (f" #{self.ordinal}" if self.ordinal > 1 else "")


@dataclass(frozen=True)
class Reached:
    pid: int
    boundary: Boundary
    facts: dict[str, Any] = field(default_factory=dict)


class Hold:
    """A boundary at which the run is to stop until it is released."""

    def __init__(self, boundary: Boundary) -> None:
        loop = asyncio.get_running_loop()
        self.boundary = boundary
        self.reached: asyncio.Future[Reached] = loop.create_future()
        self.dropped = asyncio.Event()
        """Set when the run let go of the held call: it was cancelled, or its process is gone."""
        self._release: asyncio.Future[Instruction] = loop.create_future()

    def release(self, instruction: Instruction = GO_ON) -> None:
        if not self._release.done():
            self._release.set_result(instruction)

    async def wait(self, reader: asyncio.StreamReader) -> Instruction:
        gone = asyncio.ensure_future(reader.read())
        first: set[asyncio.Future[Any]] = {gone, self._release}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if self._release.done():
            gone.cancel()
            return self._release.result()
        self.dropped.set()
        return GO_ON


class Boundaries:
    """Hears what the function under test announces. The first process that a case meets is the one held."""

    def __init__(self) -> None:
        self.address = ""
        self.heard: list[Reached] = []
        self.hold: Hold | None = None
        self._second: Hold | None = None
        self._counts: Counter[tuple[int, str, str]] = Counter()
        self._news = asyncio.Condition()

    @property
    def first_pid(self) -> int | None:
        return self.heard[0].pid if self.heard else None

    def of_first(self) -> list[Reached]:
        return [reached for reached in self.heard if reached.pid == self.first_pid]

    def begin(self, boundary: Boundary | None) -> Hold | None:
        """A new case."""
        self.heard = []
        self._counts.clear()
        self.hold = Hold(boundary) if boundary is not None else None
        self._second = None
        return self.hold

    def hold_too(self, boundary: Boundary) -> Hold:
        """Another boundary of the same case, one that is still to come."""
        self._second = Hold(boundary)
        return self._second

    async def until_ended(self, pid: int) -> None:
        """Waits until the process has ended its event."""
        async with self._news:
            await self._news.wait_for(lambda: any(_is_end(reached, pid) for reached in self.heard))

    async def comes_to(self, hold: Hold, pid: int) -> bool:
        """Whether the process comes to the boundary before it has ended its event."""
        ended = asyncio.ensure_future(self.until_ended(pid))
        first: set[asyncio.Future[Any]] = {hold.reached, ended}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        return hold.reached.done()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"
        try:
            yield
        finally:
            server.close()
            if self.hold is not None:
                self.hold.release()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            said = json.loads(await reader.readline() or b"null")
            if said is None:
                return
            reached = self._reached(said)
            async with self._news:
                self.heard.append(reached)
                self._news.notify_all()
            writer.write(json.dumps(await self._instruction(reached, reader)).encode() + b"\n")
            await writer.drain()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _reached(self, said: dict[str, Any]) -> Reached:
        key = (said["pid"], said["name"], said["phase"])
        self._counts[key] += 1
        return Reached(said["pid"], Boundary(said["name"], self._counts[key], said["phase"]), said["facts"])

    async def _instruction(self, reached: Reached, reader: asyncio.StreamReader) -> Instruction:
        for hold in filter(None, (self.hold, self._second)):
            if reached.boundary == hold.boundary and reached.pid == self.first_pid:
                hold.reached.set_result(reached)
                return await hold.wait(reader)
        return GO_ON


def _is_end(reached: Reached, pid: int) -> bool:
    return reached.pid == pid and reached.boundary.name == "event" and reached.boundary.phase == "after"
