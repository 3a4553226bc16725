"""What must hold after every case, read from raw rows, raw frames and the model server's log.

Shares no code with the product: a mistake there can't excuse itself here.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.faults.boundaries import Reached
from tests.faults.cases import Fault
from tests.faults.play import Frame, Seen

TERMINAL = frozenset({"done", "error", "cancelled"})
STATUS_OF = {"SUCCESS": "SUCCESS", "FALLBACK": "SUCCESS", "FAILED": "FAILED", "CANCELLED": "CANCELLED"}
PUBLISHED = frozenset({"SUCCESS", "FALLBACK"})
NOT_STORED = "RUN_PERSISTENCE_FAILED"
"""Says that nobody knows whether the outcome was stored; no content goes with it, and history has the truth."""
INJECTED = "injected"
TOOLS = frozenset({"model", "logs", "database", "knowledge"})

Problems = Iterator[str]


def problems(seen: Seen) -> list[str]:
    """Every invariant that does not hold, in words; empty when all do."""
    return [f"{check.__name__}: {problem}" for check in CHECKS for problem in check(seen)]


def one_outcome(seen: Seen) -> Problems:
    """LIFE-3, LIFE-7, STORE-2, PREV-4: exactly one run, ended once, whose columns agree."""
    if len(seen.rows) > 1:
        yield f"{len(seen.rows)} rows for one request"
    for row in seen.rows:
        outcome, status = row["release_outcome"], row["status"]
        if STATUS_OF.get(outcome) != status:
            yield f"status {status} with outcome {outcome}"
        if (outcome == "FAILED") != (row["failure_code"] is not None):
            yield f"outcome {outcome} with failure code {row['failure_code']}"
        if row["published_result"] is not None and (outcome, row["intent"]) != ("SUCCESS", "DIAGNOSIS"):
            yield f"a published result of {row['intent']} {outcome}"
        if row["finished_at"] is None or row["finished_at"] < row["created_at"]:
            yield f"finished at {row['finished_at']}, created at {row['created_at']}"


def content_is_stored(seen: Seen) -> Problems:
    """LIFE-4, STORE-3: no success without its content, no content without success, and the pair is counted."""
    for row in seen.rows:
        if (row["release_outcome"] in PUBLISHED) != (row["content"] is not None):
            yield f"outcome {row['release_outcome']} {'without' if row['content'] is None else 'with'} content"
    pairs = sum(row["release_outcome"] in PUBLISHED for row in seen.rows)
    for session in seen.sessions:
        if session["message_pairs"] != pairs:
            yield f"{session['message_pairs']} message pairs counted for {pairs} answers"


def frames_in_order(seen: Seen) -> Problems:
    """WIRE-2: numbers without gaps, one run, content before done, nothing after the end."""
    for whose, frames in (("client", seen.frames), ("resending client", seen.other_frames)):
        yield from (f"{whose}: {problem}" for problem in _order(_once(frames)))


def client_agrees_with_row(seen: Seen) -> Problems:
    """LIFE-4, LIFE-5: what any client was told is what the row says."""
    for whose, frames in (("client", seen.frames), ("resending client", seen.other_frames)):
        yield from (f"{whose}: {problem}" for problem in _agreement(_once(frames), seen.rows))


def client_hears_the_outcome(seen: Seen) -> Problems:
    """Statuses may be lost, outcomes not, unless nobody is left to tell or to be told."""
    if not seen.plan.silent and not any(frame.get("type") in TERMINAL for frame in seen.frames):
        yield f"no outcome after {[frame.get('type') for frame in seen.frames][-3:]}"


def history_has_it(seen: Seen) -> Problems:
    """WIRE-5: whatever the client saw, a page that is loaded anew sees the row."""
    turns = [frame["turn"] for frame in seen.history if frame.get("kind") == "turn"]
    if [turn["runId"] for turn in turns] != [row["run_id"] for row in seen.rows]:
        yield f"history has {len(turns)} turns for {len(seen.rows)} rows"
        return
    for turn, row in zip(turns, seen.rows, strict=True):
        if turn.get("outcome") != row["release_outcome"] or turn.get("content") != _json(row["content"]):
            yield f"history says {turn.get('outcome')}, the row {row['release_outcome']}"


def nothing_after_the_end(seen: Seen) -> Problems:
    """LIFE-8, CANCEL-2: no model or tool call starts after the terminal write, and none goes on."""
    for pid in {one.pid for one in seen.heard}:
        own = [one for one in seen.heard if one.pid == pid]
        ended = next((number for number, one in enumerate(own) if _is(one, "store.finish", "before")), len(own))
        late = [str(one.boundary) for one in own[ended:] if one.boundary.port in TOOLS]
        if late:
            yield f"{late} after the terminal write"
    if seen.late_requests:
        yield f"{seen.late_requests} model requests after the run's end"
    if seen.unfinished_requests:
        yield f"{seen.unfinished_requests} model requests still open"


def cancelled_means_cancelled(seen: Seen) -> Problems:
    """CANCEL-1, CANCEL-2: a run that let go of a call because it was cancelled is stored as that, and only so."""
    asked = seen.plan.fault in (Fault.CANCEL, Fault.DISCONNECT)
    if asked and seen.dropped and not _held_in(seen, "store.start", "store.finish", "poll"):
        yield from (f"ended {row['release_outcome']}" for row in seen.rows if not _cancelled_or_late(row))
    if not seen.plan.cancels:
        yield from ("cancelled by nobody" for row in seen.rows if row["release_outcome"] == "CANCELLED")


def delay_is_bounded(seen: Seen) -> Problems:
    """OBS-2: what can't be told holds a run up for a bounded time only, or it would meet its limit."""
    if seen.plan.answered:
        yield from (f"ended {row['failure_code']}" for row in seen.rows if row["release_outcome"] != "SUCCESS")


