"""Weak secrets in tables, asked for under other names and by guesses: on the servers themselves."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from superbizagent.adapters.business_database import ReadOnlyDatabase, read_only_database
from superbizagent.adapters.redaction import SecretRedactor
from superbizagent.domain.evidence import QueryMysql
from superbizagent.errors import StatementRefused
from tests.database_server import DatabaseServer

SCHEMA = (
    "CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR(20), password VARCHAR(20), api_key VARCHAR(20))",
    "INSERT INTO users VALUES (1, 'alice', 'sunshine', 'moon'), (2, 'bob', NULL, 'moon')",
)
TABLES = {"users": "One row a user"}


@pytest.fixture(scope="module")
def mysql(mysql_server: DatabaseServer) -> Iterator[str]:
    with mysql_server.new_database() as url:
        engine = create_engine(url)
        with engine.begin() as connection:
            for statement in SCHEMA:
                connection.execute(text(statement))
        engine.dispose()
        yield url


@pytest.fixture(params=["sqlite", "mysql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> ReadOnlyDatabase:
    if request.param == "mysql":
        return read_only_database(request.getfixturevalue("mysql"), TABLES, redact=SecretRedactor())
    with closing(sqlite3.connect(tmp_path / "business.db")) as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        connection.commit()
    return read_only_database(f"sqlite:///{tmp_path / 'business.db'}", TABLES, redact=SecretRedactor())


RENAMED = (
    "SELECT password AS p FROM users",
    "SELECT u.PASSWORD p, u.api_key k FROM users AS u",
    "SELECT (password) AS p FROM users",
    "SELECT * FROM (SELECT id, password AS p FROM users) AS t",
    "SELECT t.* FROM (SELECT id, password AS p FROM users) AS t",
    "SELECT q FROM (SELECT p AS q FROM (SELECT password AS p FROM users) AS x) AS t",
    "WITH c(a, b) AS (SELECT id, password FROM users) SELECT b AS z, a FROM c",
    "WITH c AS (SELECT password AS p FROM users), d AS (SELECT p AS r FROM c) SELECT r AS s FROM d",
    "SELECT name, password AS p FROM users UNION ALL SELECT name, api_key FROM users",
    "SELECT UPPER(password) AS p, LOWER(password) AS q FROM users",
    "SELECT REPLACE(password, 'a', 'b') AS p FROM users",
    "SELECT SUBSTR(password, 1, 4) AS p, SUBSTR(password, 5) AS q FROM users",
    "SELECT COALESCE(password, 'x') AS p FROM users",
    "SELECT CASE WHEN id = 1 THEN password END AS p FROM users",
    "SELECT CAST(password AS CHAR(20)) AS p FROM users",
    "SELECT MAX(password) AS p, MIN(api_key) AS q FROM users",
    "SELECT GROUP_CONCAT(password) AS p FROM users",
    "SELECT (SELECT password FROM users WHERE id = 1) AS p",
    "SELECT FIRST_VALUE(password) OVER (ORDER BY id) AS p FROM users",
    "SELECT HEX(password) AS p FROM users",
    "SELECT JSON_OBJECT('v', password) AS p FROM users",
)


@pytest.mark.spec("SEC-1", "SEC-3")
@pytest.mark.parametrize("statement", RENAMED)
async def test_a_secret_is_one_under_any_name(database: ReadOnlyDatabase, statement: str) -> None:
    evidence = await database.query(QueryMysql(statement=statement))

    shown = "\n".join((*evidence.lines, *evidence.summary)).lower()
    for secret in ("sunshine", "unsh", "hine", "moon", "73756e7368696e65", "sbnshine"):
        assert secret not in shown
    assert "[secret:" in shown or "[hidden" in shown


@pytest.mark.spec("SEC-1", "SEC-3")
@pytest.mark.parametrize("made", ["CONCAT('=', password)", "IF(id = 1, password, '')", "TO_BASE64(password)"])
async def test_what_mysql_makes_of_a_secret_is_hidden_or_refused(mysql: str, made: str) -> None:
    database = read_only_database(mysql, TABLES, redact=SecretRedactor())
    query = QueryMysql(statement=f"SELECT {made} AS p FROM users WHERE id = 1")
    if made.startswith("TO_BASE64"):
        with pytest.raises(StatementRefused):
            await database.query(query)
    else:
        assert (await database.query(query)).lines == ('{"p": "[hidden: made of a secret]"}',)


GUESSES = (
    "SELECT id FROM users WHERE password = 'sunshine'",
    "SELECT COUNT(*) AS n FROM users WHERE password LIKE 's%'",
    "SELECT COUNT(*) AS n FROM users WHERE password IN ('sunshine', 'x')",
    "SELECT COUNT(*) AS n FROM users WHERE INSTR(password, 's')",
    "SELECT COUNT(*) AS n FROM users WHERE 'sunshine' IN (SELECT password FROM users)",
    "SELECT id FROM users WHERE SUBSTR(password, 1, 1) > 'r'",
    "SELECT id FROM users ORDER BY password = 'sunshine'",
    "SELECT COUNT(*) AS n FROM users GROUP BY password LIKE 's%'",
    "SELECT COUNT(*) AS n FROM users HAVING MAX(password) = 'sunshine'",
    "SELECT COUNT(*) AS n FROM (SELECT password AS p FROM users) AS t WHERE p LIKE 's%'",
    "SELECT id FROM (SELECT id, password LIKE 's%' AS q FROM users) AS t WHERE q = 1",
    "SELECT id FROM users JOIN (SELECT 'sunshine' AS g) AS x ON x.g = users.password",
    "SELECT id FROM users JOIN (SELECT 'sunshine' AS password) AS x USING (password)",
    "SELECT id FROM users NATURAL JOIN (SELECT 'sunshine' AS password) AS x",
    "WITH x(password) AS (SELECT 'sunshine') SELECT users.id FROM users JOIN x USING (password)",
    "SELECT COUNT(*) AS n FROM (SELECT password FROM users INTERSECT SELECT 'sunshine') AS t",
    "SELECT COUNT(*) AS n FROM (SELECT password FROM users UNION SELECT 'sunshine') AS t",
    "SELECT id FROM users WHERE (SELECT password FROM users WHERE id = 1) LIKE 's%'",
    "SELECT id FROM users WHERE EXISTS (SELECT 1 FROM users WHERE password LIKE 's%')",
    "SELECT id FROM users WHERE NOT password <> 'sunshine'",
)


@pytest.mark.spec("SEC-1", "SEC-3")
@pytest.mark.parametrize("statement", GUESSES)
async def test_no_statement_tells_whether_a_guessed_secret_is_right(database: ReadOnlyDatabase, statement: str) -> None:
    with pytest.raises(StatementRefused, match="secret"):
        await database.query(QueryMysql(statement=statement))


@pytest.mark.spec("SEC-3")
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT password LIKE 's%' AS yes FROM users WHERE id = 1",
        "SELECT CASE WHEN password = 'sunshine' THEN 1 ELSE 0 END AS yes FROM users WHERE id = 1",
        "SELECT COUNT(CASE WHEN password LIKE 's%' THEN 1 END) AS yes FROM users",
        "SELECT COUNT(*) OVER (PARTITION BY password LIKE 's%') AS yes FROM users WHERE id = 1",
        "SELECT LENGTH(password) AS yes FROM users WHERE id = 1",
    ],
)
async def test_what_is_computed_of_a_secret_is_hidden(database: ReadOnlyDatabase, statement: str) -> None:
    evidence = await database.query(QueryMysql(statement=statement))

    assert [json.loads(line) for line in evidence.lines] == [{"yes": "[hidden: made of a secret]"}]


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SELECT COUNT(password) AS n, COUNT(DISTINCT api_key) AS keys_ FROM users", [{"n": 1, "keys_": 1}]),
        ("SELECT name FROM users WHERE password IS NULL", [{"name": "bob"}]),
        ("SELECT name FROM users WHERE password IS NOT NULL AND name LIKE 'a%'", [{"name": "alice"}]),
        ("SELECT password IS NULL AS missing FROM users WHERE id = 2", [{"missing": 1}]),
        ("SELECT COUNT(*) AS n FROM users GROUP BY api_key HAVING COUNT(*) > 1", [{"n": 2}]),
        ("SELECT a.name FROM users a JOIN users b ON a.password = b.password", [{"name": "alice"}]),
        ("SELECT name FROM users WHERE password IN (SELECT password FROM users)", [{"name": "alice"}]),
        ("SELECT name FROM users WHERE id = 1", [{"name": "alice"}]),
    ],
)
async def test_what_says_nothing_of_a_secret_is_answered(
    database: ReadOnlyDatabase, statement: str, rows: list[dict[str, object]]
) -> None:
    evidence = await database.query(QueryMysql(statement=statement))

    assert [json.loads(line) for line in evidence.lines] == rows
