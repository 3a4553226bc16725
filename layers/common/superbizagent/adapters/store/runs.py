"""Runs and their sessions.

Locks are taken in one order, session before run, so that starting and finishing can't deadlock.
"""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Connection,
    case,
    insert,
    select,
    update,
)

from superbizagent.adapters.store.columns import AnyRow
from superbizagent.adapters.store.database import Database
from superbizagent.adapters.store.overdue import TO_ABANDON, SqlOverdueRuns, abandon, end_running, overdue
from superbizagent.adapters.store.rows import select_runs, stored_run
from superbizagent.adapters.store.tables import chat_session, diagnosis_run
from superbizagent.domain.previous_turn import PreviousTurn, previous_turn
from superbizagent.domain.run import Intent, ReleaseOutcome, RunStatus
from superbizagent.domain.stored_run import AbandonedRun, StoredRun
from superbizagent.errors import RequestConflict, SessionBusy, SessionNotFound
from superbizagent.ports import NewRun, PriorContext, RunEnd, StartResult

_PUBLISHED = (ReleaseOutcome.SUCCESS, ReleaseOutcome.FALLBACK)
_run = diagnosis_run.c
_session = chat_session.c
_latest_first = (_run.created_at.desc(), _run.id.desc())


class SqlRunStore(SqlOverdueRuns):
    """RunStore. `overdue_grace`: how long past its deadline a run still keeps its session busy."""

    def __init__(self, database: Database, *, overdue_grace: timedelta = timedelta(seconds=10)) -> None:
        super().__init__(database)
        self._grace = overdue_grace

    async def prior_context(self, session_id: str, owner: str) -> PriorContext:
        return await self._database.read(lambda connection: _prior_context(connection, session_id, owner))

    async def start(self, run: NewRun) -> StartResult:
        return await self._database.write(_Start(run, self._grace))

    async def set_intent(self, run_id: str, intent: Intent) -> None:
        await self._database.write(
            lambda connection: connection.execute(
                update(diagnosis_run)
                .where(_run.run_id == run_id, _run.status == RunStatus.RUNNING)
                .values(intent=intent.value)
            )
        )

    async def finish(self, run_id: str, end: RunEnd) -> bool:
        return await self._database.write(_Finish(run_id, end))

    async def find(self, run_id: str) -> StoredRun | None:
        def unit(connection: Connection) -> StoredRun | None:
            row = connection.execute(select_runs().where(_run.run_id == run_id)).first()
            return None if row is None else stored_run(row)

        return await self._database.read(unit)


class _Start:
    """The unit of work behind `start`."""

    def __init__(self, run: NewRun, grace: timedelta) -> None:
        self._run = run
        self._grace = grace
        self._tries = 0
        self._abandoned: tuple[AbandonedRun, ...] = ()

    def __call__(self, connection: Connection) -> StartResult:
        self._tries += 1
        run = self._run
        session = _lock_session(connection, run.session_id)
        # Looked up under the lock: of two equal requests the second waits here and then finds the first.
        earlier = self._earlier(connection)
        if earlier is not None:
            return self._answer(earlier)
        self._open(connection, session)
        connection.execute(
            insert(diagnosis_run).values(
                run_id=run.run_id,
                session_id=run.session_id,
                owner=run.owner,
                request_id=run.request_id,
                gateway_request_id=run.gateway_request_id,
                connection_id=run.connection_id,
                query=run.query,
                status=RunStatus.RUNNING.value,
                created_at=run.created_at,
                deadline_at=run.deadline_at,
            )
        )
        return StartResult(abandoned=self._abandoned)

    def _earlier(self, connection: Connection) -> StoredRun | None:
        row = connection.execute(
            select_runs().where(_run.owner == self._run.owner, _run.request_id == self._run.request_id)
        ).first()
        # MySQL compares without trailing spaces; whose a run is must not depend on them.
        return stored_run(row) if row is not None and row.owner == self._run.owner else None

    def _answer(self, earlier: StoredRun) -> StartResult:
        if self._tries > 1 and earlier.run_id == self._run.run_id:
            # Our own row: the try before was committed with all it did, but its acknowledgement was lost.
            return StartResult(abandoned=self._abandoned)
        if earlier.query != self._run.query:
            raise RequestConflict
        return StartResult(earlier)

    def _open(self, connection: Connection, session: AnyRow | None) -> None:
        run = self._run
        if session is None:
            connection.execute(
                insert(chat_session).values(
                    session_id=run.session_id,
                    owner=run.owner,
                    created_at=run.created_at,
                    last_active_at=run.created_at,
                )
            )
            return
        if session.owner != run.owner:
            raise SessionNotFound
        self._end_overdue(connection)
        connection.execute(_activity(run.session_id, run.created_at))

    def _end_overdue(self, connection: Connection) -> None:
        running = connection.execute(
            select(*TO_ABANDON, overdue(self._run.created_at - self._grace).label("overdue")).where(
                _run.session_id == self._run.session_id, _run.status == RunStatus.RUNNING
            )
        ).all()
        if not all(row.overdue for row in running):
            raise SessionBusy
        self._abandoned = tuple(abandon(connection, running, self._run.created_at))


