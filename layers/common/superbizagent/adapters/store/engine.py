"""How connections are made: the same session settings on every server, whatever its defaults are."""

import json
import sqlite3
import ssl
from dataclasses import dataclass
from os import PathLike
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError

from superbizagent.adapters.mysql_login import Login, sign_in
from superbizagent.adapters.mysql_tls import verifying_context, without_tls_options
from superbizagent.errors import ConfigurationError, StoreError

BEGIN_IMMEDIATE = "superbizagent_begin_immediate"
"""Execution option of a unit that writes: SQLite then takes its write lock first. A read that turns
into a write in mid-transaction fails at once when another process has written in between."""

_SQL_MODE = (
    "STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)

PACKET_TOO_LARGE = 1153
"""The server hangs up on a statement longer than its max_allowed_packet, as often as it is sent."""

_CONNECTION_USELESS = frozenset(
    {
        PACKET_TOO_LARGE,
        1053,  # the server is shutting down
        1290,  # it has become read-only: after a failover, the server that took over is elsewhere
        1792,  # the same, where its sessions are read-only by default
        1836,  # the same, in MySQL's words
    }
)


@dataclass(frozen=True)
class Timeouts:
    """All in seconds. `lock` is shorter than `read`: a lock wait has to end as one, not as a lost server.

    `recycle` is below the shortest idle limit between here and a database (350 s in AWS's network),
    because a connection that was frozen along with its process may have been dropped without a word.
    `patience` is how long a unit of work is repeated that fails for a passing reason; the last try may
    begin at its very end.
    """

    connect: int = 5
    read: int = 10
    write: int = 10
    lock: int = 4
    recycle: int = 280
    patience: float = 10.0


def normalised(url: str) -> URL:
    """`url` for the one driver of its kind that we ship; raises ConfigurationError."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Not chained: the message would repeat the URL with its password.
        raise ConfigurationError("the database URL can't be read") from None
    backend = parsed.get_backend_name()
    if backend in ("mysql", "mariadb"):
        return parsed.set(drivername="mysql+pymysql")
    if backend != "sqlite":
        raise ConfigurationError(f"no database of kind {backend} is supported, only mysql, mariadb and sqlite")
    if not parsed.database or ":memory:" in parsed.database or parsed.query.get("mode") == "memory":
        raise ConfigurationError("SQLite needs a file: an in-memory database belongs to one connection only")
    return parsed.set(drivername="sqlite+pysqlite")


def build_engine(
    url: URL,
    *,
    pool_size: int,
    timeouts: Timeouts,
    ca_file: str | PathLike[str] | None,
    login: Login | None,
) -> Engine:
    mysql = url.get_backend_name() == "mysql"
    options: dict[str, Any] = {"isolation_level": "READ COMMITTED"} if mysql else {}
    engine = create_engine(
        url if ca_file is None else without_tls_options(url),
        connect_args=_mysql_arguments(timeouts, ca_file) if mysql else _sqlite_arguments(timeouts),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=timeouts.connect,
        pool_recycle=timeouts.recycle,
        pool_pre_ping=True,
        # Parameters hold questions and answers; an error's text may reach a log.
        hide_parameters=True,
        json_serializer=_dump_json,
        json_deserializer=_load_json,
        **options,
    )
    if not mysql:
        _prepare_sqlite(engine, timeouts)
        return engine
    _drop_useless_connections(engine)
    if login is not None:
        sign_in(engine, login)
    return engine


def _mysql_arguments(timeouts: Timeouts, ca_file: str | PathLike[str] | None) -> dict[str, Any]:
    """Given to the driver by code, so that they win over whatever the URL says or leaves out."""
    arguments: dict[str, Any] = {
        "charset": "utf8mb4",
        "connect_timeout": timeouts.connect,
        "read_timeout": timeouts.read,
        "write_timeout": timeouts.write,
        "init_command": (
            f"SET time_zone = '+00:00', sql_mode = '{_SQL_MODE}', innodb_lock_wait_timeout = {timeouts.lock}"
        ),
    }
    if ca_file is not None:
        # With a context the driver refuses a server without TLS.
        arguments["ssl"] = _verifying(ca_file)
    return arguments


def _verifying(ca_file: str | PathLike[str]) -> ssl.SSLContext:
    try:
        return verifying_context(ca_file)
    except (OSError, ValueError) as error:
        raise StoreError(f"the database's CA file can't be read: {type(error).__name__}") from error


def _sqlite_arguments(timeouts: Timeouts) -> dict[str, Any]:
    # Without an isolation level the driver starts no transactions of its own accord; ours begin below.
    return {"timeout": timeouts.lock, "isolation_level": None, "check_same_thread": False}


def _prepare_sqlite(engine: Engine, timeouts: Timeouts) -> None:
    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        # The wait comes first: turning to WAL needs a lock that another process may hold.
        connection.execute(f"PRAGMA busy_timeout = {timeouts.lock * 1000}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get(BEGIN_IMMEDIATE)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _drop_useless_connections(engine: Engine) -> None:
    """The pool's other connections too: each was made to the server that the name stood for then."""

    @event.listens_for(engine, "handle_error")
    def drop(context: ExceptionContext) -> None:
        if _CONNECTION_USELESS.intersection(context.original_exception.args[:1]):
            context.is_disconnect = True


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _load_json(text: str | bytes) -> object:
    """None for text that is no JSON: one damaged value must not make its whole row unreadable."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
