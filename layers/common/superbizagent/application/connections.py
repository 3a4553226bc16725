"""Open connections: who they belong to, and what their end means."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from superbizagent.errors import Unauthenticated

if TYPE_CHECKING:
    from superbizagent.ports import CancelRequests, Clock, Connections

_log = logging.getLogger(__name__)


class ConnectionUseCase:
    """Registers connections, ends them, and knows their principal (ISO-2)."""

    def __init__(self, connections: Connections, cancels: CancelRequests, clock: Clock) -> None:
        self._connections = connections
        self._cancels = cancels
        self._clock = clock

    async def connect(self, connection_id: str, principal: str | None) -> None:
        """Raises Unauthenticated without a principal, and for one with white space around it.

        MySQL compares without trailing spaces: by its unique keys the principal "alice " would be refused the
        request ids of "alice", and so learn of them (ISO-2).
        """
        if not principal or principal != principal.strip():
            raise Unauthenticated
        await self._connections.add(connection_id, principal, self._clock.now())

    async def disconnect(self, connection_id: str) -> None:
        """Cancels the connection's runs, then forgets it. Safe to repeat, and for an unknown connection.

        The cancel row comes first: if forgetting fails, the run has been told all the same.
        """
        await self._cancels.cancel_connection(connection_id, self._clock.now())
        await self._connections.remove(connection_id)

    async def principal(self, connection_id: str) -> str:
        """Raises Unauthenticated for a connection that was never registered or has ended."""
        principal = await self._connections.principal(connection_id)
        if principal is None:
            raise Unauthenticated
        return principal
