"""The business database against real servers: limits, verbatim text, time-outs and cancellation."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pymysql
import pytest
from sqlalchemy.engine import make_url

from superbizagent.adapters.business_database import QueryLimits, ReadOnlyDatabase, read_only_database
from superbizagent.adapters.business_database.mysql_driver import MysqlDriver, MysqlExecution, session_statements
from superbizagent.adapters.business_database.sqlite_driver import SqliteDriver, SqliteExecution
from superbizagent.adapters.business_database.statement_guard import CheckedStatement
from superbizagent.domain.evidence import Evidence, QueryMysql
from superbizagent.errors import (
    ConfigurationError,
    EvidenceTimeout,
    EvidenceUnavailable,
    StatementFailed,
    StatementRefused,
    SuperBizAgentError,
)
from tests.database_server import DatabaseServer

TABLES = {"runs": "One row a run"}
LIMITS = QueryLimits(time=5)
MANY = "SELECT a.id FROM runs a, runs b, runs c, runs d"
ENDLESS = "SELECT SUM(a.id * b.id + c.id - d.id) AS total FROM runs a, runs b, runs c, runs d"


@pytest.fixture
def mysql(new_mysql_database: str) -> str:
    with closing(_connect(new_mysql_database)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE runs (id INT PRIMARY KEY, note TEXT) CHARACTER SET utf8mb4")
        cursor.execute("CREATE TABLE secrets (password TEXT)")
        rows = ",".join(f"({n}, 'note {n}')" for n in range(300))
        cursor.execute("INSERT INTO runs VALUES " + rows)
        connection.commit()
    return new_mysql_database


@pytest.fixture
def sqlite(tmp_path: Path) -> Path:
    path = tmp_path / "business.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, note TEXT)")
        connection.execute("CREATE TABLE secrets (password TEXT)")
        connection.executemany("INSERT INTO runs VALUES (?, ?)", [(n, f"note {n}") for n in range(300)])
        connection.commit()
    return path


@pytest.fixture(params=["sqlite", "mysql"])
def database(request: pytest.FixtureRequest) -> ReadOnlyDatabase:
    if request.param == "sqlite":
        return read_only_database(f"sqlite:///{request.getfixturevalue('sqlite')}", TABLES, limits=LIMITS)
    return read_only_database(request.getfixturevalue("mysql"), TABLES, limits=LIMITS)


def _connect(url: str) -> "pymysql.Connection[Any]":
    parsed = make_url(url)
    return pymysql.connect(
        host=parsed.host or "",
        port=parsed.port or 3306,
        user=parsed.username,
        password=parsed.password or "",
        database=parsed.database,
        charset="utf8mb4",
    )


async def ask(database: ReadOnlyDatabase, statement: str) -> Evidence:
    return await database.query(QueryMysql(statement=statement))


async def rows(database: ReadOnlyDatabase, statement: str) -> Sequence[Any]:
    return [json.loads(line) for line in (await ask(database, statement)).lines]


async def test_statements_run_verbatim(database: ReadOnlyDatabase) -> None:
    """P041: nothing formats % or :."""
    found = await rows(
        database,
        "SELECT 'a%b' AS a, '%s %(x)s' AS b, ':c' AS c, id % 7 AS d, '/*! x */' AS e FROM runs"
        " WHERE note LIKE '%ote 9%' AND id = 9",
    )

    assert found == [{"a": "a%b", "b": "%s %(x)s", "c": ":c", "d": 2, "e": "/*! x */"}]


async def test_mysql_formats_dates_verbatim(mysql: str) -> None:
    database = read_only_database(mysql, TABLES)

    found = await rows(
        database,
        "SELECT DATE_FORMAT('2026-11-30 14:00:00', '%Y-%m-%d %H') AS d, 'it\\'s' AS q, NOW() = UTC_TIMESTAMP() AS u",
    )

    assert found == [{"d": "2026-11-30 14", "q": "it's", "u": 1}]


@pytest.mark.spec("SEC-1", "GUARD-2")
async def test_rows_are_capped_and_an_exact_fit_is_not_truncated(database: ReadOnlyDatabase) -> None:
    """P088."""
    more = await ask(database, "SELECT id FROM runs ORDER BY id")
    exact = await ask(database, "SELECT id FROM runs WHERE id < 50 ORDER BY id")

    assert (len(more.lines), more.coverage.truncated) == (50, True)
    assert (more.coverage.matched, more.coverage.shown) == (51, 50)
    assert more.summary[-1] == "rows: 50 (truncated)"
    assert (len(exact.lines), exact.coverage.truncated, exact.summary[-1]) == (50, False, "rows: 50")


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize("statement", [MANY, MANY + " LIMIT 1000000000"])
async def test_a_huge_result_is_stopped_at_the_cap(database: ReadOnlyDatabase, statement: str) -> None:
    """P086: eight billion rows; draining them would outlast any test."""
    evidence = await ask(database, statement)

    assert (len(evidence.lines), evidence.coverage.truncated) == (50, True)


@pytest.mark.spec("SEC-1")
async def test_rows_that_nobody_wants_are_not_sent_on(mysql: str) -> None:
    """P088: cursor and connection are closed, and the server stops."""
    await ask(read_only_database(mysql, TABLES, limits=QueryLimits(time=60)), MANY)

    await asyncio.to_thread(_wait_for_statement, mysql, running=False, statement=MANY)


@pytest.mark.parametrize(
    ("server", "limit"),
    [("8.0.39", "MAX_EXECUTION_TIME = 2500"), ("10.11.6-MariaDB-1", "max_statement_time = 2.5")],
)
def test_either_kind_of_server_is_given_the_limit_in_its_own_words(server: str, limit: str) -> None:
    """P084: MySQL counts milliseconds, MariaDB seconds, and neither knows the other's name for it."""
    statements = session_statements(server, QueryLimits(time=2.5))

    assert f"SET SESSION {limit}" in statements


