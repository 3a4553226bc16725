"""Public content for the browser tests: one of each kind."""

from datetime import timedelta

from superbizagent.domain.codes import MissingContext, ObservationStatus, ToolName, Unit
from superbizagent.domain.content import (
    CheckedSource,
    CoverageView,
    DiagnosisContent,
    FallbackContent,
    FallbackReason,
    KnowledgeContent,
    KnowledgeItem,
    PublicClaim,
    Reference,
    SystemChatContent,
    VerifiedSource,
)
from tests.e2e.scripted_server import BEGINNING

WEB_REFERENCE = Reference(
    document_id="d1",
    title="Payment gateway runbook",
    heading_path=("Timeouts", "Pool exhaustion"),
    source="https://runbooks.example/payment#pool",
)
FILE_REFERENCE = Reference(document_id="d2", title="支付网关手册", source="docs/runbooks/payment.md")

LOG_COVERAGE = CoverageView(
    unit=Unit.LINES,
    start=BEGINNING,
    end=BEGINNING + timedelta(minutes=30),
    scanned=18_342,
    matched=214,
    shown=2,
    complete=False,
    notes=("The newest lines may be missing.",),
)

DIAGNOSIS = DiagnosisContent(
    conclusion="The pool to the payment gateway is exhausted.",
    claims=(
        PublicClaim(
            text="Checkout logs gateway timeouts.",
            source_ids=("S1",),
            quotes=("timeout after 3000 ms",),
        ),
        PublicClaim(text="All 50 connections are in use.", source_ids=("S1", "S2"), quotes=("active=50/50",)),
    ),
    scope="checkout, 02:30 to 03:00 UTC",
    limitations=("The provider's status was not looked at.",),
    next_steps=("Raise the pool limit.",),
    sources=(
        VerifiedSource(
            id="S1",
            kind=ToolName.QUERY_LOGS,
            title="checkout-prod",
            detail="levels ERROR, containing gateway",
            coverage=LOG_COVERAGE,
            excerpt=(
                "02:40:12 ERROR gateway timeout  after",
                "3000 ms pool=payments active=50/50",
            ),
            fetched_at=BEGINNING,
        ),
        VerifiedSource(
            id="S2",
            kind=ToolName.LOOKUP_KNOWLEDGE,
            title="runbooks",
            detail="payment gateway pool",
            coverage=CoverageView(unit=Unit.PASSAGES, matched=1, shown=1, complete=True),
            excerpt=("A limit below 80 is the usual cause.",),
            references=(WEB_REFERENCE, FILE_REFERENCE),
            fetched_at=BEGINNING,
        ),
    ),
)

FALLBACK = FallbackContent(
    reason=FallbackReason.CONTEXT_MISSING,
    text="The investigation ended without a conclusion.",
    checked=(
        CheckedSource(
            kind=ToolName.QUERY_LOGS,
            title="checkout-prod",
            detail="levels ERROR",
            status=ObservationStatus.NO_EVIDENCE,
            coverage=CoverageView(unit=Unit.LINES, scanned=120, matched=0, shown=0, complete=True),
        ),
        CheckedSource(
            kind=ToolName.QUERY_MYSQL,
            title="orders",
            detail="SELECT 1",
            status=ObservationStatus.ERROR,
            error_code="EVIDENCE_TIMEOUT",
        ),
    ),
    missing_context=(MissingContext.SERVICE, MissingContext.TIME_RANGE),
    next_steps=("Name the service and ask again.",),
)

KNOWLEDGE = KnowledgeContent(
    items=(
        KnowledgeItem(text="Drain the instance first.", document_ids=("d1",)),
        KnowledgeItem(text="先提高上限。", document_ids=("d2", "d1")),
    ),
    references=(WEB_REFERENCE, FILE_REFERENCE),
    limitations=("Only runbooks were read.",),
)

CHAT = SystemChatContent(text="I answer on-call questions.\n\nAsk me about an incident.")
