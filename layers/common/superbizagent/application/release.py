"""Diagnosis Release: the only door from an investigation to public content (RELEASE-*, EXEC-5)."""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from superbizagent.application import semantic_guard
from superbizagent.application.agent import Investigation, Stop
from superbizagent.application.progress import Progress
from superbizagent.application.run_model import RunModel
from superbizagent.domain import evidence_guard
from superbizagent.domain.content import (
    MAX_CONTENT_BYTES,
    CheckedSource,
    CoverageView,
    DiagnosisContent,
    FallbackContent,
    FallbackReason,
    PublicClaim,
    Reference,
    VerifiedSource,
    encoded_size,
)
from superbizagent.domain.draft import Claim, Draft, MissingContext
from superbizagent.domain.evidence import Coverage, Observation, ToolName
from superbizagent.domain.previous_turn import PublishedResult, SourceDocument
from superbizagent.domain.run import ReleaseOutcome, RunContext
from superbizagent.domain.text import bound_characters
from superbizagent.errors import BudgetExhausted

_log = logging.getLogger(__name__)

_EXCERPT_LINES = 8
_EXCERPT_CHARACTERS = 400
_MAX_CHECKED = 20
_MAX_DETAIL = 600

_TEXTS = {
    FallbackReason.INSUFFICIENT_EVIDENCE: "The evidence that was found does not establish a cause.",
    FallbackReason.CONTEXT_MISSING: "The question does not say enough to know where to look.",
    FallbackReason.BUDGET_REACHED: "The limits of this run were reached before a cause was established.",
    FallbackReason.GUARD_REJECTED: "A conclusion was drafted, but the evidence does not bear it out in every point, "
    "so it is not shown.",
}
_STEPS = {
    FallbackReason.INSUFFICIENT_EVIDENCE: (
        "Look at what was checked below: a source or time range may be missing.",
        "Ask again with the service, the symptom and the time range.",
    ),
    FallbackReason.CONTEXT_MISSING: ("Ask again with what is missing.",),
    FallbackReason.BUDGET_REACHED: ("Ask about one service or a shorter time range.",),
    FallbackReason.GUARD_REJECTED: (
        "Read the sources that were checked below directly.",
        "Ask a narrower question, for example about one service or one error.",
    ),
}


@dataclass(frozen=True)
class Released:
    """What may be stored and shown; `published_result` only for a SUCCESS (PREV-4)."""

    outcome: ReleaseOutcome
    content: DiagnosisContent | FallbackContent
    published_result: PublishedResult | None = None


async def release(
    investigation: Investigation,
    *,
    context: RunContext,
    model: RunModel,
    progress: Progress,
    verdict_timeout: float,
) -> Released:
    """A diagnosis whose draft passed both guards, or a fallback.

    A budget end with nothing safely observed raises BudgetExhausted: there is nothing to tell (BUDGET-3).
    """
    draft = investigation.draft
    if draft is None or not draft.concluded:
        return _without_conclusion(investigation, context)
    await progress.status("CHECKING_EVIDENCE")
    findings = evidence_guard.check(draft, investigation.observations, context.query)
    if findings:
        _log.info("draft rejected", extra={"rules": dict(Counter(finding.rule.value for finding in findings))})
        return _fallback(FallbackReason.GUARD_REJECTED, investigation.observations)
    await progress.status("CHECKING_MEANING")
    try:
        passed = await semantic_guard.supported(draft, investigation.observations, model, verdict_timeout)
    except BudgetExhausted:
        context.exhaust()
        return _fallback(FallbackReason.BUDGET_REACHED, investigation.observations)
    if not passed:
        return _fallback(FallbackReason.GUARD_REJECTED, investigation.observations)
    return _diagnosis(draft, investigation.observations, context.query)


def _without_conclusion(investigation: Investigation, context: RunContext) -> Released:
    draft, observations = investigation.draft, investigation.observations
    if investigation.stop is Stop.BUDGET:
        if not any(observation.safe for observation in observations):
            raise BudgetExhausted("run", context.budget.limits.model_calls)
        context.exhaust()
        return _fallback(FallbackReason.BUDGET_REACHED, observations)
    if draft is not None and draft.missing_context:
        return _fallback(FallbackReason.CONTEXT_MISSING, observations, draft.missing_context)
    return _fallback(FallbackReason.INSUFFICIENT_EVIDENCE, observations)


# Fallback ------------------------------------------------------------------------------------------


def _fallback(
    reason: FallbackReason, observations: Sequence[Observation], missing: tuple[MissingContext, ...] = ()
) -> Released:
    checked = [_checked(observation) for observation in observations if observation.tool in set(ToolName)]
    content = FallbackContent(
        reason=reason,
        text=_TEXTS[reason],
        checked=tuple(checked[:_MAX_CHECKED]),
        missing_context=tuple(dict.fromkeys(missing)),
        next_steps=_STEPS[reason],
    )
    while encoded_size(content) > MAX_CONTENT_BYTES:
        content = content.model_copy(update={"checked": content.checked[:-1]})
    return Released(ReleaseOutcome.FALLBACK, content)


def _checked(observation: Observation) -> CheckedSource:
    return CheckedSource(
        kind=ToolName(observation.tool),
        title=bound_characters(observation.title or observation.tool, 200),
        detail=_plain_detail(observation),
        status=observation.status,
        error_code=observation.error_code,
        coverage=_coverage_view(observation.coverage),
    )


