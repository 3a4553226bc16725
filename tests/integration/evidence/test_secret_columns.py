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
)


@pytest.mark.spec("SEC-1", "SEC-3")
@pytest.mark.parametrize("statement", RENAMED)
async def test_a_secret_is_one_under_any_name(database: ReadOnlyDatabase, statement: str) -> None:
    evidence = await database.query(QueryMysql(statement=statement))

    shown = "\n".join((*evidence.lines, *evidence.summary)).lower()
    for secret in ("sunshine", "unsh", "hine", "moon", "73756e7368696e65", "sbnshine"):
        assert secret not in shown
    assert "[secret:" in shown


MADE = (
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
    "SELECT CONCAT('=', password) AS p FROM users",
    "SELECT IF(id = 1, password, '') AS p FROM users",
    "SELECT TO_BASE64(password) AS p FROM users",
    "SELECT LENGTH(password) AS p FROM users",
    # Nameless, behind a star or under a name that the server makes up.
    "SELECT *, SUBSTR(password, 1, 3) FROM users",
    "SELECT * FROM (SELECT id, UPPER(password) FROM users) AS t",
    "SELECT t.`MAX(password)` FROM (SELECT MAX(password) FROM users) AS t",
    "SELECT *, (SELECT v.password FROM users v WHERE v.id = 1) FROM users",
    "SELECT * FROM (SELECT (SELECT password FROM users WHERE id = 1)) AS t",
    "SELECT CURRENT_DATE + INTERVAL password DAY FROM users",
)


@pytest.mark.spec("SEC-1", "SEC-3")
@pytest.mark.parametrize("statement", MADE)
async def test_nothing_is_made_of_a_secret(database: ReadOnlyDatabase, statement: str) -> None:
    with pytest.raises(StatementRefused):
        await database.query(QueryMysql(statement=statement))


STARS = (
    "WITH t(a, b, c, d) AS (SELECT * FROM users) SELECT c FROM t",
    "WITH t(a, b, c, d) AS (SELECT u.* FROM users AS u) SELECT CONCAT('v', c) AS x FROM t",
    "WITH t(a, b, c, d) AS (SELECT 1, 2, 3, 4 UNION ALL SELECT * FROM users) SELECT c FROM t",
    "SELECT id, name, name AS city, name AS street FROM users UNION ALL SELECT * FROM users",
    "SELECT c FROM (SELECT 1 AS a, 'x' AS b, 'y' AS c, 'z' AS d UNION ALL SELECT * FROM users) AS t",
    "SELECT 1, 'alice', 'sunshine', 'moon' EXCEPT SELECT * FROM users",
    "SELECT COUNT(*) FROM (SELECT 1, 'alice', 'sunshine', 'moon' INTERSECT SELECT * FROM users) AS t",
    "SELECT id FROM users WHERE (1, 'alice', 'sunshine', 'moon') IN (SELECT * FROM users)",
    "SELECT (SELECT * FROM users LIMIT 1) = (1, 'alice', 'sunshine', 'moon') AS yes",
)


@pytest.mark.spec("SEC-1", "SEC-3")
@pytest.mark.parametrize("statement", STARS)
async def test_a_star_takes_no_secret_under_another_name(database: ReadOnlyDatabase, statement: str) -> None:
    with pytest.raises(StatementRefused, match="star"):
        await database.query(QueryMysql(statement=statement))


@pytest.mark.spec("SEC-3")
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT *, password AS p FROM users",
        "SELECT * FROM users WHERE id = 1 UNION ALL SELECT * FROM users WHERE id = 2",
        "SELECT 'a' AS s, u.* FROM users u WHERE id = 1 UNION ALL SELECT 'b', u.* FROM users u WHERE id = 2",
    ],
)
async def test_a_star_whose_columns_keep_their_names_is_answered(database: ReadOnlyDatabase, statement: str) -> None:
    evidence = await database.query(QueryMysql(statement=statement))

    shown = SecretRedactor()("\n".join(evidence.lines))
    assert "alice" in shown
    assert "sunshine" not in shown


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
    # Hidden values that tell by NULL, by the number of rows, by their order or by an error.
    "SELECT password LIKE 's%' AS yes FROM users WHERE id = 1",
    "SELECT CASE WHEN password = 'sunshine' THEN 1 ELSE 0 END AS yes FROM users WHERE id = 1",
    "SELECT CASE password WHEN 'sunshine' THEN 1 END AS yes FROM users",
    "SELECT COUNT(CASE WHEN password LIKE 's%' THEN 1 END) AS yes FROM users",
    "SELECT COUNT(*) OVER (PARTITION BY password LIKE 's%') AS yes FROM users WHERE id = 1",
    "SELECT id, COUNT(*) OVER w AS n FROM users WINDOW w AS (PARTITION BY password = 'sunshine')",
    "SELECT NULLIF(password, 'sunshine') AS n FROM users",
    "SELECT COUNT(h) AS n FROM (SELECT NULLIF(password, 'sunshine') AS h FROM users) AS t",
    "SELECT DISTINCT password = 'sunshine' AS yes FROM users",
    "SELECT password = 'sunshine' AS yes, COUNT(*) AS n FROM users GROUP BY 1",
    "SELECT id, password = 'sunshine' AS yes FROM users ORDER BY 2",
    "SELECT CASE WHEN password = 'sunshine' THEN (SELECT id FROM users) ELSE 1 END AS yes FROM users",
    "SELECT password FROM users UNION SELECT REPLACE('sunshine', password, '') FROM users",
    "SELECT id FROM users WHERE password IN (SELECT REPLACE('sunshine', password, '') FROM users)",
    "SELECT 'sunshine' AS password, u.id FROM users AS u GROUP BY u.id HAVING u.password = password",
    "SELECT 'sunshine' AS passwd FROM users AS u WHERE u.password = passwd",
)


@pytest.mark.spec("SEC-1", "SEC-3")
@pytest.mark.parametrize("statement", GUESSES)
async def test_no_statement_tells_whether_a_guessed_secret_is_right(database: ReadOnlyDatabase, statement: str) -> None:
    with pytest.raises(StatementRefused, match="secret"):
        await database.query(QueryMysql(statement=statement))


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
        ("SELECT id FROM users u WHERE EXISTS (SELECT * FROM users v WHERE v.id = u.id AND v.id = 1)", [{"id": 1}]),
        ("SELECT CASE WHEN password IS NULL THEN 'none' ELSE 'set' END AS s FROM users WHERE id = 2", [{"s": "none"}]),
        (
            "SELECT name, ROW_NUMBER() OVER (PARTITION BY api_key ORDER BY id DESC) AS r FROM users WHERE id = 1",
            [{"name": "alice", "r": 1}],
        ),
    ],
)
async def test_what_says_nothing_of_a_secret_is_answered(
    database: ReadOnlyDatabase, statement: str, rows: list[dict[str, object]]
) -> None:
    evidence = await database.query(QueryMysql(statement=statement))

    assert [json.loads(line) for line in evidence.lines] == rows
