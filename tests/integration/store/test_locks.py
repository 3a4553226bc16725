"""Lock waits and deadlocks: the whole unit is repeated."""

import asyncio
import threading
from collections.abc import Callable

import pytest
from sqlalchemy import Connection, event

from superbizagent.adapters.store import Timeouts
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.domain.run import RunStatus
from superbizagent.errors import StoreError
from superbizagent.ports import StartResult
from tests.integration.store.conftest import Open
from tests.integration.store.moments import WAIT, Held, count, scalar, touch
from tests.stored_values import at, chat_content, new_run, run_end


class TestLocks:
    @pytest.mark.spec("LIFE-6", "STORE-3")
    async def test_a_unit_that_waited_too_long_for_a_lock_is_repeated_whole(
        self, database_url: str, open_database: Open
    ) -> None:
        database = open_database(database_url, timeouts=Timeouts(lock=1))
        runs, first = SqlRunStore(database), new_run(session_id="s1")
        await runs.start(first)
        await runs.finish(first.run_id, run_end())
        timed_out = threading.Event()
        event.listen(database.engine, "handle_error", lambda _context: timed_out.set())
        other = open_database(database_url)
        held = Held(other.engine)
        holder = asyncio.create_task(other.write(touch("s1")))
        await held.reached()
        second = asyncio.create_task(runs.start(new_run(session_id="s1", created_at=at(60))))
        assert await asyncio.to_thread(timed_out.wait, WAIT)
        held.release()
        await holder
        assert await second == StartResult()
        assert count(database, "diagnosis_run") == 2

    @pytest.mark.spec("LIFE-4", "STORE-3")
    async def test_a_lock_that_is_never_freed_ends_in_a_store_error_and_stores_nothing(
        self, database_url: str, open_database: Open
    ) -> None:
        database = open_database(database_url, timeouts=Timeouts(lock=1, patience=1))
        runs, run = SqlRunStore(database), new_run(session_id="s1")
        await runs.start(run)
        other = open_database(database_url)
        held = Held(other.engine)
        holder = asyncio.create_task(other.write(touch("s1")))
        await held.reached()
        with pytest.raises(StoreError):
            await runs.finish(run.run_id, run_end(content=chat_content()))
        held.release()
        await holder
        found = await runs.find(run.run_id)
        assert found is not None
        assert (found.status, found.content) == (RunStatus.RUNNING, None)

    @pytest.mark.spec("STORE-3")
    async def test_a_deadlocks_victim_is_repeated_whole(self, mysql_database: str, open_database: Open) -> None:
        database = open_database(mysql_database)
        runs = SqlRunStore(database)
        for session in ("a", "b"):
            await runs.start(new_run(session_id=session))
        barrier = threading.Barrier(2, timeout=WAIT)
        tries: list[str] = []

        def crossing(first: str, second: str) -> Callable[[Connection], None]:
            def unit(connection: Connection) -> None:
                tries.append(first)
                touch(first)(connection)
                if tries.count(first) == 1:
                    barrier.wait()
                touch(second)(connection)

            return unit

        await asyncio.gather(database.write(crossing("a", "b")), database.write(crossing("b", "a")))
        assert len(tries) == 3
        assert scalar(database, "SELECT sum(message_pairs) FROM chat_session") == 4
