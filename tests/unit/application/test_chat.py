import asyncio
import gc
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from superbizagent.application.executors.knowledge_query import NO_EVIDENCE
from superbizagent.domain.content import FallbackContent, SystemChatContent
from superbizagent.domain.conversation import ModelReply, ModelRequest
from superbizagent.domain.run import Intent, ReleaseOutcome, RunStatus
from superbizagent.errors import (
    ClientGone,
    InvalidSessionId,
    RequestConflict,
    RequestError,
    RunPersistenceFailed,
    SessionBusy,
    SessionNotFound,
    StoreError,
)
from superbizagent.ports import NewRun, RunEnd
from tests.fakes.clock import FakeClock
from tests.fakes.model import HANG, FakeModel, call, calls, draft, intent, text, verdicts
from tests.fakes.observer import FakeObserver
from tests.fakes.sources import LINES, FakeSource, log_evidence, sources
from tests.fakes.store import CancelRow, FakeCancelRequests, FakeRunStore
from tests.unit.application.stage import QUERY, Stage, limits, request
from tests.unit.application.test_agent import GOOD, LOGS


class LoopClock:
    """Clock of the event loop, for what really passes time."""

    def now(self) -> datetime:
        return datetime(2026, 11, 30, 15, tzinfo=UTC) + timedelta(seconds=time.monotonic() % 1_000)

    def monotonic(self) -> float:
        return time.monotonic()


def hello(*after: Any) -> FakeModel:
    return FakeModel(intent("SYSTEM_CHAT"), text("Hello."), *after)


def diagnosis() -> FakeModel:
    return FakeModel(intent("DIAGNOSIS"), calls(call("query_logs", LOGS)), draft(**GOOD), verdicts(True, True))


async def leftovers() -> set[asyncio.Task[Any]]:
    """Tasks that a run left behind."""
    await asyncio.sleep(0)
    return asyncio.all_tasks() - {asyncio.current_task()}


# Sessions and identity --------------------------------------------------------------------------


@pytest.mark.spec("LIFE-1", "EXEC-1")
async def test_one_session_one_run_one_query_everywhere() -> None:
    stage = Stage(hello())

    result = await stage.run("  Hello,\n\tüñî 你好  ", session_id="my-session_1")

    assert result.session_id == stage.row.new.session_id == "my-session_1"
    assert result.request_id == "r1"
    assert stage.observer.control is not None
    assert stage.observer.control.session_id == "my-session_1"
    assert result.run_id == stage.row.new.run_id == stage.observer.control.run_id
    assert (stage.row.new.owner, stage.row.new.connection_id, stage.row.new.request_id) == ("ada", "c1", "r1")
    assert stage.row.new.query == "  Hello,\n\tüñî 你好  " == stage.model.requests[1].messages[1].content
    assert result.content == SystemChatContent(text="Hello.")


@pytest.mark.spec("LIFE-1")
async def test_a_request_without_a_session_gets_a_new_valid_one() -> None:
    ids = set()
    for _ in range(5):
        result = await Stage(hello()).run()
        ids |= {result.session_id, result.run_id}
        assert (await Stage(hello()).run(session_id=result.session_id)).session_id == result.session_id
    assert len(ids) == 10


@pytest.mark.spec("LIFE-1")
@pytest.mark.parametrize("session_id", ["", " ", "a b", "a/b", "ä", "x" * 65, "a\n", "\x00"])
async def test_a_bad_session_id_creates_nothing(session_id: str) -> None:
    stage = Stage(hello())

    with pytest.raises(InvalidSessionId):
        await stage.run(session_id=session_id)

    assert not stage.database.calls
    assert not stage.observer.events


@pytest.mark.spec("ISO-2")
async def test_anothers_session_is_not_found() -> None:
    stage = Stage(hello())
    first = await stage.run()
    other = Stage(hello(), database=stage.database)

    with pytest.raises(SessionNotFound):
        await other.run(owner="eve", session_id=first.session_id, request_id="r2")

    assert not other.model.requests
    assert len(stage.database.runs) == 1


# Order ------------------------------------------------------------------------------------------


