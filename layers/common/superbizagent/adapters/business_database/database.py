"""The business database behind its port: guarded statements in, rows as evidence out."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from superbizagent.adapters.business_database.driver import Column, Driver, Execution, Fetched, QueryLimits
from superbizagent.adapters.business_database.rows import RowFormat
from superbizagent.adapters.business_database.statement_guard import CheckedStatement, check_statement
from superbizagent.adapters.mysql_login import Login
from superbizagent.adapters.worker_thread import in_thread
from superbizagent.domain.codes import Unit
from superbizagent.domain.evidence import Coverage, Evidence, QueryMysql
from superbizagent.errors import (
    ConfigurationError,
    EvidenceError,
    EvidenceTimeout,
    StatementFailed,
)

_PROBE: Final = "Zq7-hunter"
_STOP_WAIT: Final = 3.0
_GRACE: Final = 2.0


class ReadOnlyDatabase:
    """Implements the port BusinessDatabase over SQLite or MySQL/MariaDB.

    `tables` are the only ones that can be read, each with its description.
    """

    def __init__(
        self, driver: Driver, tables: Mapping[str, str], limits: QueryLimits, redact: Callable[[str], str] = str
    ) -> None:
        self._driver = driver
        self._redact = redact
        self._tables = dict(tables)
        self._limits = limits
        self._columns: dict[str, tuple[Column, ...]] | None = None

    async def describe(self) -> str:
        """`TABLE(COLUMN TYPE, …): DESCRIPTION`, a line a table, even while the database can't be reached."""
        try:
            columns = await self._known_columns()
        except EvidenceError:
            columns = {}
        return "\n".join(
            f"{_table_line(table, columns.get(table))}: {' '.join(description.split())}".rstrip(": ")
            for table, description in self._tables.items()
        )

    async def query(self, query: QueryMysql) -> Evidence:
        # A parser is no business of the event loop's; the thread also has a stack of its own.
        dialect, tables = self._driver.dialect, tuple(self._tables)
        statement = await in_thread(
            lambda: check_statement(query.statement, dialect, tables, self._is_secret), "statement-guard"
        )
        try:
            fetched = await self._run(self._driver.execution(statement))
        except StatementFailed as error:
            raise StatementFailed(f"{error.hint} {await self._names(statement)}".strip()) from error
        return self._evidence(fetched, statement)

    def _is_secret(self, column: str) -> bool:
        """Whether redaction would take a value out that stands behind this name."""
        field = f'"{column}": "{_PROBE}"'
        return self._redact(field) != field

    async def _run(self, execution: Execution) -> Fetched:
        future = in_thread(execution.run, "business-database")
        try:
            async with asyncio.timeout(self._limits.time + _GRACE):
                return await asyncio.shield(future)
        except TimeoutError:
            await _stopped(execution, future)
            raise EvidenceTimeout("The statement ran too long and was stopped. Read fewer rows.") from None
        except asyncio.CancelledError:
            # Shielded, because a second cancellation must not leave the statement running.
            await asyncio.shield(_stopped(execution, future))
            raise

    async def _names(self, statement: CheckedStatement) -> str:
        try:
            columns = await self._known_columns()
        except EvidenceError:
            return ""
        read = statement.tables or tuple(self._tables)
        return "The tables are: " + "; ".join(_table_line(table, columns.get(table)) for table in read) + "."

    async def _known_columns(self) -> dict[str, tuple[Column, ...]]:
        if self._columns is not None:
            return self._columns
        columns = await in_thread(lambda: self._driver.columns(tuple(self._tables)), "business-database-columns")
        # A table that is missing now may have been made by the next call.
        if len(columns) == len(self._tables):
            self._columns = columns
        return columns

    def _evidence(self, fetched: Fetched, statement: CheckedStatement) -> Evidence:
        secret = statement.secrets.among(fetched.columns)
        format_ = RowFormat.for_names(fetched.columns, self._limits.cell, self._redact, secret)
        lines = _within([format_.row(row) for row in fetched.rows], self._limits.size)
        truncated = fetched.more or len(lines) < len(fetched.rows)
        own_limit = not truncated and statement.limit is not None and len(lines) >= statement.limit > 0
        notes = []
        if fetched.more:
            notes.append(f"more rows matched than the {len(fetched.rows)} that are read; aggregate or filter")
        if len(lines) < len(fetched.rows):
            notes.append(f"rows beyond {self._limits.size} bytes of text are not shown; select fewer columns")
        if own_limit:
            notes.append("the statement's own LIMIT was reached; there may be more rows")
        if format_.cut_cells:
            notes.append(f"{format_.cut_cells} values were cut to {self._limits.cell} characters")
        return Evidence(
            title="database",
            summary=(
                f"columns: {', '.join(format_.columns)}",
                f"rows: {len(lines)}{' (truncated)' if truncated else ''}",
            ),
            lines=tuple(lines),
            coverage=Coverage(
                unit=Unit.ROWS,
                matched=len(fetched.rows) + fetched.more,
                shown=len(lines),
                truncated=truncated,
                partial=own_limit,
                notes=tuple(notes),
            ),
        )


