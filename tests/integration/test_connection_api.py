"""The channel adapter against the local gateway's real @connections, and against servers that misbehave."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent

import pytest
from websockets.asyncio.client import connect

from local.gateway import Gateway, GatewayConfig
from superbizagent.adapters import connection_api
from superbizagent.adapters.connection_api import ConnectionApi
from superbizagent.errors import ChannelError, ChannelUnavailable, ClientGone, ConfigurationError
from tests.http_stub import HttpStub, Reply, http_stub, read_request, tcp_stub

TEMPLATE = """
    Transform: AWS::Serverless-2016-10-31
    Resources:
      Api:
        Type: AWS::ApiGatewayV2::Api
        Properties: {Name: a, ProtocolType: WEBSOCKET, RouteSelectionExpression: $request.body.action}
      Stage:
        Type: AWS::ApiGatewayV2::Stage
        Properties: {ApiId: !Ref Api, StageName: live}
      Echo:
        Type: AWS::ApiGatewayV2::Integration
        Properties:
          ApiId: !Ref Api
          IntegrationType: MOCK
          TemplateSelectionExpression: \\$default
          RequestTemplates: {$default: '{"statusCode": 200}'}
      EchoResponse:
        Type: AWS::ApiGatewayV2::IntegrationResponse
        Properties:
          ApiId: !Ref Api
          IntegrationId: !Ref Echo
          IntegrationResponseKey: $default
          TemplateSelectionExpression: \\$default
          ResponseTemplates: {$default: '$context.connectionId'}
      EchoRoute:
        Type: AWS::ApiGatewayV2::Route
        Properties: {ApiId: !Ref Api, RouteKey: $default, RouteResponseSelectionExpression: $default,
          Target: !Sub 'integrations/${Echo}'}
      EchoRouteResponse:
        Type: AWS::ApiGatewayV2::RouteResponse
        Properties: {ApiId: !Ref Api, RouteId: !Ref EchoRoute, RouteResponseKey: $default}
