"""Fixtures for every test: databases that are fresh, private and gone afterwards."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from local.demo.make import make as make_demo
from migrations.run import upgrade
from superbizagent.adapters.store import Database
from tests.database_server import (
    DatabaseServer,
    DatabaseServerMissing,
    database_server,
    find_program,
    install,
)

# Speed belongs to bench/: a property holds however long a busy machine takes over it.
settings.register_profile("project", deadline=None)
settings.load_profile("project")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Installs a missing database server before the first test's time limit starts to run."""
    if any(map(_needs_server, session.items)) and not session.config.option.collectonly and find_program() is None:
        install()


def _needs_server(item: pytest.Item) -> bool:
    # A parametrised fixture asks for the server only once it runs; its parameter is in the node id.
    return "mysql" in item.nodeid or any("mysql" in name for name in getattr(item, "fixturenames", ()))


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


@pytest.fixture(scope="session")
def migrated_mysql_database(mysql_server: DatabaseServer) -> Iterator[str]:
    with mysql_server.new_database() as url:
        _migrate(url)
        yield url


@pytest.fixture
def mysql_database(migrated_mysql_database: str, mysql_server: DatabaseServer) -> str:
    """The DSN of a migrated MySQL database without rows. A test that changes tables takes a new one."""
    mysql_server.empty(migrated_mysql_database)
    return migrated_mysql_database


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_database(tmp_path: Path, sqlite_template: Path) -> str:
    """The URL of a fresh, migrated SQLite file."""
    path = tmp_path / "store.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", "mysql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of a fresh, migrated database, on both engines."""
    url: str = request.getfixturevalue(f"{request.param}_database")
    return url


def _migrate(url: str) -> None:
    database = Database(url)
    try:
        upgrade(database.engine)
    finally:
        database.close()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo incident's files."""
    folder = tmp_path_factory.mktemp("demo")
    make_demo(folder)
    return folder
