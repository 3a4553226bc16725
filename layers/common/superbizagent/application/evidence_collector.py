"""The one door through which raw results become observations (DIAG-2, DIAG-3, DIAG-4)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from superbizagent.application.defects import place_of
from superbizagent.domain.evidence import (
    Coverage,
    DocumentRef,
    Evidence,
    Observation,
    ObservationStatus,
    ToolArguments,
    ToolName,
    canonical_arguments,
    digest_of,
)
from superbizagent.domain.run import RunContext
from superbizagent.domain.text import bound_bytes, bound_characters
from superbizagent.errors import BudgetExhausted, EvidenceError, EvidenceTimeout, EvidenceUnavailable
from superbizagent.ports import Clock, Redactor

_log = logging.getLogger(__name__)

TOOL_BUDGET_EXHAUSTED = "TOOL_BUDGET_EXHAUSTED"
MAX_ARGUMENTS_BYTES = 2_000


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

        Charged before it starts (DIAG-7). Never raises for what a source does; a call that may not
        start for want of budget is an observation with status ERROR.
        """
        canonical = canonical_arguments(arguments)
        earlier = self._running.get((tool, canonical))
        if earlier is not None:
            self._saturation.note(new=False)
            return await asyncio.shield(earlier)
        try:
            self._context.budget.reserve_tool_call()
        except BudgetExhausted:
            hint = "No tool call is left. Conclude from what was found."
            return self._record(self._error(tool, canonical, TOOL_BUDGET_EXHAUSTED, hint))
        outcome: asyncio.Future[Observation] = asyncio.get_running_loop().create_future()
        self._running[tool, canonical] = outcome
        try:
            observation = self._record(await self._fetch(tool, canonical, fetch))
        except BaseException:
            outcome.cancel()
            raise
        outcome.set_result(observation)
        return observation

    def reject(self, tool: str, arguments: str, error: EvidenceError) -> Observation:
        """The error observation of a call that no tool can take; charged like any other (DIAG-6)."""
        try:
            self._context.budget.reserve_tool_call()
        except BudgetExhausted:
            # Recording goes on: the model turn that led here was charged, and that bounds the loop.
            _log.info("rejected call beyond the tool budget", extra={"code": error.code})
        return self._record(self._error(tool, arguments, error.code, error.hint))

    async def _fetch(self, tool: ToolName, canonical: str, fetch: Fetch) -> Observation:
        try:
            async with asyncio.timeout(min(self._limits.timeout, self._context.remaining)):
                evidence = await fetch()
        except TimeoutError:
            return self._error(tool, canonical, EvidenceTimeout.code, EvidenceTimeout.message)
        except EvidenceError as error:
            return self._error(tool, canonical, error.code, error.hint)
        except Exception as error:
            _log.error("evidence source failed", extra={"tool": tool, "defect": place_of(error)})
            return self._error(tool, canonical, EvidenceUnavailable.code, EvidenceUnavailable.message)
        return self._observe(tool, canonical, evidence)

    def _observe(self, tool: ToolName, canonical: str, evidence: Evidence) -> Observation:
        status = ObservationStatus.READY if evidence.coverage.matched else ObservationStatus.NO_EVIDENCE
        projection, coverage = self._project(evidence)
        return Observation(
            evidence_id=self._next_id(),
            tool=tool,
            arguments=self._redact(canonical),
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
        lines = [bound_characters(line, self._limits.line_characters) for line in whole.split("\n")]
        shown = _head_and_tail(lines, self._limits.projection_bytes)
        notes = tuple(self._redact(note) for note in evidence.coverage.notes)
        cut = len(shown) < len(lines)
        if cut:
            notes += ("the result was cut to fit",)
        truncated = evidence.coverage.truncated or cut
        return "\n".join(shown), evidence.coverage.model_copy(update={"truncated": truncated, "notes": notes})

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
            tool=tool,
            arguments=bound_bytes(self._redact(arguments), MAX_ARGUMENTS_BYTES),
            status=ObservationStatus.ERROR,
            error_code=code,
            projection=text,
            digest=digest_of(tool, ObservationStatus.ERROR, text),
            observed_at=self._clock.now(),
        )

    def _record(self, observation: Observation) -> Observation:
        """Numbers observations in the order in which they came back, so that ids have no gaps."""
        numbered = observation.model_copy(update={"evidence_id": self._next_id()})
        self._observations.append(numbered)
        self._saturation.note(new=numbered.digest not in self._digests)
        self._digests.add(numbered.digest)
        return numbered

    def _next_id(self) -> str:
        return f"E{len(self._observations) + 1}"


def _head_and_tail(lines: list[str], limit: int) -> list[str]:
    """The first and last lines that fit `limit` bytes, two thirds of it for the head."""
    if sum(_size(line) for line in lines) <= limit:
        return lines
    head = _fitting(lines, limit * 2 // 3)
    tail = _fitting(lines[len(head) :][::-1], limit - limit * 2 // 3 - 40)
    left_out = len(lines) - len(head) - len(tail)
    return [*head, f"… {left_out} lines not shown …", *tail[::-1]]


def _fitting(lines: list[str], limit: int) -> list[str]:
    used = 0
    for count, line in enumerate(lines):
        used += _size(line)
        if used > limit:
            return lines[:count]
    return lines


def _size(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1
