"""Every function by its event, as the platform calls it: on a real database, with a connection API and a model server
that record what they are sent. Only Lambda and API Gateway are missing."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from sqlalchemy import text

from superbizagent import bootstrap, settings
from superbizagent.adapters.store import Database, SqlCancelRequests, SqlConnections
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.adapters.system_clock import SystemClock
from superbizagent.application.cancellation import CancelUseCase
from superbizagent.application.connections import ConnectionUseCase
from superbizagent.errors import ConfigurationError, StoreError
from superbizagent.ports import NewRun
from tests.http_stub import Received, Reply
from tests.invocations import (
    CONNECTION,
    CONTENT,
    EVENTS,
    FUNCTIONS,
    OK,
    Json,
    World,
    event,
    fresh_process,
    world_on,
)
from tests.settings_read import environments


@pytest.fixture
async def world(sqlite_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    async with world_on(sqlite_database, tmp_path, monkeypatch) as world:
        yield world


def everything(caplog: pytest.LogCaptureFixture) -> str:
    """All that was logged: messages, extras and tracebacks."""
    formatter = logging.Formatter()
    return "\n".join(f"{vars(record)} {formatter.format(record)}" for record in caplog.records)


# Connections ---------------------------------------------------------------------------------------


@pytest.mark.spec("SEC-5", "ISO-2")
async def test_a_connection_is_its_principals(world: World) -> None:
    assert await world.invoke("connect", event("connect")) == OK
    [row] = world.rows("SELECT connection_id, principal FROM ws_connection")
    assert row == {"connection_id": CONNECTION, "principal": "alice"}
    # The gateway answers 410 until $connect has returned.
    assert world.client.received == []


@pytest.mark.spec("SEC-5")
async def test_nobody_connects_without_a_principal(world: World) -> None:
    assert await world.invoke("connect", event("connect_unauthenticated")) == {"statusCode": 401}
    assert world.rows("SELECT * FROM ws_connection") == []


@pytest.mark.spec("SEC-5")
async def test_no_variable_makes_a_principal(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEVELOPMENT_PRINCIPAL", "PRINCIPAL", "AUTH_PRINCIPAL"):
        monkeypatch.setenv(name, "local")
    assert await world.invoke("connect", event("connect_unauthenticated")) == {"statusCode": 401}
    assert world.rows("SELECT * FROM ws_connection") == []


@pytest.mark.parametrize(
    ("offered", "selected"),
    [
        (["superbizagent, bearer.a.b.c"], "superbizagent"),
        (["bearer.a.b.c", "superbizagent"], "superbizagent"),
        (["other"], None),
        (["bearer.a.b.c"], None),
    ],
)
async def test_the_handshake_selects_our_subprotocol_and_never_the_token(
    world: World, offered: list[str], selected: str | None
) -> None:
    connecting = event("connect")
    connecting["multiValueHeaders"]["sec-websocket-protocol"] = offered
    answer = await world.invoke("connect", connecting)
    assert answer == OK if selected is None else OK | {"headers": {"Sec-WebSocket-Protocol": selected}}


async def test_connecting_and_disconnecting_may_be_delivered_twice(world: World) -> None:
    for _ in range(2):
        assert await world.invoke("connect", event("connect")) == OK
    assert len(world.rows("SELECT * FROM ws_connection")) == 1
    for _ in range(2):
        assert await world.invoke("disconnect", event("disconnect")) == OK
    assert world.rows("SELECT * FROM ws_connection") == []
    assert world.rows("SELECT connection_id, reason FROM run_cancel") == [
        {"connection_id": CONNECTION, "reason": "CLIENT_DISCONNECT"}
    ]


async def test_an_old_connections_end_leaves_the_new_one_alone(world: World) -> None:
    await world.connect("old=")
    await world.connect("new=")
    await world.invoke("disconnect", event("disconnect", "old="))
    assert await world.chat("new=") == OK
    assert world.frames("new=")[-1]["type"] == "done"


# Chat ----------------------------------------------------------------------------------------------


@pytest.mark.spec("LIFE-2", "LIFE-4", "WIRE-2", "OBS-1")
@pytest.mark.parametrize("name", ["chat", "chat_proxy"])
async def test_a_question_is_answered_in_frames_and_stored(world: World, name: str) -> None:
    await world.connect()

    assert json.dumps(await world.invoke("chat", event(name))) == '{"statusCode": 200}'

    frames = world.frames()
    [row] = world.rows("SELECT * FROM diagnosis_run")
    ids = {"sessionId": row["session_id"], "runId": row["run_id"], "requestId": "question-1"}
    assert frames == [
        {**ids, "seq": 1, "type": "started"},
        {**ids, "seq": 2, "type": "status", "code": "ROUTING"},
        {**ids, "seq": 3, "type": "status", "code": "ROUTED", "intent": "SYSTEM_CHAT"},
        {**ids, "seq": 4, "type": "status", "code": "ANSWERING"},
        {**ids, "seq": 5, "type": "content", "contentType": "SYSTEM_CHAT", "content": CONTENT},
        {**ids, "seq": 6, "type": "done", "outcome": "SUCCESS"},
    ]
    assert (row["status"], row["release_outcome"], row["intent"]) == ("SUCCESS", "SUCCESS", "SYSTEM_CHAT")
    assert (row["query"], row["owner"], row["connection_id"]) == ("What can you do?", "alice", CONNECTION)
    assert (row["model_calls"], row["tokens"], row["tool_calls"]) == (2, 14, 0)
    assert json.loads(row["content"]) == CONTENT
    assert row["published_result"] is None
    assert len(world.model.received) == 2


@pytest.mark.spec("LIFE-6")
async def test_the_platforms_redelivery_is_silent_and_costs_nothing(world: World) -> None:
    await world.connect()
    for _ in range(3):
        assert await world.invoke("chat", event("chat")) == OK
    assert [frame["type"] for frame in world.frames()].count("done") == 1
    assert len(world.client.received) == 6
    assert len(world.model.received) == 2
    assert len(world.rows("SELECT * FROM diagnosis_run")) == 1


@pytest.mark.spec("LIFE-6")
async def test_a_resend_gets_the_stored_answer_again_on_its_new_connection(world: World) -> None:
    await world.connect()
    await world.chat(request="g1")
    await world.invoke("disconnect", event("disconnect"))
    await world.connect("again=")

    await world.chat("again=", request="g2")

    first, again = world.frames(), world.frames("again=")
    assert [frame["type"] for frame in again] == ["started", "content", "done"]
    assert [frame["seq"] for frame in again] == [1, 2, 3]
    assert all(frame["replayed"] is True for frame in again)
    assert {frame["runId"] for frame in again} == {first[0]["runId"]}
    assert again[1]["content"] == CONTENT
    assert len(world.rows("SELECT * FROM diagnosis_run")) == 1
    assert len(world.model.received) == 2


@pytest.mark.spec("LIFE-6")
async def test_a_request_id_stands_for_one_question(world: World) -> None:
    await world.connect()
    await world.chat(request="g1")
    before = len(world.client.received)
    await world.chat(request="g2", query="Another question")
    [refusal] = world.frames()[before:]
    assert (refusal["type"], refusal["code"], refusal["requestId"]) == ("error", "REQUEST_CONFLICT", "question-1")
    assert "runId" not in refusal
    assert len(world.rows("SELECT * FROM diagnosis_run")) == 1


@pytest.mark.spec("LIFE-1")
async def test_a_session_goes_on(world: World) -> None:
    await world.connect()
    await world.chat(request="g1", sessionId="my-session")
    await world.chat(request="g2", sessionId="my-session", requestId="question-2")
    rows = world.rows("SELECT session_id, request_id FROM diagnosis_run ORDER BY id")
    assert [row["session_id"] for row in rows] == ["my-session"] * 2
    assert world.rows("SELECT message_pairs FROM chat_session") == [{"message_pairs": 2}]


@pytest.mark.spec("ISO-2")
async def test_another_principals_session_does_not_exist(world: World) -> None:
    await world.connect()
    await world.chat(sessionId="my-session", query="secret of alice")
    await world.connect("mallory=", "mallory")

    await world.chat("mallory=", request="g2", requestId="m1", sessionId="my-session")
    asked = {"action": "history", "sessionId": "my-session"}
    await world.invoke("history", event("history_turns", "mallory=", body=asked))
    never = {"action": "history", "sessionId": "never-there"}
    await world.invoke("history", event("history_turns", "mallory=", body=never))
    await world.invoke("history", event("history_sessions", "mallory="))

    first, second, third, *sessions = world.frames("mallory=")
    assert (first["code"], first["requestId"]) == ("SESSION_NOT_FOUND", "m1")
    # Just what is said of one that never was: only the id that was asked for comes back.
    assert second == third | {"sessionId": "my-session"}
    assert second["code"] == "SESSION_NOT_FOUND"
    assert [frame.get("sessions") for frame in sessions] == [[], None]
    assert "alice" not in json.dumps(world.frames("mallory="))
    assert len(world.rows("SELECT * FROM diagnosis_run")) == 1


@pytest.mark.spec("ISO-2", "LIFE-6")
async def test_two_principals_may_choose_the_same_request_id(world: World) -> None:
    await world.connect()
    await world.connect("bob=", "bob")
    await world.chat(request="g1", query="of alice")
    await world.chat("bob=", request="g2", query="of bob")
    assert world.frames("bob=")[-1]["type"] == "done"
    assert "replayed" not in world.frames("bob=")[0]
    assert len(world.rows("SELECT * FROM diagnosis_run")) == 2


@pytest.mark.spec("SEC-5")
@pytest.mark.parametrize("function", ["chat", "cancel", "history"])
async def test_a_connection_that_was_never_registered_is_served_nothing(world: World, function: str) -> None:
    name = "history_sessions" if function == "history" else function
    assert await world.invoke(function, event(name)) == OK
    [refusal] = world.frames()
    assert (refusal["type"], refusal["code"]) == ("error", "UNAUTHENTICATED")
    assert world.rows("SELECT * FROM diagnosis_run") == []
    assert world.model.received == []


@pytest.mark.spec("WIRE-3")
@pytest.mark.parametrize(
    ("body", "code", "named"),
    [
        ("hi", "MALFORMED_REQUEST", None),
        ("[" * 1000 + "]" * 1000, "MALFORMED_REQUEST", None),
        ('{"action":"chat","requestId":"q1","query":"\\ud83d oops"}', "MALFORMED_REQUEST", None),
        ({"action": "chat", "requestId": "q1"}, "MALFORMED_REQUEST", "q1"),
        ({"action": "chat", "requestId": "q1", "query": " "}, "INVALID_QUERY", "q1"),
        ({"action": "chat", "requestId": "q1", "query": "x" * 8001}, "INVALID_QUERY", "q1"),
        ({"action": "chat", "requestId": "q1", "query": "q", "sessionId": "a b"}, "INVALID_SESSION_ID", "q1"),
        ({"action": "cancel", "runId": "r1"}, "UNKNOWN_ACTION", None),
    ],
)
async def test_what_is_no_question_gets_one_error_and_no_run(
    world: World, body: object, code: str, named: str | None
) -> None:
    await world.connect()
    assert await world.invoke("chat", event("chat", body=body)) == OK
    [refusal] = world.frames()
    assert (refusal["type"], refusal["code"], refusal.get("requestId")) == ("error", code, named)
    assert world.rows("SELECT * FROM diagnosis_run") == []
    assert world.rows("SELECT * FROM chat_session") == []


@pytest.mark.spec("ROUTE-4", "LIFE-5")
async def test_a_failing_model_is_a_failed_run_in_our_words(
    world: World, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    await world.connect()
    world.model.script(Reply({"error": {"message": "vendor-canary at gpu-7.internal"}}, 503))
    with caplog.at_level(logging.DEBUG, "superbizagent"):
        assert await world.chat() == OK
    assert (world.frames()[-1]["type"], world.frames()[-1]["code"]) == ("error", "ROUTING_UNAVAILABLE")
    [row] = world.rows("SELECT status, release_outcome, failure_code, content FROM diagnosis_run")
    assert row == {
        "status": "FAILED",
        "release_outcome": "FAILED",
        "failure_code": "ROUTING_UNAVAILABLE",
        "content": None,
    }
    # Two attempts of the router, each one request: nobody else retries.
    assert len(world.model.received) == 2
    output = capfd.readouterr()
    said = json.dumps(world.frames()) + everything(caplog) + output.out + output.err
    assert "canary" not in said
    assert "internal" not in said


@pytest.mark.spec("BUDGET-4", "LIFE-8")
async def test_a_run_ends_before_its_process_does(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERMINAL_RESERVE_SECONDS", "2")
    await world.connect()
    world.model.answer = lambda _: _never()
    loop = asyncio.get_running_loop()
    started = loop.time()
    asked = event("chat")
    assert await world.invoke("chat", asked, remaining=3.0) == OK
    assert loop.time() - started < 3.0
    [row] = world.rows("SELECT status, failure_code FROM diagnosis_run")
    assert row["status"] == "FAILED"
    assert world.frames()[-1]["type"] == "error"
    assert world.frames()[-1]["code"] == row["failure_code"]


async def _never() -> Reply:
    await asyncio.Event().wait()
    raise AssertionError


# The end that somebody asks for --------------------------------------------------------------------


def _cancels(database: Database) -> CancelUseCase:
    return CancelUseCase(SqlCancelRequests(database), SystemClock())


def _connections(database: Database) -> ConnectionUseCase:
    return ConnectionUseCase(SqlConnections(database), SqlCancelRequests(database), SystemClock())


@pytest.mark.spec("CANCEL-2", "CANCEL-3")
async def test_a_cancelled_run_says_so_while_the_socket_stays_open(world: World) -> None:
    """The cancel row comes from another process, while the model is being waited for."""
    await world.connect()

    async def cancel_meanwhile() -> Reply:
        await _cancels(world.database).cancel(world.frames()[0]["runId"], "alice")
        return await _never()

    world.model.answer = lambda _: cancel_meanwhile()
    assert await world.chat() == OK
    assert [frame["type"] for frame in world.frames()] == ["started", "status", "cancelled"]
    assert [frame["seq"] for frame in world.frames()] == [1, 2, 3]
    assert world.rows("SELECT status, release_outcome, content FROM diagnosis_run") == [
        {"status": "CANCELLED", "release_outcome": "CANCELLED", "content": None}
    ]


@pytest.mark.spec("CANCEL-1", "CANCEL-2")
async def test_a_disconnect_ends_the_connections_run(world: World) -> None:
    await world.connect()

    async def disconnect_meanwhile() -> Reply:
        world.gone.add(CONNECTION)
        await _connections(world.database).disconnect(CONNECTION)
        return await _never()

    world.model.answer = lambda _: disconnect_meanwhile()
    assert await world.chat() == OK
    assert world.rows("SELECT status FROM diagnosis_run") == [{"status": "CANCELLED"}]


@pytest.mark.spec("CANCEL-1")
async def test_a_question_of_a_connection_that_ended_meanwhile_is_not_begun(world: World) -> None:
    """Asynchronous invocation: the connection may have ended before the function starts."""
    await world.connect()
    await SqlCancelRequests(world.database).cancel_connection(CONNECTION, SystemClock().now())
    assert await world.chat() == OK
    assert world.rows("SELECT status FROM diagnosis_run") == [{"status": "CANCELLED"}]
    assert world.model.received == []


@pytest.mark.spec("OBS-2")
@pytest.mark.parametrize("delivered", [0, 1, 3])
async def test_a_client_that_is_gone_is_posted_to_once_more_at_most(
    world: World, delivered: int, caplog: pytest.LogCaptureFixture
) -> None:
    await world.connect()

    def answer(_: Received) -> Reply:
        return Reply({}, 410 if len(world.client.received) > delivered else 200)

    world.client.answer = answer
    with caplog.at_level(logging.INFO, "superbizagent"):
        assert await world.chat() == OK
    assert len(world.client.received) == delivered + 1
    assert world.rows("SELECT status FROM diagnosis_run") == [{"status": "CANCELLED"}]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.spec("LIFE-4")
async def test_an_answer_whose_client_left_at_the_end_is_stored(world: World) -> None:
    await world.connect()
    world.client.answer = lambda _: Reply({}, 410 if len(world.client.received) > 4 else 200)
    assert await world.chat() == OK
    assert len(world.client.received) == 5
    assert world.rows("SELECT release_outcome FROM diagnosis_run") == [{"release_outcome": "SUCCESS"}]


async def _running(world: World, run_id: str, owner: str) -> None:
    now = SystemClock().now()
    await SqlRunStore(world.database).start(
        NewRun(
            run_id=run_id,
            session_id=f"session-of-{run_id}",
            owner=owner,
            request_id=run_id,
            gateway_request_id=run_id,
            connection_id="elsewhere=",
            query="why?",
            created_at=now - timedelta(minutes=30),
            deadline_at=now + timedelta(minutes=1),
        )
    )


@pytest.mark.spec("CANCEL-3")
async def test_cancelling_a_run_of_ones_own_is_a_row_and_no_frame(world: World) -> None:
    await world.connect()
    await _running(world, "r1", "alice")
    for _ in range(2):
        assert await world.invoke("cancel", event("cancel", body={"action": "cancel", "runId": "r1"})) == OK
    assert world.rows("SELECT run_id, reason FROM run_cancel") == [{"run_id": "r1", "reason": "CLIENT_REQUEST"}]
    # The run itself sends the frame that confirms it.
    assert world.frames() == []


@pytest.mark.spec("CANCEL-3", "ISO-2")
async def test_another_principals_run_does_not_exist(world: World) -> None:
    await world.connect()
    await _running(world, "r1", "bob")
    for run_id in ("r1", "never-there"):
        assert await world.invoke("cancel", event("cancel", body={"action": "cancel", "runId": run_id})) == OK
    foreign, unknown = world.frames()
    assert foreign == unknown
    assert (foreign["type"], foreign["code"]) == ("error", "RUN_NOT_FOUND")
    assert world.rows("SELECT * FROM run_cancel") == []


@pytest.mark.spec("CANCEL-3")
async def test_cancelling_a_run_that_has_ended_changes_nothing(world: World) -> None:
    await world.connect()
    await world.chat()
    before = world.frames()
    cancel = {"action": "cancel", "runId": before[0]["runId"]}
    assert await world.invoke("cancel", event("cancel", body=cancel)) == OK
    assert world.frames() == before
    assert world.rows("SELECT status FROM diagnosis_run") == [{"status": "SUCCESS"}]


# History -------------------------------------------------------------------------------------------


@pytest.mark.spec("WIRE-5")
async def test_history_gives_back_sessions_and_turns_as_they_were_shown(world: World) -> None:
    await world.connect()
    for number in range(3):
        asked = {"requestId": f"q{number}", "query": f"question {number} 支付"}
        await world.chat(request=f"g{number}", sessionId="s1", **asked)
    shown = [frame["content"] for frame in world.frames() if frame["type"] == "content"]
    await world.connect("reloaded=")

    await world.invoke("history", event("history_sessions", "reloaded="))
    sessions, end = world.frames("reloaded=")
    [entry] = sessions["sessions"]
    assert (entry["sessionId"], entry["messagePairs"]) == ("s1", 3)
    assert end == {"type": "history", "kind": "end"}

    world.client.received.clear()
    page = {"action": "history", "sessionId": "s1", "limit": 2}
    await world.invoke("history", event("history_turns", "reloaded=", body=page))
    *turns, end = world.frames("reloaded=")
    assert [frame["turn"]["query"] for frame in turns] == ["question 1 支付", "question 2 支付"]
    assert [frame["turn"]["content"] for frame in turns] == shown[1:]
    assert turns[0]["turn"]["outcome"] == "SUCCESS"
    assert end == {"type": "history", "kind": "end", "sessionId": "s1", "before": turns[0]["turn"]["runId"]}

    world.client.received.clear()
    rest = {**page, "before": end["before"]}
    await world.invoke("history", event("history_turns", "reloaded=", body=rest))
    *turns, end = world.frames("reloaded=")
    assert [frame["turn"]["query"] for frame in turns] == ["question 0 支付"]
    assert end == {"type": "history", "kind": "end", "sessionId": "s1"}


@pytest.mark.spec("WIRE-5")
async def test_the_histories_of_the_event_files(world: World) -> None:
    await world.connect()
    await world.chat(sessionId="0123456789abcdef0123456789abcdef")
    world.client.received.clear()
    await world.invoke("history", event("history_turns"))
    turn, end = world.frames()
    assert turn["turn"]["content"] == CONTENT
    assert end["kind"] == "end"


# Everything else -----------------------------------------------------------------------------------


@pytest.mark.spec("WIRE-3")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (None, "MALFORMED_REQUEST"),
        ("", "MALFORMED_REQUEST"),
        ("[]", "MALFORMED_REQUEST"),
        ("null", "MALFORMED_REQUEST"),
        ("123", "MALFORMED_REQUEST"),
        ('{"action":null}', "MALFORMED_REQUEST"),
        ('{"action":{"a":1}}', "MALFORMED_REQUEST"),
        ('{"Action":"chat"}', "MALFORMED_REQUEST"),
        ("[" * 1000 + "]" * 1000, "MALFORMED_REQUEST"),
        ('{"action":"$connect"}', "UNKNOWN_ACTION"),
        ('{"action":"nope"}', "UNKNOWN_ACTION"),
        # What the gateway routes here nevertheless is not served here.
        ('{"action":"cancel","runId":"r1"}', "UNKNOWN_ACTION"),
        ('{"action":"chat","requestId":"q","query":"q"}', "UNKNOWN_ACTION"),
    ],
)
async def test_what_no_route_takes_gets_one_error_and_costs_no_database(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str | None, code: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/no/such/folder/x.db")
    asked = event("default") if body is None else event("default", body=body)
    assert await world.invoke("default", asked) == OK
    [refusal] = world.frames()
    assert (refusal["type"], refusal["code"]) == ("error", code)


async def _first_frame_after(world: World, function: str, name: str) -> Json:
    assert await world.invoke(function, event(name)) == OK
    [frame] = world.frames()
    world.client.received.clear()
    return frame


@pytest.mark.spec("LIFE-4", "SEC-4")
async def test_without_a_database_clients_are_told_and_the_platform_is_not(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/no/canary/folder/x.db")
    with caplog.at_level(logging.DEBUG, "superbizagent"):
        for function, name in [("chat", "chat"), ("cancel", "cancel"), ("history", "history_turns")]:
            frame = await _first_frame_after(world, function, name)
            assert (frame["type"], frame["code"]) == ("error", "STORE_UNAVAILABLE")
        assert await world.invoke("connect", event("connect")) == {"statusCode": 503}
        assert await world.invoke("disconnect", event("disconnect")) == {"statusCode": 503}
    output = capfd.readouterr()
    assert "canary" not in everything(caplog) + output.out + output.err
    # Nobody else would hear of a sweep that did not happen.
    with pytest.raises(StoreError):
        await world.invoke("sweep", json.loads((EVENTS / "sweep.json").read_text()))


@pytest.mark.spec("LIFE-4")
async def test_a_database_that_breaks_before_the_run_starts_publishes_nothing(world: World) -> None:
    await world.connect()
    with world.database.engine.begin() as connection:
        connection.execute(text("ALTER TABLE diagnosis_run RENAME TO elsewhere"))
    frame = await _first_frame_after(world, "chat", "chat")
    assert (frame["type"], frame["code"], frame["requestId"]) == ("error", "RUN_PERSISTENCE_FAILED", "question-1")
    assert world.model.received == []


@pytest.mark.spec("LIFE-4")
async def test_an_answer_that_can_not_be_stored_is_not_shown(world: World) -> None:
    await world.connect()

    def break_then_answer(call: Received) -> Reply:
        if "response_format" not in call.json:
            with world.database.engine.begin() as connection:
                connection.execute(text("ALTER TABLE diagnosis_run RENAME COLUMN content TO elsewhere"))
        return world.answer_as_model(call)

    world.model.answer = break_then_answer
    assert await world.chat() == OK
    assert (world.frames()[-1]["type"], world.frames()[-1]["code"]) == ("error", "RUN_PERSISTENCE_FAILED")
    assert "content" not in [frame["type"] for frame in world.frames()]


@pytest.mark.parametrize("name", ["DATABASE_URL", "CONNECTIONS_ENDPOINT"])
async def test_a_setting_without_which_nobody_can_be_told_fails_the_invocation_by_name(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "")
    with pytest.raises(ConfigurationError, match=f"^{name} is not set"):
        await world.chat()
    assert world.client.received == []


@pytest.mark.parametrize("name", ["OPENAI_MODEL", "OPENAI_API_KEY"])
async def test_a_setting_that_is_missing_is_named_to_the_operator_only(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    await world.connect()
    monkeypatch.setenv(name, "")
    assert await world.chat() == OK
    [frame] = world.frames()
    assert (frame["type"], frame["code"]) == ("error", "CONFIGURATION_ERROR")
    assert name not in json.dumps(frame)
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert f"{name} is not set" in str(vars(record))


async def test_functions_read_the_settings_that_their_code_shows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests of the template are told by the code is what happens."""
    read: set[type[BaseModel]] = set()

    def noted(shape: type[Any]) -> Any:
        read.add(shape)
        return settings.read(shape)

    monkeypatch.setattr(bootstrap, "read", noted)
    await world.connect()
    for function in sorted(FUNCTIONS, key="disconnect".__eq__):  # which forgets the connection
        await asyncio.to_thread(fresh_process)
        read.clear()
        name = "history_sessions" if function == "history" else function
        await world.invoke(function, json.loads((EVENTS / f"{name}.json").read_text()))
        told = environments()[function].shapes
        # Every function would read how long to wait for work that goes on after its event.
        assert read <= told <= read | {settings.RunSettings}, function


