"""DIAGNOSIS: the one agent, then Release (EXEC-3)."""

from superbizagent.application.agent import DiagnosisAgent
from superbizagent.application.evidence_collector import EvidenceCollector
from superbizagent.application.evidence_tools import EvidenceSources
from superbizagent.application.progress import Progress
from superbizagent.application.release import Released, release
from superbizagent.application.run_model import RunModel
from superbizagent.domain.previous_turn import PreviousTurn
from superbizagent.domain.run_context import RunContext
from superbizagent.ports import Clock


async def diagnose(
    *,
    context: RunContext,
    previous_turn: PreviousTurn | None,
    sources: EvidenceSources,
    collector: EvidenceCollector,
    model: RunModel,
    progress: Progress,
    clock: Clock,
    verdict_timeout: float,
) -> Released:
    """A released diagnosis or fallback; raises ModelError, RunCancelled, or BudgetExhausted (BUDGET-3)."""
    agent = DiagnosisAgent(
        context=context, model=model, sources=sources, collector=collector, progress=progress, clock=clock
    )
    investigation = await agent.investigate(previous_turn)
    return await release(
        investigation, context=context, model=model, progress=progress, verdict_timeout=verdict_timeout
    )
