"""A run while it is under way: its budget, its deadline and its in-memory lifecycle."""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from superbizagent.domain.run import CancelReason, Intent
from superbizagent.errors import BudgetExhausted, RunCancelled

if TYPE_CHECKING:
    from superbizagent.domain.budget import Budget
    from superbizagent.domain.steps import Step


class Lifecycle(StrEnum):
    """The in-memory state; the four terminal ones are set once (LIFE-3)."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"


class RunContext:
    """One run's identity, budget, deadline, cancellation and first-terminal-wins state.

    `deadline` and `monotonic` are seconds of the same monotonic clock. Used from one event loop only.
    `tell` takes each step of the run and never raises. `cancelled_after` is seconds from the run's start to the wish
    that it end.
    """

    def __init__(
        self,
        *,
        session_id: str,
        run_id: str,
        query: str,
        budget: "Budget",
        deadline: float,
        monotonic: Callable[[], float],
        tell: "Callable[[Step], object]" = lambda _step: None,
    ) -> None:
        self.session_id = session_id
        self.run_id = run_id
        self.query = query
        self.budget = budget
        self.started = monotonic()
        self.deadline = deadline
        self.cancel_reason: CancelReason | None = None
        self.cancelled_after: float | None = None
        self.intent: Intent | None = None
        self.tell = tell
        self._monotonic = monotonic
        self._state = Lifecycle.RUNNING
        self._on_cancel: list[Callable[[], object]] = []

    @property
    def state(self) -> Lifecycle:
        return self._state

    @property
    def elapsed(self) -> float:
        """Seconds since the run started."""
        return self._monotonic() - self.started

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, zero when it has passed."""
        return max(self.deadline - self._monotonic(), 0.0)

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Calls `callback` once when the run is cancelled: at once if it already was."""
        if self._state is Lifecycle.CANCELLED:
            callback()
        else:
            self._on_cancel.append(callback)

    def cancel(self, reason: CancelReason, waited: float = 0.0) -> bool:
        """Ends the run as CANCELLED; false when another terminal state came first.

        `waited`: seconds since somebody asked for it. The clock of whoever asked may differ from ours, and a
        connection may have gone before its run began: no run has waited for less than nothing, or for longer than
        it has been there.
        """
        if not self._end(Lifecycle.CANCELLED):
            return False
        elapsed = self.elapsed
        self.cancel_reason, self.cancelled_after = reason, elapsed - min(max(waited, 0.0), elapsed)
        for callback in self._on_cancel:
            callback()
        return True

    def exhaust(self) -> bool:
        """Ends the run as BUDGET_EXHAUSTED; false when another terminal state came first."""
        return self._end(Lifecycle.BUDGET_EXHAUSTED)

    def fail(self) -> bool:
        """Ends the run as FAILED; false when another terminal state came first."""
        return self._end(Lifecycle.FAILED)

    def succeed(self) -> None:
        """Ends the run as SUCCEEDED.

        A result that comes after cancellation or the deadline raises RunCancelled or
        BudgetExhausted instead (LIFE-8).
        """
        self.check()
        self._end(Lifecycle.SUCCEEDED)

    def check(self) -> None:
        """Raises RunCancelled or BudgetExhausted when the run may not go on."""
        if self._state is Lifecycle.CANCELLED:
            raise RunCancelled
        if self._state is Lifecycle.RUNNING and self.remaining <= 0:
            self.exhaust()
        if self._state is Lifecycle.BUDGET_EXHAUSTED:
            raise BudgetExhausted("wall_time", self.deadline - self.started)

    def _end(self, state: Lifecycle) -> bool:
        if self._state is not Lifecycle.RUNNING:
            return False
        self._state = state
        return True
