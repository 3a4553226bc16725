"""A run as the frames that its client sees."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from superbizagent.application.chat import ChatResult
from superbizagent.client_socket import Patience, Socket
from superbizagent.domain.content import SystemChatContent
from superbizagent.domain.run import ReleaseOutcome, RunStatus
from superbizagent.domain.stored_run import SessionSummary, StoredRun
from superbizagent.errors import (
    ChannelUnavailable,
    ClientGone,
    ConfigurationError,
    RunPersistenceFailed,
    SessionBusy,
    SessionNotFound,
    SuperBizAgentError,
)
from superbizagent.frames import RunFrames
from superbizagent.history_frames import session_frames, turn_frames
from superbizagent.ports import RunControl

NOW = datetime(2026, 11, 30, 15, 4, 5, 678901, tzinfo=UTC)
IDS = {"sessionId": "s1", "runId": "r1", "requestId": "q1"}
CONTROL = RunControl("s1", "r1", lambda: None)
CONTENT = SystemChatContent(text="Hello.")
SUCCESS = ChatResult("s1", "r1", "q1", ReleaseOutcome.SUCCESS, content=CONTENT)

IN_NO_HURRY = Patience(statuses=60, outcome=60, pause=0.001)

Fault = Literal["gone", "down", "answer lost", "unsigned", "defect"]
Story = Callable[[RunFrames], Awaitable[ChatResult]]


@dataclass
class FakeChannel:
    """Channel. `faults` are those of the next posts, in turn; None is none."""

    faults: list[Fault | None] = field(default_factory=list)
    arrived: list[dict[str, Any]] = field(default_factory=list)
    posts: int = 0
    seconds: float = 0.0
    """How long a post takes at least."""
    gate: asyncio.Event | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def post(self, connection_id: str, frame: bytes) -> None:
        assert connection_id == "c1"
        self.posts += 1
        await asyncio.sleep(self.seconds)
        fault = self.faults.pop(0) if self.faults else None
        if self.gate is not None:
            # Like the thread that posts, it can't be called back.
            gate, self.gate = self.gate, None
            self.reached.set()
            waiting = asyncio.ensure_future(gate.wait())
            await asyncio.shield(waiting)
        match fault:
            case "gone":
                raise ClientGone
            case "down":
                raise ChannelUnavailable
            case "unsigned":
                raise ConfigurationError
            case "defect":
                raise RuntimeError("can't start new thread")
        self.arrived.append(json.loads(frame))
        if fault == "answer lost":
            raise ChannelUnavailable


async def _told(channel: FakeChannel, story: Story, patience: Patience = IN_NO_HURRY) -> ChatResult | None:
    frames = RunFrames(Socket(channel, "c1", patience), "q1")
    return await frames.deliver(story(frames))


def _of(result: ChatResult, statuses: int = 2) -> Story:
    async def story(frames: RunFrames) -> ChatResult:
        await frames.on_started(CONTROL)
        for _ in range(statuses):
            await frames.on_status("TOOL_FINISHED", {"tool": "query_logs", "status": "READY"})
        return result

    return story


def _never_started(result: ChatResult) -> Story:
    async def story(_: RunFrames) -> ChatResult:
        return result

    return story


def _raising(error: Exception, *, started: bool) -> Story:
    async def story(frames: RunFrames) -> ChatResult:
        if started:
            await frames.on_started(CONTROL)
        raise error

    return story


def _without_repetitions(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As the page sees them: what carries a number that was seen before is dropped."""
    seen: set[int] = set()
    return [frame for frame in frames if not (frame["seq"] in seen or seen.add(frame["seq"]))]  # type: ignore[func-returns-value]


def _types(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["type"] for frame in frames]


@pytest.mark.spec("WIRE-2", "OBS-1")
async def test_a_successful_run() -> None:
    channel = FakeChannel()
    assert await _told(channel, _of(SUCCESS)) == SUCCESS
    assert channel.arrived == [
        {**IDS, "seq": 1, "type": "started"},
        {**IDS, "seq": 2, "type": "status", "code": "TOOL_FINISHED", "tool": "query_logs", "status": "READY"},
        {**IDS, "seq": 3, "type": "status", "code": "TOOL_FINISHED", "tool": "query_logs", "status": "READY"},
        {
            **IDS,
            "seq": 4,
            "type": "content",
            "contentType": "SYSTEM_CHAT",
            "content": {"type": "SYSTEM_CHAT", "text": "Hello."},
        },
        {**IDS, "seq": 5, "type": "done", "outcome": "SUCCESS"},
    ]


