"""Units of work: each in a worker thread, with a connection of its own, committed whole or not at all."""

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from os import PathLike
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from superbizagent.adapters.mysql_login import Login
from superbizagent.adapters.store.engine import (
    BEGIN_IMMEDIATE,
    PACKET_TOO_LARGE,
    Timeouts,
    build_engine,
    normalised,
)
from superbizagent.errors import ConfigurationError, StoreError, SuperBizAgentError

T = TypeVar("T")
Unit = Callable[[Connection], T]

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
"""Seconds between two tries of a unit; each pause is twice the one before."""

_TRANSIENT_MYSQL = frozenset(
    {
        1040,  # too many connections
        1203,  # too many connections of this user
        2002,  # no answer to connecting, by a socket file
        2003,  # the same, by TCP: the server is being started again
        1205,  # lock wait timeout; rolls back the statement only, so the unit has to be rolled back by us
        1213,  # deadlock
        1062,  # duplicate key: another unit stored it first, and from its start this one will find it
    }
)
_TRANSIENT_SQLITE = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DUPLICATE_SQLITE = frozenset({sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY})


class Database:
    """A database by its URL (mysql, mariadb or sqlite); connects on first use. Safe in threads and tasks.

    At most `pool_size` units run at once, each on its connection; further ones wait. `ca_file` makes TLS with
    a checked certificate mandatory; `login`, asked for each new connection to MySQL, needs it.
    """

    def __init__(
        self,
        url: str,
        *,
        ca_file: str | PathLike[str] | None = None,
        login: Login | None = None,
        pool_size: int = 4,
        timeouts: Timeouts | None = None,
    ) -> None:
        if login is not None and ca_file is None:
            raise ConfigurationError("a database login may travel over verified TLS only: a CA file is needed")
        self._url = normalised(url)
        self._ca_file = ca_file
        self._login = login
        self._pool_size = pool_size
        self._timeouts = timeouts or Timeouts()
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._under_way: set[Future[Any]] = set()
        self._closed = False

    @property
    def engine(self) -> Engine:
        """The engine, built on first use; for migrations and for adapters that share the database."""
        with self._lock:
            self._refuse_closed()
            if self._engine is None:
                self._engine = build_engine(
                    self._url,
                    pool_size=self._pool_size,
                    timeouts=self._timeouts,
                    ca_file=self._ca_file,
                    login=self._login,
                )
            return self._engine

    async def read(self, unit: Unit[T]) -> T:
        """Runs a unit that only reads. Raises what the unit raises of ours, and StoreError."""
        return await self._in_thread(unit, writes=False)

    async def write(self, unit: Unit[T]) -> T:
        """Runs a unit that writes, committed when it returns and rolled back when it raises.

        A unit may run several times: it is repeated from its start, in a new transaction, after a
        transient failure. One of these is a connection lost in mid-commit, when the first try may
        have been stored; units have to recognise their own work.
        """
        return await self._in_thread(unit, writes=True)

    def run(self, unit: Unit[T], *, writes: bool) -> T:
        """The same in the calling thread."""
        return self._repeated(unit, writes, threading.Event())

    def quiet(self, within: float) -> bool:
        """Whether no unit is under way, after waiting up to `within` seconds for those that nobody waits for."""
        return not wait(self._under_way.copy(), timeout=within).not_done

    def close(self) -> None:
        """Waits for units under way, which time limits bound, and closes all connections."""
        with self._lock:
            self._closed = True
            threads, engine = self._threads, self._engine
            self._threads = self._engine = None
        if threads is not None:
            threads.shutdown(wait=True)
        if engine is not None:
            engine.dispose()

    async def _in_thread(self, unit: Unit[T], *, writes: bool) -> T:
        # When the wait is cancelled the thread goes on alone to its commit or rollback: only then does
        # the connection go back to the pool, so nobody else can read the answer meant for this unit.
        threads = self._executor()
        abandoned = threading.Event()
        try:
            under_way = threads.submit(self._repeated, unit, writes, abandoned)
        except RuntimeError as error:
            raise StoreError("the database was closed a moment ago") from error
        self._under_way.add(under_way)
        under_way.add_done_callback(self._under_way.discard)
        try:
            return await asyncio.wrap_future(under_way)
        finally:
            abandoned.set()

    def _repeated(self, unit: Unit[T], writes: bool, abandoned: threading.Event) -> T:
        """The unit's result, tried until it is had, its patience is over, or nobody waits for it any more."""
        give_up = time.monotonic() + self._timeouts.patience
        pause = FIRST_PAUSE
        while True:
            try:
                return self._attempt(unit, writes)
            except SuperBizAgentError:
                raise
            except (SQLAlchemyError, ValueError) as error:
                # Two units that collided must not do so again in step.
                jittered = pause * random.uniform(0.5, 1.5)  # noqa: S311
                if not _transient(error) or time.monotonic() + jittered > give_up or abandoned.wait(jittered):
                    raise StoreError(description(error)) from error
            pause = min(pause * 2, LONGEST_PAUSE)

    def _attempt(self, unit: Unit[T], writes: bool) -> T:
        with self._connect() as connection:
            if writes:
                connection.execution_options(**{BEGIN_IMMEDIATE: True})
            transaction = connection.begin()
            result = unit(connection)
            transaction.commit()
            return result

    def _connect(self) -> Connection:
        try:
            return self.engine.connect()
        except (OSError, RuntimeError, TypeError) as error:
            # Not the server's errors but the driver's own: an option it doesn't know, a way to sign in that it has
            # no library for.
            raise StoreError(f"the database connection is not set up correctly: {type(error).__name__}") from error

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            self._refuse_closed()
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._pool_size, "store")
            return self._threads

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreError("the database is closed")


def _transient(error: Exception) -> bool:
    """Whether the unit may succeed from its start; so may one that lost a race for a unique key."""
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", 0)
        # The low byte is the primary code; BUSY_SNAPSHOT and its like are kinds of BUSY.
        return code & 0xFF in _TRANSIENT_SQLITE or code in _DUPLICATE_SQLITE
    code = _mysql_code(error)
    return code != PACKET_TOO_LARGE and (error.connection_invalidated or code in _TRANSIENT_MYSQL)


def _mysql_code(error: DBAPIError) -> int | None:
    arguments = getattr(error.orig, "args", ())
    return arguments[0] if arguments and isinstance(arguments[0], int) else None


def description(error: Exception) -> str:
    """Class and code only: the server's text may quote values."""
    if not isinstance(error, DBAPIError):
        return type(error).__name__
    code = getattr(error.orig, "sqlite_errorname", None) or _mysql_code(error)
    return f"{type(error.orig).__name__} {code}"
