"""Instants are what the product says, whatever the clock and the zone of the server."""

from collections.abc import Iterator
from datetime import datetime

import pytest

from superbizagent.adapters.store import SqlConnections, SqlRunStore
from superbizagent.errors import StoreError
from tests.database_server import DatabaseServer
from tests.integration.store.conftest import Open
from tests.integration.store.moments import count, scalar
from tests.stored_values import NOW, new_run


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