@pytest.mark.spec("WIRE-2")
@pytest.mark.parametrize(
    ("result", "end"),
    [
        (replace(SUCCESS, outcome=ReleaseOutcome.FALLBACK), {"type": "done", "outcome": "FALLBACK"}),
        (ChatResult("s1", "r1", "q1", ReleaseOutcome.CANCELLED), {"type": "cancelled"}),
        (
            ChatResult("s1", "r1", "q1", ReleaseOutcome.FAILED, failure_code="ROUTING_UNAVAILABLE"),
            {
                "type": "error",
                "code": "ROUTING_UNAVAILABLE",
                "message": "The question could not be classified. Try again.",
            },
        ),
        (
            ChatResult("s1", "r1", "q1", ReleaseOutcome.FAILED, failure_code="CODE_OF_ANOTHER_VERSION"),
            {
                "type": "error",
                "code": "CODE_OF_ANOTHER_VERSION",
                "message": "Something went wrong on our side. Nothing was published.",
            },
        ),
        (
            ChatResult("s1", "r1", "q1", ReleaseOutcome.FAILED),
            {
                "type": "error",
                "code": "INTERNAL_FAILURE",
                "message": "Something went wrong on our side. Nothing was published.",
            },
        ),
    ],
)
async def test_each_outcome_has_one_last_frame(result: ChatResult, end: dict[str, Any]) -> None:
    channel = FakeChannel()
    await _told(channel, _of(result, statuses=0))
    assert channel.arrived[-1] == {**IDS, "seq": len(channel.arrived), **end}
    assert _types(channel.arrived).count(end["type"]) == 1


async def test_a_run_that_another_write_ended_has_no_last_frame() -> None:
    channel = FakeChannel()
    await _told(channel, _of(ChatResult("s1", "r1", "q1", None), statuses=0))
    assert _types(channel.arrived) == ["started"]


@pytest.mark.spec("WIRE-3")
@pytest.mark.parametrize("error", [SessionBusy(), SessionNotFound(), RunPersistenceFailed("host db-1, SELECT 1")])
async def test_a_refused_request_has_one_error_frame_without_a_run(error: SuperBizAgentError) -> None:
    channel = FakeChannel()
    assert await _told(channel, _raising(error, started=False)) is None
    assert channel.arrived == [{"type": "error", "code": error.code, "message": error.message, "requestId": "q1"}]


@pytest.mark.spec("LIFE-4", "LIFE-5", "WIRE-2")
async def test_an_outcome_that_could_not_be_stored_is_an_error_of_the_run_and_no_content() -> None:
    channel = FakeChannel()
    assert await _told(channel, _raising(RunPersistenceFailed("1205 in UPDATE"), started=True)) is None
    assert channel.arrived == [
        {**IDS, "seq": 1, "type": "started"},
        {
            **IDS,
            "seq": 2,
            "type": "error",
            "code": "RUN_PERSISTENCE_FAILED",
            "message": "The answer could not be stored, so it was not published. Try again.",
        },
    ]


# The same request again ----------------------------------------------------------------------------


@pytest.mark.spec("LIFE-6")
async def test_a_redelivery_of_the_platform_is_silent() -> None:
    channel = FakeChannel()
    result = replace(SUCCESS, repeated=True, redelivered=True)
    assert await _told(channel, _never_started(result)) == result
    assert channel.posts == 0


@pytest.mark.spec("LIFE-6", "WIRE-2")
async def test_a_resend_gets_the_stored_run_again_and_every_frame_says_so() -> None:
    channel = FakeChannel()
    await _told(channel, _never_started(replace(SUCCESS, repeated=True)))
    assert _types(channel.arrived) == ["started", "content", "done"]
    assert [frame["seq"] for frame in channel.arrived] == [1, 2, 3]
    assert all(frame["replayed"] is True and frame["runId"] == "r1" for frame in channel.arrived)


@pytest.mark.spec("LIFE-6")
@pytest.mark.parametrize(
    ("result", "types"),
    [
        (ChatResult("s1", "r1", "q1", None, repeated=True), ["started"]),
        (ChatResult("s1", "r1", "q1", ReleaseOutcome.CANCELLED, repeated=True), ["started", "cancelled"]),
        (ChatResult("s1", "r1", "q1", ReleaseOutcome.FAILED, repeated=True), ["started", "error"]),
        # Its stored content can't be read any more.
        (ChatResult("s1", "r1", "q1", ReleaseOutcome.SUCCESS, repeated=True), ["started", "done"]),
    ],
)
async def test_a_resend_gets_the_stored_end_whatever_it_is(result: ChatResult, types: list[str]) -> None:
    channel = FakeChannel()
    await _told(channel, _never_started(result))
    assert _types(channel.arrived) == types
    assert all(frame["replayed"] for frame in channel.arrived)


