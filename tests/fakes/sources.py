"""Evidence sources that return what a test gives them."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from superbizagent.application.evidence_tools import EvidenceSources
from superbizagent.domain.evidence import (
    Coverage,
    DocumentRef,
    Evidence,
    LookupKnowledge,
    QueryLogs,
    QueryMysql,
    Unit,
)

Result = Evidence | BaseException | Callable[[Any], Evidence]

START = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
END = datetime(2026, 11, 30, 15, 0, tzinfo=UTC)

LINES = (
    "2026-11-30T14:02:11.512Z ERROR payment Payment gateway timed out after 30000 ms order=ORD-2026-0042",
    "2026-11-30T14:02:12.100Z WARN payment retrying 10.0.0.17:8443 attempt 2",
    "2026-11-30T14:58:03.001Z ERROR payment Payment gateway timed out after 30000 ms order=ORD-2026-0099",
)


def log_evidence(*lines: str, title: str = "payment", **coverage: Any) -> Evidence:
    """Log lines in the window 14:00 to 15:00; NO_EVIDENCE when there are none."""
    matched = coverage.pop("matched", len(lines))
    fields: dict[str, Any] = {
        "unit": Unit.LINES,
        "start": START,
        "end": END,
        "scanned": 4_210,
        "matched": matched,
        "shown": len(lines),
        **coverage,
    }
    levels = [f"{level} {sum(level in line for line in lines)}" for level in ("ERROR", "WARN", "INFO")]
    return Evidence(
        title=title,
        summary=(
            "window: 2026-11-30T14:00:00Z to 2026-11-30T15:00:00Z (UTC)",
            f"lines scanned: 4210; matched: {matched}; shown: {len(lines)}",
            "levels: " + ", ".join(level for level in levels if not level.endswith(" 0")),
        ),
        lines=lines,
        coverage=Coverage(**fields),
    )


def row_evidence(*rows: str) -> Evidence:
    return Evidence(
        title="database",
        summary=(f"rows: {len(rows)}",),
        lines=rows,
        coverage=Coverage(unit=Unit.ROWS, matched=len(rows), shown=len(rows)),
    )


def document_evidence(*documents: tuple[str, str, str]) -> Evidence:
    """Passages: document id, title, text."""
    lines: list[str] = []
    for document_id, title, passage in documents:
        lines += [f"document {document_id}: {title} > Causes (runbooks/{document_id}.md)", passage]
    return Evidence(
        title="knowledge base",
        lines=tuple(lines),
        coverage=Coverage(unit=Unit.PASSAGES, matched=len(documents), shown=len(documents)),
        documents=tuple(
            DocumentRef(
                document_id=document_id, title=title, heading_path=("Causes",), source=f"runbooks/{document_id}.md"
            )
            for document_id, title, _ in documents
        ),
    )


class FakeSource:
    """LogSource, BusinessDatabase and KnowledgeIndex in one. `asked` holds the arguments it got.

    With `gate` every call waits for it; `running` and `most` count calls in flight.
    """

    def __init__(self, result: Result, description: str | BaseException = "payment: the payment service") -> None:
        self.result = result
        self.description = description
        self.asked: list[Any] = []
        self.cancelled = 0
        self.gate: asyncio.Event | None = None
        self.started = asyncio.Event()
        self.running = self.most = 0
        self._changed = asyncio.Condition()

    async def crowded(self, calls: int) -> None:
        """Waits until so many calls have been in flight at once."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.most >= calls)

    async def describe(self) -> str:
        if isinstance(self.description, BaseException):
            raise self.description
        return self.description

    async def query_logs(self, query: QueryLogs) -> Evidence:
        return await self._answer(query)

    async def query(self, query: QueryMysql) -> Evidence:
        return await self._answer(query)

    async def lookup(self, query: LookupKnowledge) -> Evidence:
        return await self._answer(query)

    async def _answer(self, query: Any) -> Evidence:
        self.asked.append(query)
        self.running += 1
        self.most = max(self.most, self.running)
        self.started.set()
        async with self._changed:
            self._changed.notify_all()
        try:
            await (self.gate.wait() if self.gate else asyncio.sleep(0))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result(query) if callable(self.result) else self.result


def sources(
    logs: Result | FakeSource | None = None,
    database: Result | FakeSource | None = None,
    knowledge: Result | FakeSource | None = None,
) -> EvidenceSources:
    return EvidenceSources(
        logs=_source(logs, log_evidence(*LINES)),
        database=_source(database, row_evidence('{"failed": 214}')),
        knowledge=_source(knowledge, document_evidence(("D1", "Payment gateway", "Restart the gateway pool."))),
    )


def _source(given: Result | FakeSource | None, default: Evidence) -> FakeSource:
    return given if isinstance(given, FakeSource) else FakeSource(default if given is None else given)
