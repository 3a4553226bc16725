"""Databases opened by a test, and a server that a test may reconfigure."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from superbizagent.adapters.store import Database
from tests.database_server import DatabaseServer, private_server

Open = Callable[..., Database]


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


@pytest.fixture
def reconfigured(own_server: DatabaseServer) -> Iterator[Callable[[str, str], None]]:
    """Sets global variables until the test ends."""
    with contextlib.ExitStack() as undone:

        def set_(name: str, value: str) -> None:
            before = own_server.scalar(f"SELECT @@global.{name}")
            quoted = f"'{before}'" if isinstance(before, str) else before
            undone.callback(own_server.execute, f"SET GLOBAL {name} = {quoted}")
            own_server.execute(f"SET GLOBAL {name} = {value}")

        yield set_