def _table_line(table: str, columns: tuple[Column, ...] | None) -> str:
    if not columns:
        return f"{table}(columns unknown)"
    return f"{table}({', '.join(f'{column.name} {column.type}' for column in columns)})"


def _within(lines: list[str], size: int) -> list[str]:
    """As many lines as fit into `size` bytes."""
    kept: list[str] = []
    for line in lines:
        size -= len(line.encode()) + 1
        if size < 0:
            break
        kept.append(line)
    return kept


async def _stopped(execution: Execution, future: "asyncio.Future[Fetched]") -> None:
    """Ends the statement and its thread, in bounded time: a server that hangs must not hang us."""
    both: set[asyncio.Future[Any]] = {in_thread(execution.stop, "business-database-stop"), future}
    await asyncio.wait(both, timeout=_STOP_WAIT)


def read_only_database(
    url: str,
    tables: Mapping[str, str],
    *,
    limits: QueryLimits | None = None,
    login: Login | None = None,
    ca_file: Path | None = None,
    redact: Callable[[str], str] = str,
) -> ReadOnlyDatabase:
    """The adapter for `sqlite:///PATH` or `mysql+pymysql://…`; raises ConfigurationError.

    `login` is asked for each new connection to MySQL; with `ca_file` MySQL has to prove who it is; `redact` takes
    secrets out of values before they are cut.
    """
    limits = limits or QueryLimits()
    if not tables:
        raise ConfigurationError("the business database needs at least one listed table")
    return ReadOnlyDatabase(_driver(url, tables, limits, login, ca_file), tables, limits, redact)


def _driver(
    url: str, tables: Mapping[str, str], limits: QueryLimits, login: Login | None, ca_file: Path | None
) -> Driver:
    try:
        parsed = make_url(url)
    except ArgumentError:
        # Not chained: the error quotes the URL with its password.
        raise ConfigurationError("the business database's URL is not a database URL") from None
    # Each driver is imported only where it is used: PyMySQL and the engine cost start-up time.
    if parsed.get_backend_name() == "sqlite":
        from superbizagent.adapters.business_database.sqlite_driver import SqliteDriver

        if not parsed.database or parsed.database == ":memory:":
            raise ConfigurationError("the business database's SQLite URL must name a file")
        return SqliteDriver(Path(parsed.database), tables, limits)
    if parsed.get_backend_name() in ("mysql", "mariadb"):
        from superbizagent.adapters.business_database.mysql_driver import MysqlDriver

        if not parsed.database:
            raise ConfigurationError("the business database's URL must name a schema")
        return MysqlDriver(parsed, tables, limits, login, ca_file)
    raise ConfigurationError("the business database's URL must begin with sqlite:// or mysql+pymysql://")
