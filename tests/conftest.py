"""Fixtures for every test: databases that are fresh, private and gone afterwards."""

from collections.abc import Iterator

import pytest

from tests.database_server import (
    DatabaseServer,
    DatabaseServerMissing,
    database_server,
    find_program,
    install,
)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Installs a missing database server before the first test's time limit starts to run."""
    wanted = any("mysql_server" in getattr(item, "fixturenames", ()) for item in session.items)
    if wanted and not session.config.option.collectonly and find_program() is None:
        install()


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[DatabaseServer]:
    """One MySQL-compatible server for all tests of this process."""
    try:
        with database_server() as server:
            yield server
    except DatabaseServerMissing as missing:
        pytest.fail(str(missing), pytrace=False)


@pytest.fixture(scope="session")
def mysql_url(mysql_server: DatabaseServer) -> str:
    """The DSN of that server, without a database."""
    return mysql_server.url.render_as_string(hide_password=False)


@pytest.fixture
def new_mysql_database(mysql_server: DatabaseServer) -> Iterator[str]:
    """The DSN of a fresh, empty database of one test."""
    with mysql_server.new_database() as url:
        yield url