@pytest.mark.spec("LIFE-2", "LIFE-4", "OBS-1", "CANCEL-1")
async def test_the_order_of_a_run() -> None:
    stage = Stage(diagnosis(), poll_interval=60.0)
    stage.observer.on_event = lambda code: stage.database.calls.append(f"-> {code}")

    await stage.run()

    assert stage.database.calls == [
        "prior_context",
        "start",
        "-> started",
        "pending",
        "-> ROUTING",
        "set_intent",
        "-> ROUTED",
        "-> INVESTIGATING",
        "-> TOOL_STARTED",
        "-> TOOL_FINISHED",
        "-> CHECKING_EVIDENCE",
        "-> CHECKING_MEANING",
        "finish",
    ]
    statuses = dict(stage.observer.events[1:])
    assert statuses["ROUTED"] == {"intent": "DIAGNOSIS"}
    assert statuses["TOOL_FINISHED"] == {"tool": "query_logs", "status": "READY"}
    assert stage.row.intent is Intent.DIAGNOSIS


@pytest.mark.spec("LIFE-2", "PREV-1", "EXEC-3")
async def test_a_follow_up_sees_the_turn_before_and_never_itself() -> None:
    first = Stage(diagnosis())
    result = await first.run()
    second = Stage(diagnosis(), database=first.database)
    await second.run("And now?", session_id=result.session_id, request_id="r2")

    routed = second.model.requests[0].messages[1].content
    assert routed == '{"query": "And now?", "last_intent": "DIAGNOSIS", "last_user_query": "' + QUERY + '"}'
    question = second.model.requests[1].messages[1].content
    assert '"conclusion": "The payment gateway timed out."' in question
    assert f'"previous_turn": {{"query": "{QUERY}"' in question


@pytest.mark.spec("LIFE-3", "STORE-3", "BUDGET-1")
async def test_the_end_is_stored_with_all_it_needs() -> None:
    clock = FakeClock()
    stage = Stage(diagnosis(), clock=clock)
    stage.observer.on_event = lambda _: clock.advance(0.25)

    result = await stage.run()

    row = stage.row
    assert (row.status, row.outcome, row.failure_code) == ("SUCCESS", ReleaseOutcome.SUCCESS, None)
    assert row.content == result.content.model_dump_json(exclude_none=True)  # type: ignore[union-attr]
    assert row.published_result is not None
    assert (row.model_calls, row.tool_calls, row.tokens) == (4, 1, 40)
    assert row.duration_ms == 250 * len(stage.observer.events)
    assert row.finished_at == clock.now()
    assert row.new.deadline_at == row.new.created_at + timedelta(seconds=180)


# Executors --------------------------------------------------------------------------------------


@pytest.mark.spec("EXEC-1", "ROUTE-2")
async def test_system_chat_is_one_call_without_tools_or_history() -> None:
    logs, database, knowledge = (FakeSource(log_evidence()) for _ in range(3))
    first = Stage(hello())
    session = (await first.run()).session_id
    stage = Stage(hello(), database=first.database, sources=sources(logs, database, knowledge))

    await stage.run("thanks", session_id=session, request_id="r2")

    _, chat = stage.model.requests
    assert [message.role for message in chat.messages] == ["system", "user"]
    assert chat.messages[0].content.startswith("You are SuperBizAgent")
    assert chat.messages[1].content == "thanks"
    assert not chat.tools
    assert chat.output is None
    assert chat.messages[0] == first.model.requests[1].messages[0]
    assert [*logs.asked, *database.asked, *knowledge.asked] == []
    assert stage.observer.codes == ["started", "ROUTING", "ROUTED", "ANSWERING"]
    assert stage.database.runs[-1].published_result is None


@pytest.mark.parametrize("reply", [text(""), text(" \n "), ModelReply(content="", tool_calls=(call("query_logs"),))])
async def test_an_empty_chat_answer_is_no_answer(reply: ModelReply) -> None:
    result = await Stage(FakeModel(intent("SYSTEM_CHAT"), reply)).run()

    assert (result.outcome, result.failure_code) == (ReleaseOutcome.FAILED, "MODEL_REPLY_INVALID")


