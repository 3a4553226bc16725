"""Observations of the demo incident and of folders of logs, made by the real adapters and the real collector."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from local.demo.make import make
from migrations.run import upgrade
from superbizagent.adapters.business_database import read_only_database
from superbizagent.adapters.evidence_file import load_evidence_file
from superbizagent.adapters.knowledge import FullTextKnowledgeIndex
from superbizagent.adapters.knowledge.ingest import KnowledgeIngest
from superbizagent.adapters.log_files import LogFiles, LogFileSource
from superbizagent.adapters.redaction import SecretRedactor
from superbizagent.adapters.store import Database
from superbizagent.application.evidence_collector import EvidenceCollector, EvidenceLimits
from superbizagent.application.evidence_tools import EvidenceSources, EvidenceTools
from superbizagent.domain.budget import Budget, BudgetLimits
from superbizagent.domain.codes import ToolName
from superbizagent.domain.conversation import ToolCall
from superbizagent.domain.evidence import Observation, canonical_arguments, type_of_tool
from superbizagent.domain.run_context import RunContext

NOW = datetime(2026, 11, 30, 15, 30, tzinfo=UTC)
QUERY = "Why do payments fail?"


class _Clock:
    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Observed:
    """`by_name` holds observations by the bench's own names; `zones` the distance from UTC of a source's own times."""

    by_name: Mapping[str, Observation]
    zones: Mapping[str, timedelta]

    @property
    def all(self) -> tuple[Observation, ...]:
        return tuple(self.by_name.values())

    def zone_of(self, name: str) -> timedelta:
        return self.zones.get(name, timedelta())


def _hour(source: str, start: str, end: str, **more: Any) -> tuple[str, dict[str, Any]]:
    day = "2026-11-30T"
    return "query_logs", {"source": source, "start": f"{day}{start}Z", "end": f"{day}{end}Z", **more}


def _select(statement: str) -> tuple[str, dict[str, Any]]:
    return "query_mysql", {"statement": statement}


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "payment errors": _hour("payments", "14:00:00", "15:00:00", levels=["ERROR"], limit=12),
    "checkout errors": _hour("checkout", "14:00:00", "14:30:00", levels=["ERROR", "WARN"], limit=12),
    "morning": _hour("checkout", "09:00:00", "09:30:00", levels=["ERROR"], limit=20),
    "pool change": _hour("payments", "13:50:00", "13:55:00", contains=["pool"]),
    "inventory": _hour("inventory", "13:30:00", "14:40:00", levels=["WARN"], limit=14),
    "quiet payments": _hour("payments", "10:00:00", "11:00:00", levels=["ERROR"]),
    "quiet payments, all": _hour("payments", "03:00:00", "03:01:00", limit=40),
    "quiet inventory": _hour("inventory", "05:00:00", "06:00:00", levels=["ERROR", "FATAL"]),
    "no deadlock": _hour("checkout", "14:00:00", "15:00:00", contains=["deadlock"]),
    "cut payments": _hour("payments", "10:00:00", "11:00:00", limit=2),
    "statuses": _select("SELECT status, COUNT(*) AS n, SUM(amount_cents) AS amount_cents FROM orders GROUP BY status"),
    "changes": _select("SELECT * FROM config_change"),
    "stock": _select("SELECT sku, name, on_hand, reserved FROM stock ORDER BY sku"),
    "pending": _select("SELECT * FROM payments WHERE status = 'TIMED_OUT' ORDER BY created_at LIMIT 8"),
    "deploys": _select("SELECT * FROM deploy"),
    "shares": _select(
        "SELECT ROUND(100.0 * SUM(status = 'PENDING') / COUNT(*), 2) AS pending_percent,"
        " ROUND(1.0 * SUM(status = 'PAID') / COUNT(*), 4) AS paid_share, COUNT(*) AS orders FROM orders"
    ),
    "no such status": _select("SELECT * FROM orders WHERE status = 'REFUNDED'"),
    "runbook": ("lookup_knowledge", {"query": "payment gateway timed out pool exhausted", "limit": 3}),
    "手册": ("lookup_knowledge", {"query": "连接池 配置 回滚", "limit": 3}),
    "no runbook": ("lookup_knowledge", {"query": "kubernetes"}),
    "error": ("query_logs", {"source": "nowhere"}),
}
ZONES = {"inventory": timedelta(hours=8), "quiet inventory": timedelta(hours=8)}


def observe(directory: Path, logs: Path | None = None) -> Observed:
    """Makes the demo incident in `directory` and asks every question of `CALLS`, and one of each file in `logs`."""
    make(directory)
    calls = dict(CALLS)
    extra = sorted(path for path in logs.iterdir() if path.is_file()) if logs else []
    for path in extra:
        calls[path.stem] = ("query_logs", {"source": _name(path), "limit": 30})
    return asyncio.run(_observe(directory, calls, {_name(path): path for path in extra}))


def _name(path: Path) -> str:
    return path.stem.split("_")[0].lower()


async def _observe(
    directory: Path, calls: Mapping[str, tuple[str, dict[str, Any]]], extra: Mapping[str, Path]
) -> Observed:
    database = Database(f"sqlite:///{directory / 'knowledge.db'}")
    try:
        upgrade(database.engine)
        list(KnowledgeIngest(database).run(directory / "runbooks", "demo"))
        tools = _tools(directory, database, extra, len(calls))
        found: dict[str, Observation] = {}
        for name, (tool, arguments) in calls.items():
            shape = type_of_tool[ToolName(tool)].model_validate(arguments)
            call = ToolCall(id=name, name=tool, arguments=canonical_arguments(shape))
            found[name] = await tools.call(call)
    finally:
        database.close()
    return Observed(found, ZONES)


def _tools(directory: Path, database: Database, extra: Mapping[str, Path], calls: int) -> EvidenceTools:
    evidence = load_evidence_file(directory / "evidence.toml")
    if evidence.database is None:
        raise ValueError("database is missing")
    logs = {name: LogFileSource(**entry.model_dump()) for name, entry in evidence.logs.items()}
    logs |= {name: LogFileSource(description="", paths=(str(path),)) for name, path in extra.items()}
    tables = {name: table.description for name, table in evidence.database.tables.items()}
    sources = EvidenceSources(
        logs=LogFiles(logs),
        knowledge=FullTextKnowledgeIndex(database),
        database=read_only_database(evidence.database.url, tables),
    )
    clock = _Clock()
    context = RunContext(
        session_id="s",
        run_id="r",
        query=QUERY,
        budget=Budget(BudgetLimits(tool_calls=calls)),
        deadline=1e6,
        monotonic=clock.monotonic,
    )
    return EvidenceTools(sources, EvidenceCollector(context, clock, SecretRedactor(), EvidenceLimits()))


def records_of(observation: Observation) -> Sequence[str]:
    """The records of an observation as lines, without the source's own counts."""
    _, mark, records = observation.projection.partition("\nrecords:\n")
    lines = (records if mark else observation.projection).splitlines()
    return [line for line in lines if line.strip() and not line.startswith(("…", "columns:", "rows:"))]
