"""Cancel messages, connections, history and the sweep."""

import asyncio
import math
from datetime import timedelta

import pytest

from superbizagent.application import cancellation
from superbizagent.application.cancellation import CancelUseCase, CancelWatch
from superbizagent.application.connections import ConnectionUseCase
from superbizagent.application.history import HistoryUseCase
from superbizagent.application.progress import Progress
from superbizagent.application.sweep import CONNECTION_LIFE, SweepUseCase
from superbizagent.domain.run import CancelReason, CancelRequest, Intent, ReleaseOutcome, RunIds
from superbizagent.domain.run_context import Lifecycle
from superbizagent.domain.steps import Abandoned, Cancelled, Finished
from superbizagent.errors import ClientGone, RunCancelled, RunNotFound, SessionNotFound, StoreError, Unauthenticated
from tests.fakes.clock import FakeClock
from tests.fakes.journal import FakeJournal
from tests.fakes.model import HANG, FakeModel, intent, text
from tests.fakes.observer import FakeObserver
from tests.fakes.store import FakeCancelRequests, FakeConnections, FakeDatabase, FakeHistory, FakeRunStore
from tests.stored_values import run_ids
from tests.unit.application.stage import Stage
from tests.unit.application.test_router import context


def answered(database: FakeDatabase, clock: FakeClock) -> Stage:
    return Stage(FakeModel(intent("SYSTEM_CHAT"), text("Hello.")), database=database, clock=clock)


@pytest.mark.spec("CANCEL-3", "ISO-2")
async def test_only_the_owner_cancels_a_run() -> None:
    stage = Stage(FakeModel(intent("SYSTEM_CHAT"), HANG))
    running = asyncio.create_task(stage.run())
    await stage.model.hanging.wait()
    cancels = CancelUseCase(FakeCancelRequests(stage.database), FakeClock())

    for run_id, principal in ((stage.row.new.run_id, "eve"), ("unknown", "ada")):
        with pytest.raises(RunNotFound):
            await cancels.cancel(run_id, principal)
    assert not stage.database.cancels
    await cancels.cancel(stage.row.new.run_id, "ada")
    assert [row.requested_at for row in stage.database.cancels] == [FakeClock().now()]

    assert (await running).outcome is ReleaseOutcome.CANCELLED
    await cancels.cancel(stage.row.new.run_id, "ada")
    assert stage.row.outcome is ReleaseOutcome.CANCELLED


@pytest.mark.spec("CANCEL-4")
async def test_the_watch_leaves_no_task_behind() -> None:
    run, database = context(), FakeDatabase()
    before = asyncio.all_tasks()

    async with CancelWatch(FakeCancelRequests(database), FakeClock(), 0.001).over(run, "c1"):
        pause = database.pause_next("pending")
        await pause.reached.wait()

    assert asyncio.all_tasks() == before


@pytest.mark.spec("OBS-2")
async def test_a_client_that_is_gone_counts_as_a_disconnect() -> None:
    run = context()

    with pytest.raises(RunCancelled):
        await Progress(FakeObserver(fails_at=1, error=ClientGone()), run).started()

    assert run.cancel_reason is CancelReason.CLIENT_DISCONNECT


@pytest.mark.spec("CANCEL-4")
async def test_a_look_that_hangs_does_not_hold_up_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "_LOOK_SECONDS", 0.01)
    run, database = context(), FakeDatabase()
    database.pause_next("pending")

    async with asyncio.timeout(5), CancelWatch(FakeCancelRequests(database), FakeClock(), 60.0).over(run, "c1"):
        assert run.state is Lifecycle.RUNNING


@pytest.mark.spec("CANCEL-1", "CANCEL-4")
async def test_the_watch_sees_a_row_written_a_moment_ago() -> None:
    run, database = context(), FakeDatabase()
    cancelled = asyncio.Event()
    run.on_cancel(cancelled.set)

    async with CancelWatch(FakeCancelRequests(database), FakeClock(), 0.001).over(run, "c1"):
        database.fail_next("pending", 2)
        await FakeCancelRequests(database).cancel_connection("c1", FakeClock().now())
        await asyncio.wait_for(cancelled.wait(), 5)

    assert run.cancel_reason is CancelReason.CLIENT_DISCONNECT


@pytest.mark.spec("CANCEL-1")
async def test_the_time_to_cancel_a_run_counts_from_the_wish() -> None:
    """Not from the poll that finds it."""
    clock = FakeClock()
    stage = Stage(FakeModel(intent("SYSTEM_CHAT"), HANG), clock=clock)
    running = asyncio.create_task(stage.run())
    await stage.model.hanging.wait()
    clock.advance(10)
    poll = stage.database.pause_next("pending")
    await poll.reached.wait()

    await CancelUseCase(FakeCancelRequests(stage.database), clock).cancel(stage.row.new.run_id, "ada")
    clock.advance(0.25)
    poll.release()
    await running

    steps = [step for _, step in stage.journal.steps]
    assert Cancelled(CancelReason.CLIENT_REQUEST, waited=0.25) in steps
    assert [step.cancelling for step in steps if isinstance(step, Finished)] == [0.25]


