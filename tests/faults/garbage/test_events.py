"""Garbage handed straight to each function, in the place of the platform's event."""

import base64
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from pydantic import ValidationError

from tests.faults.garbage.contract import judge
from tests.faults.garbage.events import FILES, events_of_a_client, odd_events
from tests.invocations import OK, Json, World, world_on

MESSAGES = ("chat", "cancel", "history", "default")
EVERY = tuple(FILES)


@pytest.fixture
async def world(sqlite_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    async with world_on(sqlite_database, tmp_path, monkeypatch) as world:
        yield world


def made(strategy: SearchStrategy[Any], count: int, number: int) -> list[Any]:
    """So many values, always the same."""
    found: list[Any] = []

    @seed(number)
    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


def tracebacks(caplog: pytest.LogCaptureFixture, output: str) -> list[str]:
    logged = [str(vars(record)) for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]
    return logged + ["printed"] * output.count("Traceback")


def questions(events: Sequence[Json]) -> set[str]:
    """The request ids of those that by the contract are valid questions after all."""
    found = set()
    for asked in events:
        text = base64.b64decode(asked["body"]).decode() if asked["isBase64Encoded"] else asked["body"]
        verdict = judge(text)
        if verdict.valid and verdict.message is not None and verdict.message["action"] == "chat":
            found.add(verdict.message["requestId"])
    return found


@pytest.mark.spec("WIRE-3", "SEC-4")
@pytest.mark.parametrize("function", MESSAGES)
async def test_whatever_a_client_sends_is_answered_by_a_frame(
    world: World, function: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    await world.connect()
    caplog.set_level(logging.INFO)
    events = made(events_of_a_client(function), 60, 7)
    for asked in events:
        world.client.received.clear()
        assert await world.invoke(function, asked) == OK
        assert [frame["type"] for frame in world.frames()][:-1].count("error") == 0
        assert world.frames()[-1]["type"] in ("error", "history", "done")
    runs = {row["request_id"] for row in world.rows("SELECT request_id FROM diagnosis_run")}
    assert runs == (questions(events) if function == "chat" else set())
    assert tracebacks(caplog, "".join(capfd.readouterr())) == []


@pytest.mark.spec("SEC-5", "SEC-4")
async def test_whatever_a_client_s_handshake_says_it_is_let_in_by_its_principal(
    world: World, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    for asked in made(events_of_a_client("connect"), 60, 7):
        authorized = "authorizer" in asked["requestContext"]
        assert await world.invoke("connect", asked) == ({"statusCode": 200} if authorized else {"statusCode": 401})
    assert tracebacks(caplog, "".join(capfd.readouterr())) == []


@pytest.mark.spec("SEC-4")
@pytest.mark.parametrize("function", EVERY)
async def test_an_event_that_is_none_is_answered_or_refused_by_name(
    world: World, function: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """A misconfigured integration is not a client's doing: its invocation may fail, by one error and unquoted."""
    await world.connect()
    caplog.set_level(logging.INFO)
    said: list[str] = []
    for asked in made(odd_events(function), 80, 11):
        try:
            answer = await world.invoke(function, asked)
        except ValidationError as error:
            said.append(str(error))
        else:
            assert answer.keys() == ({"runs", "connections"} if function == "sweep" else {"statusCode"})
    assert "input_value" not in "".join(said)
    assert (said == []) is (function == "sweep")
    if function != "chat":
        assert world.rows("SELECT * FROM diagnosis_run") == []
    assert tracebacks(caplog, "".join(capfd.readouterr())) == []
