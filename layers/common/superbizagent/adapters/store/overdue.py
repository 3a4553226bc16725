"""Runs whose process may have died: found, and ended from outside (LIFE-7).

Apart from the run store, because the sweep loads this and no shape of content.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, CursorResult, and_, or_, select, update

from superbizagent.adapters.store.columns import AnyRow, member
from superbizagent.adapters.store.database import Database
from superbizagent.adapters.store.tables import diagnosis_run
from superbizagent.domain.run import Intent, ReleaseOutcome, RunIds, RunStatus
from superbizagent.domain.stored_run import AbandonedRun
from superbizagent.errors import RunAbandoned

LONGEST_RUN_WITHOUT_DEADLINE = timedelta(minutes=15)
"""How long a function can run at all: the deadline of a run stored before there were deadlines."""

_run = diagnosis_run.c
TO_ABANDON = (_run.run_id, _run.session_id, _run.request_id, _run.connection_id, _run.intent, _run.created_at)


class SqlOverdueRuns:
    """OverdueRuns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def abandon_overdue(self, overdue_since: datetime, now: datetime) -> Sequence[AbandonedRun]:
        return await self._database.write(_Sweep(overdue_since, now))


class _Sweep:
    """The unit of work behind `abandon_overdue`."""

    def __init__(self, overdue_since: datetime, now: datetime) -> None:
        self._overdue_since = overdue_since
        self._now = now
        self._tried: tuple[AbandonedRun, ...] = ()

    def __call__(self, connection: Connection) -> Sequence[AbandonedRun]:
        before = self._ended_before(connection)
        # A run that another transaction holds is being ended right now, so it needs no sweeping. Its
        # lock is not waited for: sessions are left alone here, and so no lock order is broken.
        found = connection.execute(
            select(*TO_ABANDON).where(overdue(self._overdue_since)).order_by(_run.id).with_for_update(skip_locked=True)
        ).all()
        self._tried = (*before, *abandon(connection, found, self._now))
        return self._tried

    def _ended_before(self, connection: Connection) -> Sequence[AbandonedRun]:
        """What the try before ended: it was committed, but its acknowledgement was lost."""
        if not self._tried:
            return ()
        ours = (
            _run.run_id.in_([run.ids.run_id for run in self._tried]),
            _run.failure_code == RunAbandoned.code,
            _run.finished_at == self._now,
        )
        ended = set(connection.scalars(select(_run.run_id).where(*ours)))
        return [run for run in self._tried if run.ids.run_id in ended]


def overdue(since: datetime) -> ColumnElement[bool]:
    return and_(
        _run.status == RunStatus.RUNNING,
        or_(
            _run.deadline_at < since,
            and_(_run.deadline_at.is_(None), _run.created_at < since - LONGEST_RUN_WITHOUT_DEADLINE),
        ),
    )


def abandon(connection: Connection, runs: Sequence[AnyRow], now: datetime) -> Iterator[AbandonedRun]:
    """Ends those of the runs that nobody else has ended meanwhile."""
    for run in runs:
        duration_ms = max(int((now - run.created_at) / timedelta(milliseconds=1)), 0)
        columns = {
            "status": RunStatus.FAILED.value,
            "release_outcome": ReleaseOutcome.FAILED.value,
            "failure_code": RunAbandoned.code,
            "duration_ms": duration_ms,
            "finished_at": now,
        }
        if end_running(connection, run.run_id, columns):
            yield _abandoned_run(run, duration_ms)


def _abandoned_run(row: AnyRow, duration_ms: int) -> AbandonedRun:
    """One from before V013 has neither request nor connection."""
    return AbandonedRun(
        ids=RunIds(row.run_id, row.session_id, row.request_id, row.connection_id),
        intent=member(Intent, row.intent),
        duration_ms=duration_ms,
    )


def end_running(connection: Connection, run_id: str, columns: dict[str, Any]) -> bool:
    """The one way a run ends: whoever changes it from RUNNING has won (LIFE-3)."""
    result: CursorResult[Any] = connection.execute(
        update(diagnosis_run).where(_run.run_id == run_id, _run.status == RunStatus.RUNNING).values(**columns)
    )
    return result.rowcount == 1
