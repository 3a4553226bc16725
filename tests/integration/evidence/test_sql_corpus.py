"""The corpus on real servers: all that is hostile refused, all that is benign answered as a plain client is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from superbizagent.adapters.business_database import ReadOnlyDatabase, read_only_database
from superbizagent.adapters.business_database.statement_guard import Dialect, check_statement
from superbizagent.domain.evidence import QueryMysql
from superbizagent.errors import StatementRefused, SuperBizAgentError
from tests.corpus import plain_client
from tests.corpus.statements import TABLES, CorpusStatement, benign, hostile
from tests.database_server import DatabaseServer

DIALECTS: tuple[Dialect, ...] = ("mysql", "sqlite")


@pytest.fixture(scope="module")
def admin_url(mysql_server: DatabaseServer) -> Iterator[str]:
    """The corpus' schema, for the administrator."""
    with mysql_server.new_database() as url:
        plain_client.fill_mysql(url)
        yield url


@pytest.fixture(scope="module")
def reader_url(admin_url: str, mysql_server: DatabaseServer) -> Iterator[str]:
    """The same for a user who may SELECT there and nothing else."""
    with mysql_server.reader(admin_url) as url:
        # The driver reads the machine's certificates for each connection, longer than a statement takes.
        yield make_url(url).update_query_dict({"ssl_disabled": "1"}).render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def sqlite_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "business.db"
    plain_client.fill_sqlite(path)
    return path


def _accepted(statement: CorpusStatement, dialect: Dialect) -> bool:
    try:
        check_statement(statement.sql, dialect, tuple(TABLES))
    except StatementRefused:
        return False
    return True


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_corpus_is_large_and_of_many_kinds(dialect: Dialect) -> None:
    assert len({statement.sql for statement in hostile(dialect)}) >= 200
    assert len({statement.kind for statement in hostile(dialect)}) >= 15
    assert len({statement.sql for statement in benign("mysql")}) >= 200


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_hostile_statement_is_refused_before_anything_runs(dialect: Dialect) -> None:
    assert [statement.sql for statement in hostile(dialect) if _accepted(statement, dialect)] == []


@pytest.mark.spec("SEC-1", "DIAG-2")
async def test_every_benign_statement_is_answered_as_by_a_plain_client_on_mysql(
    admin_url: str, reader_url: str
) -> None:
    """P041: through the guard, as the SELECT-only user, in the read-only transaction."""
    with plain_client.mysql_client(admin_url) as client:
        assert await _differences(reader_url, "mysql", client) == []


@pytest.mark.spec("SEC-1", "DIAG-2")
async def test_every_benign_statement_is_answered_as_by_a_plain_client_on_sqlite(sqlite_path: Path) -> None:
    with plain_client.sqlite_client(sqlite_path) as client:
        assert await _differences(f"sqlite:///{sqlite_path}", "sqlite", client) == []


async def _differences(url: str, dialect: Dialect, client: plain_client.Client) -> list[str]:
    database = read_only_database(url, TABLES, limits=plain_client.LIMITS)
    found = [await _difference(database, statement.sql, client(statement.sql)) for statement in benign(dialect)]
    return [difference for difference in found if difference]


async def _difference(database: ReadOnlyDatabase, sql: str, expected: list[plain_client.Row]) -> str:
    """Empty when both agree."""
    try:
        evidence = await database.query(QueryMysql(statement=sql))
    except SuperBizAgentError as error:
        return f"{sql}: {error!r}"
    found = plain_client.shown_rows(evidence.lines)
    return "" if found == expected else f"{sql}: {found} instead of {expected}"
