"""Cancellation that comes from another process: rows, and the poller that reads them (CANCEL-*)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from superbizagent.application.defects import place_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from superbizagent.domain.run_context import RunContext
    from superbizagent.ports import CancelRequests, Clock

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0


class CancelWatch:
    """Cancels runs whose end somebody asked for. `interval` is seconds between two looks."""

    def __init__(self, requests: CancelRequests, clock: Clock, interval: float) -> None:
        self._requests = requests
        self._clock = clock
        self._interval = interval

    @contextlib.asynccontextmanager
    async def over(self, context: RunContext, connection_id: str) -> AsyncIterator[None]:
        """Watches while the block runs; leaves no task behind.

        Looks once before the block begins, so that a cancel row written earlier prevents all work.
        """
        await self._look(context, connection_id)
        task = asyncio.create_task(self._poll(context, connection_id))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _poll(self, context: RunContext, connection_id: str) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self._look(context, connection_id)

    async def _look(self, context: RunContext, connection_id: str) -> None:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                request = await self._requests.pending(context.run_id, connection_id)
        except Exception as error:
            # Whatever the database's hiccup is, it must not end a run, nor its watch, nor hold it up.
            _log.warning("cancel poll failed", extra={"run_id": context.run_id, "defect": place_of(error)})
            return
        if request is not None:
            context.cancel(request.reason, waited=(self._clock.now() - request.requested_at).total_seconds())


class CancelUseCase:
    """An explicit cancel message from the client that owns the run (CANCEL-3)."""

    def __init__(self, requests: CancelRequests, clock: Clock) -> None:
        self._requests = requests
        self._clock = clock

    async def cancel(self, run_id: str, principal: str) -> None:
        """Raises RunNotFound for an unknown or another principal's run; an ended run stays as it is."""
        await self._requests.cancel_run(run_id, principal, self._clock.now())
