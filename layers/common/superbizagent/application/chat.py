"""The chat use case: owns a run from its request to its one stored outcome (LIFE-*)."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from superbizagent.application import router
from superbizagent.application.cancellation import CancelWatch
from superbizagent.application.defects import place_of
from superbizagent.application.evidence_collector import EvidenceCollector, EvidenceLimits
from superbizagent.application.evidence_tools import EvidenceSources
from superbizagent.application.executors import diagnosis, knowledge_query, system_chat
from superbizagent.application.journal import record
from superbizagent.application.progress import Progress
from superbizagent.application.run_model import RunModel
from superbizagent.domain.budget import Budget, BudgetLimits
from superbizagent.domain.content import FallbackContent, FallbackReason, PublicContent
from superbizagent.domain.previous_turn import PublishedResult
from superbizagent.domain.run import (
    CancelReason,
    Intent,
    Lifecycle,
    ReleaseOutcome,
    RunContext,
    RunStatus,
    new_id,
    valid_session_id,
)
from superbizagent.domain.steps import Cancelled, Finished, NotStored, Released, Routed, Started, Step
from superbizagent.errors import (
    BudgetExhausted,
    InternalFailure,
    RunCancelled,
    RunPersistenceFailed,
    StoreError,
    SuperBizAgentError,
)
from superbizagent.ports import (
    Clock,
    Journal,
    Model,
    NewRun,
    Observer,
    PriorContext,
    Redactor,
    RunEnd,
    RunIds,
    RunStore,
    StoredRun,
)

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


@dataclass(frozen=True)
class ChatLimits:
    """Times in seconds. `terminal_reserve` is kept back for the last write and the last frames (BUDGET-4)."""

    budget: BudgetLimits = field(default_factory=BudgetLimits)
    evidence: EvidenceLimits = field(default_factory=EvidenceLimits)
    model_call: float = 60.0
    verdict: float = 30.0
    terminal_reserve: float = 20.0
    terminal_write: float = 8.0


@dataclass(frozen=True)
class _Ended:
    """What the run came to, before it is stored."""

    outcome: ReleaseOutcome
    content: PublicContent | None = None
    published_result: PublishedResult | None = None
    failure_code: str | None = None

    @property
    def reason(self) -> FallbackReason | None:
        return self.content.reason if isinstance(self.content, FallbackContent) else None


class ChatUseCase:
    """Routes a question, runs exactly one executor, and stores exactly one outcome."""

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
        self._cancel_watch = cancel_watch
        self._model = model
        self._sources = sources
        self._redact = redact
        self._clock = clock
        self._limits = limits
        self._journal = journal

    async def execute(self, request: ChatRequest, observer: Observer) -> ChatResult:
        """Runs the request to its stored end.

        Raises RequestError when no run could be started for it, and RunPersistenceFailed when its start or
        its end could not be stored: then nothing is published, and the sweep ends the row (LIFE-4). Every
        other failure is a result. Cancelling the task stores CANCELLED before it lets go.
        """
        session_id = valid_session_id(request.session_id) if request.session_id is not None else new_id()
        context = self._context(session_id, request)
        with _persisting(context):
            prior = await self._runs.prior_context(session_id, request.owner)
            earlier = await self._started(context, request)
        if earlier is not None:
            result = _repeated(earlier, request)
        else:
            context.tell(Started(context.deadline - context.started))
            context.on_cancel(lambda: _tell_cancelled(context))
            ended = await self._run(context, request, observer, prior)
            result = await self._finish(context, request, ended)
        if _cancelling():
            raise asyncio.CancelledError
        return result

    async def _started(self, context: RunContext, request: ChatRequest) -> StoredRun | None:
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

    # The run -------------------------------------------------------------------------------------

    async def _run(self, context: RunContext, request: ChatRequest, observer: Observer, prior: PriorContext) -> _Ended:
        """What the run comes to; never raises for anything that happens in it (LIFE-5)."""
        work = asyncio.create_task(self._bounded(context, request, observer, prior))
        context.on_cancel(work.cancel)
        try:
            ended = await self._settled(work, context)
        except asyncio.CancelledError:
            # Not the run was cancelled but the task that runs it: the process is being shut down.
            context.cancel(CancelReason.SHUTDOWN)
            ended = await self._settled(work, context)
        if not ended:
            _log.error("run went on after its end", extra={"run_id": context.run_id})
            work.add_done_callback(_unheard)
            return self._failed(context, BudgetExhausted("wall_time", self._limits.budget.wall_time))
        try:
            return work.result()
        except asyncio.CancelledError as error:
            # Without anybody's wish to cancel, a library's own cancellation came through: a defect.
            return self._failed(context, self._defect(context, error))
        except SuperBizAgentError as error:
            return self._failed(context, error)
        except Exception as error:
            return self._failed(context, self._defect(context, error))

    async def _settled(self, work: asyncio.Task[_Ended], context: RunContext) -> bool:
        """Whether the work ended: a call that ignores its cancellation must not keep the run from its end."""
        grace = self._limits.terminal_reserve / 2
        cancelled = asyncio.Event()
        context.on_cancel(cancelled.set)
        watch = asyncio.create_task(cancelled.wait())
        try:
            await asyncio.wait([work, watch], timeout=context.remaining + grace, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([work], timeout=grace / 2)
        finally:
            watch.cancel()
        return work.done()

    def _defect(self, context: RunContext, error: BaseException) -> SuperBizAgentError:
        if context.state is not Lifecycle.CANCELLED:
            _log.error("run failed", extra={"run_id": context.run_id, "defect": place_of(error)})
        return InternalFailure()

    def _failed(self, context: RunContext, error: SuperBizAgentError) -> _Ended:
        if isinstance(error, RunCancelled) or context.state is Lifecycle.CANCELLED:
            return _Ended(ReleaseOutcome.CANCELLED)
        if isinstance(error, BudgetExhausted):
            context.exhaust()
        else:
            context.fail()
        return _Ended(ReleaseOutcome.FAILED, failure_code=error.code)

    async def _bounded(
        self, context: RunContext, request: ChatRequest, observer: Observer, prior: PriorContext
    ) -> _Ended:
        """Ends what none of the inner bounds ended; later than they, so that they come first."""
        bound = asyncio.timeout(context.remaining + self._limits.terminal_reserve / 4)
        try:
            async with bound:
                return await self._watched(context, request, observer, prior)
        except TimeoutError as error:
            if not bound.expired():
                raise
            context.exhaust()
            raise BudgetExhausted("wall_time", self._limits.budget.wall_time) from error

    async def _watched(
        self, context: RunContext, request: ChatRequest, observer: Observer, prior: PriorContext
    ) -> _Ended:
        progress = Progress(observer, context)
        await progress.started()
        async with self._cancel_watch.over(context, request.connection_id):
            context.check()
            ended = await self._answered(context, progress, prior)
        if not (ended.outcome is ReleaseOutcome.FALLBACK and context.state is Lifecycle.BUDGET_EXHAUSTED):
            context.succeed()
        if ended.content is not None:
            context.tell(Released(ended.outcome, ended.content.type, ended.reason))
        return ended

    async def _answered(self, context: RunContext, progress: Progress, prior: PriorContext) -> _Ended:
        model = RunModel(self._model, context, self._limits.model_call)
        await progress.status("ROUTING")
        intent = await router.route(model, context.query, prior)
        context.intent = intent
        context.tell(Routed(intent))
        with _persisting(context):
            await self._runs.set_intent(context.run_id, intent)
        await progress.status("ROUTED", intent=intent.value)
        collector = EvidenceCollector(context, self._clock, self._redact, self._limits.evidence)
        match intent:
            case Intent.SYSTEM_CHAT:
                chat = await system_chat.answer(context.query, model, progress)
                return _Ended(ReleaseOutcome.SUCCESS, chat)
            case Intent.KNOWLEDGE_QUERY:
                index = self._sources.knowledge
                answer = await knowledge_query.answer(context.query, index, collector, model, progress)
                return _Ended(ReleaseOutcome.SUCCESS, answer)
            case Intent.DIAGNOSIS:
                released = await diagnosis.diagnose(
                    context=context,
                    previous_turn=prior.previous_turn,
                    sources=self._sources,
                    collector=collector,
                    model=model,
                    progress=progress,
                    clock=self._clock,
                    verdict_timeout=self._limits.verdict,
                )
                return _Ended(released.outcome, released.content, released.published_result)

    # The end -------------------------------------------------------------------------------------

    async def _finish(self, context: RunContext, request: ChatRequest, ended: _Ended) -> ChatResult:
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
        with _persisting(context):
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
    if context.cancel_reason is not None:
        context.tell(Cancelled(context.cancel_reason))


def _finished(context: RunContext, ended: _Ended, end: RunEnd, *, stored: bool) -> Finished:
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


@contextlib.contextmanager
def _persisting(context: RunContext) -> Iterator[None]:
    """Whatever the store could not do is one public failure, wherever in the run it happens (LIFE-4)."""
    try:
        yield
    except StoreError as error:
        context.tell(NotStored(error.code))
        raise RunPersistenceFailed from error
    except SuperBizAgentError:
        raise
    except Exception as error:
        # No store may raise anything else; if one does, its words stay here (LIFE-5).
        _log.error("store failed", extra={"defect": place_of(error)})
        context.tell(NotStored(InternalFailure.code))
        raise RunPersistenceFailed from error


def _unheard(work: asyncio.Task[_Ended]) -> None:
    """Takes what became of work that nobody waits for: else asyncio logs its traceback, with a vendor's words in it."""
    if not work.cancelled():
        work.exception()


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
