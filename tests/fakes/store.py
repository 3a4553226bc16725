"""The store in memory. The contract suite holds these to what the real one does."""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from pydantic import ValidationError

from superbizagent.domain.content import PublicContent, public_content
from superbizagent.domain.previous_turn import previous_turn
from superbizagent.domain.run import CancelReason, CancelRequest, Intent, ReleaseOutcome, RunIds, RunStatus
from superbizagent.domain.stored_run import AbandonedRun, SessionSummary, StoredRun
from superbizagent.domain.text import bound_characters, fold_whitespace
from superbizagent.errors import (
    RequestConflict,
    RunAbandoned,
    RunNotFound,
    SessionBusy,
    SessionNotFound,
    StoreError,
)
from superbizagent.ports import NewRun, PriorContext, RunEnd, StartResult

MAX_TITLE = 60


@dataclass
class SessionRow:
    session_id: str
    owner: str
    created_at: datetime
    last_active_at: datetime
    message_pairs: int = 0


@dataclass
class RunRow:
    """`content` and `published_result` hold JSON text, as a database does."""

    id: int
    new: NewRun
    status: RunStatus = RunStatus.RUNNING
    intent: Intent | None = None
    outcome: ReleaseOutcome | None = None
    failure_code: str | None = None
    content: str | None = None
    published_result: str | None = None
    finished_at: datetime | None = None
    duration_ms: int | None = None
    tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0

    @property
    def running(self) -> bool:
        return self.status is RunStatus.RUNNING

    def end(self, end: RunEnd) -> None:
        self.status = end.outcome.status
        self.outcome = end.outcome
        self.failure_code = end.failure_code
        self.content = end.content.model_dump_json(exclude_none=True) if end.content else None
        self.published_result = end.published_result.model_dump_json() if end.published_result else None
        self.finished_at = end.finished_at
        self.duration_ms = end.duration_ms
        self.tokens = end.usage.tokens
        self.model_calls = end.usage.model_calls
        self.tool_calls = end.usage.tool_calls

    def abandon(self, now: datetime) -> AbandonedRun:
        self.status = RunStatus.FAILED
        self.outcome = ReleaseOutcome.FAILED
        self.failure_code = RunAbandoned.code
        self.finished_at = now
        self.duration_ms = max(int((now - self.new.created_at) / timedelta(milliseconds=1)), 0)
        ids = RunIds(self.new.run_id, self.new.session_id, self.new.request_id, self.new.connection_id)
        return AbandonedRun(ids, self.intent, self.duration_ms)

    def stored(self) -> StoredRun:
        return StoredRun(
            run_id=self.new.run_id,
            session_id=self.new.session_id,
            request_id=self.new.request_id,
            gateway_request_id=self.new.gateway_request_id,
            query=self.new.query,
            status=self.status,
            intent=self.intent,
            outcome=self.outcome,
            failure_code=self.failure_code,
            content=_content(self.content),
            created_at=self.new.created_at,
            finished_at=self.finished_at,
        )


@dataclass
class CancelRow:
    reason: CancelReason
    requested_at: datetime
    connection_id: str | None = None
    run_id: str | None = None


