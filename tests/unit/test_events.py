"""The events under `events/` and what may be odd about others."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from superbizagent.events import ConnectEvent, DisconnectEvent, MessageEvent

EVENTS = Path(__file__).parents[2] / "events"
CONNECTION = "UlQ6ccZ_FiACJXQ="


def _event(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))
    return event


def _message(**fields: Any) -> MessageEvent:
    context = _event("chat")["requestContext"]
    return MessageEvent.model_validate({"requestContext": context, **fields})


@pytest.mark.spec("SEC-5")
def test_a_connection_has_the_principal_that_its_authorizer_names() -> None:
    event = ConnectEvent.model_validate(_event("connect"))
    assert (event.connection_id, event.principal) == (CONNECTION, "alice")


@pytest.mark.spec("SEC-5")
@pytest.mark.parametrize(
    "authorizer",
    [
        None,
        {},
        {"principalId": ""},
        {"principalId": None},
        {"principalId": 5},
        {"principalId": ["alice"]},
        {"sub": "a"},
    ],
)
def test_without_one_it_has_none(authorizer: object) -> None:
    event = _event("connect")
    event["requestContext"]["authorizer"] = authorizer
    assert ConnectEvent.model_validate(event).principal is None


@pytest.mark.spec("SEC-5")
def test_without_an_authorizer_it_has_none_either() -> None:
    assert ConnectEvent.model_validate(_event("connect_unauthenticated")).principal is None


def test_the_end_of_a_connection() -> None:
    assert DisconnectEvent.model_validate(_event("disconnect")).connection_id == CONNECTION


def test_the_end_of_a_connection_is_heard_whatever_else_is_missing() -> None:
    event = {"requestContext": {"connectionId": CONNECTION, "disconnectReason": None}, "isBase64Encoded": False}
    assert DisconnectEvent.model_validate(event).connection_id == CONNECTION


@pytest.mark.spec("LIFE-6")
def test_both_shapes_of_a_chat_event_say_the_same() -> None:
    mapped, proxy = (MessageEvent.model_validate(_event(name)) for name in ("chat", "chat_proxy"))
    for event in (mapped, proxy):
        assert event.connection_id == CONNECTION
        assert event.gateway_request_id == "UlQ7dE5FliACDxw="
    assert mapped.message == proxy.message
    assert json.loads(mapped.message)["action"] == "chat"


@pytest.mark.parametrize("name", ["cancel", "history_sessions", "history_turns", "default"])
def test_messages_of_the_other_routes(name: str) -> None:
    event = _event(name)
    assert MessageEvent.model_validate(event).message.decode() == event["body"]


@pytest.mark.parametrize("text", ["", "hi", "🫠️ 支付", "a\u0000b", "x" * 131_072])
@pytest.mark.parametrize("flag", [True, "true"])
def test_base64_bodies_come_out_as_they_went_in(text: str, flag: object) -> None:
    assert _message(body=base64.b64encode(text.encode()).decode(), isBase64Encoded=flag).message == text.encode()


@pytest.mark.parametrize("flag", [False, "false"])
def test_plain_bodies_are_taken_as_text(flag: object) -> None:
    assert _message(body="aGk=", isBase64Encoded=flag).message == b"aGk="
    assert _message(body="aGk=").message == b"aGk="


@pytest.mark.spec("WIRE-3")
@pytest.mark.parametrize("body", ["not base64!", "aGk", "aGk=\n", "ä", "\ud83d"])
def test_a_broken_encoding_is_an_empty_message(body: str) -> None:
    assert _message(body=body, isBase64Encoded=True).message == b""


@pytest.mark.spec("WIRE-3")
@pytest.mark.parametrize("fields", [{}, {"body": None}, {"body": ""}, {"body": None, "isBase64Encoded": True}])
def test_no_body_is_an_empty_message(fields: dict[str, Any]) -> None:
    assert _message(**fields).message == b""


def test_unpaired_surrogates_of_the_platform_are_replaced() -> None:
    assert _message(body='{"a":"\ud83d"}').message == b'{"a":"?"}'


@pytest.mark.spec("SEC-4")
@pytest.mark.parametrize(
    "event",
    [
        {"body": "canary"},
        {"requestContext": None, "body": "canary"},
        {"requestContext": {"connectionId": "", "requestId": "r"}, "body": "canary"},
        {"requestContext": {"connectionId": "c"}, "body": "canary"},
        {"requestContext": {"connectionId": "c", "requestId": "r"}, "body": {"text": "canary"}},
        {"requestContext": {"connectionId": "c", "requestId": "r"}, "body": "x", "isBase64Encoded": "canary-"},
        {"requestContext": {"connectionId": {"a": "canary"}, "requestId": "r"}},
    ],
)
def test_an_event_that_is_none_is_refused_without_quoting_it(event: dict[str, Any]) -> None:
    try:
        MessageEvent.model_validate(event)
    except ValidationError as error:
        assert "canary" not in str(error)  # noqa: PT017 - one of these is an event
    else:
        assert event["body"] == "x"


def _deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("identity", [None, {}, {"sourceIp": "fe80::1%eth0"}, {"sourceIp": _deep(5_000)}])
def test_what_nobody_reads_keeps_nobody_out(identity: object) -> None:
    connect, chat = _event("connect"), _event("chat")
    for event in (connect, chat):
        event["requestContext"]["identity"] = identity
    assert ConnectEvent.model_validate(connect).connection_id == CONNECTION
    assert MessageEvent.model_validate(chat).connection_id == CONNECTION


@pytest.mark.parametrize("path", sorted(EVENTS.glob("*.json")), ids=lambda path: path.stem)
def test_every_event_is_for_a_function(path: Path) -> None:
    functions = Path(__file__).parents[2] / "functions"
    assert (functions / path.stem.split("_")[0] / "app.py").exists()
