"""A second principal with the first one's ids: nothing learned, nothing changed (ISO-2).

What is asked for and belongs to somebody else is compared with what never was: the frames are the same but for the ids
that came with the question, and so are the statements that the database was sent.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event as sqlalchemy_event

from superbizagent import bootstrap
from superbizagent.adapters.store import Database
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.domain.budget import Usage
from superbizagent.domain.run import ReleaseOutcome
from superbizagent.errors import SessionNotFound
from superbizagent.ports import NewRun, RunEnd, StartResult
from tests.invocations import OK, Json, World, event, world_on

pytestmark = pytest.mark.spec("ISO-2")
ALICE, MALLORY = "alices=", "mallorys="
SESSION, RUN, REQUEST, QUERY = "alices-session", "alices-run", "alices-request", "secret of alice"
NEVER = "never-there"
NOW = datetime.now(UTC)  # noqa: TID251 - runs of a moment ago
STATES = ("RUNNING", "SUCCESS", "CANCELLED")
TABLES = ("chat_session", "diagnosis_run", "run_cancel", "ws_connection")
ALICES = NewRun(
    run_id=RUN,
    session_id=SESSION,
    owner="alice",
    request_id=REQUEST,
    gateway_request_id="g-alice",
    connection_id=ALICE,
    query=QUERY,
    created_at=NOW,
    deadline_at=NOW + timedelta(minutes=5),
)
EVENTS = {"chat": "chat", "cancel": "cancel", "history": "history_sessions", "default": "default"}


@pytest.fixture
async def world(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    async with world_on(database_url, tmp_path, monkeypatch) as world:
        await world.connect(ALICE, "alice")
        await world.connect(MALLORY, "mallory")
        yield world


@dataclass(frozen=True)
class Told:
    """What a principal could notice of an answer, and what the database was asked for it."""

    frames: tuple[Json, ...]
    statements: tuple[str, ...]


async def tell(world: World, function: str, **message: Any) -> Told:
    """As mallory. The ids that she sent herself are taken out of the frames, and those of a run of her own."""
    before = len(world.frames(MALLORY))
    asked = {"action": function, **message}
    with statements() as sent:
        assert await world.invoke(function, event(EVENTS[function], MALLORY, request="g-mallory", body=asked)) == OK
    frames = world.frames(MALLORY)[before:]
    own = ("requestId", "sessionId", "runId")
    return Told(tuple({key: value for key, value in frame.items() if key not in own} for frame in frames), tuple(sent))


@contextlib.contextmanager
def statements() -> Iterator[list[str]]:
    """What the functions send to their database, without parameters.

    Less the looks for a cancellation: there are as many as there is time for, and the last one may outlive its run.
    """
    sent: list[str] = []
    engine = bootstrap.services().database.engine

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if statement != "BEGIN" and not statement.startswith("SELECT run_cancel.reason"):
            sent.append(statement)

    sqlalchemy_event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        sqlalchemy_event.remove(engine, "before_cursor_execute", note)


async def begun(world: World, state: str) -> None:
    """Alice's run, in that state."""
    store = SqlRunStore(world.database)
    assert await store.start(ALICES) == StartResult()
    if state != "RUNNING":
        usage = Usage(model_calls=1, tool_calls=0, tokens=1)
        end = RunEnd(outcome=ReleaseOutcome(state), usage=usage, duration_ms=1, finished_at=NOW)
        assert await store.finish(RUN, end)


def alices_rows(world: World) -> dict[str, list[Json]]:
    """Everything stored that is not mallory's."""
    rows = {table: world.rows(f"SELECT * FROM {table}") for table in TABLES}
    return {table: [row for row in found if "mallory" not in str(row)] for table, found in rows.items()}


@dataclass(frozen=True)
class Try:
    """A message with an id of alice's, and the same one with an id of nobody's."""

    function: str
    foreign: Mapping[str, Any]
    unknown: Mapping[str, Any]
    code: str


