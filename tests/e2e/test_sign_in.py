"""Signing in from the page: a provider on this machine with keys of its own, and a service that looks at the token."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from superbizagent.adapters.sign_in.tokens import principal_name
from tests.e2e.page_object import Chat
from tests.e2e.scripted_server import ScriptedServer
from tests.http_stub import Received, Reply
from tests.oidc_issuer import CORS, OidcIssuer, oidc_issuer
from tests.product.running import running

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.spec("SEC-5")]


@pytest_asyncio.fixture(loop_scope="session")
async def issuer(server: ScriptedServer) -> AsyncIterator[OidcIssuer]:
    async with oidc_issuer() as issuer:
        server.config = {"signIn": issuer.sign_in}
        server.provider = issuer.url
        yield issuer


def offered_token(offered: str) -> str:
    """The token among the subprotocols that the page offers."""
    ours, token = offered.split(", ")
    assert ours == "superbizagent"
    return token.removeprefix("bearer.")


def subject(offered: str) -> str:
    claims: dict[str, Any] = jwt.decode(offered_token(offered), options={"verify_signature": False})
    return str(claims["sub"])


async def sign_in(chat: Chat) -> None:
    await expect(chat.connection).to_contain_text("Sign in to ask questions")
    await chat.page.get_by_role("button", name="Sign in").click()
    await chat.connected()


async def tokens(page: Page) -> Any:
    return json.loads(await page.evaluate("sessionStorage.getItem('sign-in:tokens')") or "null")


async def change_tokens(page: Page, changes: str) -> None:
    await page.evaluate(
        f"""() => {{
            const tokens = JSON.parse(sessionStorage.getItem('sign-in:tokens'));
            sessionStorage.setItem('sign-in:tokens', JSON.stringify({{ ...tokens, ...{changes} }}));
        }}"""
    )


async def test_who_signs_in_is_connected_and_stays_so(
    page: Page, chat: Chat, server: ScriptedServer, issuer: OidcIssuer
) -> None:
    await page.goto(f"{server.url}#session=s1")
    await sign_in(chat)
    assert subject(server.offered[0]) == "ada"
    # Back where one was, and nothing of the answer is left in the address or its history.
    assert page.url == f"{server.url}#session=s1"
    asked = parse_qs(urlsplit(issuer.asked("/authorize")[0].path).query)
    assert asked["scope"] == ["openid offline_access"]
    assert asked["redirect_uri"] == [server.url]
    assert len(asked["state"][0]) == len(asked["code_challenge"][0]) == 43
    await page.reload()
    await chat.connected()
    assert server.offered[1] == server.offered[0]
    assert len(issuer.asked("/token")) == 1
    assert offered_token(server.offered[0]) not in await page.content()


async def test_nobody_connects_before_signing_in(chat: Chat, server: ScriptedServer, issuer: OidcIssuer) -> None:
    await chat.page.goto(server.url)
    await expect(chat.connection).to_contain_text("Sign in to ask questions")
    await expect(chat.page.get_by_role("button", name="Try now")).to_be_hidden()
    assert server.handshakes == 0
    # A question asked too early is kept, and sent when one is signed in.
    await chat.ask("Why do payments fail?")
    await chat.page.get_by_role("button", name="Sign in").click()
    peer = await chat.connected()
    assert (await peer.expect("chat"))["query"] == "Why do payments fail?"


async def test_a_token_near_its_end_is_renewed_before_reconnecting(
    page: Page, chat: Chat, server: ScriptedServer, issuer: OidcIssuer
) -> None:
    await page.goto(server.url)
    await sign_in(chat)
    await change_tokens(page, "{ expiresAt: Date.now() + 30_000 }")
    await server.peers[-1].close(1011)
    await chat.connected()
    assert len(issuer.asked("/token")) == 2
    assert server.offered[1] != server.offered[0]
    # The refresh token is replaced along with it, for it works once.
    await change_tokens(page, "{ expiresAt: 0 }")
    await server.peers[-1].close(1011)
    await chat.connected()
    assert len(issuer.asked("/token")) == 3


async def test_a_refused_handshake_is_tried_with_a_new_token(
    page: Page, chat: Chat, server: ScriptedServer, issuer: OidcIssuer
) -> None:
    await page.goto(server.url)
    await expect(chat.connection).to_contain_text("Sign in to ask questions")
    server.refusal = 401
    await page.get_by_role("button", name="Sign in").click()
    await expect(chat.connection).to_have_attribute("data-state", "waiting")
    server.refusal = None
    await chat.connected()
    assert server.offered[-1] != server.offered[0]


async def test_a_service_that_goes_on_refusing_is_told_with_a_way_out(
    clocked_page: Page, timed_chat: Chat, server: ScriptedServer, issuer: OidcIssuer
) -> None:
    await clocked_page.goto(server.url)
    await expect(timed_chat.connection).to_contain_text("Sign in to ask questions")
    server.refusal = 403
    await clocked_page.get_by_role("button", name="Sign in").click()
    for _ in range(60):
        await clocked_page.clock.run_for(5_000)
        if await timed_chat.connection.get_attribute("data-state") == "stopped":
            break
    await expect(timed_chat.connection).to_contain_text("doesn’t accept your sign-in")
    await expect(clocked_page.get_by_role("button", name="Try now")).to_be_visible()
    server.refusal, issuer.subject = None, "bob"
    await clocked_page.get_by_role("button", name="Sign in").click()
    await timed_chat.connected()
    assert subject(server.offered[-1]) == "bob"


async def test_a_sign_in_that_cannot_be_renewed_asks_for_a_new_one(
    page: Page, chat: Chat, server: ScriptedServer, issuer: OidcIssuer
) -> None:
    await page.goto(server.url)
    await sign_in(chat)
    issuer.refuses_refresh = True
    await change_tokens(page, "{ expiresAt: 0 }")
    await server.peers[-1].close(1011)
    await sign_in(chat)
    assert server.handshakes == 2


async def test_a_provider_that_is_down_is_asked_again(
    page: Page, chat: Chat, server: ScriptedServer, issuer: OidcIssuer
) -> None:
    await page.goto(server.url)
    await sign_in(chat)
    asked_twice = asyncio.Event()

    def unavailable(_: Received) -> Reply:
        if len(issuer.asked("/token")) >= 3:
            asked_twice.set()
        return Reply(status=503, headers=CORS)

    issuer.answers["/token"] = unavailable
    await change_tokens(page, "{ expiresAt: 0 }")
    await server.peers[-1].close(1011)
    async with asyncio.timeout(30):
        await asked_twice.wait()
    assert await tokens(page) is not None
    issuer.answers.clear()
    await chat.connected()


@pytest.mark.parametrize("query", ["?code=theirs&state=theirs", "?error=access_denied&state=theirs"])
async def test_an_answer_nobody_asked_for_signs_nobody_in(
    page: Page, chat: Chat, server: ScriptedServer, issuer: OidcIssuer, query: str
) -> None:
    """Somebody else's code would sign this user in as them."""
    await page.goto(server.url + query)
    await expect(chat.notices).to_contain_text("Signing in didn’t work")
    await expect(chat.connection).to_contain_text("Sign in to ask questions")
    assert page.url == server.url
    assert issuer.stub.received == []
    assert await tokens(page) is None