@pytest.mark.spec("WIRE-4")
@pytest.mark.parametrize("character", ["x", "界", "🫠", '"', "\\", "\x01", "\n"])
async def test_chat_answers_are_bounded_as_they_are_stored(character: str) -> None:
    stage = Stage(FakeModel(intent("SYSTEM_CHAT"), text("a" + character * 60_000 + "b")))

    await stage.run()

    assert stage.row.content is not None
    assert len(stage.row.content.encode()) < 9_000


@pytest.mark.spec("SEC-3")
async def test_chat_answers_carry_no_links() -> None:
    reply = (
        "See [the docs](https://evil.test/?q=1), https://evil.test/a, ![x](http://evil.test/i.png) or ftp://evil.test."
    )

    result = await Stage(FakeModel(intent("SYSTEM_CHAT"), text(reply))).run()

    assert isinstance(result.content, SystemChatContent)
    assert "evil.test" not in result.content.text
    assert "the docs" in result.content.text


# Failures ---------------------------------------------------------------------------------------


def assert_ended_once(stage: Stage, outcome: ReleaseOutcome, code: str | None = None) -> None:
    row = stage.row
    assert (row.outcome, row.failure_code) == (outcome, code)
    assert row.status is outcome.status
    assert stage.database.calls.count("finish") == 1
    if outcome in (ReleaseOutcome.FAILED, ReleaseOutcome.CANCELLED):
        assert row.content is None
        assert row.published_result is None


@pytest.mark.spec("LIFE-4", "LIFE-5")
@pytest.mark.parametrize("method", ["prior_context", "start", "set_intent", "finish"])
async def test_a_persistence_error_is_never_a_success(method: str) -> None:
    stage = Stage(diagnosis())
    stage.database.fail_next(method)

    if method == "set_intent":
        result = await stage.run()
        assert (result.outcome, result.failure_code) == (ReleaseOutcome.FAILED, "RUN_PERSISTENCE_FAILED")
        assert result.content is None
        assert_ended_once(stage, ReleaseOutcome.FAILED, "RUN_PERSISTENCE_FAILED")
        assert len(stage.model.requests) == 1, "no executor was called"
    else:
        with pytest.raises(RunPersistenceFailed):
            await stage.run()
        assert bool(stage.observer.events) is (method == "finish")


@pytest.mark.spec("LIFE-4", "LIFE-5")
@pytest.mark.parametrize("method", ["prior_context", "start", "set_intent", "finish"])
async def test_no_foreign_error_of_a_store_leaves_the_use_case(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("mysql://root:pw@10.0.0.9")

    monkeypatch.setattr(FakeRunStore, method, broken)
    stage = Stage(diagnosis())
    if method == "set_intent":
        assert (await stage.run()).failure_code == "RUN_PERSISTENCE_FAILED"
    else:
        with pytest.raises(RunPersistenceFailed) as raised:
            await stage.run()
        assert "10.0.0.9" not in str(raised.value)


@pytest.mark.spec("LIFE-4")
async def test_a_finish_that_hangs_is_a_persistence_error() -> None:
    stage = Stage(hello(), limits=limits(terminal_write=0.02))
    stage.database.pause_next("finish")

    with pytest.raises(RunPersistenceFailed):
        await stage.run()

    assert not await leftovers()


@pytest.mark.spec("LIFE-5")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("prompt text, 10.0.0.9"), "INTERNAL_FAILURE"),
        (KeyError("choices"), "INTERNAL_FAILURE"),
        (asyncio.CancelledError(), "INTERNAL_FAILURE"),
        (ExceptionGroup("x", [ValueError()]), "INTERNAL_FAILURE"),
        (RequestError(), "INTERNAL_FAILURE"),
    ],
)
@pytest.mark.parametrize("at", [0, 1, 2, 3])
async def test_whatever_is_raised_ends_in_one_terminal_row(error: BaseException, code: str, at: int) -> None:
    script: list[Any] = [intent("DIAGNOSIS"), calls(call("query_logs", LOGS)), draft(**GOOD), verdicts(True, True)]
    script[at] = error
    stage = Stage(FakeModel(*script))

    result = await stage.run()

    assert (result.outcome, result.failure_code, result.content) == (ReleaseOutcome.FAILED, code, None)
    assert_ended_once(stage, ReleaseOutcome.FAILED, code)
    assert "10.0.0.9" not in repr(result)
    assert not await leftovers()