TRIES = {
    "history of her session": Try("history", {"sessionId": SESSION}, {"sessionId": NEVER}, "SESSION_NOT_FOUND"),
    "history before her run": Try(
        "history", {"sessionId": SESSION, "before": RUN}, {"sessionId": NEVER, "before": RUN}, "SESSION_NOT_FOUND"
    ),
    "my history before her run": Try(
        "history",
        {"sessionId": "mallorys-session", "before": RUN},
        {"sessionId": "mallorys-session", "before": NEVER},
        "RUN_NOT_FOUND",
    ),
    "cancel of her run": Try("cancel", {"runId": RUN}, {"runId": NEVER}, "RUN_NOT_FOUND"),
    "cancel by her session": Try("cancel", {"runId": SESSION}, {"runId": NEVER}, "RUN_NOT_FOUND"),
    "cancel by her request": Try("cancel", {"runId": REQUEST}, {"runId": NEVER}, "RUN_NOT_FOUND"),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", TRIES)
async def test_what_is_anothers_is_what_never_was(world: World, name: str, state: str) -> None:
    tried = TRIES[name]
    await begun(world, state)
    await tell(world, "chat", requestId="m0", sessionId="mallorys-session", query="of mallory")
    rows = alices_rows(world)

    foreign = await tell(world, tried.function, **tried.foreign)
    unknown = await tell(world, tried.function, **tried.unknown)

    assert foreign == unknown
    [refusal] = foreign.frames
    assert (refusal["type"], refusal["code"]) == ("error", tried.code)
    assert alices_rows(world) == rows


async def test_a_question_in_anothers_session_is_refused_alike_whatever_goes_on_there(world: World) -> None:
    """A session id that nobody has is the asker's from then on (LIFE-1), so there is no unknown one to compare with."""
    told = []
    for number, state in enumerate(STATES):
        with world.database.engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM diagnosis_run")
            connection.exec_driver_sql("DELETE FROM chat_session")
        await begun(world, state)
        rows = alices_rows(world)
        told.append(await tell(world, "chat", sessionId=SESSION, requestId=f"m{number}", query="of mallory"))
        told.append(await tell(world, "chat", sessionId=SESSION, requestId=REQUEST, query=QUERY))
        assert alices_rows(world) == rows
        assert len(rows["diagnosis_run"]) == 1
    assert set(map(str, told)) == {str(told[0])}
    [refusal] = told[0].frames
    assert (refusal["type"], refusal["code"]) == ("error", "SESSION_NOT_FOUND")
    assert world.model.received == []


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("query", [QUERY, "another question"])
async def test_anothers_request_id_is_as_good_as_a_new_one(world: World, state: str, query: str) -> None:
    await begun(world, state)
    rows = alices_rows(world)
    foreign = await tell(world, "chat", requestId=REQUEST, query=query)
    new = await tell(world, "chat", requestId="m1", query=query)
    assert foreign == new
    assert foreign.frames[-1]["type"] == "done"
    assert alices_rows(world) == rows


@pytest.mark.parametrize("action", ["$disconnect", "$connect", "$default", "disconnect"])
async def test_nobody_speaks_for_anothers_connection(world: World, action: str) -> None:
    await begun(world, "RUNNING")
    rows = alices_rows(world)
    body = {"action": action, "connectionId": ALICE, "requestContext": {"connectionId": ALICE}}
    assert await world.invoke("default", event("default", MALLORY, body=body)) == OK
    [refusal] = world.frames(MALLORY)
    assert refusal["code"] == "UNKNOWN_ACTION"
    assert await world.invoke("disconnect", event("disconnect", MALLORY)) == OK
    assert [row for row in alices_rows(world)["run_cancel"] if row["connection_id"] != MALLORY] == []
    assert {table: rows[table] for table in ("diagnosis_run", "ws_connection")} == {
        table: found for table, found in alices_rows(world).items() if table in ("diagnosis_run", "ws_connection")
    }
    assert world.frames(ALICE) == []


@pytest.mark.parametrize("action", ["chat", "cancel", "history"])
async def test_after_its_end_a_connection_is_nobodys(world: World, action: str) -> None:
    """Not even one that was alice's: it is refused like one that never was."""
    await begun(world, "SUCCESS")
    await world.invoke("disconnect", event("disconnect", ALICE))
    asked: dict[str, Json] = {
        "chat": {"action": "chat", "requestId": REQUEST, "query": QUERY},
        "cancel": {"action": "cancel", "runId": RUN},
        "history": {"action": "history", "sessionId": SESSION},
    }
    for connection in (ALICE, "never="):
        assert await world.invoke(action, event(EVENTS[action], connection, body=asked[action])) == OK
    assert world.frames(ALICE) == world.frames("never=")
    assert world.frames(ALICE)[0]["code"] == "UNAUTHENTICATED"


# Races ---------------------------------------------------------------------------------------------


async def test_who_loses_the_race_for_a_session_hears_what_everybody_hears(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have seen that there is no such session; then alice's is stored first."""
    start: Callable[[SqlRunStore, NewRun], Awaitable[StartResult]] = SqlRunStore.start

    async def overtaken(store: SqlRunStore, run: NewRun) -> StartResult:
        if run.owner == "mallory":
            assert await start(store, ALICES) == StartResult()
        return await start(store, run)

    with monkeypatch.context() as patch:
        patch.setattr(SqlRunStore, "start", overtaken)
        lost = await tell(world, "chat", requestId="m1", sessionId=SESSION, query="of mallory")
    rows = alices_rows(world)
    late = await tell(world, "chat", requestId="m2", sessionId=SESSION, query="of mallory")
    assert lost.frames == late.frames
    assert lost.frames[0]["code"] == "SESSION_NOT_FOUND"
    assert [row["owner"] for row in rows["diagnosis_run"]] == ["alice"]
    assert world.rows("SELECT * FROM diagnosis_run") == rows["diagnosis_run"]


@pytest.mark.parametrize("same_request", [True, False])
async def test_of_two_who_claim_a_session_at_once_one_gets_it(database_url: str, same_request: bool) -> None:
    with contextlib.closing(Database(database_url)) as first, contextlib.closing(Database(database_url)) as second:
        for number in range(8):
            session = f"claimed-{number}"
            alices = replace(ALICES, run_id=f"a{number}", session_id=session, request_id=f"r{number}")
            mallorys = replace(alices, run_id=f"m{number}", owner="mallory")
            if not same_request:
                mallorys = replace(mallorys, request_id=f"m{number}", query="of mallory")
            results = await asyncio.gather(
                SqlRunStore(first).start(alices), SqlRunStore(second).start(mallorys), return_exceptions=True
            )
            assert {type(result) for result in results} == {SessionNotFound, StartResult}
            won = ("alice", "mallory")[results.index(StartResult())]
            assert await _owners(first, session) == [(won, won)]


async def _owners(database: Database, session_id: str) -> list[tuple[str, str]]:
    statement = "SELECT s.owner, r.owner FROM chat_session s LEFT JOIN diagnosis_run r USING (session_id)"
    return await database.read(
        lambda connection: [
            (row[0], row[1])
            for row in connection.exec_driver_sql(f"{statement} WHERE s.session_id = '{session_id}'").all()
        ]
    )


@pytest.mark.spec("SEC-5")
@pytest.mark.parametrize("principal", ["alice ", " alice", "alice\t", " "])
async def test_no_principal_is_another_one_with_a_space(world: World, principal: str) -> None:
    """MySQL compares without trailing spaces: to its unique keys such a principal would be alice."""
    assert await world.invoke("connect", event("connect", "odd=", principal=principal)) == {"statusCode": 401}
    assert [row for row in world.rows("SELECT * FROM ws_connection") if row["connection_id"] == "odd="] == []


@pytest.mark.parametrize("principal", ["Alice", "ALICE", "alicé", "ａlice", "alice\u200b"])
async def test_principals_that_look_alike_are_two(world: World, principal: str) -> None:
    await world.connect("like=", principal)
    await begun(world, "SUCCESS")
    asked = {"action": "chat", "requestId": REQUEST, "query": "another question"}
    assert await world.invoke("chat", event("chat", "like=", request="g2", body=asked)) == OK
    assert world.frames("like=")[-1]["type"] == "done"
    world.client.received.clear()
    assert await world.invoke("history", event("history_sessions", "like=")) == OK
    assert QUERY not in str(world.frames("like="))
