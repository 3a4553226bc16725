"""The diagnosis agent: one ReAct loop with three evidence tools and a draft as its typed end (DIAG-*)."""

import asyncio
import json
import logging
from dataclasses import dataclass
from enum import StrEnum

from pydantic import ValidationError

from superbizagent.application.evidence_collector import EvidenceCollector
from superbizagent.application.evidence_tools import (
    SUBMIT_DRAFT,
    EvidenceSources,
    EvidenceTools,
    explain,
    tool_specs,
    valid_json_object,
)
from superbizagent.application.fence import Fence
from superbizagent.application.progress import Progress
from superbizagent.application.run_model import RunModel
from superbizagent.domain.conversation import Message, ModelReply, ModelRequest, ToolCall
from superbizagent.domain.draft import Draft
from superbizagent.domain.evidence import Observation
from superbizagent.domain.previous_turn import PreviousTurn
from superbizagent.domain.run import RunContext
from superbizagent.domain.text import bound_bytes
from superbizagent.errors import (
    BudgetExhausted,
    EvidenceError,
    ModelContextTooLong,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
)
from superbizagent.ports import BusinessDatabase, Clock, LogSource

_log = logging.getLogger(__name__)

MAX_CALLS_A_TURN = 6
GUARD_MODEL_CALLS = 1
"""Model calls kept back for the semantic guard: a draft that nobody can check is worth nothing."""
CONCLUDE_SECONDS = 30.0
"""With less time than this left, the next turn is the last."""

_MAX_OUTPUT_TOKENS = 3_000
_COMPACTED_BYTES = 1_200
_CONCLUDING_TURNS = 2
_TRANSIENT_RETRIES = 1
_RETRIED = (ModelTimeout, ModelUnavailable, ModelReplyInvalid)

_SYSTEM = """You are the diagnosis agent of an on-call assistant. You find out why something fails by fetching evidence
with tools, and end by calling submit_draft. You speak only through tool calls.
{rule}

How to work
- Start from the symptom, its service and its time; look at logs first, narrow down, follow identifiers across
  sources, check the business database for effects and lookup_knowledge for known causes and procedures.
- Calls that don't depend on each other belong in one turn, at most {calls}. Never repeat a call.
- Times in tool arguments carry a zone. If the question has a time without a zone or date, assume UTC and the most
  recent such time before now, and say so in scope.
- An observation with status ERROR tells what to change. NO_EVIDENCE with complete coverage is a finding too.

How to write the draft
- conclusion: the cause, as far as the evidence shows it; null if it does not show one.
- claims: one checkable fact each, with the evidence_ids that show it. Every number, time, identifier and quotation
  must stand in that evidence exactly as you write it; do no arithmetic. Quotes are copied letter by letter from one
  record. Name document_ids when a claim rests on a document.
- Say that something is absent only if a complete, untruncated observation covers the whole window.
- scope: sources and window looked at. limitations: what was not or not completely looked at.
- next_steps: what the engineer should do, from documents where they say it.
- If only the user can tell which service, time range, environment, identifier or symptom is meant, leave conclusion
  null and name it in missing_context.
- Write in the language of the question.

Now: {now}

## Log sources
{logs}

## Database
{database}
"""
_CONCLUDE = (
    "Conclude now: call submit_draft with what the evidence above shows. No other tool is available. "
    "If it shows no cause, leave conclusion null."
)
_NO_CALL = "(no tool call)"
_CALL_A_TOOL = "Only tool calls count, text is discarded. Call an evidence tool, or submit_draft to end."
_DRAFT_ALONE = "submit_draft must be the only call of its turn, once. It was not accepted; call it again alone."
_DROPPED = "{dropped} further calls of that turn were dropped: at most {calls} are allowed."
_CUT = "This call was cut off by the output limit and was not run. Send fewer or shorter calls."


class Stop(StrEnum):
    """Why collection ended."""

    DRAFTED = "DRAFTED"
    SATURATED = "SATURATED"
    NO_DRAFT = "NO_DRAFT"
    BUDGET = "BUDGET"


@dataclass(frozen=True)
class Investigation:
    """How an investigation ended: a draft to check, or none; and what was observed in any case."""

    stop: Stop
    draft: Draft | None
    observations: tuple[Observation, ...]


