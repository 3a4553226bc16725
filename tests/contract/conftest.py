"""The same suite on the fakes, on SQLite and on a MySQL-compatible server."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import pytest
from sqlalchemy import text

from superbizagent.adapters.store import Database, SqlCancelRequests, SqlConnections
from superbizagent.adapters.store.history import SqlHistory
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.ports import CancelRequests, Connections, History, RunStore
from tests.fakes import FakeCancelRequests, FakeConnections, FakeDatabase, FakeHistory, FakeRunStore

GRACE = timedelta(seconds=10)
JsonColumn = Literal["content", "published_result"]


@dataclass(frozen=True)
class Stores:
    """One database behind all four ports. `tamper` overwrites a stored JSON value with other JSON text."""

    runs: RunStore
    cancels: CancelRequests
    connections: Connections
    history: History
    tamper: Callable[[str, JsonColumn, str], None]
    message_pairs: Callable[[str], int]


@pytest.fixture(params=["fake", "sqlite", "mysql"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "fake":
        yield fake_stores()
        return
    database = Database(request.getfixturevalue(f"{request.param}_database"))
    yield real_stores(database)
    database.close()


def fake_stores() -> Stores:
    database = FakeDatabase()

    def tamper(run_id: str, column: JsonColumn, value: str) -> None:
        row = database.run(run_id)
        assert row is not None
        setattr(row, column, value)

    return Stores(
        runs=FakeRunStore(database, overdue_grace=GRACE),
        cancels=FakeCancelRequests(database),
        connections=FakeConnections(database),
        history=FakeHistory(database),
        tamper=tamper,
        message_pairs=lambda session_id: database.sessions[session_id].message_pairs,
    )


def real_stores(database: Database) -> Stores:
    def tamper(run_id: str, column: JsonColumn, value: str) -> None:
        json.loads(value)
        statement = text(f"UPDATE diagnosis_run SET {column} = :value WHERE run_id = :run_id")
        with database.engine.begin() as connection:
            done = connection.execute(statement, {"value": value, "run_id": run_id})
        assert done.rowcount == 1

    def message_pairs(session_id: str) -> int:
        statement = text("SELECT message_pairs FROM chat_session WHERE session_id = :id")
        with database.engine.begin() as connection:
            return int(connection.execute(statement, {"id": session_id}).scalar_one())

    return Stores(
        runs=SqlRunStore(database, overdue_grace=GRACE),
        cancels=SqlCancelRequests(database),
        connections=SqlConnections(database),
        history=SqlHistory(database),
        tamper=tamper,
        message_pairs=message_pairs,
    )
