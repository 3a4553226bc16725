"""The diagnosis agent: one ReAct loop with three evidence tools and a draft as its typed end (DIAG-*)."""

import asyncio
import json
import logging
from dataclasses import dataclass
from enum import StrEnum

from pydantic import ValidationError

from superbizagent.application.defects import place_of
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
from superbizagent.domain.run_context import RunContext
from superbizagent.errors import (
    BudgetExhausted,
    EvidenceError,
    EvidenceTimeout,
    EvidenceUnavailable,
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
_SHORTENED_BYTES = (4_000, _COMPACTED_BYTES, 400)
_DESCRIBE_SECONDS = 10.0
_DESCRIPTION_BYTES = 16_000
_MAX_CALL_ID = 128
_MAX_HISTORY_ARGUMENTS = 16_000
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
  record. Name document_ids when a claim rests on a document. Evidence ids stand in evidence_ids only, in no text.
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
_NOT_ACCEPTED = "The draft was not accepted. Send it again without these problems:"
_ONLY_DRAFT = "The evidence tools are no longer available, so this call was not run. Call submit_draft, alone."
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
        self._cause: Stop | None = None

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
        while self._concluding < _CONCLUDING_TURNS or not self._must_conclude():
            draft = await self._take(await self._turn())
            if draft is not None:
                return self._drafted(draft)
        return self._ended(self._cause or Stop.NO_DRAFT)

    def _drafted(self, draft: Draft) -> Investigation:
        """A draft that says nothing, handed in only because a limit was reached, is the limit's doing (BUDGET-2)."""
        says_something = draft.concluded or draft.missing_context
        return self._ended(Stop.BUDGET if self._cause is Stop.BUDGET and not says_something else Stop.DRAFTED, draft)

    def _ended(self, stop: Stop, draft: Draft | None = None) -> Investigation:
        return Investigation(stop, draft, self._collector.observations)

    # Turns ---------------------------------------------------------------------------------------

    def _must_conclude(self) -> bool:
        """Whether the next turn is the last that can be afforded, or nothing new can be found (BUDGET-5)."""
        budget = self._context.budget
        if budget.model_calls_left - GUARD_MODEL_CALLS < 1:
            raise BudgetExhausted("model_calls", budget.limits.model_calls)
        if self._cause is None:
            if self._short_of_budget():
                self._cause = Stop.BUDGET
            elif self._collector.saturated:
                self._cause = Stop.SATURATED
        return self._cause is not None

    def _short_of_budget(self) -> bool:
        budget, limit = self._context.budget, self._context.deadline - self._context.started
        return (
            budget.tool_calls_left < 1
            or budget.model_calls_left - GUARD_MODEL_CALLS == 1
            or budget.tokens_left < 3 * self._request(evidence=True).estimated_tokens
            or self._context.remaining < min(CONCLUDE_SECONDS, limit / 3)
        )

    async def _conclude(self) -> None:
        if not self._concluding:
            await self._progress.status("DRAFTING")
        self._concluding += 1
        self._messages.append(Message(role="user", content=_CONCLUDE))
        self._fit_tokens()

    def _fit_tokens(self) -> None:
        """A long history must not cost the run its last turn: results are shortened until that is affordable."""
        for size in _SHORTENED_BYTES:
            if 2 * self._request(evidence=False).estimated_tokens <= self._context.budget.tokens_left:
                break
            self._shorten(size)

    async def _turn(self) -> ModelReply:
        """One reply; a transient failure is tried once more, a too long context once in a shorter form.

        What a failed attempt cost may make the next one the last, so each attempt looks again.
        """
        retries, compacted = _TRANSIENT_RETRIES, False
        while True:
            if self._must_conclude() and not self._asked_to_conclude:
                await self._conclude()
            try:
                return await self._model.complete(self._request(evidence=self._cause is None))
            except ModelContextTooLong:
                if compacted:
                    raise
                compacted = True
                self._shorten(_COMPACTED_BYTES)
            except _RETRIED as error:
                if retries < 1:
                    raise
                retries -= 1
                _log.warning("model call failed", extra={"code": error.code})

    @property
    def _asked_to_conclude(self) -> bool:
        """Whether the request to conclude already is the last word of the history."""
        return self._messages[-1].content == _CONCLUDE

    def _request(self, *, evidence: bool) -> ModelRequest:
        return ModelRequest(
            messages=tuple(self._messages),
            tools=tool_specs(evidence=evidence),
            max_output_tokens=_MAX_OUTPUT_TOKENS,
        )

    def _shorten(self, size: int) -> None:
        """Shortens tool results; calls and results stay paired, as servers require."""
        self._messages = [
            message.model_copy(update={"content": self._fence.shortened(message.content, size)})
            if message.role == "tool"
            else message
            for message in self._messages
        ]

    async def _opening(self, previous_turn: PreviousTurn | None) -> list[Message]:
        logs, database = self._sources.logs, self._sources.database
        tables = await self._described(database) if database is not None else "none configured"
        system = _SYSTEM.format(
            rule=self._fence.rule,
            calls=MAX_CALLS_A_TURN,
            now=self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            logs=self._fence.wrap(await self._described(logs)),
            database=self._fence.wrap(tables),
        )
        question = {
            "query": self._context.query,
            "previous_turn": previous_turn and previous_turn.model_dump(mode="json"),
        }
        asked = self._fence.wrap(json.dumps(question, ensure_ascii=False))
        return [Message(role="system", content=system), Message(role="user", content=asked)]

    async def _described(self, source: LogSource | BusinessDatabase) -> str:
        """A source that can't even describe itself is no reason to look at no other."""
        try:
            async with asyncio.timeout(min(_DESCRIBE_SECONDS, self._context.remaining)):
                return self._collector.clean(await source.describe(), _DESCRIPTION_BYTES)
        except TimeoutError:
            return f"not available: {EvidenceTimeout.code}"
        except EvidenceError as error:
            return f"not available: {error.code}"
        except Exception as error:
            _log.error("evidence source failed", extra={"defect": place_of(error)})
            return f"not available: {EvidenceUnavailable.code}"

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
        if len(calls) == 1 and calls[0].name == SUBMIT_DRAFT:
            return self._draft(calls[0])
        if self._cause is not None:
            self._answer(calls, [_DRAFT_ALONE if call.name == SUBMIT_DRAFT else _ONLY_DRAFT for call in calls])
            return None
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
        usable = call.id.isascii() and call.id.isprintable() and len(call.id) <= _MAX_CALL_ID
        identifier, number = call.id if usable else "", len(self._call_ids)
        while not identifier or identifier in self._call_ids:
            number += 1
            identifier = f"call_{number}"
        self._call_ids.add(identifier)
        return call.model_copy(update={"id": identifier})

    def _draft(self, call: ToolCall) -> Draft | None:
        try:
            return Draft.model_validate_json(call.arguments)
        except ValidationError as error:
            # The explanation names fields as the model called them: they are its words, not ours.
            self._answer([call], [f"{_NOT_ACCEPTED}\n{self._fence.wrap(explain(error))}"])
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


_KNOWN = {spec.name for spec in tool_specs(evidence=True)}


def _replayable(call: ToolCall) -> ToolCall:
    """A call as the history may hold it: some servers refuse a history with arguments that aren't JSON."""
    readable = len(call.arguments) <= _MAX_HISTORY_ARGUMENTS and valid_json_object(call.arguments)
    arguments = call.arguments if readable else "{}"
    name = call.name if call.name in _KNOWN else "unknown"
    return call.model_copy(update={"arguments": arguments, "name": name})