@pytest.mark.spec("LIFE-7")
async def test_the_sweep_ends_what_was_abandoned_once(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    await _running(world, "r1", "alice")
    with world.database.engine.begin() as connection:
        connection.execute(text("UPDATE diagnosis_run SET deadline_at = '2026-01-01 00:00:00.000000'"))
    scheduled = json.loads((EVENTS / "sweep.json").read_text())
    assert await world.invoke("sweep", scheduled) == {"runs": 1, "connections": 0}
    assert await world.invoke("sweep", scheduled) == {"runs": 0, "connections": 0}
    assert world.rows("SELECT status, failure_code FROM diagnosis_run") == [
        {"status": "FAILED", "failure_code": "RUN_ABANDONED"}
    ]
    metrics = [json.loads(line) for line in capfd.readouterr().out.splitlines() if "_aws" in line]
    assert [metric["RunsAbandoned"] for metric in metrics if "RunsAbandoned" in metric] == [[1.0]]
    assert [metric["Sweeps"] for metric in metrics if "Sweeps" in metric] == [[1.0], [1.0]]


@pytest.mark.spec("SEC-4")
async def test_what_is_logged_and_counted_has_ids_and_codes_only(
    world: World, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    await world.connect()
    caplog.set_level(logging.INFO, "superbizagent")
    await world.chat(query="canary-query of alice")
    await world.chat(request="g2", query="canary-query, another one")
    await world.invoke("chat", event("chat", body='{"action":"chat","query":"canary-query"}'))
    await world.invoke("default", event("default", body="canary-query"))
    await world.invoke("history", event("history_sessions"))
    await world.invoke("disconnect", event("disconnect"))

    output = capfd.readouterr()
    said = everything(caplog) + output.out + output.err
    assert "canary" not in said
    assert CONTENT["text"] not in said
    # And the run can be followed by its id.
    assert said.count(world.frames()[0]["runId"]) >= 2
    metrics = [json.loads(line) for line in output.out.splitlines() if "_aws" in line]
    counted = [metric["_aws"]["CloudWatchMetrics"][0]["Metrics"][0]["Name"] for metric in metrics]
    of_messages = [name for name in counted if name in ("Runs", "MessagesRefused", "MessagesRepeated")]
    assert of_messages == ["Runs", "MessagesRefused", "MessagesRefused"]


@pytest.mark.spec("CANCEL-4")
async def test_nothing_runs_on_when_a_function_has_returned(world: World) -> None:
    await world.connect()
    await world.chat()
    loop = bootstrap._runner().get_loop()
    assert asyncio.all_tasks(loop) == set()
    before = threading.active_count()
    await world.chat(request="g2", requestId="question-2")
    assert asyncio.all_tasks(loop) == set()
    assert threading.active_count() <= before + 2
