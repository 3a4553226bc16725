"""Nothing that was asked or answered is lost: reloads, dropped connections, missing and foreign frames."""

import pytest
from playwright.async_api import Page, expect

from superbizagent.domain.run import ReleaseOutcome, RunStatus
from superbizagent.errors import SessionNotFound, StoreError, Unauthenticated
from superbizagent.history_frames import HistoryFrame
from superbizagent.websocket import error_frame
from tests.e2e import contents
from tests.e2e.page_object import Chat
from tests.e2e.scripted_server import Message, Run, ScriptedServer

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.spec("WIRE-5")
async def test_reload_finds_the_finished_answer(page: Page, chat: Chat, server: ScriptedServer) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    await peer.send(run.content(contents.DIAGNOSIS), run.done())
    await expect(chat.answers).to_be_visible()
    server.turns = {"s1": [run.turn("why?", contents.DIAGNOSIS)]}

    await page.reload()
    await chat.connected()
    await expect(chat.turns).to_have_count(1)
    await expect(chat.answers).to_contain_text(contents.DIAGNOSIS.conclusion)
    await expect(chat.turns).to_contain_text("why?")
    await page.get_by_role("button", name="Evidence S1").first.click()
    await expect(page.locator(".panel mark").first).to_be_visible()


@pytest.mark.spec("WIRE-5")
async def test_reload_shows_turns_in_every_state(chat: Chat, server: ScriptedServer) -> None:
    server.turns = {
        "s1": [
            Run("q1", "s1", "r1").turn("alpha", contents.FALLBACK, outcome=ReleaseOutcome.FALLBACK),
            Run("q2", "s1", "r2").turn(
                "beta", status=RunStatus.FAILED, outcome=ReleaseOutcome.FAILED, failure_code="RUN_ABANDONED"
            ),
            Run("q3", "s1", "r3").turn("gamma", status=RunStatus.CANCELLED, outcome=ReleaseOutcome.CANCELLED),
            Run("q4", "s1", "r4").turn("delta", query_truncated=True),
            Run("q5", "s1", "r5").running_turn("epsilon"),
        ]
    }
    await chat.open("s1")
    await expect(chat.turns).to_have_count(5)
    states = [await turn.get_attribute("data-state") for turn in await chat.turns.all()]
    assert states == ["done", "failed", "cancelled", "done", "running"]
    await expect(chat.turn("alpha")).to_contain_text("No conclusion")
    await expect(chat.turn("beta")).to_contain_text("stopped without an answer")
    await expect(chat.turn("delta")).to_contain_text("can’t be read")
    await expect(chat.turn("delta")).to_contain_text("The rest of this long question is not shown.")
    await expect(chat.turn("epsilon").locator(".spinner")).to_be_visible()


@pytest.mark.spec("WIRE-5")
async def test_running_turn_found_by_a_reload_is_looked_up_until_it_ends(chat: Chat, server: ScriptedServer) -> None:
    run = Run("q1")
    server.turns = {"s1": [run.running_turn("why?")]}
    await chat.open("s1")
    await expect(chat.turns).to_have_attribute("data-state", "running")
    server.turns = {"s1": [run.turn("why?", contents.CHAT)]}
    await expect(chat.answers).to_contain_text("I answer on-call questions.")


@pytest.mark.spec("WIRE-5")
async def test_earlier_turns_come_page_by_page(page: Page, chat: Chat, server: ScriptedServer) -> None:
    server.turns = {"s1": [Run(f"q{n}", "s1", f"r{n}").turn(f"question {n}.", contents.CHAT) for n in range(45)]}
    await chat.open("s1")
    await expect(chat.turns).to_have_count(20)
    earlier = page.get_by_role("button", name="Earlier questions")
    await earlier.click()
    await expect(chat.turns).to_have_count(40)
    await earlier.click()
    await expect(chat.turns).to_have_count(45)
    await expect(earlier).to_be_hidden()
    shown = await page.locator(".question .prose").all_inner_texts()
    assert shown == [f"question {n}." for n in range(45)]


