"""Diagnosis Release: the only door from an investigation to public content (RELEASE-*, EXEC-5)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from superbizagent.application import semantic_guard
from superbizagent.application.agent import Investigation, Stop
from superbizagent.application.progress import Progress
from superbizagent.application.references import references
from superbizagent.application.run_model import RunModel
from superbizagent.domain import evidence_guard
from superbizagent.domain.codes import MissingContext, ToolName
from superbizagent.domain.content import (
    MAX_CONTENT_BYTES,
    CheckedSource,
    CoverageView,
    DiagnosisContent,
    FallbackContent,
    FallbackReason,
    PublicClaim,
    VerifiedSource,
    encoded_size,
)
from superbizagent.domain.draft import Claim, Draft
from superbizagent.domain.evidence import Coverage, Observation
from superbizagent.domain.previous_turn import PublishedResult, SourceDocument
from superbizagent.domain.run import ReleaseOutcome
from superbizagent.domain.run_context import RunContext
from superbizagent.domain.steps import DraftChecked
from superbizagent.domain.text import bound_json, without_links
from superbizagent.errors import BudgetExhausted

MEANING_NOT_SHOWN = "MEANING_NOT_SHOWN"
"""The one rule of the semantic guard: each claim follows from what it cites, and was said to."""

_EXCERPT_LINES = 8
_EXCERPT_BYTES = 1_000
_MAX_CHECKED = 20
_MAX_TITLE = 300
_MAX_DETAIL = 900
_MAX_NOTE = 200

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
    observations = investigation.observations
    try:
        await progress.status("CHECKING_EVIDENCE")
        findings = evidence_guard.check(draft, observations, context.query)
        context.tell(DraftChecked("EVIDENCE", Counter(finding.rule.value for finding in findings)))
        if findings:
            return _fallback(FallbackReason.GUARD_REJECTED, observations)
        await progress.status("CHECKING_MEANING")
        passed = await semantic_guard.supported(draft, observations, model, verdict_timeout)
        context.tell(DraftChecked("MEANING", {} if passed else {MEANING_NOT_SHOWN: 1}))
        # Checked here, where a deadline that has just passed still leads to a fallback.
        context.check()
    except BudgetExhausted as error:
        return _budget_reached(error, observations, context)
    diagnosis = _diagnosis(draft, observations, context.query) if passed else None
    return diagnosis or _fallback(FallbackReason.GUARD_REJECTED, observations)


def _without_conclusion(investigation: Investigation, context: RunContext) -> Released:
    draft, observations = investigation.draft, investigation.observations
    if investigation.stop is Stop.BUDGET:
        return _budget_reached(BudgetExhausted("run", context.budget.limits.model_calls), observations, context)
    if draft is not None and draft.missing_context:
        return _fallback(FallbackReason.CONTEXT_MISSING, observations, draft.missing_context)
    return _fallback(FallbackReason.INSUFFICIENT_EVIDENCE, observations)


def _budget_reached(error: BudgetExhausted, observations: Sequence[Observation], context: RunContext) -> Released:
    if not any(observation.safe for observation in observations):
        raise error
    context.exhaust()
    return _fallback(FallbackReason.BUDGET_REACHED, observations)


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
    while encoded_size(content) > MAX_CONTENT_BYTES and content.checked:
        content = content.model_copy(update={"checked": content.checked[:-1]})
    return Released(ReleaseOutcome.FALLBACK, content)


def _checked(observation: Observation) -> CheckedSource:
    return CheckedSource(
        kind=ToolName(observation.tool),
        title=bound_json(observation.title or observation.tool, _MAX_TITLE),
        detail=_plain_detail(observation),
        status=observation.status,
        error_code=observation.error_code,
        coverage=_coverage_view(observation.coverage),
    )


def _plain_detail(observation: Observation) -> str:
    """What was asked, in fixed words and enumerated values: no text that a model wrote (RELEASE-2)."""
    arguments = observation.asked() or {}
    if observation.tool == ToolName.QUERY_LOGS:
        levels = ", ".join(arguments.get("levels") or ()) or "all levels"
        filters = len(arguments.get("contains") or ()) + len(arguments.get("excludes") or ())
        return levels + (f", {filters} text filters" if filters else "")
    if observation.tool == ToolName.QUERY_MYSQL:
        return "one SELECT statement"
    titles = dict.fromkeys(document.title for document in observation.documents)
    return bound_json("; ".join(titles), _MAX_DETAIL) if titles else "one search"


# Diagnosis -----------------------------------------------------------------------------------------


def _diagnosis(draft: Draft, observations: Sequence[Observation], query: str) -> Released | None:
    """The draft as public content; None in the odd case that it can't be made to fit."""
    cited = dict.fromkeys(evidence_id for claim in draft.claims for evidence_id in claim.evidence_ids)
    used = [observation for observation in observations if observation.evidence_id in cited]
    prose = _Prose(used)
    # Public numbers of their own: neither tool call ids nor evidence ids leave the run (RELEASE-1).
    public_id = {observation.evidence_id: f"S{number}" for number, observation in enumerate(used, start=1)}
    content = DiagnosisContent(
        conclusion=prose.public(draft.conclusion or ""),
        claims=tuple(_public_claim(claim, public_id, prose) for claim in draft.claims),
        scope=prose.public(draft.scope),
        limitations=tuple(prose.public(text) for text in draft.limitations),
        next_steps=tuple(prose.public(text) for text in evidence_guard.supported_steps(draft, observations, query)),
        sources=tuple(_source(observation, public_id[observation.evidence_id], draft.claims) for observation in used),
    )
    published = PublishedResult(
        user_query=query,
        published_conclusion=content.conclusion,
        scope=content.scope,
        limitations=content.limitations,
        source_documents=tuple(_source_documents(draft.claims, used)),
    )
    fitted = _fitted(content)
    return Released(ReleaseOutcome.SUCCESS, fitted, published) if fitted is not None else None


