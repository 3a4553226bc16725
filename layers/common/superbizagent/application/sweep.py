"""The scheduled sweep: ends runs whose process died, and forgets connections that can't be open (LIFE-7)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from superbizagent.application.journal import record_abandoned

if TYPE_CHECKING:
    from superbizagent.domain.stored_run import AbandonedRun
    from superbizagent.ports import Clock, Connections, Journal, OverdueRuns

CONNECTION_LIFE = timedelta(hours=2, minutes=10)
"""API Gateway closes a WebSocket after two hours; a row older than that is left from a lost $disconnect."""


@dataclass(frozen=True)
class Swept:
    runs: tuple[AbandonedRun, ...]
    connections: int


class SweepUseCase:
    """`grace` is how long after its deadline a living run may still be writing its end."""

    def __init__(
        self, runs: OverdueRuns, connections: Connections, clock: Clock, grace: timedelta, journal: Journal
    ) -> None:
        self._runs = runs
        self._connections = connections
        self._clock = clock
        self._grace = grace
        self._journal = journal

    async def sweep(self) -> Swept:
        """Safe to run at any time and twice at once: a run is ended once (LIFE-3)."""
        now = self._clock.now()
        runs = await self._runs.abandon_overdue(now - self._grace, now)
        record_abandoned(self._journal, runs)
        connections = await self._connections.remove_older(now - CONNECTION_LIFE)
        return Swept(tuple(runs), connections)
