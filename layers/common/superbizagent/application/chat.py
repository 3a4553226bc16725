"""The chat use case: owns a run from its request to its one stored outcome (LIFE-*)."""

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import timedelta

from superbizagent.application.cancellation import CancelWatch
from superbizagent.application.defects import place_of
from superbizagent.application.evidence_tools import EvidenceSources
from superbizagent.application.execution import ChatLimits, Ended, RunExecution
from superbizagent.application.journal import record, record_abandoned
from superbizagent.application.persistence import persisting
from superbizagent.domain.budget import Budget
from superbizagent.domain.content import PublicContent
from superbizagent.domain.run import CancelReason, ReleaseOutcome, RunIds, RunStatus, new_id, valid_session_id
from superbizagent.domain.run_context import RunContext
from superbizagent.domain.steps import Cancelled, Finished, NotStored, Started, Step
from superbizagent.domain.stored_run import StoredRun
from superbizagent.errors import InternalFailure, RunPersistenceFailed, StoreError
from superbizagent.ports import Clock, Journal, Model, NewRun, Observer, Redactor, RunEnd, RunStore, StartResult

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChatRequest:
    """One question. `time_left` is the seconds the platform grants this process, None without such a limit."""

    owner: str
    connection_id: str
    request_id: str
    gateway_request_id: str
    query: str
    session_id: str | None = None
    time_left: float | None = None


@dataclass(frozen=True)
class ChatResult:
    """How the request ended. `content` is set just for SUCCESS and FALLBACK, `failure_code` just for FAILED.

    `outcome` is None while the run that this request repeats is still going on. `repeated`: the run is an
    earlier delivery's; `redelivered`: the platform delivered one message twice, so nobody is waiting.
    """

    session_id: str
    run_id: str
    request_id: str
    outcome: ReleaseOutcome | None
    content: PublicContent | None = None
    failure_code: str | None = None
    repeated: bool = False
    redelivered: bool = False


