"""What a poll sees, and what becomes of a unit that nobody waits for any more."""

import asyncio
import threading
from typing import Any

import pytest
from sqlalchemy import Connection, text

from superbizagent.adapters.store import SqlCancelRequests, SqlConnections
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.domain.run import CancelReason, CancelRequest, RunStatus
from tests.integration.store.conftest import Open
from tests.integration.store.moments import WAIT, Held
from tests.stored_values import NOW, new_run


class TestSnapshots:
    @pytest.mark.spec("CANCEL-4", "CANCEL-1")
    async def test_a_poll_sees_what_others_committed_a_moment_ago(self, database_url: str, open_database: Open) -> None:
        run_side = open_database(database_url, pool_size=1)
        polls, disconnects = SqlCancelRequests(run_side), SqlCancelRequests(open_database(database_url))
        assert await polls.pending("run", "c1") is None
        await disconnects.cancel_connection("c1", NOW)
        assert await polls.pending("run", "c1") == CancelRequest(CancelReason.CLIENT_DISCONNECT, NOW)

    @pytest.mark.spec("CANCEL-4")
    def test_even_one_transaction_sees_new_commits(self, mysql_database: str, open_database: Open) -> None:
        database, other = open_database(mysql_database), open_database(mysql_database)

        def unit(connection: Connection) -> tuple[Any, Any]:
            count = text("SELECT count(*) FROM ws_connection")
            before = connection.scalar(count)
            asyncio.run(SqlConnections(other).add("c1", "ada", NOW))
            return before, connection.scalar(count)

        assert database.run(unit, writes=False) == (0, 1)


class TestCancelledWaits:
    @pytest.mark.spec("CANCEL-2", "CANCEL-4")
    async def test_the_next_caller_never_gets_the_answer_of_a_cancelled_one(
        self, mysql_database: str, open_database: Open
    ) -> None:
        database = open_database(mysql_database, pool_size=2)
        running = threading.Event()

        def slow(connection: Connection) -> Any:
            running.set()
            return connection.scalar(text("SELECT 'slow' FROM (SELECT SLEEP(0.5)) AS s"))

        for _ in range(2):
            running.clear()
            task = asyncio.create_task(database.read(slow))
            assert await asyncio.to_thread(running.wait, WAIT)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            answer = await database.read(lambda connection: connection.scalar(text("SELECT 'second'")))
            assert answer == "second"

    @pytest.mark.spec("LIFE-3")
    async def test_a_write_whose_wait_was_cancelled_is_stored_whole(
        self, database_url: str, open_database: Open
    ) -> None:
        database = open_database(database_url)
        runs, run = SqlRunStore(database), new_run()
        held = Held(database.engine)
        task = asyncio.create_task(runs.start(run))
        await held.reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.release()
        database.close()
        found = await SqlRunStore(open_database(database_url)).find(run.run_id)
        assert found is not None
        assert found.status is RunStatus.RUNNING
