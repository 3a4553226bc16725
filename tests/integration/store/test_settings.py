"""Addresses, passwords, sessions and the end of a Database."""

import asyncio
import sqlite3
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, insert, text
from sqlalchemy.pool import NullPool

from superbizagent.adapters.store import Database, SqlConnections
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.adapters.store.tables import diagnosis_run
from superbizagent.errors import ConfigurationError, StoreError
from tests.database_server import DatabaseServer
from tests.integration.store.conftest import Open
from tests.integration.store.moments import WAIT, scalar, server_side
from tests.stored_values import NOW


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
        assert scalar(database, "PRAGMA foreign_keys") == 1
        assert scalar(database, "PRAGMA journal_mode") == "wal"
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
        await asyncio.gather(*(database.read(server_side) for _ in range(6)))
        name = database.engine.url.database
        threads = {thread for thread in threading.enumerate() if thread.name.startswith("store")}
        assert threads
        database.close()
        database.close()
        assert not any(thread.is_alive() for thread in threads)
        with pytest.raises(StoreError):
            await database.read(server_side)
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
