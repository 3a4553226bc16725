"""The one door through which raw results become observations (DIAG-2, DIAG-3, DIAG-4)."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from superbizagent.application.defects import place_of
from superbizagent.application.journal import code_of
from superbizagent.domain.codes import ObservationStatus, ToolName, Unit
from superbizagent.domain.evidence import (
    Coverage,
    DocumentRef,
    Evidence,
    Observation,
    ToolArguments,
    canonical_arguments,
    digest_of,
)
from superbizagent.domain.run_context import RunContext
from superbizagent.domain.steps import ToolCalled
from superbizagent.domain.text import bound_bytes, bound_characters
from superbizagent.errors import BudgetExhausted, EvidenceError, EvidenceTimeout, EvidenceUnavailable
from superbizagent.ports import Clock, Redactor

_log = logging.getLogger(__name__)

TOOL_BUDGET_EXHAUSTED = "TOOL_BUDGET_EXHAUSTED"
MAX_ARGUMENTS_BYTES = 2_000
MAX_TOOL_NAME = 64
"""Characters: the name of a tool that does not exist is whatever the model wrote."""


_MAX_NOTES = 8
_MAX_NOTE = 200


class EvidenceLimits(BaseModel):
    """`projection_bytes` bounds what a model sees of one call; `timeout` is seconds a call."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    projection_bytes: int = Field(default=8_000, ge=500)
    line_characters: int = Field(default=1_000, ge=80)
    timeout: float = Field(default=30.0, gt=0)
    saturation: int = Field(default=3, ge=1)


Fetch = Callable[[], Awaitable[Evidence]]


@dataclass
class _Saturation:
    """Successive calls that added no new digest."""

    limit: int
    successive: int = 0

    def note(self, new: bool) -> None:
        self.successive = 0 if new else self.successive + 1

    @property
    def reached(self) -> bool:
        return self.successive >= self.limit


