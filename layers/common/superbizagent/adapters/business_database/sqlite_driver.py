"""SQLite files, opened read-only, with an authorizer behind the statement guard."""

import sqlite3
import threading
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from superbizagent.adapters.business_database.driver import Column, Fetched, QueryLimits, first_rows
from superbizagent.adapters.business_database.quotes import Dialect
from superbizagent.adapters.business_database.statement_guard import CheckedStatement
from superbizagent.adapters.business_database.vocabulary import FUNCTIONS
from superbizagent.errors import (
    EvidenceError,
    EvidenceTimeout,
    EvidenceUnavailable,
    StatementFailed,
    StatementRefused,
)

_OPERATORS: Final = frozenset(("like", "glob", "->", "->>"))
_CHECK_EVERY: Final = 5_000
_BUSY_SECONDS: Final = 2.0
_MAX_VALUE: Final = 4 * 1024 * 1024
_UNAVAILABLE: Final = frozenset(
    (
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PROTOCOL,
    )
)


class SqliteDriver:
    """One database file. `path` must exist when a statement runs; it is never created."""

    def __init__(self, path: Path, tables: Collection[str], limits: QueryLimits) -> None:
        self._path = path
        self._tables = frozenset(table.lower() for table in tables)
        self._limits = limits

    @property
    def dialect(self) -> Dialect:
        return "sqlite"

    def columns(self, tables: Sequence[str]) -> dict[str, tuple[Column, ...]]:
        try:
            with closing(self._connect()) as connection:
                found = {table: _columns(connection, table) for table in tables}
        except (sqlite3.Error, OSError) as error:
            raise EvidenceUnavailable("The database could not be read.") from error
        return {table: columns for table, columns in found.items() if columns}

    def execution(self, statement: CheckedStatement) -> "SqliteExecution":
        return SqliteExecution(self, statement)

    @property
    def row_limit(self) -> int:
        return self._limits.rows

    @property
    def time_limit(self) -> float:
        return self._limits.time

    def connect_guarded(self, stopped: threading.Event) -> sqlite3.Connection:
        """A connection on which only reads of the listed tables work."""
        connection = self._connect()
        connection.set_progress_handler(stopped.is_set, _CHECK_EVERY)
        connection.set_authorizer(self._authorize)
        return connection

    def _connect(self) -> sqlite3.Connection:
        uri = f"file:{quote(str(self._path.absolute()))}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        connection.text_factory = _lenient
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _authorize(
        self, action: int, first: str | None, second: str | None, _database: str | None, source: str | None
    ) -> int:
        if action == sqlite3.SQLITE_SELECT:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            # `source` names the view or the common table expression through which it is read.
            allowed = (first or "").lower() in self._tables or (source or "").lower() in self._tables
            return sqlite3.SQLITE_OK if allowed or not first else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION:
            name = (second or "").lower()
            return sqlite3.SQLITE_OK if name in FUNCTIONS or name in _OPERATORS else sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_DENY


class SqliteExecution:
    """One statement; its own connection lives in run()."""

    def __init__(self, driver: SqliteDriver, statement: CheckedStatement) -> None:
        self._driver = driver
        self._statement = statement
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> Fetched:
        # SQLite has no time limit of its own; this is what a server's would be.
        timer = threading.Timer(self._driver.time_limit, self._stopped.set)
        timer.daemon = True
        timer.start()
        try:
            return self._run()
        finally:
            timer.cancel()

    def _run(self) -> Fetched:
        try:
            with closing(self._driver.connect_guarded(self._stopped)) as connection:
                cursor = connection.execute(self._statement.text)
                rows, more = first_rows(cursor, self._driver.row_limit)
                columns = tuple(column[0] for column in cursor.description or ())
        except (sqlite3.Error, sqlite3.Warning, OverflowError, MemoryError) as error:
            raise _translated(error) from error
        return Fetched(columns, rows, more)


def _columns(connection: sqlite3.Connection, table: str) -> tuple[Column, ...]:
    rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    return tuple(Column(str(name), str(kind or "ANY")) for name, kind in rows)


def _lenient(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _translated(error: Exception) -> EvidenceError:
    # Extended codes carry the primary one in their low byte.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        return EvidenceTimeout("The statement ran too long and was stopped. Read fewer rows.")
    if code in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_PERM):
        return StatementRefused("The statement reads something beyond the listed tables and functions.")
    if code in _UNAVAILABLE:
        return EvidenceUnavailable("The database could not be read.")
    if code in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_NOMEM):
        return StatementFailed("A value of the result is too large.")
    return StatementFailed("The database could not run the statement.")
