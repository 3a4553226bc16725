"""Routes that return at once, mapping templates, retries, schedules."""

import base64
import json
from typing import Any

import pytest

from tests.integration.gateway.support import Start, ask, hear, hears_nothing_else, until
from tests.integration.gateway.virtual_clock import VirtualClock

HOSTILE = [
    'He said "hi" and \\ left',
    "$foo ${bar} $context.connectionId $input.body $!x",
    "#set($a = 1) #if(true) ## comment #* block *# #end #stop",
    "line\nbreak\r\n\ttab\u2028",
    "4-byte 😀𝔘 and \x00 control",
    '", "requestContext": {"connectionId": "other"}, "x": "',
]


async def test_hostile_bodies_are_data_to_a_mapping_template(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        bodies = [json.dumps({"action": "chat", "text": text}, ensure_ascii=False) for text in HOSTILE]
        for body in bodies:
            await socket.send(body)
            assert (await hear(socket))["length"] == len(body)
            await hear(socket)
        events = running.events("ChatFunction")
        assert [base64.b64decode(event["body"]).decode() for event in events] == bodies
        assert {event["requestContext"]["connectionId"] for event in events} == set(running.gateway.connection_ids)


async def test_a_mapping_template_builds_the_event(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        await ask(socket, "chat")
        (event,) = await running.wait_for_events("ChatFunction")
        context = event["requestContext"]
        assert context["connectionId"] == running.gateway.connection_ids[0]
        assert (context["routeKey"], context["stage"]) == ("chat", "v1")
        assert context["authorizer"] == {"principalId": ""}
        assert (event["colour"], event["missing"]) == ("blue", "")
        assert event["isBase64Encoded"] is True


async def test_a_mapped_answer_is_the_whole_output_of_the_function(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        value = {"a": [1, None, True, "ü"], "b": '"'}
        assert await ask(socket, "mapped", value=value, text='say "$x" #end') == {
            "mapped": value,
            "escaped": 'say "$x" #end',
        }


@pytest.mark.parametrize("action", ["mapped", "unmapped"])
async def test_a_template_that_fails_is_an_internal_server_error(
    start: Start, caplog: pytest.LogCaptureFixture, action: str
) -> None:
    async with start() as running, running.socket() as socket:
        # escapeJavaScript writes ' as \\', which is not JSON: as on AWS.
        frame = await ask(socket, action, value=1, text="it's")
        assert frame["message"] == "Internal server error"
        assert "template" in caplog.text
        assert running.events("WorkFunction") == []


async def test_a_failed_event_is_not_delivered_again(start: Start) -> None:
    """Hazard P019: with MaximumRetryAttempts 0."""
    clock = VirtualClock()
    async with start(clock) as running, running.socket() as socket:
        await socket.send('{"action":"chat","do":"fail"}')
        await running.wait_for_events("ChatFunction")
        await until(lambda: running.children("ChatFunction")[0].state == "idle")
        for _ in range(10):
            await clock.advance(100)
            await (await socket.ping())
        assert await hears_nothing_else(socket)
        assert len(running.events("ChatFunction")) == 1


async def test_retries_of_the_template_are_made_after_one_and_two_minutes(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    clock = VirtualClock()
    async with start(clock, parameter_overrides={"Retries": "2"}) as running, running.socket() as socket:
        await socket.send('{"action":"chat","do":"fail"}')
        for attempt, (early, late) in enumerate([(59, 2), (119, 2)], start=1):
            await running.wait_for_events("ChatFunction", attempt)
            await until(lambda: running.children("ChatFunction")[0].state == "idle")
            await clock.advance(early)
            assert len(running.events("ChatFunction")) == attempt
            await clock.advance(late)
        await running.wait_for_events("ChatFunction", 3)
        await until(lambda: "failed 3 time(s)" in caplog.text)


async def test_an_event_that_waits_too_long_is_dropped(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    async with start(clock, max_concurrency=1) as running:
        gateway = running.gateway
        first = json.dumps({"body": json.dumps({"do": "wait", "gate": "gate"})}).encode()
        await gateway.send_event("PatientFunction", first)
        await running.wait_for_events("PatientFunction")
        request_id = await gateway.send_event("PatientFunction", b'{"second": true}')
        await clock.advance(59)
        await clock.advance(2)
        assert f"PatientFunction {request_id} dropped" in caplog.text
        await gateway.send_event("PatientFunction", b'{"third": true}')
        running.open_gate("gate")
        events = await running.wait_for_events("PatientFunction", 2)
        assert events[1] == {"third": True}


async def test_schedules_fire_after_each_period(start: Start) -> None:
    clock = VirtualClock()
    async with start(clock) as running:
        await clock.advance(299)
        assert running.children("TimerFunction") == []
        await clock.advance(2)
        (event,) = await running.wait_for_events("TimerFunction")
        assert (event["source"], event["detail-type"]) == ("aws.events", "Scheduled Event")
        assert event["detail"] == {}
        assert event["resources"][0].endswith(":rule/TimerFunctionSweep")
        assert set(event) == {
            "version",
            "id",
            "detail-type",
            "source",
            "account",
            "time",
            "region",
            "resources",
            "detail",
        }
        # Step by step: a period is longer than the function's time-out.
        for count in range(2, 12):
            await clock.advance(300)
            await running.wait_for_events("TimerFunction", count)
            await until(lambda: all(child.state == "idle" for child in running.children("TimerFunction")))
        await clock.advance(300)
        events: list[Any] = await running.wait_for_events("TimerFunction", 13)
        assert events.count({"clean": True}) == 1


async def test_schedules_can_be_turned_off(start: Start) -> None:
    clock = VirtualClock()
    async with start(clock, schedules=False) as running:
        await clock.advance(10_000)
        assert running.gateway.children == []