@pytest.mark.spec("CANCEL-1", "ISO-2")
async def test_a_connection_belongs_to_a_principal_until_it_ends() -> None:
    database, clock = FakeDatabase(), FakeClock()
    connections = ConnectionUseCase(FakeConnections(database), FakeCancelRequests(database), clock)

    await connections.connect("c1", "ada")
    assert await connections.principal("c1") == "ada"
    assert database.connections["c1"] == ("ada", clock.now()), "the sweep goes by its age"
    for _ in range(2):
        await connections.disconnect("c1")
    await connections.disconnect("never seen")

    with pytest.raises(Unauthenticated):
        await connections.principal("c1")
    assert await FakeCancelRequests(database).pending("any", "c1") == CancelRequest(
        CancelReason.CLIENT_DISCONNECT, clock.now()
    )


@pytest.mark.spec("ISO-2")
@pytest.mark.parametrize("principal", [None, "", " ada", "ada ", "ada\n"])
async def test_nobody_connects_without_a_principal(principal: str | None) -> None:
    database = FakeDatabase()
    connections = ConnectionUseCase(FakeConnections(database), FakeCancelRequests(database), FakeClock())

    with pytest.raises(Unauthenticated):
        await connections.connect("c1", principal)

    assert not database.connections


@pytest.mark.spec("CANCEL-1")
async def test_the_cancel_row_is_there_even_if_forgetting_the_connection_fails() -> None:
    database = FakeDatabase()
    connections = ConnectionUseCase(FakeConnections(database), FakeCancelRequests(database), FakeClock())
    database.fail_next("remove")

    with pytest.raises(StoreError):
        await connections.disconnect("c1")

    assert await FakeCancelRequests(database).pending("any", "c1")


@pytest.mark.spec("WIRE-5")
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 50])
async def test_pages_of_history_hold_every_turn_once(limit: int) -> None:
    database, clock = FakeDatabase(), FakeClock()
    for number in range(5):
        clock.advance(1)
        await answered(database, clock).run(f"question {number}", session_id="s", request_id=f"r{number}")
    history = HistoryUseCase(FakeHistory(database))

    queries: list[str] = []
    before: str | None = None
    pages = 0
    for _ in range(10):
        pages += 1
        page, before = await history.turns("s", "ada", before, limit)
        assert len(page) == limit or before is None
        queries = [run.query for run in page] + queries
        if before is None:
            break

    assert queries == [f"question {number}" for number in range(5)]
    assert pages == math.ceil(5 / limit), "no page is empty, for nobody is sent to look for one"


@pytest.mark.spec("ISO-2")
async def test_history_is_the_owner_s() -> None:
    database, clock = FakeDatabase(), FakeClock()
    await answered(database, clock).run(session_id="s")
    history = HistoryUseCase(FakeHistory(database))

    with pytest.raises(SessionNotFound):
        await history.turns("s", "eve", None, 10)
    assert list(await history.sessions("eve", 10)) == []
    assert [session.session_id for session in await history.sessions("ada", 10)] == ["s"]


@pytest.mark.spec("LIFE-7")
async def test_a_dead_run_is_ended_once_after_its_deadline() -> None:
    database, clock = FakeDatabase(), FakeClock()
    stage = Stage(FakeModel(intent("SYSTEM_CHAT"), HANG), database=database, clock=clock)
    running = asyncio.create_task(stage.run())
    await stage.model.hanging.wait()
    await FakeConnections(database).add("old", "ada", clock.now())
    journal = FakeJournal()
    sweep = SweepUseCase(FakeRunStore(database), FakeConnections(database), clock, timedelta(seconds=30), journal)

    clock.advance(180 + 30)
    assert (await sweep.sweep()).runs == ()
    clock.advance(1)
    assert run_ids((await sweep.sweep()).runs) == [stage.row.new.run_id]
    assert (await sweep.sweep()).runs == ()
    assert (stage.row.outcome, stage.row.failure_code) == (ReleaseOutcome.FAILED, "RUN_ABANDONED")
    new = stage.row.new
    ids = RunIds(new.run_id, new.session_id, new.request_id, new.connection_id)
    assert journal.steps == [(ids, Abandoned(Intent.SYSTEM_CHAT, 180 + 30 + 1))]
    assert journal.elapsed == [180 + 30 + 1]

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stage.row.failure_code == "RUN_ABANDONED", "a late survivor's write loses"
    clock.advance(CONNECTION_LIFE.total_seconds())
    assert (await sweep.sweep()).connections == 1
