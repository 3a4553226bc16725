"""Instants are what the product says, whatever the clock and the zone of the server."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from superbizagent.adapters.store import SqlCancelRequests, SqlConnections
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.domain.run import CancelReason, CancelRequest
from superbizagent.errors import StoreError
from tests.database_server import DatabaseServer
from tests.integration.store.conftest import Open, Reconfigured
from tests.integration.store.moments import count, scalar
from tests.stored_values import NOW, TRICKY, at, chat_content, new_run, run_end, run_ids


class TestTimes:
    @pytest.fixture(params=["server", "dsn"])
    def far_east(
        self, request: pytest.FixtureRequest, mysql_server: DatabaseServer, mysql_database: str
    ) -> Iterator[str]:
        """A database whose default zone is eight hours ahead."""
        if request.param == "dsn" or not mysql_server.private:
            yield f"{mysql_database}?init_command=SET time_zone='%2B08:00'"
            return
        mysql_server.execute("SET GLOBAL time_zone = '+08:00'")
        try:
            yield mysql_database
        finally:
            mysql_server.execute("SET GLOBAL time_zone = 'SYSTEM'")

    @pytest.mark.spec("STORE-4")
    async def test_times_are_utc_with_microseconds_whatever_the_servers_zone(
        self, far_east: str, open_database: Open
    ) -> None:
        database = open_database(far_east)
        runs, run = SqlRunStore(database), new_run(created_at=NOW.replace(microsecond=999_999))
        await runs.start(run)
        assert scalar(database, "SELECT @@session.time_zone") == "+00:00"
        stored = scalar(database, "SELECT CAST(created_at AS CHAR) FROM diagnosis_run")
        assert stored == "2026-11-30 15:04:05.999999"
        found = await runs.find(run.run_id)
        assert found is not None
        assert (found.created_at, found.created_at.utcoffset()) == (run.created_at, NOW.utcoffset())

    @pytest.mark.spec("STORE-4")
    async def test_an_instant_of_another_zone_is_the_same_instant(self, database_url: str, open_database: Open) -> None:
        runs = SqlRunStore(open_database(database_url))
        run = new_run(created_at=datetime.fromisoformat("2026-11-30T23:04:05.000001+08:00"))
        await runs.start(run)
        found = await runs.find(run.run_id)
        assert found is not None
        assert found.created_at.isoformat() == "2026-11-30T15:04:05.000001+00:00"

    async def test_an_instant_without_a_zone_is_refused(self, database_url: str, open_database: Open) -> None:
        database = open_database(database_url)
        with pytest.raises(StoreError):
            await SqlConnections(database).add("c1", "ada", NOW.replace(tzinfo=None))
        assert count(database, "ws_connection") == 0


class TestOddSessions:
    """What a server does to every session of an account that is no administrator's."""

    @pytest.fixture
    def odd(self, own_database: str, reconfigured: Reconfigured) -> str:
        reconfigured("time_zone", "'+08:00'")
        reconfigured("sql_mode", "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE'")
        reconfigured("autocommit", "OFF")
        # A clock that stands still in 1970, as far as the session can tell.
        reconfigured("init_connect", "'SET SESSION timestamp = 86400'")
        return own_database

    @pytest.mark.spec("STORE-4", "LIFE-7", "CANCEL-4")
    async def test_nothing_that_is_stored_comes_from_the_servers_clock_or_mode(
        self, odd: str, open_database: Open
    ) -> None:
        database = open_database(odd)
        runs, run = SqlRunStore(database), new_run(query=TRICKY)
        await runs.start(run)
        assert str(scalar(database, "SELECT NOW()")).startswith("1970-01-02")
        await SqlConnections(database).add("c1", "ada", NOW)
        await SqlCancelRequests(database).cancel_run(run.run_id, "ada", at(1))
        asked = CancelRequest(CancelReason.CLIENT_REQUEST, at(1))
        assert await SqlCancelRequests(database).pending(run.run_id, "c2") == asked
        content = chat_content(TRICKY)
        assert await runs.finish(run.run_id, run_end(content=content, finished_at=at(2)))
        found = await runs.find(run.run_id)
        assert found is not None
        assert (found.query, found.content, found.created_at, found.finished_at) == (TRICKY, content, NOW, at(2))
        overdue = new_run(created_at=at(10))
        await runs.start(overdue)
        assert run_ids(await runs.abandon_overdue(overdue.deadline_at, at(500))) == []
        later = overdue.deadline_at + timedelta(microseconds=1)
        assert run_ids(await runs.abandon_overdue(later, at(500))) == [overdue.run_id]

    @pytest.mark.spec("STORE-4")
    async def test_too_much_text_is_refused_not_cut(self, odd: str, open_database: Open) -> None:
        reset = open_database(odd)
        with pytest.raises(StoreError):
            await SqlRunStore(reset).start(new_run(owner="x" * 300))
        assert count(reset, "diagnosis_run") == 0