def survivors_lose(seen: Seen) -> Problems:
    """LIFE-3, LIFE-7: what the sweep ended stays so, and the survivor publishes nothing."""
    if seen.swept_alive:
        yield from (f"became {row['failure_code']}" for row in seen.rows if row["failure_code"] != "RUN_ABANDONED")
        if any(frame.get("type") == "content" for frame in seen.frames[_told_before(seen) :]):
            yield "the survivor published content"
    if seen.was_running and seen.rows[0]["failure_code"] != "RUN_ABANDONED":
        yield f"left RUNNING, swept to {seen.rows[0]['failure_code']}"


def ends_by_itself(seen: Seen) -> Problems:
    """LIFE-5: only a process that died, or a terminal write that failed, leaves a row to the sweep."""
    if seen.was_running and not seen.killed and not _write_failed(seen):
        yield "the row was left RUNNING"


def no_vendor_text(seen: Seen) -> Problems:
    """LIFE-5: what was raised inside is not told outside."""
    told = json.dumps([seen.frames, seen.other_frames])
    if INJECTED in told or "Error" in told.replace("ERROR", ""):
        yield "an exception's words reached the client"


def nothing_is_left(seen: Seen) -> Problems:
    """CANCEL-4: no task, busy thread, statement, lock or transaction outlives the run."""
    for facts in seen.left:
        yield from (f"{kind} left: {left}" for kind, left in facts.items() if left)
    if seen.processes:
        yield f"statements or connections left: {seen.processes}"
    if seen.transactions:
        yield f"transactions left: {seen.transactions}"


CHECKS: tuple[Callable[[Seen], Problems], ...] = (
    one_outcome,
    content_is_stored,
    frames_in_order,
    client_agrees_with_row,
    client_hears_the_outcome,
    history_has_it,
    nothing_after_the_end,
    cancelled_means_cancelled,
    delay_is_bounded,
    survivors_lose,
    ends_by_itself,
    no_vendor_text,
    nothing_is_left,
)


