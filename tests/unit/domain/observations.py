"""Observations for the guards."""

import json
from typing import Any

from superbizagent.domain.codes import ObservationStatus, ToolName, Unit
from superbizagent.domain.evidence import Coverage, DocumentRef, Observation
from tests.fakes.clock import START as NOW
from tests.fakes.sources import END, LINES, START


def logs(*lines: str, number: int = 1, asked: dict[str, Any] | None = None, **coverage: Any) -> Observation:
    """Log lines of the window 14:00 to 15:00; NO_EVIDENCE without any."""
    fields: dict[str, Any] = {
        "unit": Unit.LINES,
        "start": START,
        "end": END,
        "scanned": 4_210,
        "matched": len(lines),
        "shown": len(lines),
        **coverage,
    }
    levels = {level: sum(level in line for line in lines) for level in ("FATAL", "ERROR", "WARN", "INFO")}
    counted = ", ".join(f"{level} {count}" for level, count in levels.items() if count)
    head = ("payment", "lines scanned: 4210", f"levels: {counted}", "records:")
    return Observation(
        evidence_id=f"E{number}",
        tool=ToolName.QUERY_LOGS,
        arguments=json.dumps({"source": "payment", **(asked or {})}),
        status=ObservationStatus.READY if fields["matched"] else ObservationStatus.NO_EVIDENCE,
        title="payment",
        projection="\n".join((*head, *lines)),
        coverage=Coverage(**fields),
        digest=str(number),
        observed_at=NOW,
    )


def sample(**changes: Any) -> Observation:
    return logs(*LINES, **changes)


def rows(*lines: str, number: int = 1, **coverage: Any) -> Observation:
    return Observation(
        evidence_id=f"E{number}",
        tool=ToolName.QUERY_MYSQL,
        arguments=json.dumps({"statement": "SELECT 1"}),
        status=ObservationStatus.READY if lines else ObservationStatus.NO_EVIDENCE,
        title="database",
        projection="\n".join(("database", *lines)),
        coverage=Coverage(unit=Unit.ROWS, matched=len(lines), shown=len(lines), **coverage),
        digest=str(number),
        observed_at=NOW,
    )


def passages(*texts: str, number: int = 1) -> Observation:
    """Document D1 with these lines."""
    return Observation(
        evidence_id=f"E{number}",
        tool=ToolName.LOOKUP_KNOWLEDGE,
        arguments=json.dumps({"query": "gateway"}),
        status=ObservationStatus.READY if texts else ObservationStatus.NO_EVIDENCE,
        title="knowledge base",
        projection="\n".join(("knowledge base", *texts)),
        coverage=Coverage(unit=Unit.PASSAGES, matched=len(texts), shown=len(texts)),
        documents=(DocumentRef(document_id="D1", title="Gateway", source="gateway.md"),) if texts else (),
        digest=str(number),
        observed_at=NOW,
    )


def failed(number: int = 1) -> Observation:
    return Observation(
        evidence_id=f"E{number}",
        tool=ToolName.QUERY_LOGS,
        arguments="not json",
        status=ObservationStatus.ERROR,
        error_code="EVIDENCE_TIMEOUT",
        projection="The source did not answer in 30 s.",
        observed_at=NOW,
    )