"""


@pytest.fixture(autouse=True)
def signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture
async def stub() -> AsyncIterator[HttpStub]:
    async with http_stub() as stub:
        yield stub


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_api, "CONNECT_SECONDS", 0.2)
    monkeypatch.setattr(connection_api, "READ_SECONDS", 0.2)


async def test_frames_reach_an_open_connection_as_they_are_until_it_is_gone(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(dedent(TEMPLATE))
    frame = '{"text":"支付网关超时 🫠️ \\u0001"}'.encode()
    async with Gateway.start(GatewayConfig(template=template)) as gateway:
        api = ConnectionApi(gateway.management_url)
        async with connect(gateway.websocket_url, proxy=None) as socket:
            await socket.send("{}")
            connection_id = str(await socket.recv())
            await api.post(connection_id, frame)
            assert str(await socket.recv()).encode() == frame

            await api.post(connection_id, b"x" * 32_768)
            assert len(await socket.recv()) == 32_768

        with pytest.raises(ClientGone):
            await api.post(connection_id, frame)
        with pytest.raises(ClientGone):
            await api.post("bmV2ZXI=", frame)


@pytest.mark.spec("OBS-2")
@pytest.mark.parametrize(
    "reply",
    [
        Reply({"message": None}, 410, headers={"x-amzn-ErrorType": "GoneException"}),
        Reply({"message": "x"}, 410, headers={"x-amzn-ErrorType": "GoneException:http://internal.amazon.com/"}),
        Reply(b"", 410),
        Reply(b"<html>Gone</html>", 410, "text/html"),
    ],
)
async def test_410_means_that_the_client_is_gone(stub: HttpStub, reply: Reply) -> None:
    stub.script(reply)
    with pytest.raises(ClientGone):
        await ConnectionApi(f"{stub.url}/live").post("abc=", b"{}")
    assert [received.path for received in stub.received] == ["/live/@connections/abc%3D"]


@pytest.mark.parametrize(
    ("status", "code", "attempts"),
    [
        (400, "BadRequestException", 1),
        (403, "ForbiddenException", 1),
        (404, "NotFoundException", 1),
        (413, "PayloadTooLargeException", 1),
        (429, "LimitExceededException", 2),
        (500, "InternalServerError", 2),
        (503, "ServiceUnavailable", 2),
        (504, "", 2),
    ],
)
async def test_any_other_refusal_is_an_unavailable_channel_after_few_attempts(
    stub: HttpStub, status: int, code: str, attempts: int
) -> None:
    stub.script(Reply({"message": "canary-secret"}, status, headers={"x-amzn-ErrorType": code} if code else {}))
    with pytest.raises(ChannelUnavailable) as caught:
        await ConnectionApi(stub.url).post("abc", b'{"text":"canary"}')
    assert len(stub.received) == attempts <= connection_api.ATTEMPTS
    # The operator sees what it was; nobody sees the request.
    assert str(status) in str(caught.value)
    assert code in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"\xff\xfe", b"{"])
async def test_an_error_that_is_no_json_is_an_unavailable_channel(stub: HttpStub, body: bytes) -> None:
    stub.script(Reply(body, 502, "text/html"))
    with pytest.raises(ChannelUnavailable):
        await ConnectionApi(stub.url).post("abc", b"{}")


async def test_a_hiccup_is_nobodys_failure(stub: HttpStub) -> None:
    stub.script(Reply({}, 500), Reply())
    await ConnectionApi(stub.url).post("abc", b"frame")
    assert [received.body for received in stub.received] == [b"frame", b"frame"]


@pytest.mark.usefixtures("short_waits")
async def test_a_black_hole_delays_a_frame_for_a_bounded_time_only() -> None:
    connections = 0

    async def converse(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.read()

    async with tcp_stub(converse) as url:
        started = time.monotonic()
        with pytest.raises(ChannelUnavailable):
            await ConnectionApi(url).post("abc", b"{}")
        assert connections == connection_api.ATTEMPTS
        # Two reads, one pause of at most a second between them, and what a busy machine adds.
        assert time.monotonic() - started < 10


@pytest.mark.parametrize("said", [b"HTTP/1.1 200 OK\r\nX-Drip: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"])
async def test_a_drip_that_no_read_limit_meets_is_bounded_too(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    monkeypatch.setattr(connection_api, "POST_SECONDS", 0.5)
    given_up = asyncio.Event()
    posts = 0

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal posts
        await read_request(reader)
        posts += 1
        writer.write(said)
        while not given_up.is_set():
            writer.write(b"x")
            await asyncio.sleep(0.05)

    async with tcp_stub(converse) as url:
        with pytest.raises(ChannelUnavailable, match=r"0\.5 seconds"):
            await ConnectionApi(url).post("abc", b"{}")
        # What nobody waits for any more is not posted again, either.
        given_up.set()
        await asyncio.sleep(0)
    assert posts == 1


@pytest.mark.usefixtures("short_waits")
async def test_nobody_listens() -> None:
    async def converse(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with tcp_stub(converse) as url:
        pass
    with pytest.raises(ChannelUnavailable):
        await ConnectionApi(url).post("abc", b"{}")


async def test_a_connection_closed_between_two_frames_costs_no_frame() -> None:
    """As after a freeze: the server has forgotten the connection that the client kept."""
    frames = 0

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal frames
        await reader.readuntil(b"\r\n\r\n")
        frames += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.transport.abort()

    async with tcp_stub(converse) as url:
        api = ConnectionApi(url)
        for _ in range(3):
            await api.post("abc", b"{}")
    assert frames == 3


def test_an_empty_endpoint_is_one_named_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="CONNECTIONS_ENDPOINT"):
        ConnectionApi("")


@pytest.mark.parametrize("missing", ["AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID"])
async def test_what_can_not_be_signed_is_a_configuration_error(
    stub: HttpStub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str
) -> None:
    monkeypatch.delenv(missing)
    monkeypatch.delenv("AWS_REGION", raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises((ConfigurationError, ChannelError)) as caught:
        await ConnectionApi(stub.url).post("abc", b"{}")
    assert isinstance(caught.value, ConfigurationError)
    assert stub.received == []