@pytest.mark.spec("SEC-4", "LIFE-5")
async def test_a_defect_is_logged_by_its_place_and_a_cancellation_is_none(caplog: pytest.LogCaptureFixture) -> None:
    await Stage(FakeModel(intent("SYSTEM_CHAT"), RuntimeError("10.0.0.9"))).run()
    (failed,) = [record for record in caplog.records if record.message == "run failed"]
    assert failed.__dict__["defect"].startswith("RuntimeError at model.py:")
    caplog.clear()

    stage = Stage(FakeModel(intent("SYSTEM_CHAT"), HANG))
    await cancelled(stage, stage.model.hanging)

    assert "run failed" not in caplog.messages


@pytest.mark.spec("OBS-2", "LIFE-5")
@pytest.mark.parametrize("at", range(1, 10))
@pytest.mark.parametrize("error", [RuntimeError("secret"), ClientGone("410"), TimeoutError()])
async def test_an_observer_that_fails_ends_the_run(at: int, error: Exception) -> None:
    stage = Stage(diagnosis(), observer=FakeObserver(fails_at=at, error=error))

    result = await stage.run()

    if at > 8:
        assert result.outcome is ReleaseOutcome.SUCCESS
    elif isinstance(error, ClientGone):
        assert_ended_once(stage, ReleaseOutcome.CANCELLED)
    else:
        assert_ended_once(stage, ReleaseOutcome.FAILED, "OBSERVER_FAILED")
    assert stage.observer.seen == min(at, 8), "nothing is reported after the observer has failed"
    assert result.outcome is stage.row.outcome
    assert not await leftovers()


# Repeats ----------------------------------------------------------------------------------------


@pytest.mark.spec("LIFE-6")
@pytest.mark.parametrize(("gateway", "redelivered"), [("g1", True), ("g2", False)])
async def test_the_same_request_again_is_the_same_run(gateway: str, redelivered: bool) -> None:
    stage = Stage(hello())
    first = await stage.run()
    again = Stage(FakeModel(), database=stage.database)

    result = await again.run(gateway_request_id=gateway)

    assert (result.run_id, result.session_id, result.content) == (first.run_id, first.session_id, first.content)
    assert (result.repeated, result.redelivered, result.outcome) == (True, redelivered, ReleaseOutcome.SUCCESS)
    assert (result.request_id, result.failure_code) == ("r1", None)
    assert len(stage.database.runs) == 1
    assert not again.observer.events
    assert not again.model.requests


@pytest.mark.spec("LIFE-6")
async def test_a_resend_of_a_failed_run_gets_its_code() -> None:
    stage = Stage(FakeModel())
    await stage.run()

    result = await Stage(FakeModel(), database=stage.database).run(gateway_request_id="g2")

    assert (result.outcome, result.failure_code) == (ReleaseOutcome.FAILED, "ROUTING_UNAVAILABLE")


@pytest.mark.spec("LIFE-6")
async def test_a_resend_during_the_run_gets_its_ids() -> None:
    stage = Stage(FakeModel(intent("SYSTEM_CHAT"), HANG))
    running = asyncio.create_task(stage.run())
    await stage.model.hanging.wait()

    result = await Stage(FakeModel(), database=stage.database).run(gateway_request_id="g2")

    assert (result.run_id, result.outcome, result.content) == (stage.row.new.run_id, None, None)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.spec("LIFE-6")
async def test_the_same_request_id_with_another_question_is_refused() -> None:
    stage = Stage(hello())
    await stage.run()

    with pytest.raises(RequestConflict):
        await Stage(hello(), database=stage.database).run(QUERY + " ")

    assert len(stage.database.runs) == 1


