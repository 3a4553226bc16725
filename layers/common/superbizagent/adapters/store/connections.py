"""Open connections and whose they are."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, CursorResult, delete, insert, select, update

from superbizagent.adapters.store.database import Database
from superbizagent.adapters.store.tables import run_cancel, ws_connection

_open = ws_connection.c


class SqlConnections:
    """Connections."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, connection_id: str, principal: str, connected_at: datetime) -> None:
        def unit(connection: Connection) -> None:
            row = {"principal": principal, "connected_at": connected_at}
            # Delivered twice it is still one connection. MySQL counts matched rows here, as SQLite does.
            changed: CursorResult[Any] = connection.execute(
                update(ws_connection).where(_open.connection_id == connection_id).values(**row)
            )
            if changed.rowcount == 0:
                connection.execute(insert(ws_connection).values(connection_id=connection_id, **row))

        await self._database.write(unit)

    async def principal(self, connection_id: str) -> str | None:
        def unit(connection: Connection) -> str | None:
            return connection.scalar(select(_open.principal).where(_open.connection_id == connection_id))

        return await self._database.read(unit)

    async def remove(self, connection_id: str) -> None:
        await self._database.write(
            lambda connection: connection.execute(delete(ws_connection).where(_open.connection_id == connection_id))
        )

    async def remove_older(self, than: datetime) -> int:
        def unit(connection: Connection) -> int:
            # A cancel row outlives its use with its connection: nothing else would ever remove it.
            connection.execute(delete(run_cancel).where(run_cancel.c.requested_at < than))
            removed: CursorResult[Any] = connection.execute(delete(ws_connection).where(_open.connected_at < than))
            return removed.rowcount

        return await self._database.write(unit)
