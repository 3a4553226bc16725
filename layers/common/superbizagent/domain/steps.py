"""The steps of a run's life, as they are told to its journal: codes, counts and times, and never a text (SEC-4).

Times are seconds. Every `code` is that of an error in errors.py, and None where nothing went wrong.
"""

# Annotations stay text: a step can be told without loading all that another step may speak of.
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from superbizagent.domain.run import ReleaseOutcome
from superbizagent.errors import RunAbandoned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from superbizagent.domain.budget import Usage
    from superbizagent.domain.codes import ObservationStatus
    from superbizagent.domain.content import FallbackReason
    from superbizagent.domain.run import CancelReason, Intent


@dataclass(frozen=True)
class Started:
    """The run is stored as RUNNING; `limit` is what it may take."""

    name: ClassVar[str] = "STARTED"
    limit: float


@dataclass(frozen=True)
class Routed:
    name: ClassVar[str] = "ROUTED"
    intent: Intent


@dataclass(frozen=True)
class ModelCalled:
    """One charged call, however it ended. `call` counts the run's; `tokens` is what its budget was charged."""

    name: ClassVar[str] = "MODEL_CALL"
    purpose: str
    call: int
    tokens: int
    seconds: float
    code: str | None = None


@dataclass(frozen=True)
class ToolCalled:
    """One call of a tool, `tool` being "unknown" for one that doesn't exist.

    `charged` tells whether the budget was: not for one that was `cached`, nor for one that could not be afforded.
    `status` is None for a call that the run's own end cut off.
    """

    name: ClassVar[str] = "TOOL_CALL"
    tool: str
    status: ObservationStatus | None
    seconds: float = 0.0
    code: str | None = None
    cached: bool = False
    charged: bool = True


@dataclass(frozen=True)
class DraftChecked:
    """A guard's verdict on a draft: how often each rule was broken; no rule for a draft that passed."""

    name: ClassVar[str] = "DRAFT_CHECKED"
    guard: str
    rules: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Released:
    """What there is to publish, once it is stored."""

    name: ClassVar[str] = "RELEASED"
    outcome: ReleaseOutcome
    content: str
    reason: FallbackReason | None = None


@dataclass(frozen=True)
class Cancelled:
    """The run has learnt that somebody asked for its end, `waited` seconds ago."""

    name: ClassVar[str] = "CANCELLED"
    cause: CancelReason
    waited: float


@dataclass(frozen=True)
class NotStored:
    """The store failed the run: its start, its intent or its end is not stored (LIFE-4)."""

    name: ClassVar[str] = "NOT_STORED"
    code: str


@dataclass(frozen=True)
class Finished:
    """The run's end, as its row has it. `stored` is false where another end came first (LIFE-3).

    `cancelling` is the time from the wish that the run end to this step.
    """

    name: ClassVar[str] = "FINISHED"
    intent: Intent | None
    outcome: ReleaseOutcome
    usage: Usage
    seconds: float
    code: str | None = None
    reason: FallbackReason | None = None
    cause: CancelReason | None = None
    cancelling: float | None = None
    stored: bool = True


@dataclass(frozen=True)
class Abandoned:
    """A run whose process had died was ended from outside, as its row has it (LIFE-7).

    By the sweep, or by the next question of its session. What it had used is told by its earlier steps alone.
    """

    name: ClassVar[str] = "ABANDONED"
    intent: Intent | None
    seconds: float
    outcome: ReleaseOutcome = ReleaseOutcome.FAILED
    code: str = RunAbandoned.code


@dataclass(frozen=True)
class PostFailed:
    """A frame did not arrive; the code tells a client that is gone from a channel that doesn't work."""

    name: ClassVar[str] = "POST_FAILED"
    code: str


Step = (
    Started
    | Routed
    | ModelCalled
    | ToolCalled
    | DraftChecked
    | Released
    | Cancelled
    | NotStored
    | Finished
    | Abandoned
    | PostFailed
)
