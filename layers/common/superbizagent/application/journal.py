"""Telling the journal, which may fail, of a run, which must not fail for that."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from superbizagent.application.defects import place_of
from superbizagent.domain.run import RunIds
from superbizagent.domain.run_context import Lifecycle
from superbizagent.domain.steps import Abandoned, PostFailed
from superbizagent.errors import BudgetExhausted, ChannelError, InternalFailure, RunCancelled, SuperBizAgentError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from superbizagent.domain.run_context import RunContext
    from superbizagent.domain.steps import Step
    from superbizagent.domain.stored_run import AbandonedRun
    from superbizagent.ports import Channel, Journal

_log = logging.getLogger(__name__)


def record(journal: Journal, ids: RunIds, step: Step, elapsed: float | None = None) -> None:
    """Never raises; `elapsed` is seconds since the run started."""
    try:
        journal.record(ids, step, elapsed)
    except Exception as error:
        _log.error("step not recorded", extra={"step": step.name, "defect": place_of(error)})


def record_abandoned(journal: Journal, runs: Iterable[AbandonedRun]) -> None:
    """The last line of each run's story, whoever ended it."""
    for run in runs:
        seconds = run.duration_ms / 1000
        record(journal, run.ids, Abandoned(run.intent, seconds), seconds)


def code_of(error: BaseException, context: RunContext) -> str:
    """What ended a call of that run; a call is cut off when the run is cancelled or its time has passed."""
    if isinstance(error, SuperBizAgentError):
        return error.code
    if isinstance(error, asyncio.CancelledError):
        return RunCancelled.code if context.state is Lifecycle.CANCELLED else BudgetExhausted.code
    return InternalFailure.code


class JournalledChannel:
    """A Channel of whose failures the journal is told."""

    def __init__(self, channel: Channel, journal: Journal) -> None:
        self._channel = channel
        self._journal = journal

    async def post(self, connection_id: str, frame: bytes) -> None:
        try:
            await self._channel.post(connection_id, frame)
        except ChannelError as error:
            record(self._journal, RunIds(connection_id=connection_id), PostFailed(error.code))
            raise
