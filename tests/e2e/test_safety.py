"""Text from anywhere stays text: live, from history, in titles and in errors, under a strict policy."""

import json
from typing import Any

import pytest
from playwright.async_api import Page, expect

from superbizagent.domain.content import (
    PublicContent,
    public_content,
)
from tests.e2e import contents
from tests.e2e.page_object import Chat
from tests.e2e.scripted_server import Run, ScriptedServer

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.spec("SEC-3"),
]

PAYLOADS = [
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    '<math><mi><mglyph><style><img src=x onerror="window.hit=1">',
    '<iframe srcdoc="<script>parent.hit=1</script>"></iframe>',
    '<a href=" javascript:alert(1)">x</a>',
    "[x](JaVaScRiPt:alert(1)) [x](data:text/html,<script>alert(1)</script>)",
    "![][x]\n\n[x]: https://x.test/?q=",
    "<details open ontoggle=alert(1)>",
    '"><script>window.hit=1</script><img src=https://x.test/leak>',
    "\u202egnp.exe \u2066<b>",
]
ALL = " ".join(PAYLOADS)
KEPT = {"type", "id", "kind", "unit", "status", "reason", "sourceIds", "documentId", "documentIds"}


def poisoned(content: PublicContent) -> PublicContent:
    """`content` with the payloads in every free text."""

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: walk(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [walk(item, key) for item in value]
        untouchable = key in KEPT or key in {"missingContext", "fetchedAt", "start", "end", "errorCode"}
        return value if untouchable or not isinstance(value, str) else ALL

    return public_content.validate_json(json.dumps(walk(json.loads(content.model_dump_json()))))


CONTENTS = {
    "diagnosis": poisoned(contents.DIAGNOSIS),
    "fallback": poisoned(contents.FALLBACK),
    "knowledge": poisoned(contents.KNOWLEDGE),
    "chat": poisoned(contents.CHAT),
}


async def assert_harmless(page: Page, chat: Chat) -> None:
    """No element that only markup could have made, no script that ran, and the text readable."""
    forbidden = "svg, style, img, math, iframe, script, b, object, embed, [onerror], [ontoggle], [srcdoc]"
    assert await page.locator("body").locator(forbidden).count() == 0
    links = await page.evaluate("[...document.links].map((link) => link.getAttribute('href'))")
    assert all(href.startswith("#session=") for href in links), links
    assert await page.evaluate("window.hit") is None


async def open_everything(page: Page) -> None:
    for button in await page.locator(".opener").all():
        await button.click()
    await page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")


@pytest.mark.parametrize("name", CONTENTS)
async def test_live_content_stays_text(page: Page, chat: Chat, name: str) -> None:  # P101, P153
    content = CONTENTS[name]
    peer = await chat.open()
    run = await chat.run(peer, ALL)
    await peer.send(run.content(content), run.done())
    await expect(chat.answers).to_contain_text("<svg><style><img src=x onerror=alert(1)>")
    await open_everything(page)
    await assert_harmless(page, chat)
    assert ALL in (await page.locator(".question .prose").text_content() or "")


@pytest.mark.parametrize("name", CONTENTS)
async def test_stored_content_and_titles_stay_text(
    page: Page, chat: Chat, server: ScriptedServer, name: str
) -> None:  # P154
    server.turns = {"s1": [Run("q1").turn(ALL, CONTENTS[name])]}
    server.titles = {"s1": ALL}
    await chat.open("s1")
    await expect(chat.answers).to_contain_text("<details open ontoggle=alert(1)>")
    await expect(chat.sessions).to_contain_text("<iframe srcdoc=")
    await open_everything(page)
    await assert_harmless(page, chat)


async def test_errors_and_statuses_stay_text(page: Page, chat: Chat) -> None:  # P154
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    ids = {"sessionId": "s1", "runId": "r1", "requestId": run.ids["request_id"]}
    status = {**ids, "type": "status", "seq": 2, "code": ALL, "intent": ALL, "tool": ALL, "status": ALL}
    await peer.send(status, {"message": ALL, "connectionId": ALL, "requestId": ALL})
    await peer.send({"type": "error", "code": ALL, "message": ALL})
    await peer.send({**ids, "type": "error", "seq": 3, "code": ALL, "message": ALL})
    await expect(chat.turns).to_have_attribute("data-state", "failed")
    await expect(chat.turns).to_contain_text("<math><mi>")
    await expect(chat.notices.first).to_contain_text("<math><mi>")
    await assert_harmless(page, chat)


async def test_ids_in_frames_and_address_are_checked(page: Page, chat: Chat) -> None:
    peer = await chat.open("%22%3E%3Cscript%3E")
    run = await chat.run(peer, "why?")
    for bad in ('"><img>', "a b", "", "x" * 65, None, 5):
        await peer.send({"type": "started", "sessionId": bad, "runId": bad, "requestId": bad, "seq": 1})
    entry = {"title": "t", "messagePairs": 1, "createdAt": "x", "lastActiveAt": "x"}
    sessions = [{**entry, "sessionId": 'x"><img src=x>'}, {**entry, "sessionId": "javascript:alert(1)"}, None]
    await peer.send({"type": "history", "kind": "sessions", "sessions": sessions})
    await peer.send(run.content(contents.CHAT), run.done())
    await expect(chat.answers).to_be_visible()
    await expect(chat.turns).to_have_count(1)
    await expect(chat.sessions).to_have_count(1)
    await assert_harmless(page, chat)


LINKED = {
    "https://runbooks.example/a?b=c#d": True,
    "HTTP://runbooks.example/": True,
    "javascript:alert(1)": False,
    " https://runbooks.example/": False,
    "https://user:secret@runbooks.example/": False,
    "https://runbooks.example/\u202egnp": False,
    "https:\\\\runbooks.example": False,
    "data:text/html,x": False,
    "//runbooks.example/x": False,
    "docs/runbook.md": False,
    "https://": False,
    "": False,
}


async def test_only_plain_web_addresses_become_links(page: Page, server: ScriptedServer) -> None:
    await page.goto(server.url + "blank")
    nodes = await page.evaluate(
        """async (sources) => {
            const { sourceLink } = await import('/view/evidence.js');
            return sources.map(sourceLink).map((node) => [node.textContent, node.localName === 'a']);
        }""",
        list(LINKED),
    )
    assert dict(nodes) == LINKED


async def test_page_has_no_inline_script_or_style(page: Page, server: ScriptedServer) -> None:
    await page.goto(server.url)
    assert await page.locator("style, [style]:not(textarea), script:not([src])").count() == 0
