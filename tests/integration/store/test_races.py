"""Two processes at one row: each side has a Database of its own."""

import asyncio

import pytest

from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.domain.run import ReleaseOutcome
from superbizagent.ports import StartResult
from tests.integration.store.conftest import Open
from tests.integration.store.moments import Held, count, scalar
from tests.stored_values import at, chat_content, new_run, run_end, run_ids


class TestRaces:
    """Of two processes: each side has a Database of its own."""

    @pytest.mark.spec("LIFE-6")
    async def test_the_same_request_in_two_processes_makes_one_run(
        self, database_url: str, open_database: Open
    ) -> None:
        first, second = open_database(database_url), open_database(database_url)
        held = Held(first.engine)
        run, again = new_run(request_id="r1"), new_run(request_id="r1")
        winner = asyncio.create_task(SqlRunStore(first).start(run))
        await held.reached()
        loser = asyncio.create_task(SqlRunStore(second).start(again))
        held.release()
        assert await winner == StartResult()
        earlier = (await loser).earlier
        assert earlier is not None
        assert earlier.run_id == run.run_id
        assert (count(first, "diagnosis_run"), count(first, "chat_session")) == (1, 1)

    @pytest.mark.spec("LIFE-3")
    @pytest.mark.parametrize("outcome", [ReleaseOutcome.CANCELLED, ReleaseOutcome.FAILED])
    async def test_the_first_end_to_take_the_row_wins(
        self, database_url: str, open_database: Open, outcome: ReleaseOutcome
    ) -> None:
        first, second = open_database(database_url), open_database(database_url)
        run = new_run()
        await SqlRunStore(first).start(run)
        held = Held(first.engine)
        winner = asyncio.create_task(SqlRunStore(first).finish(run.run_id, run_end(outcome)))
        await held.reached()
        success = run_end(content=chat_content())
        loser = asyncio.create_task(SqlRunStore(second).finish(run.run_id, success))
        held.release()
        assert (await winner, await loser) == (True, False)
        found = await SqlRunStore(second).find(run.run_id)
        assert found is not None
        assert (found.outcome, found.content) == (outcome, None)

    @pytest.mark.spec("LIFE-7", "LIFE-3")
    async def test_a_finish_under_way_is_not_swept(self, database_url: str, open_database: Open) -> None:
        first, second = open_database(database_url), open_database(database_url)
        run = new_run()
        await SqlRunStore(first).start(run)
        held = Held(first.engine)
        finish = asyncio.create_task(SqlRunStore(first).finish(run.run_id, run_end()))
        await held.reached()
        sweep = asyncio.create_task(SqlRunStore(second).abandon_overdue(at(10_000), at(10_000)))
        if database_url.startswith("mysql"):
            assert list(await sweep) == []  # without waiting for the row
        held.release()
        assert (await finish, list(await sweep)) == (True, [])

    @pytest.mark.spec("LIFE-7", "LIFE-3")
    async def test_a_finish_that_comes_during_the_sweep_loses(self, database_url: str, open_database: Open) -> None:
        first, second = open_database(database_url), open_database(database_url)
        run = new_run()
        await SqlRunStore(first).start(run)
        held = Held(first.engine)
        sweep = asyncio.create_task(SqlRunStore(first).abandon_overdue(at(10_000), at(10_000)))
        await held.reached()
        late = run_end(content=chat_content())
        finish = asyncio.create_task(SqlRunStore(second).finish(run.run_id, late))
        held.release()
        assert (run_ids(await sweep), await finish) == ([run.run_id], False)
        assert scalar(second, "SELECT message_pairs FROM chat_session") == 0
