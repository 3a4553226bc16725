"""Routes, answers and errors of messages."""

import asyncio
import json
from typing import Any

import pytest

from tests.integration.gateway.support import Start, ask, hear, hears_nothing_else, say, until
from tests.integration.gateway.virtual_clock import VirtualClock


def error_frame(frame: Any) -> str:
    """The message of an error frame of the gateway, which carries exactly three keys."""
    assert set(frame) == {"message", "connectionId", "requestId"}
    return str(frame["message"])


async def test_a_route_with_a_route_response_answers_the_client(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        answer = await ask(socket, "work", id=1)
        assert answer == {"pid": answer["pid"], "id": 1, "layer": "layer"}


async def test_without_a_route_response_the_body_stays_in_the_gateway(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        await say(socket, "silent", id=1)
        await running.wait_for_events("WorkFunction")
        assert await hears_nothing_else(socket)


async def test_a_mock_integration_answers_without_a_function(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        assert await ask(socket, "ping") == {"pong": running.gateway.connection_ids[0]}


async def test_message_events_have_the_shape_of_api_gateway(start: Start) -> None:
    async with start() as running, running.socket(user_agent_header="tester") as socket:
        await ask(socket, "work", id=1)
        (event,) = running.events("WorkFunction")
        (connected,) = running.events("ConnectFunction")
        context = event["requestContext"]
        connection_id = running.gateway.connection_ids[0]
        assert json.loads(event["body"]) == {"action": "work", "id": 1}
        assert event["isBase64Encoded"] is False
        assert event["stageVariables"] == {"colour": "blue"}
        assert set(context) == {
            "routeKey",
            "eventType",
            "extendedRequestId",
            "requestTime",
            "messageDirection",
            "stage",
            "connectedAt",
            "requestTimeEpoch",
            "identity",
            "requestId",
            "domainName",
            "connectionId",
            "apiId",
            "messageId",
        }
        assert context["routeKey"] == "work"
        assert context["eventType"] == "MESSAGE"
        assert context["stage"] == "v1"
        assert context["connectionId"] == connection_id == connected["requestContext"]["connectionId"]
        assert context["identity"] == {"sourceIp": "127.0.0.1", "userAgent": "tester"}


NO_ROUTE = [
    "hi",
    "",
    "[]",
    "null",
    "123",
    '{"action":null}',
    '{"action":{"a":1}}',
    '{"action":["work"]}',
    '{"action":"$connect"}',
    '{"action":"$disconnect"}',
    '{"action":"$default"}',
    '{"Action":"work"}',
    '{"action":"nope"}',
    "[" * 1000 + "]" * 1000,
    "[" * 60_000,
    '{"action":' + "9" * 5000 + "}",
    '{"action":"\\ud83d"}',
]


async def test_whatever_names_no_route_reaches_default(start: Start) -> None:
    """Hazard P010: and never $connect or $disconnect."""
    async with start() as running, running.socket() as socket:
        for body in NO_ROUTE:
            await _send_in_fragments(socket, body)
            await hear(socket)
        events = running.events("DefaultFunction")
        assert [event["body"] for event in events] == NO_ROUTE
        assert {event["requestContext"]["routeKey"] for event in events} == {"$default"}
        assert len(running.events("ConnectFunction")) == 1
        assert running.events("DisconnectFunction") == []


async def test_without_default_an_unknown_route_is_forbidden_and_the_socket_stays(start: Start) -> None:
    """Hazard P009."""
    async with start(parameter_overrides={"WithDefault": "false"}) as running, running.socket() as socket:
        frame = await ask(socket, "nope")
        assert error_frame(frame) == "Forbidden"
        assert frame["connectionId"] == running.gateway.connection_ids[0]
        await socket.send("not even JSON")
        assert error_frame(await hear(socket)) == "Forbidden"
        assert (await ask(socket, "work", id=2))["id"] == 2


async def test_the_route_selection_expression_may_name_any_path(start: Start) -> None:
    overrides = {"Selection": "${request.body.meta.kind}"}
    async with start(parameter_overrides=overrides) as running, running.socket() as socket:
        await socket.send('{"meta": {"kind": "work"}, "action": "nope", "id": 3}')
        assert (await hear(socket))["id"] == 3
        await socket.send('{"meta": "work"}')
        await hear(socket)
        assert len(running.events("DefaultFunction")) == 1


async def test_bodies_may_be_base64_and_half_a_surrogate_pair_harms_nobody(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        assert await ask(socket, "work", do="base64") == "é"
        # The runtime client itself can't send such an answer; such a message does reach the function.
        assert (await ask(socket, "work", do="surrogate"))["message"] == "Internal server error"
        await socket.send('{"action": "mapped", "value": "\\ud83d"}')
        assert error_frame(await hear(socket)) == "Internal server error"
        assert running.events("WorkFunction")[-1]["mapped"] == "\ud83d"
        assert (await ask(socket, "work", id=1))["id"] == 1


@pytest.mark.parametrize("do", ["fail", "malformed", "exit", "no base64"])
async def test_a_failing_function_is_an_internal_server_error(start: Start, do: str) -> None:
    async with start() as running, running.socket() as socket:
        assert error_frame(await ask(socket, "silent", do=do)) == "Internal server error"
        assert (await ask(socket, "work", id=4))["id"] == 4


async def test_a_module_that_cannot_be_imported_is_an_internal_server_error(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with start() as running, running.socket() as socket:
        for _ in range(2):
            assert error_frame(await ask(socket, "broken")) == "Internal server error"
        assert "this module cannot be imported" in caplog.text


async def test_an_answer_over_the_limit_of_a_message_is_an_internal_server_error(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        assert error_frame(await ask(socket, "work", do="large")) == "Internal server error"


async def test_an_integration_over_29_seconds_times_out_and_the_function_goes_on(start: Start) -> None:
    """Hazard P007, in virtual time."""
    clock = VirtualClock()
    async with start(clock) as running, running.socket() as socket:
        await say(socket, "work", do="wait", gate="later", id=5)
        await running.wait_for_events("WorkFunction")
        await clock.advance(28.9)
        assert await hears_nothing_else(socket)
        await clock.advance(0.2)
        assert error_frame(await hear(socket)) == "Endpoint request timed out"
        (child,) = running.children("WorkFunction")
        assert child.state == "busy"
        running.open_gate("later")
        await until(lambda: running.children("WorkFunction")[0].state == "idle")
        answer = await ask(socket, "work", id=6)
        assert (answer["pid"], answer["id"]) == (child.pid, 6)


async def test_the_template_may_shorten_the_integration_timeout(start: Start) -> None:
    clock = VirtualClock()
    async with start(clock) as running, running.socket() as socket:
        await say(socket, "brief", do="wait", gate="never")
        await running.wait_for_events("BriefFunction")
        # Timeout of the function is 1 s, of its integration 5 s.
        await clock.advance(1.1)
        assert error_frame(await hear(socket)) == "Internal server error"


async def test_messages_are_handed_over_in_order_and_do_not_wait_for_each_other(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        await say(socket, "work", do="wait", gate="first", id=0)
        await running.wait_for_events("WorkFunction")
        assert (await ask(socket, "work", id=1))["id"] == 1
        running.open_gate("first")
        assert (await hear(socket))["id"] == 0


async def test_with_one_process_messages_are_served_in_the_order_of_arrival(start: Start) -> None:
    async with start(max_concurrency=1) as running, running.socket() as socket:
        for number in range(20):
            await say(socket, "work", id=number)
        assert [(await hear(socket))["id"] for _ in range(20)] == list(range(20))
        assert len(running.children("WorkFunction")) == 1


async def test_ten_sockets_at_once_each_get_their_own_answers(start: Start) -> None:
    """Hazard P020."""
    async with start(max_concurrency=4) as running:

        async def chat(number: int) -> None:
            async with running.socket() as socket:
                await say(socket, "chat", id=number)
                frames = [await hear(socket), await hear(socket)]
                assert [(frame["part"], frame["id"]) for frame in frames] == [
                    ("started", number),
                    ("done", number),
                ]
                assert await hears_nothing_else(socket)

        await asyncio.gather(*(chat(number) for number in range(10)))
        assert len(running.events("ChatFunction")) == 10
        assert len({event["requestContext"]["connectionId"] for event in running.events("ChatFunction")}) == 10


async def _send_in_fragments(socket: Any, text: str) -> None:
    parts = [text[at : at + 30_000] for at in range(0, len(text), 30_000)]
    await socket.send(parts if len(parts) > 1 else text)