# Trouble on the way --------------------------------------------------------------------------------


@pytest.mark.spec("OBS-2")
@pytest.mark.parametrize("delivered", range(6))
async def test_nothing_is_posted_after_the_first_sign_that_the_client_is_gone(delivered: int) -> None:
    channel = FakeChannel(faults=[*[None] * delivered, "gone"])

    async def story(frames: RunFrames) -> ChatResult:
        try:
            await _of(SUCCESS, statuses=3)(frames)
        except ClientGone:
            return ChatResult("s1", "r1", "q1", ReleaseOutcome.CANCELLED)
        return SUCCESS

    await _told(channel, story)
    assert channel.posts == min(delivered + 1, 6)
    assert len(channel.arrived) == delivered


@pytest.mark.spec("OBS-2")
async def test_a_status_to_a_gone_client_tells_the_run_so() -> None:
    frames = RunFrames(Socket(FakeChannel(faults=[None, "gone"]), "c1"), "q1")
    await frames.on_started(CONTROL)
    with pytest.raises(ClientGone):
        await frames.on_status("ROUTING", {})
    with pytest.raises(ClientGone):
        await frames.on_status("ROUTING", {})


@pytest.mark.spec("WIRE-2")
@pytest.mark.parametrize("fault", ["down", "answer lost"])
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("before", range(4))
async def test_a_channel_with_hiccups_leaves_no_gap_and_no_number_twice(before: int, times: int, fault: Fault) -> None:
    channel = FakeChannel(faults=[*[None] * before, *[fault] * times])

    await _told(channel, _of(SUCCESS, statuses=5))

    seen = _without_repetitions(channel.arrived)
    assert [frame["seq"] for frame in seen] == list(range(1, len(seen) + 1))
    assert _types(seen)[0] == "started"
    assert _types(seen)[-2:] == ["content", "done"]
    assert len({json.dumps(frame) for frame in channel.arrived}) == len(seen)


async def test_a_channel_that_is_down_ends_in_the_stored_outcome_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = FakeChannel(faults=["down"] * 100)
    with caplog.at_level(logging.INFO):
        assert await _told(channel, _of(SUCCESS), Patience(outcome=0.05, pause=0.001)) == SUCCESS
    assert channel.arrived == []
    assert "outcome not delivered" in caplog.messages


@pytest.mark.spec("WIRE-2")
async def test_a_slow_channel_is_asked_for_no_further_status_once_their_time_is_used_up() -> None:
    channel = FakeChannel(faults=["down"], seconds=0.02)
    await _told(channel, _of(SUCCESS, statuses=20), Patience(statuses=0.01, outcome=60, pause=0.001))
    assert channel.posts == 4
    assert _types(channel.arrived) == ["started", "content", "done"]


@pytest.mark.parametrize(
    ("end", "types"),
    [
        (SUCCESS, ["content", "done"]),
        (ChatResult("s1", "r1", "q1", ReleaseOutcome.CANCELLED), ["cancelled"]),
        (RunPersistenceFailed(), ["error"]),
    ],
)
@pytest.mark.parametrize("fault", ["down", "unsigned", "defect"])
@pytest.mark.spec("LIFE-4")
async def test_an_outcome_is_told_again_until_it_has_arrived(
    end: ChatResult | RunPersistenceFailed, types: list[str], fault: Fault
) -> None:
    channel = FakeChannel(faults=[None, *[fault] * 5])
    story = _raising(end, started=True) if isinstance(end, RunPersistenceFailed) else _of(end, statuses=0)
    await _told(channel, story)
    assert _types(channel.arrived) == ["started", *types]
    assert [frame["seq"] for frame in channel.arrived] == list(range(1, len(types) + 2))


@pytest.mark.spec("WIRE-2")
async def test_each_frame_of_an_outcome_is_posted_once_however_late_it_is() -> None:
    """A process that was stopped in between finds its time used up."""
    channel = FakeChannel(seconds=0.02)
    await _told(channel, _of(SUCCESS, statuses=0), Patience(outcome=0.01))
    assert _types(channel.arrived) == ["started", "content", "done"]


async def test_history_waits_no_longer_than_an_outcome() -> None:
    channel = FakeChannel(seconds=0.02)
    entries = [SessionSummary("s1", "why?", 2, NOW, NOW)]
    await Socket(channel, "c1", Patience(outcome=0.01)).end(*session_frames(entries))
    assert channel.arrived == []


