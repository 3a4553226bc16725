from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from superbizagent.domain.budget import Budget, BudgetLimits, Reservation
from superbizagent.domain.run import CancelReason, ReleaseOutcome, RunStatus, new_id, valid_session_id
from superbizagent.domain.run_context import Lifecycle, RunContext
from superbizagent.errors import BudgetExhausted, RunCancelled
from tests.fakes.clock import FakeClock

steps = st.lists(
    st.one_of(
        st.tuples(st.just("model"), st.integers(0, 3_000), st.floats(0, 1)),
        st.tuples(st.just("tool"), st.just(0), st.just(0.0)),
    ),
    max_size=40,
)


@pytest.mark.spec("BUDGET-1", "DIAG-7")
@given(
    limits=st.builds(
        BudgetLimits, model_calls=st.integers(1, 6), tool_calls=st.integers(0, 6), tokens=st.integers(1, 5_000)
    ),
    steps=steps,
)
def test_what_is_granted_never_exceeds_the_limits(limits: BudgetLimits, steps: list[tuple[str, int, float]]) -> None:
    budget = Budget(limits)
    open_calls: list[tuple[Reservation, float]] = []
    refused: list[tuple[str, float]] = []
    for kind, tokens, share in steps:
        before = budget.usage
        try:
            if kind == "model":
                open_calls.append((budget.reserve_model_call(tokens), share))
            else:
                budget.reserve_tool_call()
        except BudgetExhausted as error:
            assert budget.usage == before, "a refusal charges nothing"
            refused.append((error.resource, error.limit))
        if len(open_calls) > 2:
            reservation, part = open_calls.pop(0)
            budget.settle(reservation, int(reservation.tokens * part))
        used = budget.usage
        assert used.model_calls <= limits.model_calls
        assert used.tool_calls <= limits.tool_calls
        assert 0 <= used.tokens <= limits.tokens
    assert all(limit == getattr(limits, resource) for resource, limit in refused)


@pytest.mark.spec("BUDGET-1")
def test_what_is_left_may_be_used_up() -> None:
    budget = Budget(BudgetLimits(tokens=100))

    budget.reserve_model_call(100)

    assert budget.tokens_left == 0


@pytest.mark.spec("BUDGET-1")
def test_a_bill_above_the_reservation_is_counted_and_blocks_what_follows() -> None:
    budget = Budget(BudgetLimits(tokens=100))

    budget.settle(budget.reserve_model_call(50), 120)

    assert budget.usage.tokens == 120
    with pytest.raises(BudgetExhausted):
        budget.reserve_model_call(1)
    budget.settle(Reservation(0), -50)
    assert budget.usage.tokens == 120


@pytest.mark.parametrize("bad", [{"model_calls": 0}, {"tool_calls": -1}, {"tokens": 0}, {"wall_time": 0}, {"x": 1}])
def test_limits_make_sense(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        BudgetLimits(**bad)


def context(seconds: float = 10.0) -> tuple[RunContext, FakeClock]:
    clock = FakeClock()
    clock.advance(7)
    run = RunContext(
        session_id="s",
        run_id="r",
        query="q",
        budget=Budget(BudgetLimits()),
        deadline=clock.monotonic() + seconds,
        monotonic=clock.monotonic,
    )
    return run, clock


ENDS = {
    Lifecycle.CANCELLED: lambda run: run.cancel(CancelReason.CLIENT_REQUEST),
    Lifecycle.BUDGET_EXHAUSTED: lambda run: run.exhaust(),
    Lifecycle.FAILED: lambda run: run.fail(),
    Lifecycle.SUCCEEDED: lambda run: run.succeed(),
}


@pytest.mark.spec("LIFE-3")
@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("second", ENDS)
def test_the_first_terminal_state_wins(first: Lifecycle, second: Lifecycle) -> None:
    run, clock = context()
    ENDS[first](run)

    if second is Lifecycle.SUCCEEDED and first in (Lifecycle.CANCELLED, Lifecycle.BUDGET_EXHAUSTED):
        with pytest.raises((RunCancelled, BudgetExhausted)):
            ENDS[second](run)
    else:
        ENDS[second](run)
    clock.advance(100)

    assert run.state is first
    assert run.cancel_reason == (CancelReason.CLIENT_REQUEST if first is Lifecycle.CANCELLED else None)


@pytest.mark.spec("LIFE-8")
def test_a_late_success_is_refused() -> None:
    run, clock = context()
    run.check()
    clock.advance(10)

    with pytest.raises(BudgetExhausted):
        run.succeed()

    assert run.state is Lifecycle.BUDGET_EXHAUSTED
    assert run.remaining == 0
    with pytest.raises(BudgetExhausted) as raised:
        run.check()
    assert (raised.value.resource, raised.value.limit) == ("wall_time", 10.0)


@pytest.mark.spec("CANCEL-1")
def test_whoever_waits_for_cancellation_is_told_once() -> None:
    run, _ = context()
    told: list[int] = []
    run.on_cancel(lambda: told.append(1))

    assert run.cancel(CancelReason.CLIENT_DISCONNECT)
    assert not run.cancel(CancelReason.SHUTDOWN)
    run.on_cancel(lambda: told.append(2))

    assert told == [1, 2]
    assert run.cancel_reason is CancelReason.CLIENT_DISCONNECT


@pytest.mark.spec("CANCEL-1")
@pytest.mark.parametrize(("waited", "asked_after"), [(0.0, 3.0), (0.5, 2.5), (-1.0, 3.0), (99.0, 0.0)])
def test_a_wish_to_cancel_is_as_old_as_it_says_within_the_life_of_its_run(waited: float, asked_after: float) -> None:
    """Clocks of two processes differ, and a connection may have gone before its run began."""
    run, clock = context()
    clock.advance(3)

    run.cancel(CancelReason.CLIENT_DISCONNECT, waited)

    assert run.cancelled_after == asked_after


@pytest.mark.spec("STORE-2")
def test_both_safe_outcomes_are_stored_as_success() -> None:
    assert {outcome: outcome.status for outcome in ReleaseOutcome} == {
        ReleaseOutcome.SUCCESS: RunStatus.SUCCESS,
        ReleaseOutcome.FALLBACK: RunStatus.SUCCESS,
        ReleaseOutcome.FAILED: RunStatus.FAILED,
        ReleaseOutcome.CANCELLED: RunStatus.CANCELLED,
    }


@pytest.mark.spec("LIFE-1")
def test_new_ids_are_valid_and_never_the_same() -> None:
    ids = {new_id() for _ in range(1_000)}

    assert len(ids) == 1_000
    assert {len(value) for value in ids} == {32}, "128 bits"
    assert all(valid_session_id(value) == value for value in ids)
