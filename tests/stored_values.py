"""Values to store, with everything but what a test is about filled in."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from superbizagent.domain.budget import Usage
from superbizagent.domain.codes import ToolName, Unit
from superbizagent.domain.content import (
    ContentType,
    CoverageView,
    DiagnosisContent,
    FallbackContent,
    FallbackReason,
    PublicClaim,
    PublicContent,
    SystemChatContent,
    VerifiedSource,
)
from superbizagent.domain.previous_turn import PublishedResult, SourceDocument
from superbizagent.domain.run import ReleaseOutcome
from superbizagent.domain.stored_run import AbandonedRun
from superbizagent.ports import NewRun, RunEnd

NOW = datetime(2026, 11, 30, 15, 4, 5, 678901, tzinfo=UTC)
TRICKY = "🫠️ 𠮷 👨‍👩‍👧 𝐏 支付网关超时 'quoted' \"double\" back\\slash %s {brace}\ttab\nline\u2028 ﷽ é é"
_numbers = count(1)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def new_run(**fields: Any) -> NewRun:
    """A run of Ada's in a session of its own; ids are new each time."""
    number = next(_numbers)
    values: dict[str, Any] = {
        "run_id": f"run-{number}",
        "session_id": f"session-{number}",
        "owner": "ada",
        "request_id": f"request-{number}",
        "gateway_request_id": f"gateway-{number}",
        "connection_id": f"connection-{number}",
        "query": "Why do payments fail?",
        "created_at": NOW,
    } | fields
    return NewRun(deadline_at=values.pop("deadline_at", values["created_at"] + timedelta(minutes=3)), **values)


def run_end(outcome: ReleaseOutcome = ReleaseOutcome.SUCCESS, **fields: Any) -> RunEnd:
    values: dict[str, Any] = {
        "usage": Usage(model_calls=3, tool_calls=2, tokens=1234),
        "duration_ms": 4200,
        "finished_at": at(4.2),
    }
    return RunEnd(outcome=outcome, **(values | fields))


def run_ids(runs: Iterable[AbandonedRun]) -> list[str]:
    return [str(run.ids.run_id) for run in runs]


def chat_content(text: str = "I look into incidents.") -> PublicContent:
    return SystemChatContent(type=ContentType.SYSTEM_CHAT, text=text)


def diagnosis_content(text: str = "The gateway timed out.") -> PublicContent:
    coverage = CoverageView(unit=Unit.LINES, start=at(-60), end=NOW, matched=3, shown=3, complete=True)
    source = VerifiedSource(
        id="S1",
        kind=ToolName.QUERY_LOGS,
        title=text,
        detail=text,
        coverage=coverage,
        excerpt=(text,),
        fetched_at=at(1),
    )
    claim = PublicClaim(text=text, source_ids=("S1",), quotes=(text,))
    return DiagnosisContent(conclusion=text, claims=(claim,), scope=text, sources=(source,))


def fallback_content() -> PublicContent:
    return FallbackContent(reason=FallbackReason.BUDGET_REACHED, text="Checked this far.")


def published(text: str = "The gateway timed out.") -> PublishedResult:
    return PublishedResult(
        user_query="Why do payments fail?",
        published_conclusion=text,
        scope=text,
        limitations=(text,),
        source_documents=(SourceDocument(document_id="D1", title=text, source="runbook.md"),),
    )
