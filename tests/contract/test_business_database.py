"""What every BusinessDatabase does; one suite for the fake, SQLite and a MySQL-compatible server."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from superbizagent.adapters.business_database import read_only_database
from superbizagent.domain.codes import Unit
from superbizagent.domain.evidence import QueryMysql
from superbizagent.errors import EvidenceError, StatementFailed, StatementRefused
from superbizagent.ports import BusinessDatabase
from tests.fakes.sources import FakeSource, statement_answers

TABLES = {"orders": "One row an order"}
SCHEMA = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, status VARCHAR(200))",
    "CREATE TABLE users (id INTEGER PRIMARY KEY, password VARCHAR(20))",
    "INSERT INTO orders VALUES (1, 'paid'), (2, 'failed')",
    "INSERT INTO users VALUES (1, 'hunter2')",
)
ALL = "SELECT id, status FROM orders ORDER BY id"
NONE = "SELECT id FROM orders WHERE status = 'lost'"


def _fake() -> BusinessDatabase:
    answers: dict[str, tuple[str, ...] | EvidenceError] = {
        ALL: ('{"id": 1, "status": "paid"}', '{"id": 2, "status": "failed"}'),
        "SELECT password FROM users": StatementRefused(),
        "DELETE FROM orders": StatementRefused(),
        "SELECT nothing FROM orders": StatementFailed("There is no such column. orders(id, status)"),
    }
    return FakeSource(
        statement_answers(answers),
        "orders(id INTEGER, status VARCHAR(200)): One row an order",
    )


def _sqlite(folder: Path) -> BusinessDatabase:
    path = folder / "business.db"
    with closing(sqlite3.connect(path)) as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        connection.commit()
    return read_only_database(f"sqlite:///{path}", TABLES)


def _mysql(url: str) -> BusinessDatabase:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        for statement in SCHEMA:
            connection.execute(text(statement))
    return read_only_database(url, TABLES)


@pytest.fixture(params=["fake", "sqlite", "mysql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> BusinessDatabase:
    if request.param == "fake":
        return _fake()
    if request.param == "sqlite":
        return _sqlite(tmp_path)
    return _mysql(request.getfixturevalue("new_mysql_database"))


@pytest.mark.spec("DIAG-2", "STORE-4")
async def test_rows_are_json_objects_with_their_coverage(database: BusinessDatabase) -> None:
    evidence = await database.query(QueryMysql(statement=ALL))

    assert [json.loads(line) for line in evidence.lines] == [
        {"id": 1, "status": "paid"},
        {"id": 2, "status": "failed"},
    ]
    assert evidence.title == "database"
    assert evidence.summary[-1] == "rows: 2"
    assert evidence.coverage.unit is Unit.ROWS
    assert (evidence.coverage.matched, evidence.coverage.shown) == (2, 2)
    assert evidence.coverage.complete


async def test_no_row_is_no_error(database: BusinessDatabase) -> None:
    evidence = await database.query(QueryMysql(statement=NONE))

    assert evidence.lines == ()
    assert evidence.coverage.complete


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize("statement", ["SELECT password FROM users", "DELETE FROM orders"])
async def test_refuses_other_tables_and_writing(database: BusinessDatabase, statement: str) -> None:
    with pytest.raises(StatementRefused):
        await database.query(QueryMysql(statement=statement))


async def test_a_failing_statement_is_answered_in_our_words(database: BusinessDatabase) -> None:
    with pytest.raises(StatementFailed, match=r"orders\(id") as raised:
        await database.query(QueryMysql(statement="SELECT nothing FROM orders"))

    assert "nothing" not in raised.value.hint


async def test_describes_tables_and_columns(database: BusinessDatabase) -> None:
    description = await database.describe()

    assert description.startswith("orders(id INT")
    assert description.endswith("status VARCHAR(200)): One row an order")
    assert "users" not in description
