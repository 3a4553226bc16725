"""Evidence sources in memory: a test gives what each call is answered with, or what there is to find."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from superbizagent.application.evidence_tools import EvidenceSources
from superbizagent.domain.codes import Unit
from superbizagent.domain.evidence import (
    Coverage,
    DocumentRef,
    Evidence,
    LogLevel,
    LookupKnowledge,
    QueryLogs,
    QueryMysql,
)
from superbizagent.errors import EvidenceError, InvalidToolArguments, UnknownSource

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


@dataclass(frozen=True)
class FakeLine:
    """A log line of a fake source."""

    at: datetime
    level: LogLevel | None
    text: str


def log_search(sources: Mapping[str, Sequence[FakeLine]]) -> Callable[[QueryLogs], Evidence]:
    """The result of a source of logs with those lines."""

    def search(query: QueryLogs) -> Evidence:
        if query.source not in sources:
            raise UnknownSource(f"There is no log source of that name. The sources are: {', '.join(sources)}.")
        if query.start and query.end and query.start >= query.end:
            raise InvalidToolArguments("start must be before end.")
        return _searched(sorted(sources[query.source], key=lambda line: line.at), query)

    return search


def log_description(sources: Mapping[str, Sequence[FakeLine]], descriptions: Mapping[str, str]) -> str:
    """How a source of logs with those lines describes itself."""
    return "\n".join(f"{name}: {descriptions.get(name, '')} ({_range(lines)})" for name, lines in sources.items())


def statement_answers(answers: Mapping[str, Sequence[str] | EvidenceError]) -> Callable[[QueryMysql], Evidence]:
    """The result of a database with an answer a statement: the rows' JSON texts, none for another one, or an error."""

    def answer(query: QueryMysql) -> Evidence:
        found = answers.get(query.statement, ())
        if isinstance(found, EvidenceError):
            raise found
        return row_evidence(*found)

    return answer


def _searched(lines: Sequence[FakeLine], query: QueryLogs) -> Evidence:
    inside = [line for line in lines if _inside(line, query)]
    found = [line for line in inside if _matches(line, query)]
    shown = found[: query.limit]
    return Evidence(
        title=f"logs {query.source}",
        summary=(f"lines scanned: {len(inside)}; matched: {len(found)}; shown: {len(shown)}", "records:"),
        lines=tuple(line.text for line in shown),
        coverage=Coverage(
            unit=Unit.LINES,
            start=query.start or (lines[0].at if lines else None),
            end=query.end or (lines[-1].at if lines else None),
            scanned=len(inside),
            matched=len(found),
            shown=len(shown),
            truncated=len(found) > len(shown),
            filtered=bool(query.levels or query.contains or query.excludes),
        ),
    )


def _range(lines: Sequence[FakeLine]) -> str:
    if not lines:
        return "no lines"
    instants = sorted(line.at for line in lines)
    return f"{instants[0]:%Y-%m-%dT%H:%M:%SZ} to {instants[-1]:%Y-%m-%dT%H:%M:%SZ}"


def _inside(line: FakeLine, query: QueryLogs) -> bool:
    return (query.start is None or line.at >= query.start) and (query.end is None or line.at < query.end)


def _matches(line: FakeLine, query: QueryLogs) -> bool:
    text = line.text.casefold()
    return (
        (not query.levels or line.level in query.levels)
        and all(wanted.casefold() in text for wanted in query.contains)
        and not any(unwanted.casefold() in text for unwanted in query.excludes)
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
