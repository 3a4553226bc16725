"""MySQL and MariaDB: a read-only transaction on a connection of its own, limited at the server."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import SSCursor
from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from superbizagent.adapters.business_database.driver import Column, Fetched, QueryLimits, first_rows
from superbizagent.adapters.business_database.encryption import Encryption
from superbizagent.adapters.business_database.quotes import Dialect
from superbizagent.adapters.business_database.statement_cost import GROUP_CONCAT_LENGTH
from superbizagent.adapters.business_database.statement_guard import CheckedStatement
from superbizagent.adapters.mysql_login import Login, signed_in
from superbizagent.adapters.mysql_tls import without_tls_options
from superbizagent.errors import (
    EvidenceError,
    EvidenceTimeout,
    EvidenceUnavailable,
    StatementFailed,
    StatementRefused,
    StoreError,
)

_CONNECT_SECONDS: Final = 5
# Beyond the server's own limit: what a server that hangs may cost.
_READ_GRACE: Final = 5

_TIMED_OUT: Final = frozenset((1317, 1969, 3024))
_REFUSED: Final = frozenset((1044, 1142, 1143, 1227, 1290, 1792))
_WRONG: Final[dict[int, str]] = {
    1052: "A column's name is ambiguous. Write TABLE.COLUMN.",
    1054: "There is no such column.",
    1055: "A selected column is neither grouped nor aggregated.",
    1064: "The database could not parse the statement.",
    1056: "An aggregate can't be grouped by. Group by a column.",
    1060: "Two columns of a subquery have the same name. Give them aliases.",
    1066: "Two tables have the same name. Give them aliases.",
    1111: "An aggregate stands where none may, such as in WHERE.",
    1139: "A regular expression is wrong.",
    1140: "A selected column is neither grouped nor aggregated.",
    1146: "There is no such table.",
    1221: "ROLLUP and ORDER BY can't stand in one query. Order in a query around it.",
    1222: "The parts of a UNION must have equally many columns.",
    1235: "The database can't do this, such as LIMIT in a subquery after IN. Join with the subquery instead.",
    1241: "A subquery has more columns than its place allows.",
    1242: "A subquery returned more than one row.",
    1247: "An alias is used where it is not known yet.",
    1248: "Every subquery in FROM needs an alias.",
    1267: "Texts of different collations are compared. Cast one of them: CONVERT(TEXT USING utf8mb4).",
    1305: "There is no such function in this database.",
    # To a user who may not run any, MariaDB says of an unknown function that it may not be run.
    1370: "There is no such function in this database.",
    1582: "A function has the wrong number of arguments.",
    1690: "A number is out of range.",
    3593: "A window function may stand after SELECT and in ORDER BY only. Filter in a query around it.",
    4015: "A window function may stand after SELECT and in ORDER BY only. Filter in a query around it.",
}
_CONNECTION_LOST: Final = frozenset((0, 2003, 2006, 2013, 2014, 2055))


class MysqlDriver:
    """One server and schema, reached with an engine of its own: no connection is ever shared or kept.

    `login` is asked for each connection; `ca_file` the authority of the server's key.
    """

    def __init__(
        self,
        url: URL,
        tables: Collection[str],
        limits: QueryLimits,
        login: Login | None = None,
        ca_file: Path | None = None,
    ) -> None:
        self._tables = tuple(tables)
        self._limits = limits
        self._engine = _engine(url, limits, login, Encryption(url.host, ca_file))

    @property
    def dialect(self) -> Dialect:
        return "mysql"

    @property
    def limits(self) -> QueryLimits:
        return self._limits

    def columns(self, tables: Sequence[str]) -> dict[str, tuple[Column, ...]]:
        found: dict[str, list[Column]] = {}
        with self.connection() as connection, connection.cursor() as cursor:
            try:
                cursor.execute(
                    "SELECT table_name, column_name, column_type FROM information_schema.columns"
                    " WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position"
                )
                for table, name, kind in cursor.fetchall():
                    found.setdefault(_str(table), []).append(Column(_str(name), _str(kind).upper()))
            except (pymysql.MySQLError, OSError) as error:
                raise EvidenceUnavailable("The database could not be read.") from error
        return {table: tuple(found[table]) for table in tables if table in found}

    def execution(self, statement: CheckedStatement) -> "MysqlExecution":
        return MysqlExecution(self, statement)

    def kill(self, thread_id: int) -> None:
        """Ends a connection of ours at the server; raises EvidenceUnavailable."""
        # Not KILL QUERY: between two statements it would hit nothing and the next would run on.
        with (
            self.connection() as connection,
            connection.cursor() as cursor,
            suppress(pymysql.MySQLError),
        ):
            cursor.execute(f"KILL {int(thread_id)}")

    @contextmanager
    def connection(self) -> Iterator["Connection[Any]"]:
        """A new connection, closed at the end without reading on. Raises EvidenceUnavailable."""
        try:
            pooled = self._engine.raw_connection()
        except (SQLAlchemyError, pymysql.MySQLError, OSError, RuntimeError, StoreError) as error:
            raise EvidenceUnavailable("The database could not be reached.") from error
        driver: Connection[Any] | None = pooled.driver_connection
        pooled.detach()
        if driver is None:
            raise EvidenceUnavailable("The database could not be reached.")
        try:
            yield driver
        finally:
            # close() of a streaming result reads all of it first, which may be billions of rows.
            driver._force_close()  # type: ignore[attr-defined]


def _engine(url: URL, limits: QueryLimits, login: Login | None, encryption: Encryption) -> Engine:
    engine = create_engine(
        without_tls_options(url.set(drivername="mysql+pymysql")),
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={
            "charset": "utf8mb4",
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": int(limits.time) + _READ_GRACE,
            "write_timeout": int(limits.time) + _READ_GRACE,
            "local_infile": False,
            "autocommit": True,
        },
    )

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _record: Any, arguments: Any, parameters: dict[str, Any]) -> Any:
        def connected(credentials: Mapping[str, str]) -> Any:
            return encryption.connected(lambda how: dialect.connect(*arguments, **{**parameters, **how, **credentials}))

        return connected({}) if login is None else signed_in(login, connected)

    return engine


class MysqlExecution:
    """One statement; its own connection lives in run()."""

    def __init__(self, driver: MysqlDriver, statement: CheckedStatement) -> None:
        self._driver = driver
        self._statement = statement
        self._stopped = threading.Event()
        self._thread_id: int | None = None

    def stop(self) -> None:
        self._stopped.set()
        if self._thread_id is not None:
            with suppress(EvidenceError):
                self._driver.kill(self._thread_id)

    def run(self) -> Fetched:
        with self._driver.connection() as connection:
            self._thread_id = int(connection.thread_id())  # type: ignore[no-untyped-call]
            try:
                return self._run(connection)
            except (pymysql.MySQLError, OSError, UnicodeDecodeError, ValueError) as error:
                raise self._translated(error) from error
            finally:
                self._thread_id = None

    def _run(self, connection: "Connection[Any]") -> Fetched:
        limits = self._driver.limits
        server = str(connection.get_server_info())  # type: ignore[no-untyped-call]
        with connection.cursor() as cursor:
            for statement in session_statements(server, limits):
                cursor.execute(statement)
            cursor.execute("START TRANSACTION READ ONLY")
        # A stop that came before the connection had an id found nothing to kill.
        if self._stopped.is_set():
            raise EvidenceTimeout
        stream = connection.cursor(SSCursor)
        try:
            # Without parameters nothing is formatted: % and : reach the server as they are.
            stream.execute(self._statement.text)
            rows, more = first_rows(iter(stream.fetchone, None), limits.rows)
            columns = tuple(_str(column[0]) for column in stream.description or ())
        finally:
            _abandon(stream)
        if more:
            # The server may be busy with rows that nobody wants; the connection is dropped unread.
            self._end_at_server()
        elif not self._stopped.is_set():
            connection.rollback()
        return Fetched(columns, rows, more)

    def _end_at_server(self) -> None:
        if self._thread_id is not None:
            with suppress(EvidenceError):
                self._driver.kill(self._thread_id)

    def _translated(self, error: Exception) -> EvidenceError:
        code = error.args[0] if error.args and isinstance(error.args[0], int) else -1
        if self._stopped.is_set() or code in _TIMED_OUT or isinstance(error, TimeoutError):
            return EvidenceTimeout("The statement ran too long and was stopped. Read fewer rows.")
        if code in _REFUSED:
            return StatementRefused("The database's user may not do this. Only the listed tables can be read.")
        if code in _WRONG:
            return StatementFailed(_WRONG[code])
        if code in _CONNECTION_LOST or isinstance(error, OSError):
            return EvidenceUnavailable("The connection to the database was lost.")
        return StatementFailed("The database could not run the statement.")


def session_statements(server: str, limits: QueryLimits) -> list[str]:
    """What a session is set to before it reads; the two kinds of server limit time differently."""
    limit = (
        f"SET SESSION max_statement_time = {limits.time:g}"
        if "mariadb" in server.lower()
        else f"SET SESSION MAX_EXECUTION_TIME = {max(int(limits.time * 1000), 1)}"
    )
    return [
        # The guard reads quotes and backslashes by these rules; the server has to agree.
        "SET SESSION sql_mode = 'STRICT_TRANS_TABLES'",
        "SET SESSION time_zone = '+00:00'",
        f"SET SESSION sql_select_limit = {limits.rows + 1}",
        # MySQL's default cuts silently at 1,024 bytes, MariaDB's is long enough to be a burden.
        f"SET SESSION group_concat_max_len = {GROUP_CONCAT_LENGTH}",
        limit,
    ]


def _abandon(cursor: SSCursor) -> None:
    """Keeps the cursor from reading the rest of its result, as it would even when it is collected."""
    result: Any = cursor._result  # type: ignore[attr-defined]
    if result is not None:
        result.unbuffered_active = False
        result.connection = None
    cursor._result = None  # type: ignore[attr-defined]
    cursor.connection = None  # type: ignore[assignment]


def _str(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
