"""A connection that dies around its COMMIT: every unit that writes does its work once, and says so.

The network is a real one: a relay between driver and server that loses what it is told to.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, select

from superbizagent.adapters.store import Database, SqlCancelRequests, SqlConnections, Timeouts, metadata
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.domain.run import CancelReason, CancelRequest, Intent, RunStatus
from superbizagent.errors import RequestConflict, SessionBusy, StoreError
from superbizagent.ports import NewRun, StartResult
from tests.integration.store.conftest import Open
from tests.integration.store.moments import count
from tests.integration.store.proxy import Loss, Proxy
from tests.stored_values import NOW, TRICKY, at, chat_content, new_run, published, run_end, run_ids

LATE = at(10_000)


@dataclass(frozen=True)
class Way:
    """Two ways to one database: straight, and through the relay."""

    straight: Database
    through: Database
    proxy: Proxy


@pytest.fixture
async def way(mysql_database: str, open_database: Open) -> AsyncIterator[Way]:
    async with Proxy.before(mysql_database) as (proxy, url):
        # The silence is heard through after a second; nothing else here waits at all.
        through = open_database(url, pool_size=1, timeouts=Timeouts(read=1, lock=1))
        await _connected(through)
        yield Way(open_database(mysql_database), through, proxy)
        through.close()


async def _connected(database: Database) -> None:
    """A new connection has a COMMIT of its own, with which its isolation level is set."""
    await database.read(lambda connection: connection.scalar(select(1)))


Work = Callable[[Database, NewRun], Awaitable[Any]]


def _run(name: str, session_id: str, **fields: Any) -> NewRun:
    ids = dict.fromkeys(("run_id", "request_id", "gateway_request_id", "connection_id"), name)
    return new_run(**ids, session_id=session_id, **fields)


async def _start(database: Database, run: NewRun) -> Any:
    return await SqlRunStore(database).start(_run("second", "another"))


async def _start_after_an_overdue(database: Database, run: NewRun) -> Any:
    return await SqlRunStore(database).start(_run("second", run.session_id, created_at=LATE))


async def _set_intent(database: Database, run: NewRun) -> Any:
    return await SqlRunStore(database).set_intent(run.run_id, Intent.DIAGNOSIS)


async def _finish(database: Database, run: NewRun) -> Any:
    end = run_end(content=chat_content(TRICKY), published_result=published(TRICKY))
    return await SqlRunStore(database).finish(run.run_id, end)


async def _sweep(database: Database, run: NewRun) -> Any:
    return list(await SqlRunStore(database).abandon_overdue(LATE, LATE))


async def _cancel_run(database: Database, run: NewRun) -> Any:
    return await SqlCancelRequests(database).cancel_run(run.run_id, run.owner, at(1))


async def _cancel_connection(database: Database, run: NewRun) -> Any:
    return await SqlCancelRequests(database).cancel_connection(run.connection_id, at(1))


async def _connect(database: Database, run: NewRun) -> Any:
    return await SqlConnections(database).add("c2", "bob", at(1))


async def _disconnect(database: Database, run: NewRun) -> Any:
    return await SqlConnections(database).remove("c1")


WRITES: tuple[Work, ...] = (
    _start,
    _start_after_an_overdue,
    _set_intent,
    _finish,
    _sweep,
    _cancel_run,
    _cancel_connection,
    _connect,
    _disconnect,
)


# A silence takes a second each: of the three kinds of unit one each.
CASES: tuple[tuple[Work, Loss], ...] = (
    *((work, "question") for work in WRITES),
    *((work, "answer") for work in WRITES),
    *((work, "silence") for work in (_start, _finish, _sweep)),
)


async def _scene(database: Database) -> NewRun:
    """A running run, and a connection."""
    run = _run("first", "s1")
    await SqlRunStore(database).start(run)
    await SqlConnections(database).add("c1", "ada", NOW)
    return run


def _everything(database: Database) -> dict[str, list[dict[str, Any]]]:
    """All rows, without the numbers that a rolled back insert uses up."""

    def unit(connection: Any) -> dict[str, list[dict[str, Any]]]:
        return {
            table.name: [
                {name: value for name, value in row._asdict().items() if name != "id"}
                for row in connection.execute(select(table).order_by(*table.primary_key))
            ]
            for table in metadata.sorted_tables
        }

    return database.run(unit, writes=False)


def _clear(database: Database) -> None:
    def unit(connection: Any) -> None:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())

    database.run(unit, writes=True)


@pytest.mark.spec("LIFE-3", "LIFE-4", "LIFE-6", "LIFE-7", "STORE-3", "CANCEL-1")
@pytest.mark.parametrize(("work", "loss"), CASES, ids=lambda value: getattr(value, "__name__", value).removeprefix("_"))
async def test_work_is_done_once_and_answered_as_if_nothing_had_been_lost(way: Way, work: Work, loss: Loss) -> None:
    expected = await work(way.straight, await _scene(way.straight))
    rows = _everything(way.straight)
    _clear(way.straight)
    run = await _scene(way.straight)

    way.proxy.lose(loss)
    answer = await work(way.through, run)

    assert (answer, _everything(way.straight)) == (expected, rows)
    assert way.proxy.lost == 1


@pytest.mark.spec("LIFE-7")
async def test_old_connections_are_removed_once(way: Way) -> None:
    await _scene(way.straight)
    await SqlCancelRequests(way.straight).cancel_connection("c0", NOW)
    way.proxy.lose("answer")

    await SqlConnections(way.through).remove_older(at(1))

    assert (count(way.straight, "ws_connection"), count(way.straight, "run_cancel")) == (0, 0)


@pytest.mark.spec("LIFE-7", "LIFE-3")
async def test_a_sweep_takes_no_credit_for_what_another_one_ended(way: Way) -> None:
    run = await _scene(way.straight)
    other = SqlRunStore(way.straight)
    theirs: list[str] = []

    def meanwhile(_context: object) -> None:
        """Between our first try, rolled back with its connection, and the second."""
        theirs.extend(run_ids(asyncio.run(other.abandon_overdue(LATE, LATE + timedelta(seconds=1)))))

    event.listen(way.through.engine, "handle_error", meanwhile, once=True)
    way.proxy.lose("question")

    assert run_ids(await SqlRunStore(way.through).abandon_overdue(LATE, LATE)) == []
    assert theirs == [run.run_id]


@pytest.mark.spec("LIFE-4", "LIFE-7")
async def test_a_start_that_nobody_could_acknowledge_is_swept(way: Way) -> None:
    """The row is there though its caller was told that it could not be stored."""
    way.through.close()
    async with Proxy.before(way.straight.engine.url.render_as_string(hide_password=False)) as (proxy, url):
        impatient = Database(url, timeouts=Timeouts(patience=0))
        await _connected(impatient)
        proxy.lose("answer")
        run = new_run(session_id="s1", request_id="q1")
        with pytest.raises(StoreError):
            await SqlRunStore(impatient).start(run)
        impatient.close()

    store = SqlRunStore(way.straight)
    found = await store.find(run.run_id)
    assert found is not None
    assert found.status is RunStatus.RUNNING
    again = (await store.start(new_run(session_id="s1", request_id="q1"))).earlier
    assert again is not None
    assert again.run_id == run.run_id
    with pytest.raises(SessionBusy):
        await store.start(new_run(session_id="s1", request_id="q2"))
    with pytest.raises(RequestConflict):
        await store.start(new_run(session_id="s1", request_id="q1", query="another"))
    assert run_ids(await store.abandon_overdue(LATE, LATE)) == [run.run_id]
    assert await store.start(new_run(session_id="s1", request_id="q3", created_at=LATE)) == StartResult()


@pytest.mark.spec("CANCEL-4")
async def test_a_poll_whose_answer_was_lost_asks_again(way: Way) -> None:
    run = await _scene(way.straight)
    await _cancel_run(way.straight, run)
    way.proxy.lose("answer", "SELECT run_cancel")
    asked = CancelRequest(CancelReason.CLIENT_REQUEST, at(1))
    assert await SqlCancelRequests(way.through).pending(run.run_id, "c9") == asked
    assert way.proxy.lost == 1