@pytest.mark.spec("WIRE-5")
async def test_end_of_history_that_arrives_twice_ends_no_other_answer(
    page: Page, chat: Chat, server: ScriptedServer
) -> None:
    """A post whose answer was lost is made again, and frames of history have no number that tells."""
    server.turns = {"s1": [Run(f"q{n}", "s1", f"r{n}").turn(f"question {n}.", contents.CHAT) for n in range(25)]}
    once = server.history

    def twice(message: Message) -> list[HistoryFrame]:
        return [*once(message), once(message)[-1]]

    server.history = twice  # type: ignore[method-assign]
    await chat.open("s1")
    await expect(chat.turns).to_have_count(20)
    await page.get_by_role("button", name="Earlier questions").click()
    await expect(chat.turns).to_have_count(25)


@pytest.mark.spec("WIRE-1", "LIFE-6")
async def test_refusal_that_arrives_twice_does_not_end_the_next_try(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    await chat.ask("why?")
    asked = await peer.expect("chat")
    refusal = error_frame(StoreError(), asked["requestId"])
    await peer.send(refusal)
    await page.get_by_role("button", name="Ask again").click()
    assert await peer.expect("chat") == asked
    run = Run(asked["requestId"])
    await peer.send(refusal, run.started(), run.status("ROUTING"))
    await expect(chat.turns).to_have_attribute("data-state", "running")
    await peer.send(run.content(contents.CHAT), run.done())
    await expect(chat.turns).to_have_attribute("data-state", "done")
    await expect(chat.answers).to_have_count(1)


@pytest.mark.spec("WIRE-1", "LIFE-6")
async def test_question_without_acknowledgement_is_sent_again_with_its_id(
    chat: Chat, server: ScriptedServer
) -> None:  # P148, P159
    peer = await chat.open()
    await chat.ask("why?")
    first = await peer.expect("chat")
    await peer.close()

    peer = await chat.connected()
    assert await peer.expect("chat") == first
    run = Run(first["requestId"])
    server.turns = {"s1": [run.turn("why?", contents.CHAT)]}
    await peer.send(run.started(replayed=True), run.content(contents.CHAT, replayed=True))
    await peer.send(run.done(replayed=True))
    await expect(chat.turns).to_have_count(1)
    await expect(chat.answers).to_have_count(1)
    await expect(chat.turns).to_have_attribute("data-state", "done")


@pytest.mark.spec("WIRE-1", "LIFE-6")
async def test_reload_before_the_acknowledgement_sends_the_same_question(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    await chat.ask("why?")
    first = await peer.expect("chat")
    await page.reload()
    peer = await chat.connected()
    assert await peer.expect("chat") == first
    await expect(chat.turns).to_have_count(1)


async def test_question_asked_while_disconnected_is_sent_on_connecting(
    page: Page, chat: Chat, server: ScriptedServer
) -> None:
    peer = await chat.open()
    server.refusal = 503
    await peer.close()
    await expect(chat.connection).to_have_attribute("data-state", "waiting")
    await chat.ask("why?")
    await expect(page.locator(".now .current")).to_contain_text("Waiting for the connection")
    server.refusal = None
    peer = await chat.connected()
    assert (await peer.expect("chat"))["query"] == "why?"


async def test_draft_survives_a_reload(page: Page, chat: Chat) -> None:
    await chat.open()
    await chat.question.fill("half a thought")
    await page.reload()
    await chat.connected()
    assert await chat.draft() == "half a thought"


@pytest.mark.spec("WIRE-5")
async def test_lost_end_is_found_in_history_after_reconnecting(
    chat: Chat, server: ScriptedServer
) -> None:  # P144, P145
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    await peer.send(run.status("INVESTIGATING"))
    server.turns = {"s1": [run.turn("why?", contents.DIAGNOSIS)]}
    await peer.close()

    peer = await chat.connected()
    await expect(chat.answers).to_have_count(1)
    await expect(chat.turns).to_have_count(1)
    await expect(chat.turns).to_have_attribute("data-state", "done")
    assert peer.sent("chat") == []


@pytest.mark.spec("WIRE-5")
async def test_silent_run_is_looked_up_when_the_tab_is_looked_at(
    page: Page, chat: Chat, server: ScriptedServer
) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    server.turns = {"s1": [run.turn("why?", contents.CHAT)]}
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(chat.answers).to_be_visible()


@pytest.mark.spec("WIRE-2")
async def test_duplicate_and_late_frames_change_nothing(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    routing, drafting = run.status("ROUTING"), run.status("DRAFTING")
    content, done = run.content(contents.CHAT), run.done()
    await peer.send(routing, routing, drafting, routing, content, content, done, done)
    late = Run(run.ids["request_id"])
    late.seq = run.seq
    await peer.send(late.status("ROUTING"), late.error("INTERNAL_FAILURE"), late.cancelled())
    second = await chat.run(peer, "next", run_id="r2")
    await peer.send(second.cancelled())
    await expect(chat.turns.nth(1)).to_have_attribute("data-state", "cancelled")

    first = chat.turns.first
    await expect(first).to_have_attribute("data-state", "done")
    await expect(first.locator(".answer")).to_have_count(1)
    await expect(first.locator(".past summary")).to_contain_text("2 steps")


@pytest.mark.spec("WIRE-2", "WIRE-5")
async def test_gap_in_the_numbers_asks_history(chat: Chat, server: ScriptedServer) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    server.turns = {"s1": [run.turn("why?", contents.DIAGNOSIS)]}
    lost = run.content(contents.DIAGNOSIS)
    await peer.send(run.done())
    await expect(chat.answers).to_contain_text(contents.DIAGNOSIS.conclusion)
    await peer.send(lost)
    await expect(chat.answers).to_have_count(1)


async def test_frames_of_another_session_leave_the_shown_one_alone(
    page: Page, chat: Chat, server: ScriptedServer
) -> None:  # P157
    server.turns = {"s2": [Run("q9", "s2", "r9").turn("in B", contents.CHAT)]}
    peer = await chat.open()
    run = await chat.run(peer, "in A", session_id="s1")
    await page.get_by_role("link", name="in B").click()
    await expect(chat.answers).to_be_visible()
    before = await page.locator("#transcript").inner_html()
    await peer.send(run.status("INVESTIGATING"), run.content(contents.DIAGNOSIS), run.done())
    await expect(chat.sessions.filter(has_text="in A")).to_contain_text("new answer")
    assert await page.locator("#transcript").inner_html() == before
    assert "#session=s2" in page.url

    await page.get_by_role("link", name="in A").click()
    await expect(chat.answers).to_contain_text(contents.DIAGNOSIS.conclusion)
    assert "#session=s1" in page.url
    await page.go_back()
    await expect(chat.turns).to_contain_text("in B")


async def test_frames_of_an_unknown_run_are_kept_for_its_session(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "mine")
    other = Run("someone", "s5", "r5")
    await peer.send(other.started(), other.content(contents.CHAT), other.done())
    await peer.send(run.content(contents.KNOWLEDGE), run.done())
    await expect(chat.answers).to_contain_text("Drain the instance first.")
    await expect(chat.turns).to_have_count(1)


async def test_new_conversation_does_not_show_the_old_run(page: Page, chat: Chat) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "old", session_id="s1")
    await page.get_by_role("button", name="New conversation").click()
    await chat.ask("new")
    message = await peer.expect("chat")
    assert "sessionId" not in message
    await peer.send(run.content(contents.CHAT), run.done())
    other = Run(message["requestId"], "s2", "r2")
    await peer.send(other.started(), other.content(contents.KNOWLEDGE), other.done())
    await expect(chat.answers).to_have_count(1)
    await expect(chat.answers).to_contain_text("Drain the instance first.")
    assert "#session=s2" in page.url
    await expect(chat.sessions).to_have_count(2)


async def test_gateway_error_is_no_answer_and_no_end(page: Page, chat: Chat) -> None:  # P007
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    await peer.send({"message": "Endpoint request timed out", "connectionId": "c", "requestId": "g"})
    await expect(chat.notices).to_contain_text("Endpoint request timed out")
    await expect(chat.notices).to_contain_text("gateway")
    await expect(chat.turns).to_have_attribute("data-state", "running")
    await expect(chat.answers).to_have_count(0)
    await peer.send(run.content(contents.CHAT), run.done())
    await expect(chat.answers).to_be_visible()


async def test_what_is_no_frame_is_survived(chat: Chat) -> None:
    peer = await chat.open()
    run = await chat.run(peer, "why?")
    junk = ["", "null", "[]", "5", "{", '{"type":"future"}', '{"type":5}', '{"type":"content"}', "[" * 5_000]
    await peer.send(*junk, {"type": "history", "kind": "turn", "turn": None, "sessionId": "s1"})
    await peer.send(run.content(contents.CHAT), run.done())
    await expect(chat.answers).to_be_visible()
    await expect(chat.turns).to_have_count(1)


ODD_CONTENTS: list[dict[str, object]] = [
    {"type": "DIAGNOSIS"},
    {"type": "DIAGNOSIS", "claims": [None, 5, {"sourceIds": "S1", "quotes": [5]}], "sources": {}},
    {"type": "DIAGNOSIS", "conclusion": {"a": 1}, "sources": [{"id": "S1"}], "claims": [{"text": "t"}]},
    {"type": "FALLBACK", "reason": "__proto__", "missingContext": ["constructor"], "checked": [{}]},
    {"type": "FALLBACK", "checked": [{"status": "toString", "coverage": {"unit": "constructor"}}]},
    {"type": "KNOWLEDGE_ANSWER", "items": [{"documentIds": ["x"]}], "references": [{}]},
    {"type": "toString"},
    {},
]


async def test_content_of_another_shape_does_not_break_the_page(chat: Chat) -> None:
    peer = await chat.open()
    for number, content in enumerate(ODD_CONTENTS):
        run = await chat.run(peer, f"question {number}", run_id=f"r{number}")
        frame = run.content(contents.CHAT).model_dump(mode="json", exclude_none=True)
        await peer.send(frame | {"content": content}, run.done())
        await expect(chat.turns.nth(number)).to_have_attribute("data-state", "done")
        await expect(chat.answers).to_have_count(number + 1)


async def test_session_that_is_not_ours_says_so(chat: Chat, server: ScriptedServer) -> None:
    server.answers_history = False
    peer = await chat.open("stranger")
    while (await peer.expect("history")).get("sessionId") != "stranger":
        await peer.send(*server.history({"limit": 50}))
    await peer.send(error_frame(SessionNotFound()))
    await expect(chat.page.locator(".empty")).to_contain_text("No such conversation")


async def test_connection_that_is_not_signed_in_is_made_again_then_given_up(
    page: Page, chat: Chat, server: ScriptedServer
) -> None:
    server.answers_history = False

    for _ in range(3):
        peer = await chat.open() if not server.peers else await server.peer()
        await peer.send(error_frame(Unauthenticated()))
    await expect(chat.connection).to_have_attribute("data-state", "stopped")
    await expect(chat.connection).to_contain_text("doesn’t accept your sign-in")
    server.answers_history = True
    await page.get_by_role("button", name="Try now").click()
    await chat.connected()


async def test_keep_alive_stays_below_ten_minutes_and_disturbs_nothing(
    clocked_page: Page, timed_chat: Chat, server: ScriptedServer
) -> None:  # P017
    server.turns = {f"s{n}": [Run(f"q{n}", f"s{n}", f"r{n}").turn(f"in {n}")] for n in range(1, 4)}
    peer = await timed_chat.open("s1")
    await expect(timed_chat.sessions).to_have_count(3)
    await expect(timed_chat.turns).to_have_count(1)
    asked = len(peer.sent("history"))
    transcript = await clocked_page.locator("#transcript").inner_html()
    await clocked_page.clock.run_for(5 * 60_000 + 1_000)
    while len(peer.sent("history")) == asked:
        await peer.expect("history")
    await expect(timed_chat.sessions).to_have_count(3)
    pings = peer.sent("history")[asked:]
    assert pings == [{"action": "history", "limit": 1}]
    assert await clocked_page.locator("#transcript").inner_html() == transcript
    await clocked_page.clock.run_for(5 * 60_000)
    while len(peer.sent("history")) == asked + 1:
        await peer.expect("history")


async def test_connection_that_answers_nothing_is_replaced(
    clocked_page: Page, timed_chat: Chat, server: ScriptedServer
) -> None:
    server.answers_history = False
    await timed_chat.open()
    await clocked_page.clock.run_for(40_000)
    await timed_chat.connected()


async def test_question_that_nobody_takes_can_be_sent_again(clocked_page: Page, timed_chat: Chat) -> None:
    peer = await timed_chat.open()
    await timed_chat.ask("why?")
    first = await peer.expect("chat")
    await clocked_page.clock.run_for(17_000)
    await clocked_page.get_by_role("button", name="Send again").click()
    assert await peer.expect("chat") == first
