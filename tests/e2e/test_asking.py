"""Asking, following, cancelling, and what an answer looks like."""

import pytest
from playwright.async_api import Page, expect

from superbizagent.domain.content import PublicContent
from superbizagent.domain.run import ReleaseOutcome
from superbizagent.errors import InvalidQuery, RequestConflict, SessionBusy, SessionNotFound
from superbizagent.websocket import error_frame
from tests.e2e import contents
from tests.e2e.page_object import Chat
from tests.e2e.scripted_server import Run, ScriptedServer

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.spec("WIRE-1", "WIRE-2")
async def test_question_is_answered_with_steps_and_evidence(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    await chat.ask("Why does checkout fail?")
    message = await peer.expect("chat")
    assert message.keys() == {"action", "requestId", "query"}
    assert message["query"] == "Why does checkout fail?"
    assert await chat.draft() == ""

    run = Run(message["requestId"])
    await peer.send(run.started(), run.status("ROUTED", intent="DIAGNOSIS"))
    await expect(page.locator(".now .current")).to_have_text("This needs a diagnosis")
    await expect(page.locator("#announcer")).to_have_text("This needs a diagnosis")
    await peer.send(
        run.status("TOOL_STARTED", tool="query_logs"),
        run.status("TOOL_FINISHED", tool="query_logs", status="READY"),
        run.status("CHECKING_EVIDENCE"),
    )
    await expect(page.locator(".steps li")).to_have_count(3)
    await expect(page.locator(".now .current")).to_have_text("Checking every claim against its evidence")
    await expect(page.locator(".now .elapsed")).to_have_text("0 s")

    await peer.send(run.content(contents.DIAGNOSIS), run.done())
    await expect(chat.turns).to_have_attribute("data-state", "done")
    await expect(page.locator(".now")).to_have_count(0)
    answer = chat.answers
    for words in (
        contents.DIAGNOSIS.conclusion,
        contents.DIAGNOSIS.scope,
        *contents.DIAGNOSIS.limitations,
        *contents.DIAGNOSIS.next_steps,
    ):
        await expect(answer).to_contain_text(words)
    assert "#session=s1" in page.url


async def test_each_claim_opens_the_evidence_behind_it(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    await peer.send(run.content(contents.DIAGNOSIS), run.done())

    claim = page.locator(".claims > li").first
    opener = claim.get_by_role("button", name="Evidence S1")
    await opener.focus()
    await page.keyboard.press("Enter")
    panel = claim.locator(".panel")
    await expect(panel).to_contain_text("levels ERROR, containing gateway")
    await expect(panel).to_contain_text("From 2026-03-01 02:30:00 UTC to 2026-03-01 03:00:00 UTC.")
    await expect(panel).to_contain_text("18,342 lines looked at, 214 matched, 2 shown.")
    await expect(panel).to_contain_text("Not complete")
    await expect(panel).to_contain_text("The newest lines may be missing.")
    # The quote runs over a line's end and a doubled space, as the guard allows.
    assert await panel.locator("mark").all_inner_texts() == ["timeout  after", "3000 ms"]
    await expect(opener).to_have_attribute("aria-expanded", "true")

    await panel.get_by_role("button", name="Close").press("Escape")
    await expect(panel).to_have_count(0)
    await expect(opener).to_be_focused()

    second = page.locator(".claims > li").nth(1)
    await second.get_by_role("button", name="Evidence S2").click()
    path = "Payment gateway runbook › Timeouts › Pool exhaustion"
    await expect(second.locator(".reference").first).to_contain_text(path)
    link = second.locator("a")
    await expect(link).to_have_count(1)
    await expect(link).to_have_attribute("href", "https://runbooks.example/payment#pool")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await expect(second.locator(".reference").nth(1)).to_contain_text("docs/runbooks/payment.md")


KINDS: list[tuple[PublicContent, ReleaseOutcome, list[str]]] = [
    (contents.CHAT, ReleaseOutcome.SUCCESS, ["I answer on-call questions."]),
    (
        contents.KNOWLEDGE,
        ReleaseOutcome.SUCCESS,
        ["Drain the instance first.", "先提高上限。", "Payment gateway runbook › Timeouts", "Only runbooks"],
    ),
    (
        contents.FALLBACK,
        ReleaseOutcome.FALLBACK,
        [
            "No conclusion",
            "More information is needed from you.",
            "Which service is affected?",
            "When did it happen",
            "Name the service and ask again.",
            "checkout-prod — Nothing found",
            "120 lines looked at, 0 matched",
            "The source didn’t answer in time.",
        ],
    ),
]


async def test_every_kind_of_content_is_shown(chat: Chat) -> None:
    peer = await chat.open()
    for number, (content, outcome, expected) in enumerate(KINDS):
        run = await chat.run(peer, f"question {number}", run_id=f"r{number}")
        await peer.send(run.content(content), run.done(outcome))
        for words in expected:
            await expect(chat.answers.nth(number)).to_contain_text(words)


async def test_knowledge_items_open_their_documents(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "how?")
    await peer.send(run.content(contents.KNOWLEDGE), run.done())
    item = page.locator(".item").nth(1)
    await item.get_by_role("button", name="Evidence 2").click()
    await expect(item.locator(".panel")).to_contain_text("支付网关手册")


async def test_scripted_model_is_labelled(page: Page, chat: Chat, server: ScriptedServer) -> None:
    server.config = {"model": "scripted-demo"}
    peer = await chat.open()
    await expect(page.locator("#model-banner")).to_have_text(
        "Answers come from the scripted demo model, not from a language model."
    )
    run = await chat.run(peer, "why?")
    await peer.send(run.content(contents.CHAT), run.done())
    await expect(chat.answers).to_contain_text("Scripted demo model")


async def test_real_model_has_no_label(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    await peer.send(run.content(contents.CHAT), run.done())
    await expect(chat.answers).to_be_visible()
    await expect(page.locator("#model-banner")).to_be_hidden()
    await expect(chat.answers).not_to_contain_text("Scripted")


@pytest.mark.spec("WIRE-1", "CANCEL-3")
@pytest.mark.parametrize("way", ["button", "escape"])
async def test_running_question_is_cancelled(page: Page, chat: Chat, way: str) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    if way == "button":
        await page.locator("#cancel").click()
    else:
        await chat.question.press("Escape")
    assert await peer.expect("cancel") == {"action": "cancel", "runId": "r1"}
    await expect(page.locator(".now .current")).to_have_text("Cancelling")
    await peer.send(run.cancelled())
    await expect(chat.turns).to_have_attribute("data-state", "cancelled")
    await expect(page.locator("#cancel")).to_be_hidden()
    await expect(chat.question).to_be_focused()


@pytest.mark.spec("WIRE-1", "CANCEL-3")
async def test_cancel_before_the_run_is_known_is_sent_when_it_is(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    await chat.ask("why?")
    message = await peer.expect("chat")
    await chat.question.press("Escape")
    assert peer.sent("cancel") == []
    await peer.send(Run(message["requestId"]).started())
    assert await peer.expect("cancel") == {"action": "cancel", "runId": "r1"}
    assert len(peer.sent("cancel")) == 1


async def test_double_enter_sends_once(page: Page, chat: Chat) -> None:  # P162
    peer = await chat.open()
    await chat.question.fill("why?")
    await page.evaluate(
        """() => {
            const box = document.querySelector('#question');
            for (let i = 0; i < 2; i += 1) {
                const options = { key: 'Enter', bubbles: true, cancelable: true };
                box.dispatchEvent(new KeyboardEvent('keydown', options));
            }
        }"""
    )
    message = await peer.expect("chat")
    run = Run(message["requestId"])
    await peer.send(run.started(), run.content(contents.CHAT), run.done())
    await expect(chat.turns).to_have_count(1)
    await expect(chat.turns).to_have_attribute("data-state", "done")
    assert len(peer.sent("chat")) == 1


async def test_second_question_while_one_runs_is_refused_here_and_kept(chat: Chat) -> None:  # P162
    peer = await chat.open()
    run = await chat.run(peer, "first")
    await chat.ask("second")
    await expect(chat.notices).to_contain_text("your text is kept")
    assert await chat.draft() == "second"
    await peer.send(run.content(contents.CHAT), run.done())
    await expect(chat.turns).to_have_attribute("data-state", "done")
    await chat.question.press("Enter")
    assert (await peer.expect("chat")) | {"requestId": ""} == {
        "action": "chat",
        "requestId": "",
        "sessionId": "s1",
        "query": "second",
    }
    assert len(peer.sent("chat")) == 2
    await expect(chat.notices).to_have_count(0)


async def test_enter_of_an_input_method_does_not_send(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    await chat.question.fill("网关")
    await page.evaluate(
        """() => document.querySelector('#question').dispatchEvent(new KeyboardEvent('keydown',
            { key: 'Enter', isComposing: true, bubbles: true, cancelable: true }))"""
    )
    await chat.question.press("Shift+Enter")
    assert await chat.draft() == "网关\n"
    await chat.ask("end")
    assert (await peer.expect("chat"))["query"] == "end"


async def test_length_is_checked_before_sending(page: Page, chat: Chat) -> None:  # P004
    peer = await chat.open()
    for text in ("x" * 8_001, "😀" * 6_145, "\x01" * 7_000):
        await chat.ask(text)
        await expect(chat.notices).to_contain_text("too long")
        await expect(page.locator("#counter")).to_contain_text("Too long")
        assert await chat.draft() == text
        await chat.notices.get_by_role("button").click()
    await chat.ask(" \n\t")
    assert await chat.draft() == " \n\t"
    await chat.ask("short")
    assert (await peer.expect("chat"))["query"] == "short"


async def test_longest_questions_are_sent_whole(chat: Chat) -> None:  # P004
    peer = await chat.open()
    texts = ["x" * 8_000, "😀" * 6_000, "汉" * 8_000, "\U00020000" * 6_144]
    for number, text in enumerate(texts):
        run = await chat.run(peer, text, run_id=f"r{number}")
        assert peer.sent("chat")[-1]["query"] == text
        await peer.send(run.cancelled())
        await expect(chat.turns.nth(number)).to_have_attribute("data-state", "cancelled")


async def test_counter_shows_only_near_the_limit(page: Page, chat: Chat) -> None:
    await chat.open()
    counter = page.locator("#counter")
    await chat.question.fill("x" * 7_000)
    await expect(counter).to_be_hidden()
    await chat.question.fill("x" * 7_500)
    await expect(counter).to_contain_text("7,500 of 8,000 characters")


async def test_unpaired_surrogate_is_replaced(page: Page, chat: Chat) -> None:  # P022
    peer = await chat.open()
    await page.evaluate("document.querySelector('#question').value = 'a\\ud83d oops'")
    await chat.question.press("Enter")
    assert (await peer.expect("chat"))["query"] == "a\ufffd oops"


@pytest.mark.spec("WIRE-1")
async def test_refused_question_keeps_its_text_and_id_for_another_try(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    await chat.ask("why?")
    first = await peer.expect("chat")
    await peer.send(error_frame(SessionBusy(), first["requestId"]))
    await expect(chat.turns).to_have_attribute("data-state", "refused")
    await expect(chat.turns).to_contain_text("Another question is being answered in this conversation")
    await expect(chat.turns).to_contain_text("why?")
    await page.get_by_role("button", name="Ask again").click()
    assert await peer.expect("chat") == first
    await expect(chat.turns).to_have_count(1)


async def test_conflicting_request_gets_a_new_id(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    await chat.ask("why?")
    first = await peer.expect("chat")
    await peer.send(error_frame(RequestConflict(), first["requestId"]))
    await page.get_by_role("button", name="Ask again").click()
    second = await peer.expect("chat")
    assert second["query"] == first["query"]
    assert second["requestId"] != first["requestId"]
    await expect(chat.turns).to_have_count(1)


async def test_refused_question_can_be_edited(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    await chat.ask("bad")
    message = await peer.expect("chat")
    await peer.send(error_frame(InvalidQuery(), message["requestId"]))
    await chat.question.fill("already typing")
    await page.get_by_role("button", name="Edit").click()
    assert await chat.draft() == "already typing\n\nbad"
    await expect(chat.turns).to_have_count(0)


async def test_question_to_a_lost_session_can_start_another(page: Page, chat: Chat) -> None:
    peer = await chat.open("gone")
    await chat.ask("why?")
    message = await peer.expect("chat")
    assert message["sessionId"] == "gone"
    await peer.send(error_frame(SessionNotFound(), message["requestId"]))
    await page.get_by_role("button", name="Ask in a new conversation").click()
    assert "sessionId" not in await peer.expect("chat")


async def test_failed_run_says_why_by_code_and_can_be_asked_again(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    await peer.send(run.error("ROUTING_UNAVAILABLE"))
    await expect(chat.turns).to_contain_text("could not tell what kind of question")
    await page.get_by_role("button", name="Ask again").click()
    again = await peer.expect("chat")
    assert again["query"] == "why?"
    assert again["requestId"] != run.ids["request_id"]


async def test_unknown_code_shows_the_services_text(chat: Chat) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    await peer.send(run.error("FROM_THE_FUTURE", "The moon is in the way."))
    await expect(chat.turns).to_contain_text("The moon is in the way.")


async def test_example_fills_the_question_box(page: Page, chat: Chat) -> None:
    await chat.open()
    await page.get_by_role("button", name="What can you do?").click()
    assert await chat.draft() == "What can you do?"
    await expect(chat.question).to_be_focused()


async def test_works_on_a_narrow_screen(page: Page, chat: Chat, server: ScriptedServer) -> None:
    server.turns = {"s7": [Run("q7", "s7", "r7").turn("older question", contents.DIAGNOSIS)]}
    await page.set_viewport_size({"width": 360, "height": 640})
    await chat.open()
    await page.locator("#toggle-sessions").click()
    await page.get_by_role("link", name="older question").click()
    await expect(chat.answers).to_be_visible()
    await expect(page.locator("nav")).to_be_hidden()
    await page.get_by_role("button", name="Evidence S1").first.click()
    assert await page.evaluate("document.documentElement.scrollWidth") == 360
    assert await page.evaluate("document.querySelector('#transcript').scrollWidth") <= 360
