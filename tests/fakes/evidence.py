"""Evidence sources in memory, with the behaviour that the core relies on."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from superbizagent.domain.evidence import Coverage, Evidence, LogLevel, QueryLogs, QueryMysql, Unit
from superbizagent.errors import EvidenceError, InvalidToolArguments, UnknownSource


@dataclass(frozen=True)
class FakeLine:
    """A log line of a fake source."""

    at: datetime
    level: LogLevel | None
    text: str


@dataclass
class FakeLogSource:
    """Implements LogSource over lines in memory.

    `error` is raised by each search; a search waits on `gate` first, and `cancelled` counts those
    that were cancelled.
    """

    sources: Mapping[str, Sequence[FakeLine]]
    descriptions: Mapping[str, str] = field(default_factory=dict)
    error: EvidenceError | None = None
    gate: asyncio.Event | None = None
    queries: list[QueryLogs] = field(default_factory=list)
    cancelled: int = 0

    async def describe(self) -> str:
        return "\n".join(
            f"{name}: {self.descriptions.get(name, '')} ({_range(lines)})" for name, lines in self.sources.items()
        )

    async def query_logs(self, query: QueryLogs) -> Evidence:
        self.queries.append(query)
        try:
            if self.gate:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error:
            raise self.error
        return self._search(query)

    def _search(self, query: QueryLogs) -> Evidence:
        if query.source not in self.sources:
            raise UnknownSource(f"There is no log source of that name. The sources are: {', '.join(self.sources)}.")
        if query.start and query.end and query.start >= query.end:
            raise InvalidToolArguments("start must be before end.")
        lines = sorted(self.sources[query.source], key=lambda line: line.at)
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


@dataclass
class FakeBusinessDatabase:
    """Implements BusinessDatabase with an answer a statement: the rows' JSON texts, or an error."""

    answers: Mapping[str, Sequence[str] | EvidenceError]
    description: str = "orders(id INTEGER): One row an order"
    gate: asyncio.Event | None = None
    statements: list[str] = field(default_factory=list)
    cancelled: int = 0

    async def describe(self) -> str:
        return self.description

    async def query(self, query: QueryMysql) -> Evidence:
        self.statements.append(query.statement)
        try:
            if self.gate:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        answer = self.answers.get(query.statement, ())
        if isinstance(answer, EvidenceError):
            raise answer
        return Evidence(
            title="database",
            summary=("columns: n", f"rows: {len(answer)}"),
            lines=tuple(answer),
            coverage=Coverage(unit=Unit.ROWS, matched=len(answer), shown=len(answer)),
        )
