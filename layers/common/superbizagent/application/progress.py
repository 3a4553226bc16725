"""How a run speaks to its observer, and what the observer's failures mean (OBS-1, OBS-2)."""

import asyncio

from superbizagent.domain.run import CancelReason
from superbizagent.domain.run_context import RunContext
from superbizagent.errors import ClientGone, ObserverFailed, RunCancelled
from superbizagent.ports import Observer, RunControl, StatusCode


class Progress:
    """One run's observer. Statuses of concurrent tools are sent one after another."""

    def __init__(self, observer: Observer, context: RunContext) -> None:
        self._observer = observer
        self._context = context
        self._order = asyncio.Lock()

    async def started(self) -> None:
        context = self._context
        control = RunControl(context.session_id, context.run_id, lambda: context.cancel(CancelReason.CLIENT_DISCONNECT))
        try:
            await self._observer.on_started(control)
        except Exception as error:
            raise self._ended(error) from error

    async def status(self, code: StatusCode, **fields: str) -> None:
        self._context.check()
        try:
            async with self._order:
                await self._observer.on_status(code, fields)
        except Exception as error:
            raise self._ended(error) from error

    def _ended(self, error: Exception) -> RunCancelled | ObserverFailed:
        """A client that is gone has disconnected; any other failure of the observer ends the run too."""
        if isinstance(error, ClientGone):
            self._context.cancel(CancelReason.CLIENT_DISCONNECT)
            return RunCancelled()
        return ObserverFailed()