def _once(frames: list[Frame]) -> list[Frame]:
    """A frame whose arrival was not confirmed is sent again as it was: the same twice is once."""
    kept: list[Frame] = []
    for frame in frames:
        if not kept or frame != kept[-1]:
            kept.append(frame)
    return kept


def _order(frames: list[Frame]) -> Problems:
    runs = [frame for frame in frames if "seq" in frame]
    kinds = [frame["type"] for frame in frames]
    for replayed in (False, True):
        part = [frame["seq"] for frame in runs if frame.get("replayed", False) is replayed]
        if part != list(range(1, len(part) + 1)):
            yield f"sequence {part}"
    if len({(frame["sessionId"], frame["runId"], frame["requestId"]) for frame in runs}) > 1:
        yield "frames of several runs"
    ends = [number for number, kind in enumerate(kinds) if kind in TERMINAL]
    if ends and ends[0] != len(kinds) - 1 and not _replays_only(frames[ends[0] + 1 :]):
        yield f"{kinds[ends[0] + 1 :]} after {kinds[ends[0]]}"
    if "done" in kinds and kinds[kinds.index("done") - 1] != "content":
        yield "done without content before it"
    # A run whose first frame could not be told has nothing before its end.
    if runs and runs[0]["type"] not in ("started", "error", "cancelled"):
        yield f"{runs[0]['type']} came before started"


def _replays_only(frames: list[Frame]) -> bool:
    return all(frame.get("replayed") for frame in frames)


def _agreement(frames: list[Frame], rows: list[dict[str, Any]]) -> Problems:
    row = rows[0] if rows else None
    for frame in frames:
        kind = frame["type"]
        if row is None:
            if kind != "error":
                yield f"{kind} without a row"
            continue
        if frame.get("runId") not in (None, row["run_id"]):
            yield f"{kind} of another run"
        match kind:
            case "content" if frame["content"] != _json(row["content"]):
                yield "content that is not the stored one"
            case "done" if frame["outcome"] != row["release_outcome"] or row["release_outcome"] not in PUBLISHED:
                yield f"done {frame['outcome']}, stored {row['release_outcome']}"
            case "cancelled" if row["release_outcome"] != "CANCELLED":
                yield f"cancelled, stored {row['release_outcome']}"
            case "error" if frame["code"] not in (row["failure_code"], NOT_STORED):
                yield f"error {frame['code']}, stored {row['release_outcome']} {row['failure_code']}"


def _told_before(seen: Seen) -> int:
    """How many frames had arrived when the process was stopped at the boundary."""
    own = [one for one in seen.heard if one.pid == seen.first_pid]
    held = next(number for number, one in enumerate(own) if one.boundary == seen.plan.boundary)
    return sum(one.boundary.port == "frame" and one.boundary.phase == "after" for one in own[: held + 1])


def _held_in(seen: Seen, *names: str) -> bool:
    """Whether the case is about one of these: writes with limits of their own, and the poll that is to see the row."""
    boundary = seen.plan.boundary
    return boundary is not None and boundary.name in names


def _cancelled_or_late(row: dict[str, Any]) -> bool:
    """On a busy machine a run may meet its limit before its poll sees the row; with evidence, that is a fallback."""
    content = _json(row["content"]) or {}
    ends = {row["release_outcome"], row["failure_code"], content.get("reason")}
    return not ends.isdisjoint({"CANCELLED", "BUDGET_EXHAUSTED", "BUDGET_REACHED"})


def _write_failed(seen: Seen) -> bool:
    """Whether the start or the end of the row was begun and has not come back."""
    own = [one for one in seen.heard if one.pid == seen.first_pid]
    return any(
        any(_is(one, name, "before") for one in own) and not any(_is(one, name, "after") for one in own)
        for name in ("store.start", "store.finish")
    ) or _held_in(seen, "store.start", "store.finish")


def _is(reached: Reached, name: str, phase: str) -> bool:
    return (reached.boundary.name, reached.boundary.phase) == (name, phase)


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
