"""Two processes at one database, each stopped by a test at the moment it names. No sleep decides anything."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

from sqlalchemy import Connection, text

from superbizagent.adapters.store import Database, SqlCancelRequests
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.application.cancellation import CancelWatch
from superbizagent.application.chat import ChatRequest, ChatResult, ChatUseCase
from superbizagent.application.execution import ChatLimits
from superbizagent.client_socket import Socket
from superbizagent.domain.conversation import ModelReply, ModelRequest
from superbizagent.domain.run import CancelRequest, Intent
from superbizagent.domain.stored_run import AbandonedRun, StoredRun
from superbizagent.frames import RunFrames
from superbizagent.ports import NewRun, PriorContext, RunEnd, StartResult
from tests.fakes.clock import FakeClock
from tests.fakes.journal import FakeJournal
from tests.fakes.model import FakeModel
from tests.fakes.sources import sources
from tests.integration.store.moments import WAIT, Held

T = TypeVar("T")
Moment = Literal["before", "inside", "after"]
"""Of a unit of work: before it begins; with everything written and locked, before it commits; once it has."""

TERMINAL = ("done", "error", "cancelled")


class Stop(Protocol):
    async def reached(self) -> None: ...

    def release(self) -> None: ...


class Gate:
    """A Stop of the event loop's."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._released = asyncio.Event()

    async def reached(self) -> None:
        await asyncio.wait_for(self._reached.wait(), WAIT)

    def release(self) -> None:
        self._released.set()

    async def hold(self) -> None:
        self._reached.set()
        await asyncio.wait_for(self._released.wait(), WAIT)


class HeldStore:
    """RunStore: the real one, stopped once at the moment of a method's that `hold` names."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._runs = SqlRunStore(database)
        self._gates: dict[tuple[str, Moment], Gate] = {}
        self._inside: dict[str, asyncio.Future[Held]] = {}

    def hold(self, method: Literal["start", "finish"], moment: Moment) -> Stop:
        if moment == "inside":
            self._inside[method] = asyncio.get_running_loop().create_future()
            return _Inside(self._inside[method])
        gate = self._gates[method, moment] = Gate()
        return gate

    async def _held(self, method: str, unit: Callable[[], Awaitable[T]]) -> T:
        await self._stop(method, "before")
        if method in self._inside:
            # Nothing else of this process writes or reads meanwhile: the next commit is this unit's.
            self._inside.pop(method).set_result(Held(self._database.engine))
        result = await unit()
        await self._stop(method, "after")
        return result

    async def _stop(self, method: str, moment: Moment) -> None:
        gate = self._gates.pop((method, moment), None)
        if gate is not None:
            await gate.hold()

    async def prior_context(self, session_id: str, owner: str) -> PriorContext:
        return await self._runs.prior_context(session_id, owner)

    async def start(self, run: NewRun) -> StartResult:
        return await self._held("start", lambda: self._runs.start(run))

    async def set_intent(self, run_id: str, intent: Intent) -> None:
        await self._runs.set_intent(run_id, intent)

    async def finish(self, run_id: str, end: RunEnd) -> bool:
        return await self._held("finish", lambda: self._runs.finish(run_id, end))

    async def find(self, run_id: str) -> StoredRun | None:
        return await self._runs.find(run_id)

    async def abandon_overdue(self, overdue_since: datetime, now: datetime) -> Sequence[AbandonedRun]:
        return await self._runs.abandon_overdue(overdue_since, now)


class _Inside:
    """The stop of a unit that hasn't begun yet."""

    def __init__(self, held: "asyncio.Future[Held]") -> None:
        self._held = held

    async def reached(self) -> None:
        await (await asyncio.wait_for(self._held, WAIT)).reached()

    def release(self) -> None:
        self._held.result().release()


class HeldCancels(SqlCancelRequests):
    """A poll that has seen a cancel row is stopped before its run hears of it, where `seen` is set."""

    seen: Gate | None = None

    async def pending(self, run_id: str, connection_id: str) -> CancelRequest | None:
        request = await super().pending(run_id, connection_id)
        if request is not None and self.seen is not None:
            await self.seen.hold()
        return request


