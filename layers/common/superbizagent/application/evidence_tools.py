"""The diagnosis agent's tools: what the model is told of them, and how a call reaches its source (DIAG-1)."""

import json
from dataclasses import dataclass
from functools import cache

from pydantic import ValidationError

from superbizagent.application.evidence_collector import EvidenceCollector, Fetch
from superbizagent.application.one_shot import schema_of
from superbizagent.domain.codes import ToolName
from superbizagent.domain.conversation import ToolCall, ToolSpec
from superbizagent.domain.draft import Draft
from superbizagent.domain.evidence import (
    Evidence,
    LookupKnowledge,
    Observation,
    QueryLogs,
    QueryMysql,
    ToolArguments,
    type_of_tool,
)
from superbizagent.errors import BudgetExhausted, EvidenceUnavailable, InvalidToolArguments, UnknownTool
from superbizagent.ports import BusinessDatabase, KnowledgeIndex, LogSource

SUBMIT_DRAFT = "submit_draft"
_NO_DATABASE = "No business database is configured. Use the logs and the runbooks."


@dataclass(frozen=True)
class EvidenceSources:
    """What an installation has connected; a missing database is answered as such."""

    logs: LogSource
    knowledge: KnowledgeIndex
    database: BusinessDatabase | None = None


@cache
def tool_specs(*, evidence: bool) -> tuple[ToolSpec, ...]:
    """The tools of one turn; without `evidence` only the draft can be handed in."""
    draft = ToolSpec(name=SUBMIT_DRAFT, description=_doc(Draft), parameters=schema_of(Draft))
    if not evidence:
        return (draft,)
    tools = (
        ToolSpec(name=name, description=_doc(shape), parameters=schema_of(shape))
        for name, shape in type_of_tool.items()
    )
    return (*tools, draft)


class EvidenceTools:
    """Runs the evidence calls of one run."""

    def __init__(self, sources: EvidenceSources, collector: EvidenceCollector) -> None:
        self._sources = sources
        self._collector = collector

    async def call(self, call: ToolCall) -> Observation:
        """Never raises for what the model or a source does: errors are observations (DIAG-6).

        Raises BudgetExhausted when the run's deadline ends the call.
        """
        try:
            name = ToolName(call.name)
        except ValueError:
            return self._collector.reject(call.name or "(unnamed)", call.arguments, UnknownTool(_known_tools()))
        try:
            arguments = type_of_tool[name].model_validate_json(call.arguments or "{}")
        except ValidationError as error:
            return self._collector.reject(name, call.arguments, InvalidToolArguments(explain(error)))
        try:
            return await self._collector.collect(name, arguments, self._fetch(arguments))
        except BudgetExhausted as error:
            if error.resource != "tool_calls":
                raise
            return self._collector.refuse(name, arguments)

    def _fetch(self, arguments: ToolArguments) -> Fetch:
        match arguments:
            case LookupKnowledge():
                return lambda: self._sources.knowledge.lookup(arguments)
            case QueryLogs():
                return lambda: self._sources.logs.query_logs(arguments)
            case QueryMysql():
                database = self._sources.database
                if database is None:
                    return _no_database
                return lambda: database.query(arguments)


async def _no_database() -> Evidence:
    raise EvidenceUnavailable(_NO_DATABASE)


def explain(error: ValidationError) -> str:
    """What does not fit, in a bounded sentence for the model; never the input itself."""
    problems = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'arguments'}: {problem['msg']}"
        for problem in error.errors()[:5]
    ]
    return "; ".join(problems)[:600]


def valid_json_object(text: str) -> bool:
    """Whether servers that parse the history's arguments will accept this text."""
    try:
        return isinstance(json.loads(text, parse_constant=_no_json), dict)
    except (ValueError, RecursionError):
        return False


def _no_json(constant: str) -> None:
    """Python reads NaN and Infinity, JSON has neither."""
    raise ValueError(constant)


def _known_tools() -> str:
    return f"The tools are {', '.join(ToolName)} and {SUBMIT_DRAFT}."


def _doc(shape: type) -> str:
    return (shape.__doc__ or "").strip()
