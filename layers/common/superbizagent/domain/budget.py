"""The limits of a run: reserved before use, settled after (BUDGET-1)."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from superbizagent.errors import BudgetExhausted

# Built when there is a run: the sweep tells the journal of ended ones, and spends nothing.
_VALUE = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class BudgetLimits(BaseModel):
    """What one run may use. `wall_time` is in seconds."""

    model_config = _VALUE

    model_calls: int = Field(default=14, ge=1)
    tool_calls: int = Field(default=16, ge=0)
    tokens: int = Field(default=200_000, ge=1)
    wall_time: float = Field(default=180.0, gt=0)


class Usage(BaseModel):
    """What a run used; stored with it."""

    model_config = _VALUE

    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class Reservation:
    """Tokens set aside for one model call until it is settled."""

    tokens: int


class Budget:
    """Counts reservations against the limits; what it grants can never overshoot them."""

    def __init__(self, limits: BudgetLimits) -> None:
        self.limits = limits
        self._model_calls = 0
        self._tool_calls = 0
        self._tokens = 0

    @property
    def usage(self) -> Usage:
        return Usage(model_calls=self._model_calls, tool_calls=self._tool_calls, tokens=self._tokens)

    @property
    def model_calls_left(self) -> int:
        return self.limits.model_calls - self._model_calls

    @property
    def tool_calls_left(self) -> int:
        return self.limits.tool_calls - self._tool_calls

    @property
    def tokens_left(self) -> int:
        return self.limits.tokens - self._tokens

    def reserve_model_call(self, tokens: int) -> Reservation:
        """Charges one model call of at most `tokens`; raises BudgetExhausted and charges nothing."""
        if self.model_calls_left < 1:
            raise BudgetExhausted("model_calls", self.limits.model_calls)
        if tokens > self.tokens_left:
            raise BudgetExhausted("tokens", self.limits.tokens)
        self._model_calls += 1
        self._tokens += tokens
        return Reservation(tokens)

    def settle(self, reservation: Reservation, tokens: int) -> None:
        """Replaces a reservation by what the call really used.

        A server may bill more than was reserved; the excess is counted, so that usage stays true.
        A bill below zero is nonsense and gives nothing back beyond the reservation.
        """
        self._tokens += max(tokens, 0) - reservation.tokens

    def reserve_tool_call(self) -> None:
        """Charges one tool call; raises BudgetExhausted and charges nothing."""
        if self.tool_calls_left < 1:
            raise BudgetExhausted("tool_calls", self.limits.tool_calls)
        self._tool_calls += 1