class HeldModel:
    """Model. Call number `at`, from 1, waits; then it is answered whether or not the run still wants it."""

    def __init__(self, model: FakeModel, at: int = 0) -> None:
        self.fake = model
        self.gate = Gate()
        self._at = at

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await self.fake.complete(request)
        if len(self.fake.requests) == self._at:
            await self.gate.hold()
        return reply


@dataclass
class Process:
    """A chat function's process and what its client has received."""

    database: Database
    model: HeldModel
    clock: FakeClock = field(default_factory=FakeClock)
    poll_seconds: float = 60.0
    posted: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runs = HeldStore(self.database)
        self.cancels = HeldCancels(self.database)

    async def post(self, connection_id: str, frame: bytes) -> None:
        """Channel."""
        self.posted.append(frame)

    async def ask(self, connection_id: str = "c1", gateway_request_id: str = "g1") -> ChatResult | None:
        """The same question each time, told from others by its request id."""
        request = ChatRequest(
            owner="ada",
            connection_id=connection_id,
            request_id="q1",
            gateway_request_id=gateway_request_id,
            query="Why do payments fail?",
            session_id="s1",
        )
        use_case = ChatUseCase(
            runs=self.runs,
            cancel_watch=CancelWatch(self.cancels, self.clock, self.poll_seconds),
            model=self.model,
            sources=sources(),
            redact=lambda text: text,
            clock=self.clock,
            limits=ChatLimits(),
            journal=FakeJournal(),
        )
        frames = RunFrames(Socket(self, connection_id), "q1")
        return await frames.deliver(use_case.execute(request, frames))

    @property
    def frames(self) -> list[dict[str, Any]]:
        return [json.loads(frame) for frame in self.posted]

    @property
    def types(self) -> list[str]:
        """Of the frames, without statuses."""
        return [frame["type"] for frame in self.frames if frame["type"] != "status"]

    async def row(self) -> dict[str, Any]:
        """The one run there is."""

        def unit(connection: Connection) -> list[dict[str, Any]]:
            return [dict(row) for row in connection.execute(text("SELECT * FROM diagnosis_run")).mappings()]

        (row,) = await self.database.read(unit)
        return row

    async def blocked(self) -> None:
        """Waits until some unit waits for a lock; there is no event of the server's for it."""
        if self.database.engine.dialect.name == "sqlite":
            return
        # Not innodb_trx: what that shows is up to a tenth of a second old, and reading it keeps it so.
        status = text("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")

        def waiting(connection: Connection) -> bool:
            return int(connection.execute(status).one()[1]) > 0

        async with asyncio.timeout(WAIT):
            while not await self.database.read(waiting):  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@asynccontextmanager
async def running(work: Awaitable[T]) -> AsyncIterator["asyncio.Task[T]"]:
    """The work as a task; whatever the block comes to, nothing of it is left."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def crossed(process: Process, stop: Stop, moment: Moment, other: Awaitable[Any]) -> None:
    """The process asks and is stopped; there the other's work is done, or waits if that is "inside"; then both end."""
    async with running(process.ask()) as first:
        await stop.reached()
        async with running(other) as second:
            if moment == "inside":
                await process.blocked()
            else:
                await second
            stop.release()
            await asyncio.gather(first, second)


async def assert_one_outcome(process: Process, outcome: str, code: str | None = None) -> None:
    """The row has this outcome whole, and the client was told just that, in order, once."""
    row = await process.row()
    status = "SUCCESS" if outcome == "FALLBACK" else outcome
    assert (row["status"], row["release_outcome"], row["failure_code"]) == (status, outcome, code)
    published = outcome in ("SUCCESS", "FALLBACK")
    assert (row["content"] is not None) is published
    frames = process.frames
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
    assert {frame["runId"] for frame in frames} == {row["run_id"]}
    last = frames[-1]
    expected = {"SUCCESS": "done", "FALLBACK": "done", "FAILED": "error", "CANCELLED": "cancelled"}[outcome]
    assert [kind for kind in process.types if kind in TERMINAL] == [expected] == [last["type"]]
    assert process.types.count("content") == int(published)
    if published:
        assert last["outcome"] == outcome
        assert frames[-2]["content"] == json.loads(row["content"])
    assert last.get("code") == code