async def test_a_busy_session_takes_no_second_question() -> None:
    stage = Stage(FakeModel(intent("SYSTEM_CHAT"), HANG))
    running = asyncio.create_task(stage.run(session_id="s"))
    await stage.model.hanging.wait()

    with pytest.raises(SessionBusy):
        await Stage(hello(), database=stage.database).run(session_id="s", request_id="r2")

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.spec("LIFE-3", "LIFE-7")
async def test_who_loses_the_finish_publishes_nothing() -> None:
    stage = Stage(hello())
    pause = stage.database.pause_next("finish")
    running = asyncio.create_task(stage.run())
    await pause.reached.wait()
    stage.row.abandon(FakeClock().now())
    pause.release()

    result = await running

    assert (result.outcome, result.failure_code, result.content) == (ReleaseOutcome.FAILED, "RUN_ABANDONED", None)
    assert (result.session_id, result.run_id) == (stage.row.new.session_id, stage.row.new.run_id)
    assert (result.request_id, result.repeated) == ("r1", False)
    assert stage.row.content is None


@pytest.mark.spec("LIFE-3", "LIFE-4")
async def test_a_run_whose_row_is_gone_has_no_outcome() -> None:
    stage = Stage(hello())
    pause = stage.database.pause_next("finish")
    running = asyncio.create_task(stage.run())
    await pause.reached.wait()
    stage.database.runs.clear()
    pause.release()

    result = await running

    assert (result.outcome, result.failure_code, result.content) == (None, None, None)


@pytest.mark.spec("LIFE-3")
async def test_who_loses_the_finish_to_a_success_says_nothing_of_it() -> None:
    stage = Stage(hello())
    pause = stage.database.pause_next("finish")
    running = asyncio.create_task(stage.run())
    await pause.reached.wait()
    stage.row.status, stage.row.outcome = RunStatus.SUCCESS, ReleaseOutcome.SUCCESS
    pause.release()

    result = await running

    assert (result.outcome, result.content) == (None, None)


# Cancellation -----------------------------------------------------------------------------------


async def cancelled(stage: Stage, when: asyncio.Event | None = None, **changes: Any) -> None:
    """Runs, asks for the end by a row once `when` has happened, and checks that it is stored once."""
    running = asyncio.create_task(stage.run(**changes))
    if when is not None:
        await when.wait()
        await FakeCancelRequests(stage.database).cancel_run(stage.row.new.run_id, "ada", stage.clock.now())
    result = await asyncio.wait_for(running, 5)
    assert (result.outcome, result.content, result.failure_code) == (ReleaseOutcome.CANCELLED, None, None)
    assert_ended_once(stage, ReleaseOutcome.CANCELLED)
    assert not await leftovers()


@pytest.mark.spec("CANCEL-1")
async def test_a_disconnect_before_the_run_prevents_all_work() -> None:
    stage = Stage(hello())
    await FakeCancelRequests(stage.database).cancel_connection("c1", stage.clock.now())

    await cancelled(stage)

    assert not stage.model.requests
    assert stage.observer.codes == ["started"]


@pytest.mark.spec("CANCEL-2", "ROUTE-5")
async def test_cancel_while_routing() -> None:
    stage = Stage(FakeModel(HANG))

    await cancelled(stage, stage.model.hanging)

    assert stage.model.cancelled == 1
    assert len(stage.model.requests) == 1
    assert stage.row.intent is None


@pytest.mark.spec("CANCEL-2")
@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_cancel_while_the_model_hangs(turns: int) -> None:
    script = [calls(call("query_logs", LOGS)), draft(**GOOD)][:turns]
    stage = Stage(FakeModel(intent("DIAGNOSIS"), *script, HANG))

    await cancelled(stage, stage.model.hanging)

    assert stage.model.cancelled == 1


@pytest.mark.spec("CANCEL-2")
async def test_cancel_while_tools_run() -> None:
    source = FakeSource(log_evidence(*LINES))
    source.gate = asyncio.Event()
    turn = calls(*(call("query_logs", {"source": name}, name) for name in "abc"))
    stage = Stage(FakeModel(intent("DIAGNOSIS"), turn), sources=sources(logs=source))
    crowded = asyncio.Event()
    waiting = asyncio.create_task(source.crowded(3))
    waiting.add_done_callback(lambda _: crowded.set())

    await cancelled(stage, crowded)

    assert source.cancelled == 3
    assert stage.row.tool_calls == 3


