"""Cancel rows: how a disconnect or a cancel message in one process reaches a run in another."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, or_, select

from superbizagent.adapters.store.database import Database
from superbizagent.adapters.store.tables import chat_session, diagnosis_run, run_cancel
from superbizagent.domain.run import CancelReason, CancelRequest, RunStatus
from superbizagent.errors import RunNotFound

_cancel = run_cancel.c


class SqlCancelRequests:
    """CancelRequests."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def cancel_connection(self, connection_id: str, requested_at: datetime) -> None:
        row = {"connection_id": connection_id, "reason": CancelReason.CLIENT_DISCONNECT.value}
        await self._database.write(
            lambda connection: _request(
                connection, _cancel.connection_id == connection_id, row | {"requested_at": requested_at}
            )
        )

    async def cancel_run(self, run_id: str, owner: str, requested_at: datetime) -> None:
        def unit(connection: Connection) -> None:
            # The session's owner: rows from before V013 have none of their own.
            run = connection.execute(
                select(chat_session.c.owner, diagnosis_run.c.status)
                .join_from(diagnosis_run, chat_session)
                .where(diagnosis_run.c.run_id == run_id)
            ).first()
            if run is None or run.owner != owner:
                raise RunNotFound
            if run.status == RunStatus.RUNNING:
                row = {"run_id": run_id, "reason": CancelReason.CLIENT_REQUEST.value}
                _request(connection, _cancel.run_id == run_id, row | {"requested_at": requested_at})

        await self._database.write(unit)

    async def pending(self, run_id: str, connection_id: str) -> CancelRequest | None:
        # A unit of its own each time: a transaction kept open would see its own past for ever.
        def unit(connection: Connection) -> CancelRequest | None:
            row = connection.execute(
                select(_cancel.reason, _cancel.requested_at)
                .where(or_(_cancel.run_id == run_id, _cancel.connection_id == connection_id))
                .order_by(_cancel.id)
                .limit(1)
            ).first()
            return None if row is None else CancelRequest(CancelReason(row.reason), row.requested_at)

        return await self._database.read(unit)


def _request(connection: Connection, same: Any, row: dict[str, Any]) -> None:
    """The first request stands; should two come at once, the second unit is repeated and finds it."""
    if connection.execute(select(_cancel.id).where(same)).first() is None:
        connection.execute(insert(run_cancel).values(**row))