@pytest.mark.spec("SEC-4")
async def test_a_client_that_left_is_no_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        await _told(FakeChannel(faults=[None, None, None, "gone"]), _of(SUCCESS))
    [record] = caplog.records
    assert (record.levelno, record.message) == (logging.INFO, "outcome not delivered")


@pytest.mark.spec("WIRE-2")
@pytest.mark.parametrize("fault", [None, "down", "answer lost", "gone"])
async def test_a_status_in_flight_does_not_overtake_the_end_of_a_cancelled_run(fault: Fault | None) -> None:
    """The post goes on in its thread when the run is cancelled in the middle of it."""
    gate = asyncio.Event()
    channel = FakeChannel(faults=[None, fault])

    async def story(frames: RunFrames) -> ChatResult:
        await frames.on_started(CONTROL)
        channel.gate = gate
        status = asyncio.create_task(frames.on_status("ROUTING", {}))
        await channel.reached.wait()
        status.cancel()
        with pytest.raises(asyncio.CancelledError):
            await status
        asyncio.get_running_loop().call_later(0.05, gate.set)
        return ChatResult("s1", "r1", "q1", ReleaseOutcome.CANCELLED)

    await _told(channel, story)

    seen = _without_repetitions(channel.arrived)
    if fault == "gone":
        assert _types(seen) == ["started"]
        assert channel.posts == 2
    else:
        assert _types(seen) == ["started", "status", "cancelled"]
        assert [frame["seq"] for frame in seen] == [1, 2, 3]
        assert channel.arrived[-1]["type"] == "cancelled"


async def test_nothing_is_in_flight_when_a_shut_down_run_returns() -> None:
    gate = asyncio.Event()
    channel = FakeChannel()

    async def story(frames: RunFrames) -> ChatResult:
        channel.gate = gate
        await frames.on_started(CONTROL)
        return SUCCESS

    delivery = asyncio.create_task(_told(channel, story))
    await channel.reached.wait()
    asyncio.get_running_loop().call_later(0.05, gate.set)
    delivery.cancel()
    with pytest.raises(asyncio.CancelledError):
        await delivery
    assert _types(channel.arrived) == ["started"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


# Answers without a run -----------------------------------------------------------------------------


@pytest.mark.spec("WIRE-3")
@pytest.mark.parametrize("fault", ["gone", "down", "unsigned"])
async def test_a_client_that_can_not_be_told_is_no_further_failure(fault: Fault) -> None:
    channel = FakeChannel(faults=[fault])
    await Socket(channel, "c1").refuse(SessionBusy())
    assert channel.arrived == []


@pytest.mark.spec("WIRE-5")
async def test_sessions_are_one_frame_and_an_end() -> None:
    channel = FakeChannel()
    await Socket(channel, "c1").end(*session_frames([SessionSummary("s1", "why?", 2, NOW, NOW)]))
    moment = "2026-11-30T15:04:05.678901Z"
    assert channel.arrived == [
        {
            "type": "history",
            "kind": "sessions",
            "sessions": [
                {
                    "sessionId": "s1",
                    "title": "why?",
                    "messagePairs": 2,
                    "createdAt": moment,
                    "lastActiveAt": moment,
                }
            ],
        },
        {"type": "history", "kind": "end"},
    ]


@pytest.mark.spec("WIRE-5")
async def test_no_sessions_and_no_turns_are_answers_too() -> None:
    channel = FakeChannel()
    await Socket(channel, "c1").end(*session_frames([]))
    await Socket(channel, "c1").end(*turn_frames("s1", [], None))
    assert channel.arrived == [
        {"type": "history", "kind": "sessions", "sessions": []},
        {"type": "history", "kind": "end"},
        {"type": "history", "kind": "end", "sessionId": "s1"},
    ]


@pytest.mark.spec("WIRE-5", "OBS-2")
@pytest.mark.parametrize(("faults", "posts"), [([], 4), (["gone"], 1), ([None, "down"], 2)])
async def test_turns_are_a_frame_each_and_stop_where_nobody_hears_them(faults: list[Fault | None], posts: int) -> None:
    channel = FakeChannel(faults=faults)
    runs = [
        StoredRun(name, "s1", "q1", "g1", "why?", RunStatus.FAILED, None, ReleaseOutcome.FAILED, "X", None, NOW, NOW)
        for name in ("r1", "r2", "r3")
    ]
    await Socket(channel, "c1").end(*turn_frames("s1", runs, "r1"))
    assert channel.posts == posts
    if posts == 4:
        assert [frame.get("turn", {}).get("runId") for frame in channel.arrived] == ["r1", "r2", "r3", None]
        assert channel.arrived[-1] == {"type": "history", "kind": "end", "sessionId": "s1", "before": "r1"}