@pytest.mark.spec("CANCEL-2", "LIFE-5")
@pytest.mark.parametrize("name", ["SYSTEM_CHAT", "KNOWLEDGE_QUERY"])
async def test_cancel_in_the_other_executors(name: str) -> None:
    stage = Stage(FakeModel(intent(name), HANG))

    await cancelled(stage, stage.model.hanging)


@pytest.mark.spec("OBS-1", "LIFE-8", "CANCEL-2")
async def test_the_run_control_cancels_and_a_late_result_is_not_published() -> None:
    stage = Stage(FakeModel(intent("SYSTEM_CHAT")))

    def late(_: ModelRequest) -> ModelReply:
        assert stage.observer.control is not None
        stage.observer.control.cancel_client_disconnect()
        return text("too late")

    stage.model.then(late)

    await cancelled(stage)


@pytest.mark.spec("LIFE-3")
async def test_a_cancel_after_the_end_changes_nothing() -> None:
    stage = Stage(hello())
    result = await stage.run()
    assert stage.observer.control is not None

    stage.observer.control.cancel_client_disconnect()

    assert result.outcome is stage.row.outcome is ReleaseOutcome.SUCCESS


@pytest.mark.spec("CANCEL-4")
async def test_the_watch_survives_a_database_that_fails() -> None:
    stage = Stage(FakeModel(intent("SYSTEM_CHAT"), HANG))
    stage.database.fail_next("pending", 3)

    await cancelled(stage, stage.model.hanging)


@pytest.mark.spec("CANCEL-4")
async def test_the_watch_survives_what_no_store_should_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    original, failures = FakeCancelRequests.pending, [RuntimeError("x"), ValueError("y"), TimeoutError()]

    async def flaky(self: FakeCancelRequests, run_id: str, connection_id: str) -> Any:
        if failures:
            raise failures.pop()
        return await original(self, run_id, connection_id)

    monkeypatch.setattr(FakeCancelRequests, "pending", flaky)
    stage = Stage(FakeModel(intent("SYSTEM_CHAT"), HANG))

    await cancelled(stage, stage.model.hanging)


@pytest.mark.spec("LIFE-5", "CANCEL-2")
@pytest.mark.parametrize("method", ["start", "set_intent", "finish"])
async def test_a_shutdown_during_a_store_call_leaves_no_running_row(method: str) -> None:
    stage = Stage(hello())
    pause = stage.database.pause_next(method)
    running = asyncio.create_task(stage.run())
    await pause.reached.wait()

    running.cancel()
    await asyncio.sleep(0)
    pause.release()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert stage.row.outcome is (ReleaseOutcome.SUCCESS if method == "finish" else ReleaseOutcome.CANCELLED)
    assert stage.database.calls.count("finish") == 1
    assert not await leftovers()


@pytest.mark.spec("LIFE-4", "LIFE-5")
async def test_a_shutdown_while_the_end_cannot_be_stored_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    reached, let_go = asyncio.Event(), asyncio.Event()

    async def fail(*_: object) -> bool:
        reached.set()
        await let_go.wait()
        raise StoreError("finish was told to fail")

    monkeypatch.setattr(FakeRunStore, "finish", fail)
    running = asyncio.create_task(Stage(hello()).run())
    await reached.wait()

    running.cancel()
    await asyncio.sleep(0)
    let_go.set()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert not await leftovers()


@pytest.mark.spec("LIFE-5", "CANCEL-2")
async def test_a_shutdown_while_the_model_hangs_is_stored_and_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(FakeModel(intent("DIAGNOSIS"), HANG))
    running = asyncio.create_task(stage.run())
    await stage.model.hanging.wait()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert_ended_once(stage, ReleaseOutcome.CANCELLED)
    assert stage.model.cancelled == 1
    assert "run went on after its end" not in caplog.messages, "it was waited for"
    assert not await leftovers()


