"""What a run comes to: one executor, bounded in time, that a cancellation ends (LIFE-5, EXEC-*)."""

import asyncio
import logging
from dataclasses import dataclass, field

from superbizagent.application import router
from superbizagent.application.cancellation import CancelWatch
from superbizagent.application.defects import place_of
from superbizagent.application.evidence_collector import EvidenceCollector, EvidenceLimits
from superbizagent.application.evidence_tools import EvidenceSources
from superbizagent.application.executors import diagnosis, knowledge_query, system_chat
from superbizagent.application.persistence import persisting
from superbizagent.application.progress import Progress
from superbizagent.application.run_model import RunModel
from superbizagent.domain.budget import BudgetLimits
from superbizagent.domain.content import FallbackContent, FallbackReason, PublicContent
from superbizagent.domain.previous_turn import PublishedResult
from superbizagent.domain.run import CancelReason, Intent, ReleaseOutcome
from superbizagent.domain.run_context import Lifecycle, RunContext
from superbizagent.domain.steps import Released, Routed
from superbizagent.errors import BudgetExhausted, InternalFailure, RunCancelled, SuperBizAgentError
from superbizagent.ports import Clock, Model, Observer, PriorContext, Redactor, RunStore

_log = logging.getLogger(__name__)


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
class Ended:
    """What the run came to, before it is stored."""

    outcome: ReleaseOutcome
    content: PublicContent | None = None
    published_result: PublishedResult | None = None
    failure_code: str | None = None

    @property
    def reason(self) -> FallbackReason | None:
        return self.content.reason if isinstance(self.content, FallbackContent) else None


class RunExecution:
    """One run between its row and its outcome: routes the question and runs exactly one executor."""

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
    ) -> None:
        self._runs = runs
        self._cancel_watch = cancel_watch
        self._model = model
        self._sources = sources
        self._redact = redact
        self._clock = clock
        self._limits = limits

    async def run(self, context: RunContext, connection_id: str, observer: Observer, prior: PriorContext) -> Ended:
        """What the run comes to; never raises for anything that happens in it (LIFE-5)."""
        work = asyncio.create_task(self._bounded(context, connection_id, observer, prior))
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

    async def _settled(self, work: asyncio.Task[Ended], context: RunContext) -> bool:
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

    def _failed(self, context: RunContext, error: SuperBizAgentError) -> Ended:
        if isinstance(error, RunCancelled) or context.state is Lifecycle.CANCELLED:
            return Ended(ReleaseOutcome.CANCELLED)
        if isinstance(error, BudgetExhausted):
            context.exhaust()
        else:
            context.fail()
        return Ended(ReleaseOutcome.FAILED, failure_code=error.code)

    async def _bounded(self, context: RunContext, connection_id: str, observer: Observer, prior: PriorContext) -> Ended:
        """Ends what none of the inner bounds ended; later than they, so that they come first."""
        bound = asyncio.timeout(context.remaining + self._limits.terminal_reserve / 4)
        try:
            async with bound:
                return await self._watched(context, connection_id, observer, prior)
        except TimeoutError as error:
            if not bound.expired():
                raise
            context.exhaust()
            raise BudgetExhausted("wall_time", self._limits.budget.wall_time) from error

    async def _watched(self, context: RunContext, connection_id: str, observer: Observer, prior: PriorContext) -> Ended:
        progress = Progress(observer, context)
        await progress.started()
        async with self._cancel_watch.over(context, connection_id):
            context.check()
            ended = await self._answered(context, progress, prior)
        if not (ended.outcome is ReleaseOutcome.FALLBACK and context.state is Lifecycle.BUDGET_EXHAUSTED):
            context.succeed()
        if ended.content is not None:
            context.tell(Released(ended.outcome, ended.content.type, ended.reason))
        return ended

    async def _answered(self, context: RunContext, progress: Progress, prior: PriorContext) -> Ended:
        model = RunModel(self._model, context, self._limits.model_call)
        await progress.status("ROUTING")
        intent = await router.route(model, context.query, prior)
        context.intent = intent
        context.tell(Routed(intent))
        with persisting(context):
            await self._runs.set_intent(context.run_id, intent)
        await progress.status("ROUTED", intent=intent.value)
        collector = EvidenceCollector(context, self._clock, self._redact, self._limits.evidence)
        match intent:
            case Intent.SYSTEM_CHAT:
                chat = await system_chat.answer(context.query, model, progress)
                return Ended(ReleaseOutcome.SUCCESS, chat)
            case Intent.KNOWLEDGE_QUERY:
                index = self._sources.knowledge
                answer = await knowledge_query.answer(context.query, index, collector, model, progress)
                return Ended(ReleaseOutcome.SUCCESS, answer)
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
                return Ended(released.outcome, released.content, released.published_result)


def _unheard(work: asyncio.Task[Ended]) -> None:
    """Takes what became of work that nobody waits for: else asyncio logs its traceback, with a vendor's words in it."""
    if not work.cancelled():
        work.exception()