class EvidenceCollector:
    """One run's observations. Redacts and bounds whatever a source returns before anybody sees it."""

    def __init__(self, context: RunContext, clock: Clock, redact: Redactor, limits: EvidenceLimits) -> None:
        self._context = context
        self._clock = clock
        self._redact = redact
        self._limits = limits
        self._observations: list[Observation] = []
        self._running: dict[tuple[ToolName, str], asyncio.Future[Observation]] = {}
        self._digests: set[str] = set()
        self._saturation = _Saturation(limits.saturation)

    @property
    def observations(self) -> tuple[Observation, ...]:
        return tuple(self._observations)

    @property
    def saturated(self) -> bool:
        return self._saturation.reached

    async def collect(self, tool: ToolName, arguments: ToolArguments, fetch: Fetch) -> Observation:
        """The observation of this call; the earlier one if the same call was made before (DIAG-3).

        Charged before it starts (DIAG-7); raises BudgetExhausted when it may not start, or when the run's
        deadline ends it. Never raises for what a source does.
        """
        canonical = canonical_arguments(arguments)
        earlier = self._running.get((tool, canonical))
        if earlier is not None:
            self._saturation.note(new=False)
            observation = await asyncio.shield(earlier)
            self._tell(observation, cached=True, charged=False)
            return observation
        self._context.budget.reserve_tool_call()
        began = self._context.elapsed
        outcome: asyncio.Future[Observation] = asyncio.get_running_loop().create_future()
        self._running[tool, canonical] = outcome
        try:
            observation = self._record(await self._fetch(tool, canonical, fetch))
        except Exception as error:
            # An equal call of the same turn waits for this one; reading the error here keeps it quiet without one.
            outcome.set_exception(error)
            outcome.exception()
            self._tell_cut_off(tool, began, error)
            raise
        except BaseException as error:
            outcome.cancel()
            self._tell_cut_off(tool, began, error)
            raise
        self._tell(observation, began)
        outcome.set_result(observation)
        return observation

    def refuse(self, tool: ToolName, arguments: ToolArguments) -> Observation:
        """The error observation of a call that may not start for want of budget."""
        hint = "No tool call is left. Conclude from what was found."
        observation = self._record(self._error(tool, canonical_arguments(arguments), TOOL_BUDGET_EXHAUSTED, hint))
        self._tell(observation, charged=False)
        return observation

    def clean(self, text: str, limit: int) -> str:
        """`text` of a source, redacted and then bounded to `limit` bytes."""
        return bound_bytes(self._redact(text), limit)

    def reject(self, tool: str, arguments: str, error: EvidenceError) -> Observation:
        """The error observation of a call that no tool can take; charged like any other (DIAG-6)."""
        charged = True
        try:
            self._context.budget.reserve_tool_call()
        except BudgetExhausted:
            charged = False
            # Recording goes on: the model turn that led here was charged, and that bounds the loop.
            _log.info("rejected call beyond the tool budget", extra={"code": error.code})
        observation = self._record(self._error(tool, arguments, error.code, error.hint))
        self._tell(observation, charged=charged)
        return observation

    def _tell(
        self, observation: Observation, began: float | None = None, *, cached: bool = False, charged: bool = True
    ) -> None:
        """The name of a tool that does not exist is the model's text: it is not told."""
        tool = observation.tool if observation.tool in set(ToolName) else "unknown"
        seconds = 0.0 if began is None else self._context.elapsed - began
        step = ToolCalled(tool, observation.status, seconds, observation.error_code, cached=cached, charged=charged)
        self._context.tell(step)

    def _tell_cut_off(self, tool: ToolName, began: float, error: BaseException) -> None:
        self._context.tell(ToolCalled(tool, None, self._context.elapsed - began, code_of(error, self._context)))

    async def _fetch(self, tool: ToolName, canonical: str, fetch: Fetch) -> Observation:
        allowed, remaining = self._limits.timeout, self._context.remaining
        bound = asyncio.timeout(min(allowed, remaining))
        try:
            async with bound:
                evidence = await fetch()
            return self._observe(tool, canonical, evidence)
        except TimeoutError:
            if bound.expired() and remaining <= allowed:
                self._context.exhaust()
            self._context.check()
            return self._error(tool, canonical, EvidenceTimeout.code, EvidenceTimeout.message)
        except EvidenceError as error:
            return self._error(tool, canonical, error.code, error.hint)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled this call: a client library's own cancellation came through.
            return self._unavailable(tool, canonical, error)
        except Exception as error:
            return self._unavailable(tool, canonical, error)

    def _unavailable(self, tool: ToolName, canonical: str, error: BaseException) -> Observation:
        _log.error("evidence source failed", extra={"tool": tool, "defect": place_of(error)})
        return self._error(tool, canonical, EvidenceUnavailable.code, EvidenceUnavailable.message)

    def _observe(self, tool: ToolName, canonical: str, evidence: Evidence) -> Observation:
        status = ObservationStatus.READY if evidence.coverage.matched else ObservationStatus.NO_EVIDENCE
        projection, coverage = self._project(evidence)
        return Observation(
            evidence_id=self._next_id(),
            tool=tool,
            arguments=self._redacted_json(canonical),
            status=status,
            title=self._redact(evidence.title),
            projection=projection,
            coverage=coverage,
            documents=tuple(self._clean(document) for document in evidence.documents),
            digest=digest_of(tool, status, projection),
            observed_at=self._clock.now(),
        )

    def _project(self, evidence: Evidence) -> tuple[str, Coverage]:
        """Redacted as a whole before any cut: half a secret is not recognised as one."""
        whole = self._redact("\n".join((evidence.title, *evidence.summary, *evidence.lines)))
        whole_lines = whole.split("\n")
        lines = [bound_characters(line, self._limits.line_characters) for line in whole_lines]
        shown, left_out = _head_and_tail(lines, self._limits.projection_bytes)
        coverage = evidence.coverage
        notes = [bound_characters(self._redact(note), _MAX_NOTE) for note in coverage.notes[:_MAX_NOTES]]
        if left_out:
            notes.append("the result was cut to fit")
        if lines != whole_lines:
            notes.append("long lines were cut")
        records = coverage.unit is not Unit.PASSAGES
        changes = {
            "truncated": coverage.truncated or bool(left_out) or lines != whole_lines,
            "shown": max(coverage.shown - left_out, 0) if records else coverage.shown,
            "notes": tuple(notes),
        }
        return "\n".join(shown), coverage.model_copy(update=changes)

    def _redacted_json(self, canonical: str) -> str:
        """Redacted text by text: a placeholder that ate a quotation mark would leave no JSON to read again."""
        arguments = {name: self._redacted(value) for name, value in json.loads(canonical).items()}
        return json.dumps(arguments, sort_keys=True, ensure_ascii=False)

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._redacted(item) for item in value]
        return self._redact(value) if isinstance(value, str) else value

    def _clean(self, document: DocumentRef) -> DocumentRef:
        return document.model_copy(
            update={
                "title": self._redact(document.title),
                "heading_path": tuple(self._redact(heading) for heading in document.heading_path),
                "source": self._redact(document.source),
            }
        )

    def _error(self, tool: str, arguments: str, code: str, hint: str) -> Observation:
        text = self._redact(hint)
        return Observation(
            evidence_id=self._next_id(),
            tool=bound_characters(self._redact(tool), MAX_TOOL_NAME),
            arguments=bound_bytes(self._redact(arguments), MAX_ARGUMENTS_BYTES),
            status=ObservationStatus.ERROR,
            error_code=code,
            projection=text,
            digest=digest_of(tool, ObservationStatus.ERROR, text),
            observed_at=self._clock.now(),
        )

    def _record(self, observation: Observation) -> Observation:
        """Nothing is awaited between an observation's making and this: ids are in order and have no gaps."""
        self._observations.append(observation)
        self._saturation.note(new=observation.digest not in self._digests)
        self._digests.add(observation.digest)
        return observation

    def _next_id(self) -> str:
        return f"E{len(self._observations) + 1}"


def _head_and_tail(lines: list[str], limit: int) -> tuple[list[str], int]:
    """The first and last lines that fit `limit` bytes, two thirds of it for the head; how many are left out."""
    if sum(_size(line) for line in lines) <= limit:
        return lines, 0
    head = _fitting(lines, limit * 2 // 3)
    tail = _fitting(lines[len(head) :][::-1], limit - limit * 2 // 3 - 40)
    left_out = len(lines) - len(head) - len(tail)
    return [*head, f"… {left_out} lines not shown …", *tail[::-1]], left_out


def _fitting(lines: list[str], limit: int) -> list[str]:
    used = 0
    for count, line in enumerate(lines):
        used += _size(line)
        if used > limit:
            return lines[:count]
    return lines


def _size(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1
