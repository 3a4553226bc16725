"""Databases opened by a test, and a server that a test may reconfigure."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from migrations.run import upgrade
from superbizagent.adapters.store import Database
from tests.database_server import DatabaseServer, private_server

Open = Callable[..., Database]
Reconfigured = Callable[[str, str], None]


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


@pytest.fixture(scope="session")
def own_server(mysql_server: DatabaseServer) -> Iterator[DatabaseServer]:
    """A server whose global settings are the tests' to change, each for as long as it needs."""
    if mysql_server.private:
        yield mysql_server
        return
    with private_server() as server:
        yield server


@pytest.fixture(scope="session")
def _own_database(
    own_server: DatabaseServer, mysql_server: DatabaseServer, migrated_mysql_database: str
) -> Iterator[str]:
    if own_server is mysql_server:
        yield migrated_mysql_database
        return
    with own_server.new_database() as url:
        with contextlib.closing(Database(url)) as database:
            upgrade(database.engine)
        yield url


@pytest.fixture
def own_database(own_server: DatabaseServer, _own_database: str) -> Iterator[str]:
    """A migrated database there without rows, for an account without an administrator's rights."""
    own_server.empty(_own_database)
    with own_server.account(_own_database) as account:
        yield account


@pytest.fixture
def reconfigured(own_server: DatabaseServer) -> Iterator[Reconfigured]:
    """Sets global variables of that server until the test ends, over a connection that is open already."""
    engine = create_engine(own_server.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, contextlib.ExitStack() as undone:

        def set_(name: str, value: str) -> None:
            before = connection.scalar(text(f"SELECT @@global.{name}"))
            undone.callback(put, name, f"'{before}'" if isinstance(before, str) else str(before))
            put(name, value)

        def put(name: str, value: str) -> None:
            connection.exec_driver_sql(f"SET GLOBAL {name} = {value}")

        yield set_