def _plain_detail(observation: Observation) -> str:
    """What was asked, in fixed words and enumerated values: no text that a model wrote (RELEASE-2)."""
    arguments = _arguments(observation)
    if observation.tool == ToolName.QUERY_LOGS:
        levels = ", ".join(arguments.get("levels") or ()) or "all levels"
        filters = len(arguments.get("contains") or ()) + len(arguments.get("excludes") or ())
        return levels + (f", {filters} text filters" if filters else "")
    if observation.tool == ToolName.QUERY_MYSQL:
        return "one SELECT statement"
    titles = dict.fromkeys(document.title for document in observation.documents)
    return bound_characters("; ".join(titles), _MAX_DETAIL) if titles else "one search"


def _arguments(observation: Observation) -> Mapping[str, tuple[str, ...]]:
    try:
        arguments = json.loads(observation.arguments)
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) and observation.status != "ERROR" else {}


# Diagnosis -----------------------------------------------------------------------------------------


def _diagnosis(draft: Draft, observations: Sequence[Observation], query: str) -> Released:
    cited = dict.fromkeys(evidence_id for claim in draft.claims for evidence_id in claim.evidence_ids)
    used = [observation for observation in observations if observation.evidence_id in cited]
    # Public numbers of their own: neither tool call ids nor evidence ids leave the run (RELEASE-1).
    public_id = {observation.evidence_id: f"S{number}" for number, observation in enumerate(used, start=1)}
    content = DiagnosisContent(
        conclusion=draft.conclusion or "",
        claims=tuple(_public_claim(claim, public_id) for claim in draft.claims),
        scope=draft.scope,
        limitations=draft.limitations,
        next_steps=evidence_guard.supported_steps(draft, observations, query),
        sources=tuple(_source(observation, public_id[observation.evidence_id], draft.claims) for observation in used),
    )
    published = PublishedResult(
        user_query=query,
        published_conclusion=content.conclusion,
        scope=content.scope,
        limitations=content.limitations,
        source_documents=tuple(_source_documents(draft.claims, used)),
    )
    return Released(ReleaseOutcome.SUCCESS, _fitted(content), published)


def _public_claim(claim: Claim, public_id: Mapping[str, str]) -> PublicClaim:
    ids = dict.fromkeys(public_id[evidence_id] for evidence_id in claim.evidence_ids)
    return PublicClaim(text=claim.text, source_ids=tuple(ids), quotes=claim.quotes)


def _source(observation: Observation, public_id: str, claims: Iterable[Claim]) -> VerifiedSource:
    lines: dict[str, None] = {}
    for claim in claims:
        if observation.evidence_id in claim.evidence_ids:
            lines |= dict.fromkeys(evidence_guard.supporting_lines(claim, observation, _EXCERPT_LINES))
    shown = [line for line in observation.projection.splitlines() if line in lines]
    return VerifiedSource(
        id=public_id,
        kind=ToolName(observation.tool),
        title=bound_characters(observation.title, 200),
        detail=bound_characters(_asked(observation), _MAX_DETAIL),
        coverage=_coverage_view(observation.coverage),
        excerpt=tuple(bound_characters(line, _EXCERPT_CHARACTERS) for line in dict.fromkeys(shown)),
        references=tuple(Reference.model_validate(document.model_dump()) for document in observation.documents),
        fetched_at=observation.observed_at,
    )


def _asked(observation: Observation) -> str:
    """The call's arguments for a reader; the guards passed the claims that rest on it."""
    arguments = _arguments(observation)
    if observation.tool == ToolName.QUERY_LOGS:
        filters = {name: arguments.get(name) for name in ("levels", "contains", "excludes")}
        parts = [f"{name} {', '.join(texts)}" for name, texts in filters.items() if texts]
        return "; ".join(parts) or "all records"
    value = arguments.get("statement") or arguments.get("query") or ""
    return str(value)


def _source_documents(claims: Iterable[Claim], used: Iterable[Observation]) -> Iterable[SourceDocument]:
    cited = {document_id for claim in claims for document_id in claim.document_ids}
    for observation in used:
        for document in observation.documents:
            if document.document_id in cited:
                yield SourceDocument(document_id=document.document_id, title=document.title, source=document.source)


def _coverage_view(coverage: Coverage | None) -> CoverageView | None:
    if coverage is None:
        return None
    return CoverageView(
        unit=coverage.unit,
        start=coverage.start,
        end=coverage.end,
        scanned=coverage.scanned,
        matched=coverage.matched,
        shown=coverage.shown,
        complete=coverage.complete,
        notes=coverage.notes[:5],
    )


def _fitted(content: DiagnosisContent) -> DiagnosisContent:
    """`content` within the size that is stored and sent, by showing less of the sources' records (WIRE-4).

    Claims and conclusion are bounded by the draft; a draft of that size and bare sources always fits.
    """
    for lines, characters in ((8, 400), (6, 240), (4, 160), (2, 120), (0, 0)):
        if encoded_size(content) <= MAX_CONTENT_BYTES:
            break
        sources = tuple(
            source.model_copy(
                update={
                    "excerpt": tuple(bound_characters(line, characters) for line in source.excerpt[:lines]),
                    "references": source.references[: lines or 1],
                }
            )
            for source in content.sources
        )
        content = content.model_copy(update={"sources": sources})
    return content