class Stubborn(FakeSource):
    """Goes on until it is let go, cancelled or not."""

    def __init__(self) -> None:
        super().__init__(log_evidence())
        self.let_go = asyncio.Event()

    async def _answer(self, query: Any) -> Any:
        self.started.set()
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                continue
        return log_evidence()


@pytest.mark.spec("LIFE-5", "BUDGET-3")
async def test_work_that_ignores_the_deadline_does_not_keep_the_run_open(caplog: pytest.LogCaptureFixture) -> None:
    source = Stubborn()
    stage = Stage(
        FakeModel(intent("DIAGNOSIS"), calls(call("query_logs", LOGS))),
        sources=sources(logs=source),
        clock=LoopClock(),
        limits=limits(wall_time=0.05, terminal_reserve=0.1),
    )

    result = await asyncio.wait_for(stage.run(), 5)

    assert (result.outcome, result.failure_code) == (ReleaseOutcome.FAILED, "BUDGET_EXHAUSTED")
    assert_ended_once(stage, ReleaseOutcome.FAILED, "BUDGET_EXHAUSTED")
    source.let_go.set()
    await asyncio.wait(await leftovers(), timeout=5)
    gc.collect()
    assert caplog.messages == ["run went on after its end"], "its late end reaches no log"


@pytest.mark.spec("LIFE-5")
async def test_work_that_ignores_its_cancellation_does_not_keep_the_run_open(caplog: pytest.LogCaptureFixture) -> None:
    source = Stubborn()
    stage = Stage(
        FakeModel(intent("DIAGNOSIS"), calls(call("query_logs", LOGS))),
        sources=sources(logs=source),
        limits=limits(terminal_reserve=0.1),
    )
    running = asyncio.create_task(stage.run())
    await source.started.wait()
    stage.database.cancels.append(CancelRow("CLIENT_REQUEST", stage.clock.now(), connection_id="c1"))  # type: ignore[arg-type]

    result = await asyncio.wait_for(running, 5)

    assert result.outcome is ReleaseOutcome.CANCELLED
    assert_ended_once(stage, ReleaseOutcome.CANCELLED)
    source.let_go.set()
    await asyncio.wait(await leftovers(), timeout=5)
    gc.collect()
    assert caplog.messages == ["run went on after its end"], "its late end reaches no log"


# The deadline -----------------------------------------------------------------------------------


class Recorded(FakeRunStore):
    def __init__(self) -> None:
        super().__init__()
        self.started: list[NewRun] = []
        self.ended: list[RunEnd] = []

    async def start(self, run: NewRun) -> Any:
        self.started.append(run)
        return await super().start(run)


@pytest.mark.spec("BUDGET-4")
@pytest.mark.parametrize(
    ("time_left", "wall_time", "seconds"),
    [(None, 180, 180), (900, 180, 180), (100, 180, 90), (190, 180, 180), (189, 180, 179), (10.5, 180, 0.5)],
)
async def test_the_deadline_leaves_time_to_end_the_run(
    time_left: float | None, wall_time: float, seconds: float
) -> None:
    stage = Stage(hello(), limits=limits(wall_time=wall_time, terminal_reserve=10.0))

    await stage.run(time_left=time_left)

    assert stage.row.new.deadline_at - stage.row.new.created_at == timedelta(seconds=seconds)


@pytest.mark.spec("BUDGET-3", "BUDGET-4")
@pytest.mark.parametrize("time_left", [10.0, 3.0, 0.0, -5.0])
async def test_without_time_the_run_ends_at_once_and_is_stored(time_left: float) -> None:
    stage = Stage(hello())

    result = await stage.run(time_left=time_left)

    assert (result.outcome, result.failure_code) == (ReleaseOutcome.FAILED, "BUDGET_EXHAUSTED")
    assert not stage.model.requests
    assert_ended_once(stage, ReleaseOutcome.FAILED, "BUDGET_EXHAUSTED")