class _Finish:
    """The unit of work behind `finish`."""

    def __init__(self, run_id: str, end: RunEnd) -> None:
        self._run_id = run_id
        self._end = end
        self._tries = 0

    def __call__(self, connection: Connection) -> bool:
        self._tries += 1
        session_id = connection.scalar(select(_run.session_id).where(_run.run_id == self._run_id))
        if session_id is None:
            return False
        _lock_session(connection, session_id)
        if not end_running(connection, self._run_id, self._columns()):
            return self._tries > 1 and self._is_ours(connection)
        end = self._end
        connection.execute(_activity(session_id, end.finished_at, pairs=int(end.outcome in _PUBLISHED)))
        return True

    def _columns(self) -> dict[str, Any]:
        end = self._end
        result = end.published_result
        return {
            "status": end.outcome.status.value,
            "release_outcome": end.outcome.value,
            "failure_code": end.failure_code,
            "content": end.content and end.content.model_dump(mode="json", exclude_none=True),
            "published_result": result and result.model_dump(mode="json"),
            "tokens": end.usage.tokens,
            "model_calls": end.usage.model_calls,
            "tool_calls": end.usage.tool_calls,
            "duration_ms": end.duration_ms,
            "finished_at": end.finished_at,
        }

    def _is_ours(self, connection: Connection) -> bool:
        """Whether the end that is stored is this very one: committed, its acknowledgement lost."""
        columns = self._columns()
        row = connection.execute(select(*(_run[name] for name in columns)).where(_run.run_id == self._run_id)).one()
        return bool(row._asdict() == columns)


def _prior_context(connection: Connection, session_id: str, owner: str) -> PriorContext:
    stored_owner = connection.scalar(select(_session.owner).where(_session.session_id == session_id))
    if stored_owner is None:
        return PriorContext()
    if stored_owner != owner:
        raise SessionNotFound
    last = connection.execute(
        select(_run.intent, _run.query)
        .where(_run.session_id == session_id, _run.intent.in_([intent.value for intent in Intent]))
        .order_by(*_latest_first)
        .limit(1)
    ).first()
    return PriorContext(
        last_intent=Intent(last.intent) if last else None,
        last_query=last.query if last else None,
        previous_turn=_previous_turn(connection, session_id),
    )


def _previous_turn(connection: Connection, session_id: str) -> PreviousTurn | None:
    row = connection.execute(
        select(_run.published_result)
        .where(
            _run.session_id == session_id,
            _run.intent == Intent.DIAGNOSIS,
            _run.release_outcome == ReleaseOutcome.SUCCESS,
            _run.published_result.is_not(None),
        )
        .order_by(*_latest_first)
        .limit(1)
    ).first()
    return previous_turn(row.published_result) if row else None


def _lock_session(connection: Connection, session_id: str) -> AnyRow | None:
    return connection.execute(select(_session.owner).where(_session.session_id == session_id).with_for_update()).first()


def _activity(session_id: str, at: datetime, pairs: int = 0) -> Any:
    """Clocks of two processes differ; the last activity never goes back."""
    return (
        update(chat_session)
        .where(_session.session_id == session_id)
        .values(
            last_active_at=case((_session.last_active_at < at, at), else_=_session.last_active_at),
            message_pairs=_session.message_pairs + pairs,
        )
    )