class _Prose:
    """Published prose carries no link but those of the documents it cites (SEC-3)."""

    def __init__(self, used: Sequence[Observation]) -> None:
        self._sources = {document.source for observation in used for document in observation.documents}
        self._evidence = "\n".join(observation.projection for observation in used)

    def public(self, text: str) -> str:
        return without_links(text, self._sources, self._evidence)


def _public_claim(claim: Claim, public_id: Mapping[str, str], prose: _Prose) -> PublicClaim:
    ids = dict.fromkeys(public_id[evidence_id] for evidence_id in claim.evidence_ids)
    return PublicClaim(text=prose.public(claim.text), source_ids=tuple(ids), quotes=claim.quotes)


def _source(observation: Observation, public_id: str, claims: Iterable[Claim]) -> VerifiedSource:
    lines: dict[str, None] = {}
    resting = [claim for claim in claims if observation.evidence_id in claim.evidence_ids]
    for claim in resting:
        lines |= dict.fromkeys(evidence_guard.supporting_lines(claim, observation, _EXCERPT_LINES))
    returned = {document.document_id for document in observation.documents}
    named = {document_id for claim in resting for document_id in claim.document_ids} & returned
    shown = [line for line in observation.projection.splitlines() if line in lines]
    return VerifiedSource(
        id=public_id,
        kind=ToolName(observation.tool),
        title=bound_json(observation.title or observation.tool, _MAX_TITLE),
        detail=bound_json(_asked(observation), _MAX_DETAIL),
        coverage=_coverage_view(observation.coverage),
        excerpt=tuple(bound_json(line, _EXCERPT_BYTES) for line in dict.fromkeys(shown)),
        references=references(named or returned, observation.documents),
        fetched_at=observation.observed_at,
    )


def _asked(observation: Observation) -> str:
    """The call's arguments for a reader; the guards passed the claims that rest on it."""
    arguments = observation.asked() or {}
    if observation.tool == ToolName.QUERY_LOGS:
        filters = {name: arguments.get(name) for name in ("levels", "contains", "excludes")}
        parts = [f"{name} {', '.join(texts)}" for name, texts in filters.items() if texts]
        return "; ".join(parts) or "all records"
    value = arguments.get("statement") or arguments.get("query") or ""
    return str(value)


def _source_documents(claims: Iterable[Claim], used: Iterable[Observation]) -> Iterable[SourceDocument]:
    """Each cited document once, however many of its passages were returned."""
    cited = {document_id for claim in claims for document_id in claim.document_ids}
    documents = {
        document.document_id: document
        for observation in used
        for document in observation.documents
        if document.document_id in cited and document.document_id.strip()
    }
    for document_id, document in documents.items():
        yield SourceDocument(
            document_id=document_id, title=document.title.strip() or document_id, source=document.source
        )


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
        notes=tuple(bound_json(note, _MAX_NOTE) for note in coverage.notes[:5]),
    )


def _fitted(content: DiagnosisContent) -> DiagnosisContent | None:
    """`content` within the size that is stored and sent, by showing less of its sources (WIRE-4).

    Claims and conclusion are bounded by the draft; only of the sources' descriptions is anything cut.
    """
    for detail in _DETAILS:
        if encoded_size(content) <= MAX_CONTENT_BYTES:
            return content
        sources = tuple(detail.of(source) for source in content.sources)
        content = content.model_copy(update={"sources": sources})
    return content if encoded_size(content) <= MAX_CONTENT_BYTES else None


@dataclass(frozen=True)
class _Detail:
    """How much of a source is shown: `lines` of its excerpt, `text` bytes of each text, `references`."""

    lines: int
    text: int
    references: int
    coverage: bool = True

    def of(self, source: VerifiedSource) -> VerifiedSource:
        coverage = source.coverage if self.coverage else None
        if coverage is not None and self.lines == 0:
            coverage = coverage.model_copy(update={"notes": ()})
        return source.model_copy(
            update={
                "title": bound_json(source.title, max(self.text, 40)),
                "detail": bound_json(source.detail, self.text),
                "coverage": coverage,
                "excerpt": tuple(bound_json(line, self.text) for line in source.excerpt[: self.lines]),
                "references": source.references[: self.references],
            }
        )


_DETAILS = (
    _Detail(lines=8, text=400, references=6),
    _Detail(lines=6, text=240, references=3),
    _Detail(lines=4, text=160, references=2),
    _Detail(lines=2, text=120, references=1),
    _Detail(lines=0, text=60, references=1),
    _Detail(lines=0, text=0, references=0),
    _Detail(lines=0, text=0, references=0, coverage=False),
)
"""Tried in turn until the content fits."""
