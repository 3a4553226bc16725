"""What a principal can see again after a reload (WIRE-5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from superbizagent.domain.stored_run import SessionSummary, StoredRun
    from superbizagent.ports import History


class HistoryUseCase:
    def __init__(self, history: History) -> None:
        self._history = history

    async def sessions(self, principal: str, limit: int) -> Sequence[SessionSummary]:
        """The principal's sessions, the most recently active first."""
        return await self._history.sessions(principal, limit)

    async def turns(
        self, session_id: str, principal: str, before: str | None, limit: int
    ) -> tuple[Sequence[StoredRun], str | None]:
        """A page of turns, newest last, and the run id to ask for the page before, if there is one.

        Raises SessionNotFound for an unknown or another principal's session.
        """
        runs = await self._history.turns(session_id, principal, before, limit + 1)
        if len(runs) <= limit:
            return runs, None
        page = runs[-limit:]
        return page, page[0].run_id
