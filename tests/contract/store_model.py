"""What the store should hold, in lists and dictionaries: the model that the store's machine is held against."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from superbizagent.domain.previous_turn import PublishedResult, previous_turn
from superbizagent.domain.run import CancelReason, CancelRequest, Intent, ReleaseOutcome, RunIds, RunStatus
from superbizagent.domain.stored_run import AbandonedRun, StoredRun
from superbizagent.errors import RequestConflict, RunAbandoned, RunNotFound, SessionBusy, SessionNotFound
from superbizagent.ports import NewRun, PriorContext, RunEnd, StartResult
from tests.contract.conftest import GRACE


@dataclass
class Session:
    owner: str
    created_at: datetime
    last_active_at: datetime
    pairs: int = 0


@dataclass
class Run:
    new: NewRun
    stored: StoredRun
    published: PublishedResult | None = None

    @property
    def running(self) -> bool:
        return self.stored.status is RunStatus.RUNNING


@dataclass
class World:
    """What the store should hold. Every method answers as the port's does, or raises what it raises."""

    sessions: dict[str, Session] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    cancels: list[tuple[str, CancelRequest]] = field(default_factory=list)
    connections: dict[str, tuple[str, datetime]] = field(default_factory=dict)

    def run(self, run_id: str) -> Run | None:
        return next((run for run in self.runs if run.new.run_id == run_id), None)

    def turns(self, session_id: str) -> list[Run]:
        """Oldest first; of one instant in the order in which they were stored."""
        return sorted(
            (run for run in self.runs if run.new.session_id == session_id), key=lambda run: run.new.created_at
        )

    def start(self, new: NewRun) -> StartResult:
        for run in self.runs:
            if (run.new.owner, run.new.request_id) == (new.owner, new.request_id):
                if run.new.query != new.query:
                    raise RequestConflict
                return StartResult(run.stored)
        session = self.sessions.setdefault(new.session_id, Session(new.owner, new.created_at, new.created_at))
        if session.owner != new.owner:
            raise SessionNotFound
        running = [run for run in self.turns(new.session_id) if run.running]
        if any(run.new.deadline_at >= new.created_at - GRACE for run in running):
            raise SessionBusy
        abandoned = tuple(self._abandon(run, new.created_at) for run in running)
        session.last_active_at = max(session.last_active_at, new.created_at)
        self.runs.append(Run(new, _as_stored(new)))
        return StartResult(abandoned=abandoned)

    def set_intent(self, run_id: str, intent: Intent) -> None:
        run = self.run(run_id)
        if run is not None and run.running:
            run.stored = replace(run.stored, intent=intent)

    def finish(self, run_id: str, end: RunEnd) -> bool:
        run = self.run(run_id)
        if run is None or not run.running:
            return False
        run.stored = replace(
            run.stored,
            status=end.outcome.status,
            outcome=end.outcome,
            failure_code=end.failure_code,
            content=end.content,
            finished_at=end.finished_at,
        )
        run.published = end.published_result
        session = self.sessions[run.new.session_id]
        session.last_active_at = max(session.last_active_at, end.finished_at)
        session.pairs += end.outcome.status is RunStatus.SUCCESS
        return True

    def sweep(self, since: datetime, now: datetime) -> list[AbandonedRun]:
        overdue = [run for run in self.runs if run.running and run.new.deadline_at < since]
        return [self._abandon(run, now) for run in overdue]

    def find(self, run_id: str) -> StoredRun | None:
        run = self.run(run_id)
        return None if run is None else run.stored

    def _abandon(self, run: Run, now: datetime) -> AbandonedRun:
        run.stored = replace(
            run.stored,
            status=RunStatus.FAILED,
            outcome=ReleaseOutcome.FAILED,
            failure_code=RunAbandoned.code,
            finished_at=now,
        )
        new = run.new
        ids = RunIds(new.run_id, new.session_id, new.request_id, new.connection_id)
        milliseconds = (now - new.created_at) // timedelta(milliseconds=1)
        return AbandonedRun(ids, run.stored.intent, max(milliseconds, 0))

    def prior(self, session_id: str, owner: str) -> PriorContext:
        if session_id not in self.sessions:
            return PriorContext()
        if self.sessions[session_id].owner != owner:
            raise SessionNotFound
        latest_first = self.turns(session_id)[::-1]
        last = next((run for run in latest_first if run.stored.intent), None)
        result = next((run.published for run in latest_first if _diagnosed(run)), None)
        return PriorContext(
            last_intent=last.stored.intent if last else None,
            last_query=last.new.query if last else None,
            previous_turn=previous_turn(result.model_dump(mode="json")) if result else None,
        )

    def cancel_run(self, run_id: str, owner: str, when: datetime) -> None:
        run = self.run(run_id)
        if run is None or run.new.owner != owner:
            raise RunNotFound
        if run.running:
            self._cancel(run_id, CancelRequest(CancelReason.CLIENT_REQUEST, when))

    def cancel_connection(self, connection_id: str, when: datetime) -> None:
        self._cancel(connection_id, CancelRequest(CancelReason.CLIENT_DISCONNECT, when))

    def _cancel(self, target: str, request: CancelRequest) -> None:
        if target not in [cancelled for cancelled, _ in self.cancels]:
            self.cancels.append((target, request))

    def pending(self, run_id: str, connection_id: str) -> CancelRequest | None:
        return next((request for target, request in self.cancels if target in (run_id, connection_id)), None)

    def history(self, owner: str, limit: int) -> list[tuple[str, int]]:
        own = [(name, session) for name, session in self.sessions.items() if session.owner == owner]
        own.sort(key=lambda entry: entry[0])
        own.sort(key=lambda entry: (entry[1].last_active_at, entry[1].created_at), reverse=True)
        return [(name, session.pairs) for name, session in own[:limit]]

    def page(self, session_id: str, owner: str, before: str | None, limit: int) -> list[StoredRun]:
        session = self.sessions.get(session_id)
        if session is None or session.owner != owner:
            raise SessionNotFound
        turns = [run.stored for run in self.turns(session_id)]
        if before is not None:
            ids = [run.run_id for run in turns]
            if before not in ids:
                raise RunNotFound
            turns = turns[: ids.index(before)]
        return turns[max(len(turns) - limit, 0) :]


def _as_stored(new: NewRun) -> StoredRun:
    return StoredRun(
        run_id=new.run_id,
        session_id=new.session_id,
        request_id=new.request_id,
        gateway_request_id=new.gateway_request_id,
        query=new.query,
        status=RunStatus.RUNNING,
        intent=None,
        outcome=None,
        failure_code=None,
        content=None,
        created_at=new.created_at,
        finished_at=None,
    )


def _diagnosed(run: Run) -> bool:
    stored = run.stored
    return (stored.intent, stored.outcome) == (Intent.DIAGNOSIS, ReleaseOutcome.SUCCESS) and run.published is not None
