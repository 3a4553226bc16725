"""The checker catches what it is there to catch: each lie is told to it once."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.faults.boundaries import Boundary, Reached
from tests.faults.cases import Fault, Question
from tests.faults.checker import problems
from tests.faults.play import Frame, Plan, Seen

AT = datetime(2026, 11, 30, 15)  # noqa: DTZ001 - as the driver returns it
CONTENT = {"type": "SYSTEM_CHAT", "text": "Hello."}
IDS = {"sessionId": "s", "runId": "r", "requestId": "q"}
ROW: dict[str, Any] = {
    "run_id": "r",
    "status": "SUCCESS",
    "release_outcome": "SUCCESS",
    "failure_code": None,
    "content": json.dumps(CONTENT),
    "published_result": None,
    "intent": "SYSTEM_CHAT",
    "created_at": AT,
    "finished_at": AT,
}
FAILED = ROW | {"status": "FAILED", "release_outcome": "FAILED", "failure_code": "MODEL_TIMEOUT", "content": None}
CANCELLED = ROW | {"status": "CANCELLED", "release_outcome": "CANCELLED", "content": None}


def _frames(*ends: Frame) -> list[Frame]:
    return [{**IDS, "seq": number, **frame} for number, frame in enumerate(({"type": "started"}, *ends), start=1)]


ANSWERED = _frames({"type": "content", "content": CONTENT}, {"type": "done", "outcome": "SUCCESS"})


def _heard(*names: str) -> list[Reached]:
    return [Reached(1, Boundary(name, 1, "before")) for name in names]


GOOD = Seen(
    plan=Plan(Question.CHAT),
    reached=True,
    frames=ANSWERED,
    other_frames=[],
    heard=[*_heard("event", "model.text", "store.finish"), Reached(1, Boundary("store.finish", 1, "after"))],
    first_pid=1,
    left=[{"tasks": [], "threads": []}],
    killed=False,
    dropped=False,
    swept_alive=False,
    was_running=False,
    rows=[ROW],
    sessions=[{"message_pairs": 1}],
    model_requests=["router"],
    unfinished_requests=0,
    late_requests=0,
    processes=[],
    transactions=[],
    history=[{"kind": "turn", "turn": {"runId": "r", "outcome": "SUCCESS", "content": CONTENT}}, {"kind": "end"}],
)


def test_a_good_run_has_no_problem() -> None:
    assert problems(GOOD) == []


@pytest.mark.parametrize(
    ("check", "changes"),
    [
        ("one_outcome", {"rows": [ROW, ROW]}),
        ("one_outcome", {"rows": [ROW | {"status": "RUNNING"}]}),
        ("one_outcome", {"rows": [ROW | {"finished_at": None}]}),
        ("one_outcome", {"rows": [ROW | {"published_result": "{}"}]}),
        ("content_is_stored", {"rows": [ROW | {"content": None}]}),
        ("content_is_stored", {"rows": [FAILED]}),
        ("content_is_stored", {"sessions": [{"message_pairs": 2}]}),
        ("frames_in_order", {"frames": [*ANSWERED, {**IDS, "seq": 4, "type": "status"}]}),
        ("frames_in_order", {"frames": [ANSWERED[0], ANSWERED[2]]}),
        ("frames_in_order", {"frames": ANSWERED[1:]}),
        ("frames_in_order", {"other_frames": [ANSWERED[0], ANSWERED[1] | {"runId": "another"}]}),
        ("client_agrees_with_row", {"frames": _frames({"type": "cancelled"})}),
        ("client_agrees_with_row", {"frames": _frames({"type": "error", "code": "MODEL_TIMEOUT"})}),
        ("client_agrees_with_row", {"frames": [ANSWERED[0], ANSWERED[1] | {"content": {}}, ANSWERED[2]]}),
        ("client_agrees_with_row", {"rows": []}),
        ("client_hears_the_outcome", {"frames": ANSWERED[:2]}),
        ("history_has_it", {"history": [{"kind": "end"}]}),
        ("nothing_after_the_end", {"heard": _heard("event", "store.finish", "model.text")}),
        ("nothing_after_the_end", {"late_requests": 1}),
        ("nothing_after_the_end", {"unfinished_requests": 1}),
        ("cancelled_means_cancelled", {"rows": [CANCELLED]}),
        ("cancelled_means_cancelled", {"plan": Plan(Question.CHAT, fault=Fault.CANCEL, cancels=True), "dropped": True}),
        ("delay_is_bounded", {"plan": Plan(Question.CHAT, answered=True), "rows": [FAILED]}),
        ("survivors_lose", {"was_running": True, "rows": [FAILED]}),
        ("ends_by_itself", {"was_running": True}),
        ("no_vendor_text", {"frames": _frames({"type": "error", "code": "X", "message": "RuntimeError: injected"})}),
        ("nothing_is_left", {"left": [{"tasks": [], "threads": ["store_0"]}]}),
        ("nothing_is_left", {"processes": [{"command": "Query"}]}),
        ("nothing_is_left", {"transactions": [{"trx_id": 1}]}),
    ],
)
def test_each_lie_is_caught(check: str, changes: dict[str, Any]) -> None:
    found = problems(replace(GOOD, **changes))
    assert any(problem.startswith(check) for problem in found), found
