"""The life of a connection: handshake, limits, time, close."""

import asyncio
import socket as sockets
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from tests.integration.gateway.support import Running, Start, hear, hears_nothing_else, say, until
from tests.integration.gateway.virtual_clock import VirtualClock

LIMIT = 131_072
FRAME = 32_768


async def refused(running: Running, query: str = "") -> int:
    with pytest.raises(InvalidStatus) as caught:
        await running.socket(query)
    assert b"message" in (caught.value.response.body or b"")
    return caught.value.response.status_code


async def closed(socket: ClientConnection) -> tuple[int, str]:
    with pytest.raises(ConnectionClosed):
        async with asyncio.timeout(60):
            await socket.recv()
    return socket.close_code or 0, socket.close_reason or ""


async def left(running: Running) -> tuple[int, str]:
    """Code and reason of the only $disconnect event."""
    (event,) = await running.wait_for_events("DisconnectFunction")
    context = event["requestContext"]
    assert (context["routeKey"], context["eventType"]) == ("$disconnect", "DISCONNECT")
    return context["disconnectStatusCode"], context["disconnectReason"]


async def test_connect_runs_before_the_handshake_completes_and_sees_the_request(start: Start) -> None:
    async with start() as running, running.socket("?a=1&a=2&b=%20x", additional_headers={"X-Two": "y"}):
        (event,) = running.events("ConnectFunction")
        assert event["queryStringParameters"] == {"a": "2", "b": " x"}
        assert event["multiValueQueryStringParameters"] == {"a": ["1", "2"], "b": [" x"]}
        assert event["headers"]["X-Two"] == "y"
        assert event["multiValueHeaders"]["X-Two"] == ["y"]
        context = event["requestContext"]
        assert (context["routeKey"], context["eventType"]) == ("$connect", "CONNECT")
        assert "body" not in event


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?status=401", 401),
        ("?status=403", 403),
        ("?status=430", 430),
        ("?raise=1", 502),
        ("?malformed=1", 502),
    ],
)
async def test_a_refused_handshake_has_no_disconnect(start: Start, query: str, status: int) -> None:
    """Hazard P012."""
    async with start() as running:
        assert await refused(running, query) == status
        assert running.gateway.connection_ids == []
        async with running.socket():
            pass
        await left(running)  # of the second one only


async def test_the_connect_handler_chooses_the_subprotocol(start: Start) -> None:
    offered = [Subprotocol("v1"), Subprotocol("v2")]
    async with start() as running, running.socket("?protocol=v2", subprotocols=offered) as socket:
        assert socket.subprotocol == "v2"


async def test_a_connection_cannot_be_posted_to_before_connect_has_returned(start: Start) -> None:
    """Hazard P001."""
    async with start() as running, running.socket("?post=1") as socket:
        assert running.recorded("ConnectFunction")[0]["posted"] == "gone"
        assert await hears_nothing_else(socket)


