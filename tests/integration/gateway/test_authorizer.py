"""The authorizer of $connect."""

import pytest
from websockets.typing import Subprotocol

from tests.integration.gateway.support import Start, ask
from tests.integration.gateway.test_connections import left, refused

AUTHORIZED = {"WithAuthorizer": "true"}


async def test_an_allowed_client_carries_the_context_of_its_authorizer(start: Start) -> None:
    async with start(parameter_overrides=AUTHORIZED) as running:
        async with running.socket("?token=ada") as socket:
            await ask(socket, "work")
            await ask(socket, "chat")
        await left(running)
        # Numbers and truth values arrive as text, as on AWS.
        expected = {"principalId": "ada", "team": "sre", "level": "3", "root": "true"}
        for function in ("ConnectFunction", "WorkFunction", "DisconnectFunction"):
            assert running.events(function)[0]["requestContext"]["authorizer"] == expected
        mapped = running.events("ChatFunction")[0]["requestContext"]
        assert mapped["authorizer"] == {"principalId": "ada"}


async def test_the_authorizer_sees_the_handshake(start: Start) -> None:
    async with start(parameter_overrides=AUTHORIZED) as running:
        async with running.socket("?token=ada&x=1", user_agent_header="tester"):
            pass
        (event,) = running.events("AuthorizerFunction")
        api = running.gateway.stack.api
        assert event["type"] == "REQUEST"
        assert event["methodArn"] == f"arn:aws:execute-api:us-east-1:123456789012:{api.api_id}/v1/$connect"
        assert event["queryStringParameters"] == {"token": "ada", "x": "1"}
        assert event["headers"]["User-Agent"] == "tester"
        assert event["stageVariables"] == {"colour": "blue"}
        context = event["requestContext"]
        (connected,) = running.events("ConnectFunction")
        assert context["connectionId"] == connected["requestContext"]["connectionId"]
        assert "authorizer" not in context


@pytest.mark.parametrize(
    ("query", "status", "asked"),
    [
        ("", 401, 0),
        ("?token=", 401, 0),
        ("?other=1", 401, 0),
        ("?token=deny", 403, 1),
        ("?token=unauthorized", 401, 1),
        ("?token=broken", 500, 1),
    ],
)
async def test_refused_clients_reach_no_other_function(start: Start, query: str, status: int, asked: int) -> None:
    async with start(parameter_overrides=AUTHORIZED) as running:
        assert await refused(running, query) == status
        assert len(running.events("AuthorizerFunction")) == asked
        assert running.events("ConnectFunction") == running.events("DisconnectFunction") == []


@pytest.mark.spec("SEC-5")
@pytest.mark.parametrize("with_authorizer", ["true", "false"])
async def test_a_named_principal_stands_in_for_the_authorizer(start: Start, with_authorizer: str) -> None:
    overrides = {"WithAuthorizer": with_authorizer}
    async with start(parameter_overrides=overrides, principal="dev") as running:
        async with running.socket() as socket:
            await ask(socket, "work")
        await left(running)
        assert running.events("AuthorizerFunction") == []
        for function in ("ConnectFunction", "WorkFunction", "DisconnectFunction"):
            assert running.events(function)[0]["requestContext"]["authorizer"] == {"principalId": "dev"}


async def test_the_handshake_selects_what_connect_answers(start: Start) -> None:
    """A token offered as a subprotocol is selected by nobody."""
    offered = [Subprotocol("chat"), Subprotocol("bearer.x")]
    async with start() as running, running.socket("?protocol=chat", subprotocols=offered) as socket:
        assert socket.subprotocol == "chat"
        (event,) = running.events("ConnectFunction")
        assert event["headers"]["Sec-WebSocket-Protocol"] == "chat, bearer.x"
