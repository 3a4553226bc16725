"""A server that refuses, goes away and comes back: the unit is repeated whole, for a bounded time."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, delete, event, insert
from sqlalchemy.pool import NullPool

from superbizagent.adapters.store import Database, SqlConnections, Timeouts, metadata
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.adapters.store.tables import ws_connection
from superbizagent.errors import StoreError
from tests.database_server import DatabaseServer, Restarts, restartable_server
from tests.integration.store.conftest import Open, Reconfigured
from tests.integration.store.moments import WAIT, count, scalar, server_side
from tests.integration.store.proxy import Proxy
from tests.stored_values import NOW, chat_content, new_run, run_end, run_ids


class Errors:
    """The server's and the driver's own error codes that an engine meets, as they come."""

    def __init__(self, database: Database) -> None:
        self.codes: list[int] = []
        self._more = threading.Condition()
        event.listen(database.engine, "handle_error", self._note)

    def _note(self, context: Any) -> None:
        with self._more:
            self.codes.append(context.original_exception.args[0])
            self._more.notify_all()

    async def met(self, code: int) -> None:
        def wait() -> bool:
            with self._more:
                return self._more.wait_for(lambda: code in self.codes, WAIT)

        assert await asyncio.to_thread(wait)


@contextlib.contextmanager
def crowd(server: DatabaseServer) -> Iterator[None]:
    """As many connections as the least limit that a server takes, and the one more that administrators have."""
    engine = create_engine(server.url, poolclass=NullPool)
    with contextlib.ExitStack() as open_:
        for _ in range(11):
            open_.enter_context(engine.connect())
        yield


class TestTooManyConnections:
    @pytest.mark.spec("LIFE-4")
    async def test_a_unit_waits_until_there_is_room(
        self, own_database: str, own_server: DatabaseServer, open_database: Open, reconfigured: Reconfigured
    ) -> None:
        database = open_database(own_database)
        errors = Errors(database)
        with crowd(own_server):
            reconfigured("max_connections", "10")
            adding = asyncio.create_task(SqlConnections(database).add("c1", "ada", NOW))
            await errors.met(1040)
        await adding
        assert set(errors.codes) == {1040}
        assert count(database, "ws_connection") == 1

    @pytest.mark.spec("LIFE-4")
    async def test_it_does_not_wait_for_ever(
        self, own_database: str, own_server: DatabaseServer, open_database: Open, reconfigured: Reconfigured
    ) -> None:
        database = open_database(own_database, timeouts=Timeouts(patience=0.3))
        with crowd(own_server):
            reconfigured("max_connections", "10")
            with pytest.raises(StoreError, match="1040"):
                await SqlConnections(database).add("c1", "ada", NOW)


class TestFailover:
    @pytest.mark.spec("LIFE-4", "STORE-3")
    async def test_a_server_that_became_read_only_is_left_for_the_one_that_took_over(
        self, own_database: str, open_database: Open, reconfigured: Reconfigured, own_server: DatabaseServer
    ) -> None:
        database = open_database(own_database)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        # Four pooled connections lead to the old server.
        barrier = threading.Barrier(4, timeout=WAIT)

        def together(connection: Connection) -> int:
            barrier.wait()
            return server_side(connection)

        old = set(await asyncio.gather(*(database.read(together) for _ in range(4))))
        assert len(old) == 4
        errors = Errors(database)
        reconfigured("read_only", "ON")
        finishing = asyncio.create_task(runs.finish(run.run_id, run_end(content=chat_content())))
        await errors.met(1290)
        own_server.execute("SET GLOBAL read_only = OFF")
        assert await finishing
        assert set(errors.codes) == {1290}
        assert await database.read(server_side) not in old

    @pytest.mark.spec("LIFE-4", "LIFE-7")
    async def test_one_that_stays_read_only_is_a_store_error_and_the_run_is_swept(
        self, own_database: str, open_database: Open, reconfigured: Reconfigured, own_server: DatabaseServer
    ) -> None:
        database = open_database(own_database, timeouts=Timeouts(patience=0.3))
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        reconfigured("read_only", "ON")
        with pytest.raises(StoreError, match="1290"):
            await runs.finish(run.run_id, run_end(content=chat_content()))
        # What was answered before can still be read.
        assert await runs.find(run.run_id) is not None
        own_server.execute("SET GLOBAL read_only = OFF")
        assert run_ids(await runs.abandon_overdue(run.deadline_at.replace(year=2027), NOW)) == [run.run_id]


class TestPackets:
    @pytest.mark.spec("LIFE-4", "STORE-3")
    async def test_what_the_server_finds_too_large_is_a_store_error_and_nothing_is_stored(
        self, own_database: str, open_database: Open, reconfigured: Reconfigured
    ) -> None:
        # Below a packet buffer's size no limit is looked at.
        reconfigured("max_allowed_packet", "16384")
        database = open_database(own_database)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        errors = Errors(database)
        with pytest.raises(StoreError):
            await runs.finish(run.run_id, run_end(content=chat_content("x" * 20_000)))
        assert errors.codes == [1153]
        assert scalar(database, "SELECT status FROM diagnosis_run") == "RUNNING"
        assert await runs.finish(run.run_id, run_end())


@pytest.fixture(scope="module")
def restarts() -> Iterator[tuple[str, Restarts]]:
    """A database of a server, and the server's switch."""
    with restartable_server() as (server, switch), server.new_database() as url:
        with contextlib.closing(Database(url)) as database:
            metadata.create_all(database.engine)
        yield url, switch


