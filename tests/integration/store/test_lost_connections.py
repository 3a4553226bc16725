"""Connections that are lost, before, in and after a unit of work."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, insert, text

from superbizagent.adapters.store import SqlCancelRequests, Timeouts
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.adapters.store.tables import ws_connection
from superbizagent.errors import StoreError
from superbizagent.ports import StartResult
from tests.database_server import DatabaseServer
from tests.integration.store.conftest import Open
from tests.integration.store.moments import count, scalar, server_side
from tests.stored_values import NOW, TRICKY, at, chat_content, new_run, published, run_end


class TestLostConnections:
    @pytest.mark.spec("CANCEL-4", "LIFE-4")
    async def test_connections_that_died_in_the_pool_are_replaced(
        self, mysql_database: str, mysql_server: DatabaseServer, open_database: Open
    ) -> None:
        database = open_database(mysql_database, pool_size=1)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        mysql_server.execute(f"KILL {await database.read(server_side)}")
        assert await runs.finish(run.run_id, run_end(content=chat_content()))
        mysql_server.execute(f"KILL {await database.read(server_side)}")
        assert await SqlCancelRequests(database).pending(run.run_id, "c") is None

    @pytest.mark.spec("LIFE-6")
    async def test_a_unit_whose_connection_is_killed_is_repeated_from_its_start(
        self, mysql_database: str, mysql_server: DatabaseServer, open_database: Open
    ) -> None:
        database = open_database(mysql_database)
        tries: list[int] = []

        def unit(connection: Connection) -> None:
            tries.append(server_side(connection))
            connection.execute(insert(ws_connection).values(connection_id="c1", principal="ada", connected_at=NOW))
            if len(tries) == 1:
                mysql_server.execute(f"KILL {tries[0]}")
            connection.scalar(text("SELECT 1"))

        await database.write(unit)
        assert len(tries) == 2
        assert count(database, "ws_connection") == 1

    @pytest.mark.spec("LIFE-6", "LIFE-3", "LIFE-4", "STORE-3")
    async def test_work_whose_acknowledgement_was_lost_is_recognised_and_not_done_again(
        self, mysql_database: str, mysql_server: DatabaseServer, open_database: Open
    ) -> None:
        database = open_database(mysql_database)
        runs, run = SqlRunStore(database), new_run(query=TRICKY)
        _lose_next_acknowledgement(database.engine, mysql_server)
        assert await runs.start(run) == StartResult()
        assert count(database, "diagnosis_run") == 1
        _lose_next_acknowledgement(database.engine, mysql_server)
        end = run_end(content=chat_content(TRICKY), published_result=published(TRICKY))
        assert await runs.finish(run.run_id, end)
        assert scalar(database, "SELECT message_pairs FROM chat_session") == 1

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
        database = open_database("mysql://root:secret@127.0.0.1:1/store", timeouts=Timeouts(patience=0.2))
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