class ChatUseCase:
    """Starts a run for a question, and stores its one outcome before anybody hears of it."""

    def __init__(
        self,
        *,
        runs: RunStore,
        cancel_watch: CancelWatch,
        model: Model,
        sources: EvidenceSources,
        redact: Redactor,
        clock: Clock,
        limits: ChatLimits,
        journal: Journal,
    ) -> None:
        self._runs = runs
        self._clock = clock
        self._limits = limits
        self._journal = journal
        self._execution = RunExecution(
            runs=runs,
            cancel_watch=cancel_watch,
            model=model,
            sources=sources,
            redact=redact,
            clock=clock,
            limits=limits,
        )

    async def execute(self, request: ChatRequest, observer: Observer) -> ChatResult:
        """Runs the request to its stored end.

        Raises RequestError when no run could be started for it, and RunPersistenceFailed when its start or
        its end could not be stored: then nothing is published, and the sweep ends the row (LIFE-4). Every
        other failure is a result. Cancelling the task stores CANCELLED before it lets go.
        """
        session_id = valid_session_id(request.session_id) if request.session_id is not None else new_id()
        context = self._context(session_id, request)
        with persisting(context):
            prior = await self._runs.prior_context(session_id, request.owner)
            start = await self._started(context, request)
        record_abandoned(self._journal, start.abandoned)
        if start.earlier is not None:
            result = _repeated(start.earlier, request)
        else:
            context.tell(Started(context.deadline - context.started))
            context.on_cancel(lambda: _tell_cancelled(context))
            ended = await self._execution.run(context, request.connection_id, observer, prior)
            result = await self._finish(context, request, ended)
        if _cancelling():
            raise asyncio.CancelledError
        return result

    async def _started(self, context: RunContext, request: ChatRequest) -> StartResult:
        """A shutdown in this moment waits for the row, so that the row can be ended."""
        start = asyncio.ensure_future(self._runs.start(self._new_run(context, request)))
        try:
            return await asyncio.shield(start)
        except asyncio.CancelledError:
            if not _cancelling():
                raise
            context.cancel(CancelReason.SHUTDOWN)
            return await start

    def _context(self, session_id: str, request: ChatRequest) -> RunContext:
        limit = self._limits.budget.wall_time
        if request.time_left is not None:
            limit = min(limit, max(request.time_left - self._limits.terminal_reserve, 0.0))
        run_id = new_id()
        ids = RunIds(run_id, session_id, request.request_id, request.connection_id)

        def tell(step: Step) -> None:
            record(self._journal, ids, step, context.elapsed)

        context = RunContext(
            session_id=session_id,
            run_id=run_id,
            query=request.query,
            budget=Budget(self._limits.budget),
            deadline=self._clock.monotonic() + limit,
            monotonic=self._clock.monotonic,
            tell=tell,
        )
        return context

    def _new_run(self, context: RunContext, request: ChatRequest) -> NewRun:
        now = self._clock.now()
        return NewRun(
            run_id=context.run_id,
            session_id=context.session_id,
            owner=request.owner,
            request_id=request.request_id,
            gateway_request_id=request.gateway_request_id,
            connection_id=request.connection_id,
            query=request.query,
            created_at=now,
            deadline_at=now + timedelta(seconds=context.remaining),
        )

    async def _finish(self, context: RunContext, request: ChatRequest, ended: Ended) -> ChatResult:
        """Stores the outcome before anybody hears of it."""
        end = RunEnd(
            outcome=ended.outcome,
            usage=context.budget.usage,
            duration_ms=round(context.elapsed * 1000),
            finished_at=self._clock.now(),
            failure_code=ended.failure_code,
            content=ended.content,
            published_result=ended.published_result,
        )
        # Shielded: a shutdown in this moment must not leave the row RUNNING while the database answers.
        won = await _shielded(self._stored(context, end))
        context.tell(_finished(context, ended, end, stored=won))
        if not won:
            return await self._superseded(context, request)
        return ChatResult(
            session_id=context.session_id,
            run_id=context.run_id,
            request_id=request.request_id,
            outcome=end.outcome,
            content=end.content,
            failure_code=end.failure_code,
        )

    async def _stored(self, context: RunContext, end: RunEnd) -> bool:
        try:
            async with asyncio.timeout(self._limits.terminal_write):
                return await self._runs.finish(context.run_id, end)
        except Exception as error:
            _log.error("outcome not stored", extra={"run_id": context.run_id, "defect": place_of(error)})
            context.tell(NotStored(error.code if isinstance(error, StoreError) else InternalFailure.code))
            raise RunPersistenceFailed from error

    async def _superseded(self, context: RunContext, request: ChatRequest) -> ChatResult:
        """Another terminal write came first (LIFE-3): its outcome is the run's, and ours is not published."""
        with persisting(context):
            stored = await self._runs.find(context.run_id)
        ended = stored is not None and stored.status in (RunStatus.FAILED, RunStatus.CANCELLED)
        return ChatResult(
            session_id=context.session_id,
            run_id=context.run_id,
            request_id=request.request_id,
            outcome=stored.outcome if stored is not None and ended else None,
            failure_code=stored.failure_code if stored is not None and ended else None,
        )


def _repeated(earlier: StoredRun, request: ChatRequest) -> ChatResult:
    """The earlier run of the same request: its ids, and its stored content if it has ended (LIFE-6)."""
    return ChatResult(
        session_id=earlier.session_id,
        run_id=earlier.run_id,
        request_id=request.request_id,
        outcome=earlier.outcome,
        content=earlier.content,
        failure_code=earlier.failure_code,
        repeated=True,
        redelivered=earlier.gateway_request_id == request.gateway_request_id,
    )


def _tell_cancelled(context: RunContext) -> None:
    if context.cancel_reason is not None and context.cancelled_after is not None:
        context.tell(Cancelled(context.cancel_reason, context.elapsed - context.cancelled_after))


def _finished(context: RunContext, ended: Ended, end: RunEnd, *, stored: bool) -> Finished:
    asked = context.cancelled_after
    return Finished(
        intent=context.intent,
        outcome=ended.outcome,
        usage=end.usage,
        seconds=end.duration_ms / 1000,
        code=ended.failure_code,
        reason=ended.reason,
        cause=context.cancel_reason,
        cancelling=context.elapsed - asked if asked is not None else None,
        stored=stored,
    )


def _cancelling() -> bool:
    """Whether this task itself is being cancelled: the process is being shut down."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _shielded(work: Awaitable[bool]) -> bool:
    """Waits for `work` even when cancelled meanwhile, then lets the cancellation go on."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise
