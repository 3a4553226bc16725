"""What a principal can see again."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, func, or_, select

from superbizagent.adapters.store.columns import AnyRow
from superbizagent.adapters.store.database import Database
from superbizagent.adapters.store.rows import select_runs, stored_run
from superbizagent.adapters.store.tables import chat_session, diagnosis_run
from superbizagent.domain.stored_run import SessionSummary, StoredRun
from superbizagent.domain.text import bound_characters, fold_whitespace
from superbizagent.errors import RunNotFound, SessionNotFound

MAX_TITLE = 60
"""Characters. Fifty such titles, with every character escaped in JSON, still fit one frame (WIRE-4)."""
_TITLE_SOURCE = 400

_run = diagnosis_run.c
_session = chat_session.c


class SqlHistory:
    """History."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sessions(self, owner: str, limit: int) -> Sequence[SessionSummary]:
        def unit(connection: Connection) -> Sequence[SessionSummary]:
            first_query = (
                select(func.substr(_run.query, 1, _TITLE_SOURCE))
                .where(_run.session_id == _session.session_id)
                .order_by(_run.created_at, _run.id)
                .limit(1)
                .scalar_subquery()
            )
            rows = connection.execute(
                select(chat_session, first_query.label("first_query"))
                .where(_session.owner == owner)
                .order_by(_session.last_active_at.desc(), _session.created_at.desc(), _session.session_id)
                # SQLite takes a negative limit for none at all.
                .limit(max(limit, 0))
            )
            # MySQL compares without trailing spaces; whose a session is must not depend on them.
            return [_summary(row) for row in rows if row.owner == owner]

        return await self._database.read(unit)

    async def turns(self, session_id: str, owner: str, before: str | None, limit: int) -> Sequence[StoredRun]:
        """Raises RunNotFound when `before` is no run of this session."""

        def unit(connection: Connection) -> Sequence[StoredRun]:
            stored_owner = connection.scalar(select(_session.owner).where(_session.session_id == session_id))
            if stored_owner is None or stored_owner != owner:
                raise SessionNotFound
            turns = select_runs().where(_run.session_id == session_id)
            if before is not None:
                turns = turns.where(_precedes(_bound(connection, session_id, before)))
            latest_first = turns.order_by(_run.created_at.desc(), _run.id.desc()).limit(max(limit, 0))
            return [stored_run(row) for row in reversed(connection.execute(latest_first).all())]

        return await self._database.read(unit)


def _bound(connection: Connection, session_id: str, run_id: str) -> AnyRow:
    row = connection.execute(
        select(_run.created_at, _run.id).where(_run.run_id == run_id, _run.session_id == session_id)
    ).first()
    if row is None:
        raise RunNotFound
    return row


def _precedes(bound: AnyRow) -> Any:
    return or_(
        _run.created_at < bound.created_at,
        and_(_run.created_at == bound.created_at, _run.id < bound.id),
    )


def _summary(row: AnyRow) -> SessionSummary:
    return SessionSummary(
        session_id=row.session_id,
        title=bound_characters(fold_whitespace(row.first_query or ""), MAX_TITLE),
        message_pairs=row.message_pairs,
        created_at=row.created_at,
        last_active_at=row.last_active_at,
    )
