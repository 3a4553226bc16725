"""What goes wrong between a process and its database, on real servers."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, Connection, Engine, String, create_engine, event, insert, select, text
from sqlalchemy.pool import NullPool

from superbizagent.adapters.store import (
    Database,
    SqlCancelRequests,
    SqlConnections,
    SqlRunStore,
    Timeouts,
    metadata,
)
from superbizagent.adapters.store.tables import UtcDateTime, diagnosis_run, ws_connection
from superbizagent.domain.run import CancelReason, Intent, ReleaseOutcome, RunStatus
from superbizagent.errors import ConfigurationError, StoreError
from superbizagent.ports import PriorContext
from tests.database_server import DatabaseServer
from tests.stored_values import NOW, TRICKY, at, chat_content, new_run, published, run_end

Open = Callable[..., Database]
WAIT = 20.0


@pytest.fixture
def open_database() -> Iterator[Open]:
    """Opens databases and closes them all at the end."""
    opened: list[Database] = []

    def open_(url: str, **options: Any) -> Database:
        opened.append(Database(url, **options))
        return opened[-1]

    yield open_
    for database in opened:
        database.close()


def _scalar(database: Database, statement: str, **values: Any) -> Any:
    return database.run(lambda connection: connection.scalar(text(statement), values), writes=False)


def _count(database: Database, table: str) -> int:
    return int(_scalar(database, f"SELECT count(*) FROM {table}"))


def _server_side(connection: Connection) -> int:
    return int(connection.scalar(text("SELECT CONNECTION_ID()")) or 0)


class Held:
    """Holds the first commit of an engine until it is released: a transaction caught in its last moment."""

    def __init__(self, engine: Engine) -> None:
        self._reached = threading.Event()
        self._released = threading.Event()
        event.listen(engine, "commit", self._hold, once=True)

    def _hold(self, _connection: Connection) -> None:
        self._reached.set()
        assert self._released.wait(WAIT)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, WAIT)

    def release(self) -> None:
        self._released.set()


class TestSnapshots:
    @pytest.mark.spec("CANCEL-4", "CANCEL-1")
    async def test_a_poll_sees_what_others_committed_a_moment_ago(self, database_url: str, open_database: Open) -> None:
        run_side = open_database(database_url, pool_size=1, max_overflow=0)
        polls, disconnects = SqlCancelRequests(run_side), SqlCancelRequests(open_database(database_url))
        assert await polls.pending("run", "c1") is None
        await disconnects.cancel_connection("c1", NOW)
        assert await polls.pending("run", "c1") is CancelReason.CLIENT_DISCONNECT

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
        database = open_database(mysql_database, pool_size=1, max_overflow=1)
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


class TestLostConnections:
    @pytest.mark.spec("CANCEL-4", "LIFE-4")
    async def test_connections_that_died_in_the_pool_are_replaced(
        self, mysql_database: str, mysql_server: DatabaseServer, open_database: Open
    ) -> None:
        database = open_database(mysql_database, pool_size=1, max_overflow=0)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        mysql_server.execute(f"KILL {await database.read(_server_side)}")
        assert await runs.finish(run.run_id, run_end(content=chat_content()))
        mysql_server.execute(f"KILL {await database.read(_server_side)}")
        assert await SqlCancelRequests(database).pending(run.run_id, "c") is None

    @pytest.mark.spec("LIFE-6")
    async def test_a_unit_whose_connection_is_killed_is_repeated_from_its_start(
        self, mysql_database: str, mysql_server: DatabaseServer, open_database: Open
    ) -> None:
        database = open_database(mysql_database)
        tries: list[int] = []

        def unit(connection: Connection) -> None:
            tries.append(_server_side(connection))
            connection.execute(insert(ws_connection).values(connection_id="c1", principal="ada", connected_at=NOW))
            if len(tries) == 1:
                mysql_server.execute(f"KILL {tries[0]}")
            connection.scalar(text("SELECT 1"))

        await database.write(unit)
        assert len(tries) == 2
        assert _count(database, "ws_connection") == 1

    @pytest.mark.spec("LIFE-6", "LIFE-3", "LIFE-4", "STORE-3")
    async def test_work_whose_acknowledgement_was_lost_is_recognised_and_not_done_again(
        self, mysql_database: str, mysql_server: DatabaseServer, open_database: Open
    ) -> None:
        database = open_database(mysql_database)
        runs, run = SqlRunStore(database), new_run(query=TRICKY)
        _lose_next_acknowledgement(database.engine, mysql_server)
        assert await runs.start(run) is None
        assert _count(database, "diagnosis_run") == 1
        _lose_next_acknowledgement(database.engine, mysql_server)
        end = run_end(content=chat_content(TRICKY), published_result=published(TRICKY))
        assert await runs.finish(run.run_id, end)
        assert _scalar(database, "SELECT message_pairs FROM chat_session") == 1

    @pytest.mark.spec("LIFE-3")
    async def test_a_lost_acknowledgement_does_not_make_somebody_elses_end_ours(
        self, mysql_database: str, mysql_server: DatabaseServer, open_database: Open
    ) -> None:
        database, other = open_database(mysql_database), open_database(mysql_database)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        killed = threading.Event()

        def lose_before_commit(connection: Connection) -> None:
            mysql_server.execute(f"KILL {_id_of(connection)}")
            asyncio.run(SqlRunStore(other).abandon_overdue(at(10_000), at(10_000)))
            killed.set()

        event.listen(database.engine, "commit", lose_before_commit, once=True)
        assert not await runs.finish(run.run_id, run_end())
        assert killed.is_set()

    @pytest.mark.spec("LIFE-4")
    async def test_a_server_that_is_not_there_is_a_store_error(self, open_database: Open) -> None:
        database = open_database("mysql://root:secret@127.0.0.1:1/store")
        with pytest.raises(StoreError) as caught:
            await SqlRunStore(database).finish("run", run_end())
        assert caught.value.__cause__ is not None
        assert "secret" not in str(caught.value)

    @pytest.mark.spec("LIFE-4")
    async def test_missing_tables_are_a_store_error(
        self, new_mysql_database: str, tmp_path: Path, open_database: Open
    ) -> None:
        for url in (new_mysql_database, f"sqlite:///{tmp_path}/empty.db"):
            with pytest.raises(StoreError):
                await SqlRunStore(open_database(url)).start(new_run())


def _lose_next_acknowledgement(engine: Engine, server: DatabaseServer) -> None:
    def commit_and_die(connection: Connection) -> None:
        dbapi: Any = connection.connection.dbapi_connection
        dbapi.commit()
        server.execute(f"KILL {dbapi.thread_id()}")

    event.listen(engine, "commit", commit_and_die, once=True)


def _id_of(connection: Connection) -> int:
    dbapi: Any = connection.connection.dbapi_connection
    return int(dbapi.thread_id())


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
        holder = asyncio.create_task(other.write(_touch("s1")))
        await held.reached()
        second = asyncio.create_task(runs.start(new_run(session_id="s1", created_at=at(60))))
        assert await asyncio.to_thread(timed_out.wait, WAIT)
        held.release()
        await holder
        assert await second is None
        assert _count(database, "diagnosis_run") == 2

    @pytest.mark.spec("LIFE-4", "STORE-3")
    async def test_a_lock_that_is_never_freed_ends_in_a_store_error_and_stores_nothing(
        self, database_url: str, open_database: Open
    ) -> None:
        database = open_database(database_url, timeouts=Timeouts(lock=1))
        runs, run = SqlRunStore(database), new_run(session_id="s1")
        await runs.start(run)
        other = open_database(database_url)
        held = Held(other.engine)
        holder = asyncio.create_task(other.write(_touch("s1")))
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
                _touch(first)(connection)
                if tries.count(first) == 1:
                    barrier.wait()
                _touch(second)(connection)

            return unit

        await asyncio.gather(database.write(crossing("a", "b")), database.write(crossing("b", "a")))
        assert len(tries) == 3
        assert _scalar(database, "SELECT sum(message_pairs) FROM chat_session") == 4


def _touch(session_id: str) -> Callable[[Connection], None]:
    statement = text("UPDATE chat_session SET message_pairs = message_pairs + 1 WHERE session_id = :id")

    def unit(connection: Connection) -> None:
        connection.execute(statement, {"id": session_id})

    return unit


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
        assert await winner is None
        earlier = await loser
        assert earlier is not None
        assert earlier.run_id == run.run_id
        assert (_count(first, "diagnosis_run"), _count(first, "chat_session")) == (1, 1)

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
        assert (list(await sweep), await finish) == ([run.run_id], False)
        assert _scalar(second, "SELECT message_pairs FROM chat_session") == 0


class TestText:
    @pytest.mark.spec("STORE-4")
    @pytest.mark.parametrize("suffix", ["", "?charset=latin1"])
    def test_every_text_column_keeps_every_byte(self, mysql_database: str, open_database: Open, suffix: str) -> None:
        database = open_database(mysql_database + suffix)

        def unit(connection: Connection) -> None:
            for table in metadata.sorted_tables:
                values = {column.name: _sample(column) for column in table.columns if column.name != "id"}
                connection.execute(insert(table).values(**values))
                row = connection.execute(select(table)).one()._asdict()
                assert {name: row[name] for name in values} == values
            stored = connection.scalar(text("SELECT hex(query) FROM diagnosis_run"))
            assert stored == TRICKY.encode().hex().upper()

        database.run(unit, writes=True)

    @pytest.mark.spec("STORE-4", "PREV-2")
    async def test_json_comes_back_as_a_dict(self, database_url: str, open_database: Open) -> None:
        database = open_database(database_url)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        content, result = chat_content(TRICKY), published(TRICKY)
        await runs.finish(run.run_id, run_end(content=content, published_result=result))
        row = database.run(
            lambda connection: connection.execute(
                select(diagnosis_run.c.content, diagnosis_run.c.published_result)
            ).one(),
            writes=False,
        )
        assert row.content == content.model_dump(mode="json")
        assert row.published_result == result.model_dump(mode="json")

    @pytest.mark.spec("LIFE-5", "WIRE-3")
    async def test_text_that_is_no_unicode_is_a_store_error(self, database_url: str, open_database: Open) -> None:
        database = open_database(database_url)
        for query in ("\ud83d oops", "\udc80 oops"):
            with pytest.raises(StoreError):
                await SqlRunStore(database).start(new_run(query=query))
        assert _count(database, "diagnosis_run") == 0

    @pytest.mark.spec("SEC-4")
    async def test_an_error_does_not_repeat_what_was_to_be_stored(
        self, mysql_database: str, open_database: Open
    ) -> None:
        database = open_database(mysql_database)
        with pytest.raises(StoreError) as caught:
            await SqlRunStore(database).start(new_run(owner="x" * 300, query="the secret question"))
        assert "secret question" not in str(caught.value) + str(caught.value.__cause__)


def _sample(column: Any) -> Any:
    if isinstance(column.type, String):
        return TRICKY[: column.type.length] if column.type.length else TRICKY
    if isinstance(column.type, UtcDateTime):
        return NOW
    return {"text": TRICKY} if isinstance(column.type, JSON) else 7


class TestDamagedRows:
    @pytest.mark.spec("PREV-3")
    @pytest.mark.parametrize("damaged", ["{broken", "", "[" * 100_000, '{"user_query": 1'])
    async def test_text_that_is_no_json_is_nothing_stored(
        self, sqlite_database: str, open_database: Open, damaged: str
    ) -> None:
        database = open_database(sqlite_database)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        await runs.set_intent(run.run_id, Intent.DIAGNOSIS)
        await runs.finish(run.run_id, run_end(content=chat_content(), published_result=published()))
        _update(database, content=damaged, published_result=damaged)
        found = await runs.find(run.run_id)
        assert found is not None
        assert found.content is None
        prior = await runs.prior_context(run.session_id, "ada")
        assert prior == PriorContext(Intent.DIAGNOSIS, run.query, None)

    async def test_codes_of_a_later_release_are_left_out(self, database_url: str, open_database: Open) -> None:
        database = open_database(database_url)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        _update(database, intent="SMALL_TALK", release_outcome="PARTIAL")
        found = await runs.find(run.run_id)
        assert found is not None
        assert (found.intent, found.outcome) == (None, None)
        assert await runs.prior_context(run.session_id, "ada") == PriorContext()

    async def test_a_status_nobody_knows_is_a_store_error(self, database_url: str, open_database: Open) -> None:
        database = open_database(database_url)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        _update(database, status="PAUSED")
        with pytest.raises(StoreError):
            await runs.find(run.run_id)

    async def test_a_time_nobody_can_read_is_a_store_error(self, sqlite_database: str, open_database: Open) -> None:
        database = open_database(sqlite_database)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        _update(database, created_at="yesterday")
        with pytest.raises(StoreError):
            await runs.find(run.run_id)


def _update(database: Database, **values: str) -> None:
    """Past every type of ours, as a repair by hand would."""
    columns = ", ".join(f"{name} = :{name}" for name in values)
    database.run(
        lambda connection: connection.execute(text(f"UPDATE diagnosis_run SET {columns}"), values),
        writes=True,
    )


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
        assert _scalar(database, "SELECT @@session.time_zone") == "+00:00"
        stored = _scalar(database, "SELECT CAST(created_at AS CHAR) FROM diagnosis_run")
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
        assert _count(database, "ws_connection") == 0


class TestSettings:
    @pytest.mark.parametrize(
        "url",
        [
            "sqlite://",
            "sqlite:///:memory:",
            "sqlite:///file:x?mode=memory&uri=true",
            "postgresql://u:secret@h/d",
            "secret nonsense",
            "",
            "mysql://u:secret@host:port/d",
        ],
    )
    def test_urls_that_cannot_work_are_refused_without_repeating_them(self, url: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            Database(url)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None

    @pytest.mark.parametrize("scheme", ["mysql", "mariadb", "mysql+mysqldb", "mysql+pymysql"])
    async def test_every_spelling_of_mysql_uses_the_driver_we_ship(
        self, mysql_database: str, open_database: Open, scheme: str
    ) -> None:
        url = mysql_database.replace("mysql+pymysql", scheme, 1)
        assert await SqlRunStore(open_database(url)).find("nothing") is None

    def test_sqlite_keeps_foreign_keys_and_writes_ahead(self, sqlite_database: str, open_database: Open) -> None:
        database = open_database(sqlite_database)
        assert _scalar(database, "PRAGMA foreign_keys") == 1
        assert _scalar(database, "PRAGMA journal_mode") == "wal"
        with pytest.raises(StoreError):
            database.run(
                lambda connection: connection.execute(
                    insert(diagnosis_run).values(
                        run_id="r", session_id="none", query="q", status="RUNNING", created_at=NOW
                    )
                ),
                writes=True,
            )

    @pytest.mark.spec("LIFE-4")
    async def test_a_connection_that_is_set_up_wrongly_is_a_store_error(
        self, mysql_database: str, open_database: Open, tmp_path: Path
    ) -> None:
        (tmp_path / "broken.pem").write_text("no certificate")
        for database in (
            open_database(f"{mysql_database}?no_such_option=1"),
            open_database(mysql_database, ca_file=str(tmp_path / "missing.pem")),
            open_database(mysql_database, ca_file=str(tmp_path / "broken.pem")),
        ):
            with pytest.raises(StoreError):
                await SqlRunStore(database).find("nothing")

    @pytest.mark.spec("CANCEL-4")
    async def test_closing_leaves_no_thread_and_no_connection(
        self, mysql_database: str, mysql_server: DatabaseServer
    ) -> None:
        database = Database(mysql_database)
        await asyncio.gather(*(database.read(_server_side) for _ in range(6)))
        name = database.engine.url.database
        threads = {thread for thread in threading.enumerate() if thread.name.startswith("store")}
        assert threads
        database.close()
        database.close()
        assert not any(thread.is_alive() for thread in threads)
        with pytest.raises(StoreError):
            await database.read(_server_side)
        # The server notices a hang-up a little later.
        with create_engine(mysql_server.url, poolclass=NullPool).connect() as admin:
            of_ours = text("SELECT count(*) FROM information_schema.processlist WHERE db = :name")
            deadline = time.monotonic() + WAIT
            while admin.scalar(of_ours, {"name": name}) != 0:
                assert time.monotonic() < deadline

    def test_nothing_happens_before_the_first_use(self, tmp_path: Path) -> None:
        Database(f"sqlite:///{tmp_path / 'untouched.db'}").close()
        assert not (tmp_path / "untouched.db").exists()

    async def test_a_file_another_program_holds_is_waited_for(self, sqlite_database: str, open_database: Open) -> None:
        other = sqlite3.connect(sqlite_database.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        connections = SqlConnections(open_database(sqlite_database))
        adding = asyncio.create_task(connections.add("c1", "ada", NOW))
        await asyncio.sleep(0)
        other.execute("COMMIT")
        other.close()
        await adding
        assert await connections.principal("c1") == "ada"