class DiagnosisAgent:
    """One investigation of one run; made anew for each."""

    def __init__(
        self,
        *,
        context: RunContext,
        model: RunModel,
        sources: EvidenceSources,
        collector: EvidenceCollector,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self._context = context
        self._model = model
        self._sources = sources
        self._collector = collector
        self._tools = EvidenceTools(sources, collector)
        self._progress = progress
        self._clock = clock
        self._fence = Fence.new()
        self._messages: list[Message] = []
        self._call_ids: set[str] = set()
        self._concluding = 0

    async def investigate(self, previous_turn: PreviousTurn | None) -> Investigation:
        """Raises ModelError and RunCancelled; a budget end is a result, not an error (BUDGET-2)."""
        try:
            async with asyncio.timeout(self._context.remaining):
                self._messages = await self._opening(previous_turn)
                return await self._loop()
        except TimeoutError:
            self._context.exhaust()
            return self._ended(Stop.BUDGET)
        except BudgetExhausted as error:
            _log.info("budget reached", extra={"resource": error.resource})
            return self._ended(Stop.BUDGET)

    async def _loop(self) -> Investigation:
        await self._progress.status("INVESTIGATING")
        while True:
            last = self._must_conclude()
            if last:
                if self._concluding >= _CONCLUDING_TURNS:
                    return self._ended(Stop.SATURATED if self._collector.saturated else Stop.NO_DRAFT)
                await self._conclude()
            draft = await self._take(await self._turn(evidence=not last))
            if draft is not None:
                return self._ended(Stop.DRAFTED, draft)

    def _ended(self, stop: Stop, draft: Draft | None = None) -> Investigation:
        return Investigation(stop, draft, self._collector.observations)

    # Turns ---------------------------------------------------------------------------------------

    def _must_conclude(self) -> bool:
        """Whether the next turn is the last that can be afforded, or nothing new can be found (BUDGET-5)."""
        budget = self._context.budget
        if budget.model_calls_left - GUARD_MODEL_CALLS < 1:
            raise BudgetExhausted("model_calls", budget.limits.model_calls)
        return (
            self._concluding > 0
            or self._collector.saturated
            or budget.tool_calls_left < 1
            or budget.model_calls_left - GUARD_MODEL_CALLS == 1
            or budget.tokens_left < 3 * self._request(evidence=True).estimated_tokens
            or self._context.remaining < min(CONCLUDE_SECONDS, budget.limits.wall_time / 3)
        )

    async def _conclude(self) -> None:
        if not self._concluding:
            await self._progress.status("DRAFTING")
        self._concluding += 1
        self._messages.append(Message(role="user", content=_CONCLUDE))

    async def _turn(self, *, evidence: bool) -> ModelReply:
        """One reply; a transient failure is tried once more, a too long context once in a shorter form."""
        retries, compacted = _TRANSIENT_RETRIES, False
        while True:
            try:
                return await self._model.complete(self._request(evidence=evidence))
            except ModelContextTooLong:
                if compacted:
                    raise
                compacted = True
                self._compact()
            except _RETRIED as error:
                if retries < 1:
                    raise
                retries -= 1
                _log.warning("model call failed", extra={"code": error.code})

    def _request(self, *, evidence: bool) -> ModelRequest:
        return ModelRequest(
            messages=tuple(self._messages),
            tools=tool_specs(evidence=evidence),
            max_output_tokens=_MAX_OUTPUT_TOKENS,
        )

    def _compact(self) -> None:
        """Shortens tool results; calls and results stay paired, as servers require."""
        self._messages = [
            message.model_copy(update={"content": bound_bytes(message.content, _COMPACTED_BYTES)})
            if message.role == "tool"
            else message
            for message in self._messages
        ]

    async def _opening(self, previous_turn: PreviousTurn | None) -> list[Message]:
        logs, database = self._sources.logs, self._sources.database
        system = _SYSTEM.format(
            rule=self._fence.rule,
            calls=MAX_CALLS_A_TURN,
            now=self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            logs=self._fence.wrap(await _described(logs)),
            database=self._fence.wrap(await _described(database) if database is not None else "none configured"),
        )
        question = {
            "query": self._context.query,
            "previous_turn": previous_turn and previous_turn.model_dump(mode="json"),
        }
        asked = self._fence.wrap(json.dumps(question, ensure_ascii=False))
        return [Message(role="system", content=system), Message(role="user", content=asked)]

    # Replies -------------------------------------------------------------------------------------

    async def _take(self, reply: ModelReply) -> Draft | None:
        """Answers each call of a reply; the draft if it was handed in properly (DIAG-6)."""
        calls = self._recorded(reply)
        draft = await self._answered(calls, reply.cut) if calls else None
        dropped = len(reply.tool_calls) - len(calls)
        if dropped > 0:
            self._messages.append(
                Message(role="user", content=_DROPPED.format(dropped=dropped, calls=MAX_CALLS_A_TURN))
            )
        return draft

    async def _answered(self, calls: list[ToolCall], cut: bool) -> Draft | None:
        if cut:
            self._answer(calls, [_CUT] * len(calls))
            return None
        drafts = [call for call in calls if call.name == SUBMIT_DRAFT]
        if drafts and len(calls) == 1:
            return self._draft(drafts[0])
        evidence = [call for call in calls if call.name != SUBMIT_DRAFT]
        observations = iter(await self._observe(evidence))
        self._answer(
            calls,
            [
                _DRAFT_ALONE if call.name == SUBMIT_DRAFT else self._fence.observation(next(observations))
                for call in calls
            ],
        )
        return None

    def _recorded(self, reply: ModelReply) -> list[ToolCall]:
        """The reply's calls with ids that are unique, as they now stand in the history.

        Prose is not kept: it may hold tool results that the model made up.
        """
        calls = [self._identified(call) for call in reply.tool_calls[:MAX_CALLS_A_TURN]]
        if not calls:
            self._messages.append(Message(role="assistant", content=_NO_CALL))
            self._messages.append(Message(role="user", content=_CALL_A_TOOL))
            return []
        history = tuple(_replayable(call) for call in calls)
        self._messages.append(Message(role="assistant", tool_calls=history))
        return calls

    def _identified(self, call: ToolCall) -> ToolCall:
        """Servers repeat ids or leave them out; each result has to name exactly one call."""
        identifier, number = call.id, len(self._call_ids)
        while not identifier or identifier in self._call_ids:
            number += 1
            identifier = f"call_{number}"
        self._call_ids.add(identifier)
        return call.model_copy(update={"id": identifier})

    def _draft(self, call: ToolCall) -> Draft | None:
        try:
            return Draft.model_validate_json(call.arguments or "{}")
        except ValidationError as error:
            self._answer([call], [f"The draft was not accepted: {explain(error)}"])
            return None

    async def _observe(self, calls: list[ToolCall]) -> list[Observation]:
        """Runs the calls of one turn concurrently (DIAG-7)."""
        tasks = [asyncio.create_task(self._reported(call)) for call in calls]
        try:
            observations = await asyncio.gather(*tasks)
        finally:
            # The first failure ends the turn: no call of it may go on, charged or not.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._context.check()
        return list(observations)

    async def _reported(self, call: ToolCall) -> Observation:
        tool = call.name if call.name in _KNOWN else "unknown"
        await self._progress.status("TOOL_STARTED", tool=tool)
        observation = await self._tools.call(call)
        await self._progress.status("TOOL_FINISHED", tool=tool, status=observation.status.value)
        return observation

    def _answer(self, calls: list[ToolCall], results: list[str]) -> None:
        for call, result in zip(calls, results, strict=True):
            self._messages.append(Message(role="tool", tool_call_id=call.id, content=result))


async def _described(source: LogSource | BusinessDatabase) -> str:
    """A source that can't even describe itself is no reason to look at no other."""
    try:
        return await source.describe()
    except EvidenceError as error:
        return f"not available: {error.code}"


_KNOWN = {spec.name for spec in tool_specs(evidence=True)}


def _replayable(call: ToolCall) -> ToolCall:
    """A call as the history may hold it: some servers refuse a history with arguments that aren't JSON."""
    arguments = call.arguments if valid_json_object(call.arguments) else "{}"
    name = call.name if call.name in _KNOWN else "unknown"
    return call.model_copy(update={"arguments": arguments, "name": name})
