"""One case played: a question, something done at one boundary, and all that can be seen of it afterwards."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.faults.boundaries import Boundary, Hold, Reached
from tests.faults.cases import Fault, Question
from tests.faults.lane import WAIT, Lane, eventually

Frame = dict[str, Any]


@dataclass
class Browser:
    """A client that keeps each frame as it came, until its connection ends."""

    socket: ClientConnection
    frames: list[Frame] = field(default_factory=list)

    async def listen(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for message in self.socket:
                self.frames.append(json.loads(message))

    async def ask(self, question: str, request_id: str, session_id: str) -> None:
        message = {"action": "chat", "requestId": request_id, "sessionId": session_id, "query": question}
        await self.socket.send(json.dumps(message))

    async def caught_up(self) -> None:
        """Until all that was sent has been received: a pong comes after it."""
        with contextlib.suppress(ConnectionClosed):
            await asyncio.wait_for(await self.socket.ping(), WAIT)


@contextlib.asynccontextmanager
async def browser(lane: Lane) -> AsyncIterator[Browser]:
    async with connect(lane.gateway.websocket_url, proxy=None, open_timeout=WAIT) as socket:
        opened = Browser(socket)
        listening = asyncio.ensure_future(opened.listen())
        try:
            yield opened
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


@dataclass
class Scene:
    """What a fault may do something to."""

    lane: Lane
    question: Question
    hold: Hold
    browser: Browser
    request_id: str
    session_id: str
    connection_id: str
    dice: Callable[[int], int]
    other: Browser | None = None
    swept: bool = False

    @property
    def pid(self) -> int:
        assert self.lane.boundaries.first_pid is not None
        return self.lane.boundaries.first_pid


@dataclass(frozen=True)
class Seen:
    """Everything the checker may look at, in raw form."""

    plan: "Plan"
    reached: bool
    frames: list[Frame]
    other_frames: list[Frame]
    heard: list[Reached]
    first_pid: int
    left: list[dict[str, Any]]
    """Of each process that ended its event: tasks and busy threads."""
    killed: bool
    dropped: bool
    """Whether the run let go of the call at the boundary: it had been cancelled there."""
    swept_alive: bool
    """Whether the sweep ended the run while its process was still there."""
    was_running: bool
    """Whether the row had to be ended by the sweep after everything was over."""
    rows: list[dict[str, Any]]
    sessions: list[dict[str, Any]]
    model_requests: list[str]
    unfinished_requests: int
    late_requests: int
    processes: list[dict[str, Any]]
    transactions: list[dict[str, Any]]
    history: list[Frame]


Stack = contextlib.AsyncExitStack
Act = Callable[["Scene", Stack], Awaitable[None]]


@dataclass(frozen=True)
class Plan:
    """What happens in a case: nothing, or an act at one boundary."""

    question: Question
    boundary: Boundary | None = None
    act: Act | None = None
    fault: Fault | None = None
    silent: bool = False
    """Nobody is left to tell the outcome, or nobody to be told."""
    cancels: bool = False
    answered: bool = False
    """Whatever the trouble is, it costs the run no more than time it has: the outcome is an answer."""


async def played(lane: Lane, plan: Plan, dice: Callable[[int], int] = lambda _: 0) -> Seen:
    hold = lane.boundaries.begin(plan.boundary)
    lane.model.reset()
    if plan.question is Question.DIAGNOSIS:
        _shortened(lane)
    before = set(lane.gateway.connection_ids)
    request_id, session_id = uuid.uuid4().hex, uuid.uuid4().hex
    killed = reached = swept = False
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(browser(lane))
        await eventually(lambda: bool(set(lane.gateway.connection_ids) - before))
        (connection_id,) = set(lane.gateway.connection_ids) - before
        await client.ask(plan.question, request_id, session_id)
        other = None
        if plan.act is not None and hold is not None:
            reached = await _reached(lane, hold)
            if reached:
                scene = Scene(lane, plan.question, hold, client, request_id, session_id, connection_id, dice)
                await plan.act(scene, stack)
                other, swept = scene.other, scene.swept
            hold.release()
        await eventually(lambda: bool(lane.boundaries.heard))
        await lane.quiet()
        lane.proxies.database.settle()
        lane.proxies.channel.settle()
        lane.proxies.model.settle()
        requests = len(lane.model.requests)
        was_running = await _swept_at_last(lane, session_id)
        for one in filter(None, (client, other)):
            await one.caught_up()
        heard = list(lane.boundaries.heard)
        killed = plan.fault is Fault.KILL and reached
        history = await _history(lane, session_id)
    processes, transactions = await _left_in_database(lane)
    return Seen(
        plan=plan,
        reached=reached or plan.boundary is None,
        frames=client.frames,
        other_frames=other.frames if other is not None else [],
        heard=heard,
        first_pid=heard[0].pid,
        left=[one.facts for one in heard if one.boundary.name == "event" and one.boundary.phase == "after"],
        killed=killed,
        dropped=hold is not None and hold.dropped.is_set(),
        swept_alive=swept,
        was_running=was_running,
        rows=await lane.sql.rows("SELECT * FROM diagnosis_run WHERE request_id = %s", request_id),
        sessions=await lane.sql.rows("SELECT * FROM chat_session WHERE session_id = %s", session_id),
        model_requests=[record.kind for record in lane.model.requests],
        unfinished_requests=sum(record.finished is None for record in lane.model.requests),
        late_requests=len(lane.model.requests) - requests,
        processes=processes,
        transactions=transactions,
        history=history,
    )


def _shortened(lane: Lane) -> None:
    """The diagnosis in three turns: each tool once, and a draft that the guards let through."""
    cited = ["E1", "E2", "E3"]
    looks = [
        ("query_logs", {"source": "payments", "levels": ["ERROR"], "limit": 5}),
        ("query_mysql", {"statement": "SELECT change_id, setting, new_value FROM config_change"}),
        ("lookup_knowledge", {"query": "payment gateway timeouts"}),
    ]
    draft = {
        "conclusion": "The change CHG-3107 came before the failures.",
        "claims": [{"text": "The change CHG-3107 is recorded.", "evidence_ids": cited, "quotes": ["CHG-3107"]}],
        "scope": "Payments",
    }
    lane.model.enqueue_calls(looks, kind="agent")
    lane.model.enqueue_calls([("submit_draft", draft)], kind="agent")


async def _reached(lane: Lane, hold: Hold) -> bool:
    """Whether the run came to the boundary before it ended."""
    await eventually(lambda: bool(lane.boundaries.heard))
    assert lane.boundaries.first_pid is not None
    return await lane.boundaries.comes_to(hold, lane.boundaries.first_pid)


async def _swept_at_last(lane: Lane, session_id: str) -> bool:
    """Ends what is still RUNNING as the sweep would when its time has come; whether anything was."""
    late = "UPDATE diagnosis_run SET deadline_at = deadline_at - INTERVAL 1 HOUR WHERE session_id = %s AND status = %s"
    running = await lane.sql.rows(
        "SELECT run_id FROM diagnosis_run WHERE session_id = %s AND status = 'RUNNING'", session_id
    )
    if running:
        await lane.sql.rows(late, session_id, "RUNNING")
        await lane.sweep()
    return bool(running)


async def _history(lane: Lane, session_id: str) -> list[Frame]:
    """What a page that was loaded anew gets to see; it asks again when the gateway had no time for it."""
    async with browser(lane) as page:
        while True:
            page.frames.clear()
            await page.socket.send(json.dumps({"action": "history", "sessionId": session_id}))
            await eventually(lambda: bool(page.frames) and page.frames[-1].get("kind") in (None, "end"))
            if "type" in page.frames[-1]:
                return page.frames


async def _left_in_database(lane: Lane) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Statements and transactions that go on: the server may take a moment to notice a process's end."""
    listed = (
        "SELECT id, user, command, info FROM information_schema.processlist"
        " WHERE user IN (%s, %s) AND (command <> 'Sleep' OR user = %s)"
    )
    open_ = (
        "SELECT trx_id, trx_query FROM information_schema.innodb_trx JOIN information_schema.processlist"
        " ON id = trx_mysql_thread_id WHERE user IN (%s, %s)"
    )
    for _ in range(100):
        processes = await lane.sql.rows(listed, lane.user, lane.reader, lane.reader)
        transactions = await lane.sql.rows(open_, lane.user, lane.reader)
        if not processes and not transactions:
            break
        await asyncio.sleep(0.02)
    return processes, transactions
