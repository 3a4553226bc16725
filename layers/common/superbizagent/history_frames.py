"""How what is asked of history becomes frames."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import AwareDatetime, TypeAdapter

from superbizagent.domain.content import PublicContent
from superbizagent.domain.run import Intent, ReleaseOutcome, RunStatus
from superbizagent.domain.stored_run import SessionSummary, StoredRun
from superbizagent.domain.text import ELLIPSIS, bound_characters
from superbizagent.websocket import MAX_FRAME_BYTES, Frame

MAX_TITLE_CHARACTERS = 60
"""Fifty session entries with such titles fit one frame, even where JSON escapes each character (WIRE-4)."""

_text: TypeAdapter[str] = TypeAdapter(str)


class SessionEntry(Frame):
    session_id: str
    title: str
    message_pairs: int
    created_at: AwareDatetime
    last_active_at: AwareDatetime


class Turn(Frame):
    """A stored run. `query_truncated`: the stored question is longer than fits this frame."""

    run_id: str
    request_id: str
    query: str
    query_truncated: bool | None = None
    status: RunStatus
    intent: Intent | None = None
    outcome: ReleaseOutcome | None = None
    failure_code: str | None = None
    content: PublicContent | None = None
    created_at: AwareDatetime
    finished_at: AwareDatetime | None = None


class HistoryFrame(Frame):
    """One frame of an answer to `history`; the last one of each answer has kind `end`.

    Kind `sessions` carries `sessions`, kind `turn` one `turn`. `before` in the end frame asks for the
    turns before these; it is absent when there are none.
    """

    type: Literal["history"] = "history"
    kind: Literal["sessions", "turn", "end"]
    session_id: str | None = None
    sessions: tuple[SessionEntry, ...] | None = None
    turn: Turn | None = None
    before: str | None = None


def session_frames(sessions: Sequence[SessionSummary]) -> Iterator[Frame]:
    yield HistoryFrame(kind="sessions", sessions=tuple(session_entry(summary) for summary in sessions))
    yield HistoryFrame(kind="end")


def turn_frames(session_id: str, runs: Sequence[StoredRun], before: str | None) -> Iterator[Frame]:
    """One frame a turn, newest last, then the end frame (WIRE-5)."""
    yield from (turn_frame(run) for run in runs)
    yield HistoryFrame(kind="end", session_id=session_id, before=before)


def session_entry(summary: SessionSummary) -> SessionEntry:
    return SessionEntry(
        session_id=summary.session_id,
        title=bound_characters(summary.title, MAX_TITLE_CHARACTERS),
        message_pairs=summary.message_pairs,
        created_at=summary.created_at,
        last_active_at=summary.last_active_at,
    )


def turn_frame(run: StoredRun) -> HistoryFrame:
    """One stored run as one frame; a question too long to fit beside its answer is cut and marked.

    Content that fits no frame on its own is left out: it was stored by a version with other limits.
    """
    frame = _turn(run, run.query, truncated=None)
    if len(frame.encode()) <= MAX_FRAME_BYTES:
        return frame
    room = MAX_FRAME_BYTES - len(_turn(run, "", truncated=True).encode())
    if room < 0:
        return turn_frame(replace(run, content=None))
    return _turn(run, _bound_encoded(run.query, room), truncated=True)


def _bound_encoded(text: str, limit: int) -> str:
    """`text`, cut so that it takes at most `limit` bytes as JSON, where one character may take six."""
    size = len(ELLIPSIS.encode())
    for index, character in enumerate(text):
        size += len(_text.dump_json(character)) - 2
        if size > limit:
            return text[:index] + ELLIPSIS if limit >= len(ELLIPSIS.encode()) else ""
    return text


def _turn(run: StoredRun, query: str, truncated: bool | None) -> HistoryFrame:
    return HistoryFrame(
        kind="turn",
        session_id=run.session_id,
        turn=Turn(
            run_id=run.run_id,
            request_id=run.request_id,
            query=query,
            query_truncated=truncated,
            status=run.status,
            intent=run.intent,
            outcome=run.outcome,
            failure_code=run.failure_code,
            content=run.content,
            created_at=run.created_at,
            finished_at=run.finished_at,
        ),
    )