async def test_a_client_that_does_not_wait_for_connect_gets_a_disconnect(start: Start) -> None:
    async with start() as running:
        address = running.gateway.websocket_url.removeprefix("ws://").partition("/")[0].rpartition(":")
        reader, writer = await asyncio.open_connection(address[0], int(address[2]))
        writer.write(
            b"GET /v1 HTTP/1.1\r\nHost: local\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await left(running))[0] == 1006
        assert running.gateway.connection_ids == []
        del reader


async def test_only_the_path_of_the_stage_is_served(start: Start) -> None:
    async with start() as running:
        url = running.gateway.websocket_url
        for wrong in (url + "2", url + "/more", url.rpartition("/")[0]):
            with pytest.raises(InvalidStatus) as caught:
                await connect(wrong, proxy=None)
            assert caught.value.response.status_code == 403
        assert running.events("ConnectFunction") == []
        async with connect(url + "/", proxy=None):
            pass


@pytest.mark.parametrize("selection", ["$request.body.kind", "$request.body.action"])
async def test_connect_and_disconnect_run_once_whatever_the_expression(start: Start, selection: str) -> None:
    """Hazard P011."""
    async with start(parameter_overrides={"Selection": selection}) as running:
        async with running.socket():
            assert len(running.events("ConnectFunction")) == 1
        assert await left(running) == (1000, "Connection Closed Normally")
        assert len(running.events("ConnectFunction")) == 1
    assert len(running.events("DisconnectFunction")) == 1


async def test_disconnect_tells_the_code_and_reason_of_the_client(start: Start) -> None:
    async with start() as running:
        socket = await running.socket()
        connection_id = running.gateway.connection_ids[0]
        await socket.close(4001, "bye")
        assert await left(running) == (4001, "bye")
        event = running.events("DisconnectFunction")[0]
        assert event["requestContext"]["connectionId"] == connection_id
        assert "body" not in event


async def test_a_close_without_a_code_is_1005_and_a_lost_connection_1006(start: Start) -> None:
    async with start() as running:
        async with running.socket() as socket, socket.send_context():
            socket.protocol.send_close()
        assert await left(running) == (1005, "Client-side close frame status not set")
        socket = await running.socket()
        socket.transport.abort()
        events = await running.wait_for_events("DisconnectFunction", 2)
        assert events[1]["requestContext"]["disconnectStatusCode"] == 1006


async def test_the_end_of_a_lost_connection_leaves_a_newer_one_alone(start: Start) -> None:
    """Hazard P016."""
    async with start() as running:
        old = await running.socket()
        old_id = running.gateway.connection_ids[0]
        async with running.socket() as new:
            new_id = next(found for found in running.gateway.connection_ids if found != old_id)
            old.transport.abort()
            (event,) = await running.wait_for_events("DisconnectFunction")
            assert event["requestContext"]["connectionId"] == old_id
            assert running.gateway.connection_ids == [new_id]
            await asyncio.to_thread(post, running, b'"still here"')
            assert await hear(new) == "still here"


async def test_a_message_of_exactly_128_kb_is_routed_and_a_longer_one_closes(start: Start) -> None:
    """Hazard P004; AWS counts bytes, so 4-byte characters count four times."""
    async with start() as running, running.socket() as socket:
        head, tail = '{"action":"chat","m":"', '"}'
        fits = head + "😀" * ((LIMIT - len(head) - len(tail)) // 4)
        fits += "A" * (LIMIT - len(fits.encode()) - len(tail)) + tail
        assert len(fits.encode()) == LIMIT
        await socket.send(in_frames(fits.encode()), text=True)
        assert (await hear(socket))["length"] == len(fits)
        await hear(socket)

        with suppress(ConnectionClosed):
            await socket.send(in_frames(b"A" * (LIMIT + 1)), text=True)
        assert (await closed(socket))[0] == 1009
        assert (await left(running))[0] == 1009
        assert len(running.events("ChatFunction")) == 1


async def test_a_frame_over_32_kb_closes(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        await socket.send("A" * FRAME)
        await hear(socket)
        await socket.send("A" * (FRAME + 1))
        assert (await closed(socket))[0] == 1009
        assert len(running.events("DefaultFunction")) == 1


async def test_binary_frames_and_bad_utf_8_close_and_reach_no_function(start: Start) -> None:
    """Hazard P021."""
    async with start() as running:
        async with running.socket() as socket:
            await socket.send(b'{"action":"work"}')
            assert (await closed(socket))[0] == 1003
        async with running.socket() as socket:
            async with socket.send_context():
                socket.protocol.send_text(b'{"action":"work\xff"}')
            assert (await closed(socket))[0] == 1007
        events = await running.wait_for_events("DisconnectFunction", 2)
        # Two good-byes may be said side by side.
        assert {event["requestContext"]["disconnectStatusCode"] for event in events} == {1003, 1007}
        assert running.events("WorkFunction") == running.events("DefaultFunction") == []


async def test_an_idle_connection_is_closed_after_ten_minutes(start: Start) -> None:
    """Hazard P017: idle is that nothing, data or ping, went either way."""
    clock = VirtualClock()
    async with start(clock) as running, running.socket() as socket:
        await clock.advance(599)
        await (await socket.ping())
        await clock.advance(599)
        await asyncio.to_thread(post, running, b"null")
        assert await hear(socket) is None
        await clock.advance(599)
        assert await hears_nothing_else(socket)
        await clock.advance(601)
        assert await closed(socket) == (1001, "Going away")
        assert await left(running) == (1001, "Going away")


async def test_a_connection_lives_two_hours_at_most(start: Start) -> None:
    clock = VirtualClock()
    async with start(clock) as running, running.socket() as socket:
        for _ in range(14):
            await clock.advance(500)
            await (await socket.ping())
        await clock.advance(7200 - 14 * 500 - 1)
        assert await hears_nothing_else(socket)
        await clock.advance(2)
        assert (await closed(socket))[0] == 1001


async def test_closing_the_gateway_says_good_bye_and_runs_disconnect(start: Start) -> None:
    async with start() as running:
        socket = await running.socket()
    assert await closed(socket) == (1001, "Going away")
    assert await left(running) == (1001, "Going away")


async def test_closing_the_gateway_does_not_wait_for_busy_functions(start: Start) -> None:
    async with asyncio.timeout(60), start() as running:
        socket = await running.socket()
        await say(socket, "work", do="wait", gate="never")
        await running.wait_for_events("WorkFunction")
        waiting = asyncio.ensure_future(running.socket("?post=1"))
        await until(lambda: len(running.children("ConnectFunction")) == 1)
    with pytest.raises(InvalidStatus):
        await waiting
    await closed(socket)


async def test_extensions_are_not_offered(start: Start) -> None:
    async with start() as running, running.socket(compression="deflate") as socket:
        assert socket.protocol.extensions == []


async def test_the_port_answers_plain_http_with_upgrade_required(start: Start) -> None:
    async with start() as running:
        host, _, port = running.gateway.websocket_url[5:].partition("/")[0].rpartition(":")
        with sockets.create_connection((host, int(port))) as plain:
            await asyncio.to_thread(plain.sendall, b"GET /v1 HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = await asyncio.to_thread(plain.recv, 4096)
        assert answer.startswith(b"HTTP/1.1 426")
        assert running.events("ConnectFunction") == []


def in_frames(data: bytes) -> Any:
    """An iterable makes the client send one frame an item."""
    return [data[at : at + FRAME] for at in range(0, len(data), FRAME)]


def post(running: Running, data: bytes) -> None:
    running.api().post_to_connection(ConnectionId=running.gateway.connection_ids[0], Data=data)