class TestRestarts:
    @pytest.fixture
    def database(self, restarts: tuple[str, Restarts], open_database: Open) -> Database:
        database = open_database(restarts[0])
        database.run(lambda connection: connection.execute(delete(ws_connection)), writes=True)
        return database

    @pytest.mark.spec("LIFE-4", "STORE-3")
    async def test_a_unit_outlasts_a_restart(self, database: Database, restarts: tuple[str, Restarts]) -> None:
        _, switch = restarts
        errors = Errors(database)
        await asyncio.to_thread(switch.stop)
        adding = asyncio.create_task(SqlConnections(database).add("c1", "ada", NOW))
        await errors.met(2003)
        await asyncio.to_thread(switch.start)
        await adding
        assert count(database, "ws_connection") == 1

    @pytest.mark.spec("LIFE-4")
    async def test_a_restart_in_the_middle_of_a_unit_repeats_it_from_its_start(
        self, database: Database, restarts: tuple[str, Restarts]
    ) -> None:
        _, switch = restarts
        tries: list[int] = []

        def unit(connection: Connection) -> None:
            tries.append(server_side(connection))
            connection.execute(insert(ws_connection).values(connection_id="c1", principal="ada", connected_at=NOW))
            if len(tries) == 1:
                switch.stop()
                switch.start()

        await database.write(unit)
        assert len(tries) == 2
        assert count(database, "ws_connection") == 1


class TestNobodyWaits:
    """A unit whose caller gave up: it may end its try, and begins no other."""

    @pytest.mark.spec("LIFE-4", "CANCEL-4")
    async def test_it_is_not_repeated(self, own_database: str, open_database: Open, reconfigured: Reconfigured) -> None:
        database = open_database(own_database)
        await SqlConnections(database).remove("nothing")
        errors = Errors(database)
        reconfigured("read_only", "ON")
        adding = asyncio.create_task(SqlConnections(database).add("c1", "ada", NOW))
        await errors.met(1290)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert await asyncio.to_thread(database.quiet, WAIT)
        seen = len(errors.codes)
        assert database.quiet(0.0)
        assert len(errors.codes) == seen

    async def test_quiet_waits_for_it_and_says_when_it_takes_too_long(
        self, mysql_database: str, open_database: Open
    ) -> None:
        database = open_database(mysql_database)
        began, released = threading.Event(), threading.Event()

        def unit(_connection: Connection) -> None:
            began.set()
            assert released.wait(WAIT)

        writing = asyncio.create_task(database.write(unit))
        assert await asyncio.to_thread(began.wait, WAIT)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert not database.quiet(0.05)
        released.set()
        assert await asyncio.to_thread(database.quiet, WAIT)


class TestSilence:
    @pytest.mark.spec("LIFE-4")
    async def test_a_server_that_says_nothing_costs_a_bounded_time(
        self, mysql_database: str, open_database: Open
    ) -> None:
        async with Proxy.before(mysql_database) as (proxy, url):
            database = open_database(url, timeouts=Timeouts(read=1, patience=0.5))
            await database.read(server_side)
            for _ in range(3):
                proxy.lose("silence", "UPDATE ws_connection")
            began = time.monotonic()
            with pytest.raises(StoreError, match="2013"):
                await SqlConnections(database).add("c1", "ada", NOW)
            # One try: a second of silence is longer than the patience. A bound, not a measurement.
            assert proxy.lost == 1
            assert time.monotonic() - began < WAIT