@pytest.mark.spec("BUDGET-3", "ROUTE-5", "LIFE-8")
@pytest.mark.parametrize("name", [None, "SYSTEM_CHAT", "KNOWLEDGE_QUERY", "DIAGNOSIS"])
async def test_a_model_that_hangs_ends_with_the_run_s_time(name: str | None) -> None:
    script = [HANG] if name is None else [intent(name), HANG]
    stage = Stage(FakeModel(*script), clock=LoopClock(), limits=limits(wall_time=0.2))

    result = await stage.run()

    assert (result.outcome, result.failure_code) == (ReleaseOutcome.FAILED, "BUDGET_EXHAUSTED")
    assert stage.model.cancelled == 1
    assert len(stage.model.requests) == len(script)
    assert not await leftovers()


@pytest.mark.spec("BUDGET-2")
@pytest.mark.parametrize("replies", [1, 2])
async def test_time_that_ends_after_an_observation_leaves_a_fallback(replies: int) -> None:
    script = [calls(call("query_logs", LOGS)), draft(**GOOD)][:replies]
    stage = Stage(FakeModel(intent("DIAGNOSIS"), *script, HANG), clock=LoopClock(), limits=limits(wall_time=0.3))

    result = await stage.run()

    assert result.outcome is ReleaseOutcome.FALLBACK
    assert isinstance(result.content, FallbackContent)
    assert result.content.reason == "BUDGET_REACHED"
    assert stage.row.published_result is None
    assert len(stage.model.requests) == replies + 2


@pytest.mark.spec("GUARD-3")
async def test_a_verdict_that_hangs_is_given_up_after_its_own_time() -> None:
    script = [intent("DIAGNOSIS"), calls(call("query_logs", LOGS)), draft(**GOOD)]
    stage = Stage(FakeModel(*script, default=HANG), limits=limits(verdict=0.01))

    result = await asyncio.wait_for(stage.run(), 5)

    assert isinstance(result.content, FallbackContent)
    assert result.content.reason == "GUARD_REJECTED"
    assert stage.model.cancelled == 2


@pytest.mark.spec("BUDGET-2", "LIFE-8")
@pytest.mark.parametrize("code", ["CHECKING_EVIDENCE", "CHECKING_MEANING"])
async def test_a_deadline_between_the_guards_leaves_a_fallback(code: str) -> None:
    clock = FakeClock()
    stage = Stage(diagnosis(), clock=clock)
    stage.observer.on_event = lambda seen: clock.advance(500 if seen == code else 0)

    result = await stage.run()

    assert result.outcome is ReleaseOutcome.FALLBACK
    assert stage.row.published_result is None


@pytest.mark.spec("LIFE-8")
async def test_a_result_after_the_deadline_is_no_success() -> None:
    clock = FakeClock()

    def late(_: ModelRequest) -> ModelReply:
        clock.advance(500)
        return text("late")

    stage = Stage(FakeModel(intent("SYSTEM_CHAT"), late), clock=clock)

    result = await stage.run()

    assert (result.outcome, result.failure_code, result.content) == (ReleaseOutcome.FAILED, "BUDGET_EXHAUSTED", None)


async def test_an_observer_that_hangs_ends_with_the_run_s_time() -> None:
    class Hanging(FakeObserver):
        async def on_started(self, control: object) -> None:
            await asyncio.Event().wait()

    stage = Stage(hello(), clock=LoopClock(), observer=Hanging(), limits=limits(wall_time=0.05, terminal_reserve=0.1))

    result = await asyncio.wait_for(stage.run(), 5)

    assert (result.outcome, result.failure_code) == (ReleaseOutcome.FAILED, "BUDGET_EXHAUSTED")


@pytest.mark.spec("EXEC-2", "KNOW-4")
async def test_no_passage_is_a_fixed_answer() -> None:
    stage = Stage(FakeModel(intent("KNOWLEDGE_QUERY")), sources=sources(knowledge=log_evidence()))

    result = await stage.run()

    assert (result.outcome, result.content) == (ReleaseOutcome.SUCCESS, NO_EVIDENCE)
    assert len(stage.model.requests) == 1
    assert request().query == QUERY
