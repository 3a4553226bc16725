"""The corpus on real servers: all that is hostile refused, all that is benign answered as a plain client is."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from superbizagent.adapters.business_database import QueryLimits, ReadOnlyDatabase, read_only_database
from superbizagent.adapters.business_database.driver import MAX_FETCHED
from superbizagent.adapters.business_database.mysql_driver import MysqlDriver
from superbizagent.adapters.business_database.quotes import Dialect
from superbizagent.adapters.business_database.statement_guard import CheckedStatement, check_statement
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
        yield url


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


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO orders (id, service_id, status, created_at) VALUES (99, 1, 'x', NOW())",
        "UPDATE orders SET status = 'x'",
        "DELETE FROM orders",
        "DROP TABLE orders",
        "CREATE TABLE t (a INT)",
        "CREATE TEMPORARY TABLE t (a INT)",
        "SELECT * FROM orders FOR UPDATE",
        "SELECT 'x' INTO OUTFILE 'p'",
        "SELECT authentication_string FROM mysql.user",
        "SET GLOBAL max_connections = 1",
        "COMMIT; DELETE FROM orders",
        "SELECT 1; SELECT 2",
        "SHUTDOWN",
    ],
)
def test_behind_the_guard_the_account_and_the_transaction_refuse(
    admin_url: str, reader_url: str, statement: str
) -> None:
    """The guard is bypassed here: what is behind it holds on its own."""
    driver = MysqlDriver(make_url(reader_url), TABLES, plain_client.LIMITS)
    with plain_client.mysql_client(admin_url) as client:
        before = client("SELECT * FROM orders ORDER BY id")

        with pytest.raises(SuperBizAgentError):
            driver.execution(CheckedStatement(statement, (), None)).run()

        assert client("SELECT * FROM orders ORDER BY id") == before


@pytest.mark.spec("SEC-1")
def test_a_lock_that_the_account_could_take_ends_with_its_statement(admin_url: str, reader_url: str) -> None:
    """P082: SELECT alone lets MySQL's users take shared locks; the guard refuses them, the session's end frees them."""
    driver = MysqlDriver(make_url(reader_url), TABLES, plain_client.LIMITS)
    for statement in ("SELECT * FROM orders LOCK IN SHARE MODE", "SELECT GET_LOCK('x', 1)"):
        driver.execution(CheckedStatement(statement, (), None)).run()

    with plain_client.mysql_client(admin_url) as client:
        client("SELECT * FROM orders FOR UPDATE NOWAIT")
        assert client("SELECT IS_USED_LOCK('x')") == [(None,)]


@pytest.mark.spec("CANCEL-2")
async def test_the_select_only_account_can_stop_its_own_statement(admin_url: str, reader_url: str) -> None:
    endless = "SELECT SUM(a.id * b.id + c.id) FROM events a" + "".join(f", events {name}" for name in "bcdefghijkl")
    database = read_only_database(reader_url, TABLES, limits=QueryLimits(time=60))
    task = asyncio.create_task(database.query(QueryMysql(statement=endless)))
    with plain_client.mysql_client(admin_url) as client:
        await asyncio.to_thread(_until, client, running=True)

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        await asyncio.to_thread(_until, client, running=False)


def _until(client: plain_client.Client, *, running: bool) -> None:
    """Until the server runs the endless statement, or does no more."""
    for _ in range(3_000):
        (found,) = client("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SUM(a.id * b%'")
        if bool(found[0]) is running:
            return
        # Asking is the wait: the server's answer paces this loop.
        client("SELECT SLEEP(0.01)")
    raise AssertionError(f"the statement was {'never' if running else 'still'} running")


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize(
    "statement",
    [
        # Just within the guard's estimate of what a server can't stop; each once took minutes when longer.
        "SELECT {long} LIKE CONCAT('%', {half}, 'b') AS x",
        "SELECT LOCATE(CONCAT({half}, 'b'), {long}) AS x",
        "SELECT LENGTH(REPLACE({long}, 'a', 'aa')) AS x",
        "SELECT LENGTH(REGEXP_REPLACE({half}, 'a', 'aa')) AS x",
        "SELECT {long} REGEXP '(a+)+b' AS x",
        "SELECT COUNT(*) AS x FROM events WHERE " + " + ".join(["(message REGEXP '(o+)+b')"] * 60) + " > 99",
    ],
    ids=lambda statement: statement[:50],
)
async def test_what_the_guard_lets_through_ends_in_time(reader_url: str, statement: str) -> None:
    a = "a" * 90
    long, half = (f"REPLACE('{a}', 'a', '{'a' * length}')" for length in (120, 60))
    database = read_only_database(reader_url, TABLES, limits=QueryLimits(time=8))

    evidence = await database.query(QueryMysql(statement=statement.format(long=long, half=half)))

    assert len(evidence.lines) == 1


@pytest.mark.spec("SEC-1", "GUARD-2")
async def test_very_long_rows_stop_the_reading_before_the_row_limit(
    admin_url: str, mysql_server: DatabaseServer
) -> None:
    """P086: fifty rows of a megabyte each are not all taken into memory, and the result says that it is cut."""
    with mysql_server.new_database() as url:
        with plain_client.mysql_client(url) as client:
            client("CREATE TABLE documents (id INT PRIMARY KEY, body LONGTEXT)")
            client("INSERT INTO documents VALUES " + ", ".join(f"({n}, REPEAT('x', 1000000))" for n in range(50)))
        driver = MysqlDriver(make_url(url), ("documents",), QueryLimits())

        fetched = await asyncio.to_thread(
            driver.execution(CheckedStatement("SELECT * FROM documents", ("documents",), None)).run
        )

    assert fetched.more
    assert sum(len(row[1]) for row in fetched.rows) <= MAX_FETCHED + 1_000_000


async def test_every_type_has_one_text(mysql_server: DatabaseServer) -> None:
    columns = {
        "TINYINT": ("-128", "-128"),
        "BOOLEAN": ("TRUE", "1"),
        "SMALLINT UNSIGNED": ("65535", "65535"),
        "MEDIUMINT": ("-8388608", "-8388608"),
        "BIGINT": ("-9223372036854775808", "-9223372036854775808"),
        "DECIMAL(65, 30)": ("-0.000000000000000000000000000001", "-0.000000000000000000000000000001"),
        "DECIMAL(10, 2)": ("0", "0.00"),
        "FLOAT": ("1.5", "1.5"),
        "DOUBLE": ("-1.7976931348623157e308", "-1.7976931348623157e+308"),
        "BIT(10)": ("b'1000000001'", '"0x0201 (2 bytes)"'),
        "YEAR": ("2026", "2026"),
        "DATE": ("'9999-12-31'", '"9999-12-31"'),
        "TIME(6)": ("'-838:59:58.000001'", '"-838:59:58.000001"'),
        "DATETIME": ("'1000-01-01 00:00:00'", '"1000-01-01T00:00:00"'),
        "TIMESTAMP(3) NULL": ("'2026-11-30 14:00:00.120'", '"2026-11-30T14:00:00.120000"'),
        "CHAR(3)": ("'a '", '"a"'),
        "VARCHAR(9)": ("'\"😀\\\\\\n'", '"\\"😀\\\\\\n"'),
        "BINARY(3)": ("'a'", '"0x610000 (3 bytes)"'),
        "VARBINARY(3)": ("''", '"0x (0 bytes)"'),
        "BLOB": ("x'00ff'", '"0x00ff (2 bytes)"'),
        "ENUM('a', '支付')": ("'支付'", '"支付"'),
        "SET('a', 'b', 'c')": ("'c,a'", '"a,c"'),
        "JSON": ("'[1, null]'", '"[1, null]"'),
        "POINT": ("POINT(1, 2)", '"0x000000000101000000000000000000f03f0000000000000040 (25 bytes)"'),
        "INT": ("NULL", "null"),
    }
    with mysql_server.new_database() as url:
        with plain_client.mysql_client(url) as client:
            client("ALTER DATABASE CHARACTER SET utf8mb4")
            client("CREATE TABLE odd (" + ", ".join(f"c{n} {kind}" for n, kind in enumerate(columns)) + ")")
            client("INSERT INTO odd VALUES (" + ", ".join(value for value, _ in columns.values()) + ")")
        database = read_only_database(url, {"odd": ""})

        lines = {(await database.query(QueryMysql(statement="SELECT * FROM odd"))).lines for _ in range(3)}

    shown = ", ".join(f'"c{n}": {text}' for n, (_, text) in enumerate(columns.values()))
    assert lines == {(f"{{{shown}}}",)}