@pytest.mark.spec("GUARD-2")
async def test_the_statement_s_own_limit_makes_the_result_partial(database: ReadOnlyDatabase) -> None:
    reached = await ask(database, "SELECT id FROM runs LIMIT 3")
    not_reached = await ask(database, "SELECT id FROM runs WHERE id < 2 LIMIT 3")

    assert reached.coverage.partial
    assert not_reached.coverage.complete


@pytest.mark.spec("SEC-1")
async def test_bytes_and_cells_are_capped(mysql: str) -> None:
    limits = QueryLimits(rows=50, cell=20, size=200)
    database = read_only_database(mysql, TABLES, limits=limits)

    evidence = await ask(
        database,
        "SELECT id, CONCAT(note, ' 支付网关超时排查手册 支付网关超时排查手册') AS n FROM runs ORDER BY id",
    )

    assert sum(len(line.encode()) for line in evidence.lines) <= 200
    assert evidence.coverage.truncated
    assert "20 of " in evidence.lines[0]
    assert any("cut to 20 characters" in note for note in evidence.coverage.notes)


async def test_values_have_one_text_each(mysql: str) -> None:
    """P031, P032, P035: four-byte characters, decimals, times with their digits, bytes, big integers."""
    with closing(_connect(mysql)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE odd (a DECIMAL(20,4), b DATETIME(6), c DATE, d TIME, e BLOB, f BIGINT UNSIGNED,"
            " g TEXT CHARACTER SET utf8mb4, h JSON, i DOUBLE)"
        )
        cursor.execute(
            "INSERT INTO odd VALUES (1.5, '2026-11-30 14:00:00.999999', '2026-11-30', '-34:22:59', X'00ff',"
            " 18446744073709551615, '🫠️ 𠮷 👨‍👩‍👧', '{\"a\": 1}', 0.1)"
        )
        connection.commit()
    database = read_only_database(mysql, {"odd": ""})

    (line,) = (await ask(database, "SELECT * FROM odd")).lines

    assert line == (
        '{"a": 1.5000, "b": "2026-11-30T14:00:00.999999", "c": "2026-11-30", "d": "-34:22:59",'
        ' "e": "0x00ff (2 bytes)", "f": 18446744073709551615, "g": "🫠️ 𠮷 👨‍👩‍👧",'
        ' "h": "{\\"a\\": 1}", "i": 0.1}'
    )


async def test_odd_values_of_sqlite(sqlite: Path) -> None:
    with closing(sqlite3.connect(sqlite)) as connection:
        connection.execute("INSERT INTO runs VALUES (900, CAST(X'66ff6f' AS TEXT))")
        connection.commit()
    database = read_only_database(f"sqlite:///{sqlite}", TABLES)

    found = await rows(
        database, "SELECT note, 9e999 AS big, -9e999 AS small, X'41' AS b, NULL AS n FROM runs WHERE id = 900"
    )

    assert found == [{"note": "f\ufffdo", "big": "Infinity", "small": "-Infinity", "b": "0x41 (1 bytes)", "n": None}]


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT password FROM secrets",
        "DELETE FROM runs",
        "INSERT INTO runs VALUES (1000, 'x')",
        "CREATE TABLE t (a INT)",
        "ATTACH DATABASE '/tmp/other.db' AS other",
        "PRAGMA query_only = OFF",
        "SELECT load_extension('x')",
        "SELECT * FROM sqlite_master",
        "SELECT randomblob(10)",
    ],
)
def test_behind_the_guard_sqlite_itself_refuses(sqlite: Path, statement: str) -> None:
    driver = SqliteDriver(sqlite, TABLES, LIMITS)

    with pytest.raises((StatementRefused, StatementFailed, EvidenceUnavailable)):
        driver.execution(CheckedStatement(statement, (), None)).run()

    with closing(sqlite3.connect(sqlite)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM runs").fetchone() == (300,)


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM runs",
        "UPDATE runs SET note = 'x'",
        "SELECT 1; DELETE FROM runs",
        "DROP TABLE secrets, nothing",
    ],
)
def test_behind_the_guard_the_transaction_is_read_only(mysql: str, statement: str) -> None:
    driver = MysqlDriver(make_url(mysql), TABLES, LIMITS)

    with pytest.raises(SuperBizAgentError):
        driver.execution(CheckedStatement(statement, (), None)).run()

    with closing(_connect(mysql)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM runs WHERE note LIKE 'note%'")
        assert cursor.fetchone() == (300,)


@pytest.mark.spec("SEC-1")
async def test_the_server_limits_the_time(mysql: str) -> None:
    """P084, with the guard bypassed: the limit is the server's own."""
    driver = MysqlDriver(make_url(mysql), TABLES, QueryLimits(time=0.3))

    with pytest.raises(EvidenceTimeout):
        await asyncio.to_thread(driver.execution(CheckedStatement("SELECT SLEEP(20)", (), None)).run)


@pytest.mark.spec("SEC-1")
async def test_an_endless_statement_times_out(sqlite: Path, mysql: str) -> None:
    for url in (f"sqlite:///{sqlite}", mysql):
        database = read_only_database(url, TABLES, limits=QueryLimits(time=0.3))
        with pytest.raises(EvidenceTimeout, match="ran too long"):
            await ask(database, ENDLESS)


@pytest.mark.spec("CANCEL-2", "CANCEL-4")
async def test_cancelling_stops_the_statement_at_the_server(mysql: str, mysql_server: DatabaseServer) -> None:
    """P027, P139: nothing of it is left at the server or here, and the next statement is answered."""
    database = read_only_database(mysql, TABLES, limits=QueryLimits(time=60))
    task = asyncio.create_task(ask(database, ENDLESS))
    await asyncio.to_thread(_wait_for_statement, mysql, running=True)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await asyncio.to_thread(_wait_for_statement, mysql, running=False)
    _assert_no_threads()
    assert await rows(database, "SELECT 'second' AS s") == [{"s": "second"}]


def _wait_for_statement(url: str, *, running: bool, statement: str = ENDLESS) -> None:
    """Until the server's list of processes has the endless statement, or has it no more."""
    with closing(_connect(url)) as connection, connection.cursor() as cursor:
        for _ in range(3_000):
            cursor.execute("SHOW FULL PROCESSLIST")
            if any(statement in str(process[7]) for process in cursor.fetchall()) is running:
                return
            # Asking is the wait: the server's answer paces this loop.
            cursor.execute("SELECT SLEEP(0.01)")
    raise AssertionError(f"the statement was {'never' if running else 'still'} running")


@pytest.mark.spec("CANCEL-2", "CANCEL-4")
async def test_cancelling_stops_sqlite_too(sqlite: Path) -> None:
    database = read_only_database(f"sqlite:///{sqlite}", TABLES, limits=QueryLimits(time=60))
    task = asyncio.create_task(ask(database, ENDLESS))
    while not any(thread.name == "business-database" for thread in threading.enumerate()):  # noqa: ASYNC110
        await asyncio.sleep(0)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    _assert_no_threads()


@pytest.mark.spec("CANCEL-4")
async def test_many_cancelled_statements_leave_nothing(mysql: str) -> None:
    """P139: 20 such cancels exhaust nothing."""
    database = read_only_database(mysql, TABLES, limits=QueryLimits(time=60))
    tasks = [asyncio.create_task(ask(database, ENDLESS)) for _ in range(20)]
    await asyncio.to_thread(_wait_for_statement, mysql, running=True)

    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert all(task.cancelled() for task in tasks)
    await asyncio.to_thread(_wait_for_statement, mysql, running=False)
    assert await rows(database, "SELECT 1 AS one") == [{"one": 1}]
    _assert_no_threads()


def _assert_no_threads() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("business-database"):
            thread.join(timeout=10)
            assert not thread.is_alive()


@pytest.mark.spec("CANCEL-2")
@pytest.mark.parametrize("kind", ["sqlite", "mysql"])
async def test_a_stop_before_the_start_is_honoured(request: pytest.FixtureRequest, kind: str) -> None:
    execution: SqliteExecution | MysqlExecution
    checked = CheckedStatement(ENDLESS, ("runs",), None)
    if kind == "sqlite":
        execution = SqliteDriver(request.getfixturevalue("sqlite"), TABLES, LIMITS).execution(checked)
    else:
        execution = MysqlDriver(make_url(request.getfixturevalue("mysql")), TABLES, LIMITS).execution(checked)

    execution.stop()

    with pytest.raises(EvidenceTimeout):
        await asyncio.to_thread(execution.run)


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("SELECT nothing FROM runs", "no such column.*runs\\(id INT"),
        ("SELECT id FROM runs a JOIN runs b ON 1 = 1", "ambiguous"),
        ("SELECT id FROM runs WHERE COUNT(*) > 1", "aggregate"),
        ("SELECT (SELECT id FROM runs)", "more than one row"),
        ("SELECT id FROM runs WHERE id IN (SELECT id FROM runs LIMIT 1)", "LIMIT in a subquery"),
        ("SELECT id FROM runs WHERE ROW_NUMBER() OVER (ORDER BY id) = 1", "window function"),
        ("SELECT * FROM (SELECT 1 AS a, 2 AS a) AS t", "same name"),
        ("SELECT 1 FROM runs, runs", "Two tables have the same name"),
        ("SELECT 'a' REGEXP '('", "regular expression"),
        ("SELECT ANY_VALUE(id), JSON_OVERLAPS(1, 2), REGEXP_LIKE(1, 2) FROM runs", "no such function"),
    ],
)
async def test_failures_are_told_in_our_words(mysql: str, statement: str, hint: str) -> None:
    with pytest.raises(StatementFailed, match=hint) as raised:
        await ask(read_only_database(mysql, TABLES), statement)

    assert "nothing" not in raised.value.hint


async def test_an_unreachable_database_is_unavailable_and_still_described(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}/none.db", "mysql+pymysql://u:hunter2@127.0.0.1:1/shop"):
        database = read_only_database(url, TABLES)
        with pytest.raises(EvidenceUnavailable) as raised:
            await ask(database, "SELECT id FROM runs")
        assert "127.0.0.1" not in raised.value.hint
        assert await database.describe() == "runs(columns unknown): One row a run"


@pytest.mark.parametrize(
    "url",
    [
        "hunter2",
        "postgresql://u:hunter2@h/d",
        "mysql+pymysql://u:hunter2@h",
        "sqlite://",
        "sqlite:///:memory:",
    ],
)
def test_a_bad_url_is_a_configuration_error_that_tells_no_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_only_database(url, TABLES)

    assert "hunter2" not in str(raised.value)