async def test_a_refusal_of_the_provider_is_shown(
    page: Page, chat: Chat, server: ScriptedServer, issuer: OidcIssuer
) -> None:
    await page.goto(server.url)
    issuer.answers["/authorize"] = lambda received: Reply(
        status=302,
        headers={
            "Location": f"{server.url}?error=access_denied&state=" + parse_qs(urlsplit(received.path).query)["state"][0]
        },
    )
    await page.get_by_role("button", name="Sign in").click()
    await expect(chat.notices).to_contain_text("access_denied")
    await expect(chat.connection).to_contain_text("Sign in to ask questions")


async def test_settings_that_cannot_be_used_are_named(page: Page, chat: Chat, server: ScriptedServer) -> None:
    good = {"authorizationEndpoint": "https://x.example/a", "tokenEndpoint": "https://x.example/t", "clientId": "c"}
    bad = ({"tokenEndpoint": "http://x.example/t"}, {"authorizationEndpoint": "javascript:alert(1)"}, {"clientId": ""})
    for changes in bad:
        server.config = {"signIn": {**good, **changes}}
        await page.goto(server.url)
        await expect(chat.connection).to_contain_text("config.json")


@pytest.mark.timeout(240)
async def test_from_signing_in_to_an_answer_on_the_whole_product(page: Page, sqlite_database: str, demo: Path) -> None:
    async with oidc_issuer() as issuer, running(sqlite_database, demo, issuer) as product:
        await page.goto(product.gateway.http_url)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator("#connection")).to_have_attribute("data-state", "open", timeout=60_000)
        await page.locator("#question").fill("What can you do?")
        await page.locator("#question").press("Enter")
        await expect(page.locator(".answer[data-kind=SYSTEM_CHAT]")).to_be_visible(timeout=60_000)
        (row,) = await product.rows()
        assert row["owner"] == principal_name(issuer.url, "ada")
