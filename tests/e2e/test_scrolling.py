"""New content is followed at the bottom and nowhere else (P156)."""

import pytest
from playwright.async_api import Page, expect

from superbizagent.domain.content import SystemChatContent
from tests.e2e import contents
from tests.e2e.page_object import Chat
from tests.e2e.scripted_server import Run, ScriptedServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG = SystemChatContent(text="\n".join(f"line {number}" for number in range(200)))
SCROLL_TOP = "document.querySelector('#transcript').scrollTop"
TO_BOTTOM = """() => {
    const box = document.querySelector('#transcript');
    return box.scrollHeight - box.clientHeight - box.scrollTop;
}"""


def older_turns(count: int = 12) -> list[object]:
    return [Run(f"old{n}", "s1", f"r{n}").turn(f"old question {n}", contents.FALLBACK) for n in range(count)]


@pytest.fixture(autouse=True)
def history(server: ScriptedServer) -> None:
    server.turns = {"s1": older_turns()}  # type: ignore[dict-item]


async def test_reader_who_scrolled_up_is_left_alone(page: Page, chat: Chat) -> None:
    peer = await chat.open("s1")
    await expect(chat.turns).to_have_count(12)
    run = await chat.run(peer, "new one", run_id="r90")
    await page.locator("#transcript").hover()
    await page.mouse.wheel(0, -400)
    await page.wait_for_function(f"({TO_BOTTOM})() >= 400")
    before = await page.evaluate(SCROLL_TOP)

    await peer.send(*(run.status("INVESTIGATING") for _ in range(20)))
    await peer.send(run.content(LONG), run.done())
    await expect(chat.turn("new one")).to_have_attribute("data-state", "done")
    button = page.get_by_role("button", name="New messages")
    await expect(button).to_be_visible()
    assert await page.evaluate(SCROLL_TOP) == before

    await button.click()
    await expect(button).to_be_hidden()
    await expect(page.locator("[data-run=r90] .question")).to_be_in_viewport()


async def test_reader_at_the_bottom_follows_and_gets_a_long_answer_from_its_start(page: Page, chat: Chat) -> None:
    peer = await chat.open("s1")
    await expect(chat.turns).to_have_count(12)
    run = await chat.run(peer, "new one", run_id="r90")
    await peer.send(*(run.status("INVESTIGATING") for _ in range(12)))
    await expect(page.locator("[data-run=r90] .steps li")).to_have_count(11)
    assert await page.evaluate(TO_BOTTOM) < 2

    await peer.send(run.content(LONG), run.done())
    await expect(chat.turn("new one")).to_have_attribute("data-state", "done")
    await expect(page.locator("[data-run=r90] .question")).to_be_in_viewport()
    await expect(page.get_by_text("line 0", exact=False).last).to_be_in_viewport()
    await expect(page.get_by_role("button", name="New messages")).to_be_hidden()


async def test_opening_evidence_does_not_move_the_reader(page: Page, chat: Chat) -> None:
    peer = await chat.open("s1")
    run = await chat.run(peer, "new one", run_id="r90")
    await peer.send(run.content(contents.DIAGNOSIS), run.done())
    opener = page.locator("[data-run=r90]").get_by_role("button", name="Evidence S1").first
    await opener.click()
    await expect(page.locator("[data-run=r90] .panel").first).to_be_in_viewport()
    await expect(opener).to_be_in_viewport()


async def test_earlier_questions_do_not_move_the_reader(page: Page, chat: Chat, server: ScriptedServer) -> None:
    server.turns = {"s1": older_turns(30)}  # type: ignore[dict-item]
    await chat.open("s1")
    await expect(chat.turns).to_have_count(20)
    await page.evaluate("document.querySelector('#transcript').scrollTop = 0")
    first = page.locator("article.turn").filter(has_text="old question 10")
    await page.get_by_role("button", name="Earlier questions").click()
    await expect(chat.turns).to_have_count(30)
    await expect(first).to_be_in_viewport()
