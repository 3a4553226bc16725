"""A unit of work caught in its last moment, and what a database holds."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Engine, event, text

from superbizagent.adapters.store import Database

WAIT = 20.0
"""Seconds; a bound for a machine under load, not an expectation."""


class Held:
    """Holds the first commit of an engine until it is released: all is written, all is locked, nothing is seen."""

    def __init__(self, engine: Engine) -> None:
        self._reached = threading.Event()
        self._released = threading.Event()
        event.listen(engine, "commit", self._hold, once=True)

    def _hold(self, _connection: Connection) -> None:
        self._reached.set()
        assert self._released.wait(WAIT)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, WAIT)

    def release(self) -> None:
        self._released.set()


def scalar(database: Database, statement: str, **values: Any) -> Any:
    return database.run(lambda connection: connection.scalar(text(statement), values), writes=False)


def count(database: Database, table: str) -> int:
    return int(scalar(database, f"SELECT count(*) FROM {table}"))


def server_side(connection: Connection) -> int:
    """The server's own number of this connection."""
    return int(connection.scalar(text("SELECT CONNECTION_ID()")) or 0)


def touch(session_id: str) -> Callable[[Connection], None]:
    """A unit that changes a session, and so locks it."""
    statement = text("UPDATE chat_session SET message_pairs = message_pairs + 1 WHERE session_id = :id")

    def unit(connection: Connection) -> None:
        connection.execute(statement, {"id": session_id})

    return unit