class Pause:
    """A call that waits: `await pause.reached.wait()`, do something, `pause.release()`."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def hold(self) -> None:
        self.reached.set()
        await self._released.wait()


Fault = Literal["before", "after"] | Pause


@dataclass
class FakeDatabase:
    """What the fakes share; tests may read its rows."""

    sessions: dict[str, SessionRow] = field(default_factory=dict)
    runs: list[RunRow] = field(default_factory=list)
    cancels: list[CancelRow] = field(default_factory=list)
    connections: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    _faults: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))

    def fail_next(self, method: str, times: int = 1, *, stored: bool = False) -> None:
        """The next calls of `method` raise StoreError; with `stored` only after they have done their work."""
        self._faults[method].extend(["after" if stored else "before"] * times)

    def pause_next(self, method: str) -> Pause:
        """The next call of `method` waits before it does anything."""
        pause = Pause()
        self._faults[method].append(pause)
        return pause

    @asynccontextmanager
    async def unit(self, method: str) -> AsyncIterator[None]:
        self.calls.append(method)
        fault = self._faults[method].popleft() if self._faults[method] else None
        if fault == "before":
            raise StoreError(f"{method} was told to fail")
        if isinstance(fault, Pause):
            await fault.hold()
        yield
        if fault == "after":
            raise StoreError(f"{method} was told to fail after it was stored")

    def run(self, run_id: str) -> RunRow | None:
        return next((row for row in self.runs if row.new.run_id == run_id), None)

    def runs_of(self, session_id: str) -> list[RunRow]:
        """Oldest first."""
        runs = (row for row in self.runs if row.new.session_id == session_id)
        return sorted(runs, key=lambda row: (row.new.created_at, row.id))

    def active(self, session_id: str, at: datetime) -> SessionRow:
        session = self.sessions[session_id]
        session.last_active_at = max(session.last_active_at, at)
        return session


class FakeRunStore:
    """RunStore."""

    def __init__(
        self, database: FakeDatabase | None = None, *, overdue_grace: timedelta = timedelta(seconds=10)
    ) -> None:
        self.database = database or FakeDatabase()
        self._grace = overdue_grace

    async def prior_context(self, session_id: str, owner: str) -> PriorContext:
        async with self.database.unit("prior_context"):
            session = self.database.sessions.get(session_id)
            if session is None:
                return PriorContext()
            if session.owner != owner:
                raise SessionNotFound
            runs = self.database.runs_of(session_id)[::-1]
            last = next((run for run in runs if run.intent), None)
            published = next((run.published_result for run in runs if _published(run)), None)
            return PriorContext(
                last_intent=last.intent if last else None,
                last_query=last.new.query if last else None,
                previous_turn=previous_turn(published),
            )

    async def start(self, run: NewRun) -> StartResult:
        async with self.database.unit("start"):
            earlier = self._earlier(run)
            if earlier is not None:
                if earlier.new.query != run.query:
                    raise RequestConflict
                return StartResult(earlier.stored())
            abandoned = self._open_session(run)
            self.database.runs.append(RunRow(id=len(self.database.runs) + 1, new=run))
            return StartResult(abandoned=abandoned)

    async def set_intent(self, run_id: str, intent: Intent) -> None:
        async with self.database.unit("set_intent"):
            row = self.database.run(run_id)
            if row is not None and row.running:
                row.intent = intent

    async def finish(self, run_id: str, end: RunEnd) -> bool:
        async with self.database.unit("finish"):
            row = self.database.run(run_id)
            if row is None or not row.running:
                return False
            row.end(end)
            session = self.database.active(row.new.session_id, end.finished_at)
            session.message_pairs += end.outcome.status is RunStatus.SUCCESS
            return True

    async def find(self, run_id: str) -> StoredRun | None:
        async with self.database.unit("find"):
            row = self.database.run(run_id)
            return None if row is None else row.stored()

    async def abandon_overdue(self, overdue_since: datetime, now: datetime) -> Sequence[AbandonedRun]:
        async with self.database.unit("abandon_overdue"):
            overdue = [row for row in self.database.runs if row.running and row.new.deadline_at < overdue_since]
            return [row.abandon(now) for row in overdue]

    def _earlier(self, run: NewRun) -> RunRow | None:
        wanted = (run.owner, run.request_id)
        rows = self.database.runs
        return next((row for row in rows if (row.new.owner, row.new.request_id) == wanted), None)

    def _open_session(self, run: NewRun) -> tuple[AbandonedRun, ...]:
        session = self.database.sessions.get(run.session_id)
        if session is None:
            self.database.sessions[run.session_id] = SessionRow(
                run.session_id, run.owner, run.created_at, run.created_at
            )
            return ()
        if session.owner != run.owner:
            raise SessionNotFound
        running = [row for row in self.database.runs_of(run.session_id) if row.running]
        if any(row.new.deadline_at + self._grace >= run.created_at for row in running):
            raise SessionBusy
        self.database.active(run.session_id, run.created_at)
        return tuple(row.abandon(run.created_at) for row in running)


class FakeCancelRequests:
    """CancelRequests."""

    def __init__(self, database: FakeDatabase) -> None:
        self._database = database

    async def cancel_connection(self, connection_id: str, requested_at: datetime) -> None:
        async with self._database.unit("cancel_connection"):
            reason = CancelReason.CLIENT_DISCONNECT
            self._add(CancelRow(reason, requested_at, connection_id=connection_id))

    async def cancel_run(self, run_id: str, owner: str, requested_at: datetime) -> None:
        async with self._database.unit("cancel_run"):
            run = self._database.run(run_id)
            if run is None or self._database.sessions[run.new.session_id].owner != owner:
                raise RunNotFound
            if run.running:
                self._add(CancelRow(CancelReason.CLIENT_REQUEST, requested_at, run_id=run_id))

    async def pending(self, run_id: str, connection_id: str) -> CancelRequest | None:
        async with self._database.unit("pending"):
            rows = self._database.cancels
            asked = (row for row in rows if row.run_id == run_id or row.connection_id == connection_id)
            return next((CancelRequest(row.reason, row.requested_at) for row in asked), None)

    def _add(self, new: CancelRow) -> None:
        target = (new.connection_id, new.run_id)
        if all((row.connection_id, row.run_id) != target for row in self._database.cancels):
            self._database.cancels.append(new)


class FakeConnections:
    """Connections."""

    def __init__(self, database: FakeDatabase) -> None:
        self._database = database

    async def add(self, connection_id: str, principal: str, connected_at: datetime) -> None:
        async with self._database.unit("add"):
            self._database.connections[connection_id] = (principal, connected_at)

    async def principal(self, connection_id: str) -> str | None:
        async with self._database.unit("principal"):
            found = self._database.connections.get(connection_id)
            return None if found is None else found[0]

    async def remove(self, connection_id: str) -> None:
        async with self._database.unit("remove"):
            self._database.connections.pop(connection_id, None)

    async def remove_older(self, than: datetime) -> int:
        async with self._database.unit("remove_older"):
            database = self._database
            database.cancels[:] = [row for row in database.cancels if row.requested_at >= than]
            old = [name for name, (_, at) in database.connections.items() if at < than]
            for name in old:
                del database.connections[name]
            return len(old)


class FakeHistory:
    """History."""

    def __init__(self, database: FakeDatabase) -> None:
        self._database = database

    async def sessions(self, owner: str, limit: int) -> Sequence[SessionSummary]:
        async with self._database.unit("sessions"):
            own = sorted(
                (row for row in self._database.sessions.values() if row.owner == owner),
                key=lambda row: (
                    -row.last_active_at.timestamp(),
                    -row.created_at.timestamp(),
                    row.session_id,
                ),
            )
            return [self._summary(row) for row in own[: max(limit, 0)]]

    async def turns(self, session_id: str, owner: str, before: str | None, limit: int) -> Sequence[StoredRun]:
        async with self._database.unit("turns"):
            session = self._database.sessions.get(session_id)
            if session is None or session.owner != owner:
                raise SessionNotFound
            runs = [row.stored() for row in self._database.runs_of(session_id)]
            ids = [run.run_id for run in runs]
            if before is not None and before not in ids:
                raise RunNotFound
            end = len(runs) if before is None else ids.index(before)
            return runs[max(end - max(limit, 0), 0) : end]

    def _summary(self, row: SessionRow) -> SessionSummary:
        runs = self._database.runs_of(row.session_id)
        title = bound_characters(fold_whitespace(runs[0].new.query), MAX_TITLE) if runs else ""
        return SessionSummary(row.session_id, title, row.message_pairs, row.created_at, row.last_active_at)


def _published(run: RunRow) -> bool:
    return run.intent is Intent.DIAGNOSIS and run.outcome is ReleaseOutcome.SUCCESS and run.published_result is not None


def _content(text: str | None) -> PublicContent | None:
    if text is None:
        return None
    try:
        return public_content.validate_python(json.loads(text))
    except (ValidationError, ValueError):
        return None
