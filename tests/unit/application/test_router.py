import json
from typing import Any

import pytest

from superbizagent.application import router
from superbizagent.application.run_model import RunModel
from superbizagent.domain.budget import Budget, BudgetLimits
from superbizagent.domain.conversation import ModelReply
from superbizagent.domain.run import CancelReason, Intent, ReleaseOutcome
from superbizagent.domain.run_context import Lifecycle, RunContext
from superbizagent.errors import (
    BudgetExhausted,
    ModelMisconfigured,
    ModelRefused,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
    RoutingUnavailable,
    RunCancelled,
    SuperBizAgentError,
)
from superbizagent.ports import PriorContext
from tests.fakes.clock import FakeClock
from tests.fakes.model import HANG, FakeModel, answer, calls, intent, text
from tests.unit.application.stage import Stage, limits

INVALID = [
    text(""),
    text("null"),
    text("DIAGNOSIS"),
    text('"DIAGNOSIS"'),
    text("[]"),
    text('["intent", "DIAGNOSIS"]'),
    text('[["intent", "DIAGNOSIS"]]'),
    text("{}"),
    text('{"intent": null}'),
    text('{"intent": "diagnosis"}'),
    text('{"intent": "OTHER"}'),
    text('{"intent": ["DIAGNOSIS"]}'),
    text('{"intent": {"DIAGNOSIS": 1}}'),
    text('{"intent": "DIAGNOSIS", "why": "it fails"}'),
    text('{"intent": "DIAGNOSIS", "intent": "SYSTEM_CHAT"}'),
    text('{"intent": "DIAGNOSIS", "intent": "DIAGNOSIS"}'),
    text('```json\n{"intent": "DIAGNOSIS"}\n```'),
    text('The intent is {"intent": "DIAGNOSIS"}'),
    text('{"intent": "DIAGNOSIS"'),
    text('{"Intent": "DIAGNOSIS"}'),
    text('{"intent": " DIAGNOSIS"}'),
    text("[" * 100_000),
    text('{"intent": NaN}'),
    calls(content=""),
]


def context(**budget: Any) -> RunContext:
    clock = FakeClock()
    return RunContext(
        session_id="s",
        run_id="r",
        query="q",
        budget=Budget(BudgetLimits(**budget)),
        deadline=clock.monotonic() + 60,
        monotonic=clock.monotonic,
    )


async def route(model: FakeModel, query: str = "why?", prior: PriorContext | None = None, **budget: Any) -> Intent:
    return await router.route(RunModel(model, context(**budget), 5.0), query, prior or PriorContext())


@pytest.mark.spec("ROUTE-2")
@pytest.mark.parametrize("expected", list(Intent))
async def test_each_intent_is_accepted(expected: Intent) -> None:
    assert await route(FakeModel(intent(expected))) is expected


@pytest.mark.spec("ROUTE-1", "ROUTE-6")
@pytest.mark.parametrize("query", ["why?", "  two  spaces\n", 'a "quote" and \\', "支付为什么失败？🫠", "x" * 8_000])
async def test_the_input_is_the_query_unchanged_and_what_is_known_of_the_last_turn(query: str) -> None:
    model = FakeModel(intent("DIAGNOSIS"), intent("DIAGNOSIS"))

    await route(model, query)
    await route(model, query, PriorContext(last_intent=Intent.SYSTEM_CHAT, last_query="hello"))

    first, second = model.requests
    assert json.loads(first.messages[1].content) == {"query": query}
    assert json.loads(second.messages[1].content) == {
        "query": query,
        "last_intent": "SYSTEM_CHAT",
        "last_user_query": "hello",
    }
    for request in (first, second):
        assert [message.role for message in request.messages] == ["system", "user"]
        assert not request.tools
        assert request.output is not None
    assert json.dumps(query, ensure_ascii=False) in first.messages[1].content, "as the user wrote it"
    assert first.messages[0].content.startswith("You classify one message")
    assert first.messages[0] == second.messages[0], "nothing of the turn goes into the instructions"


@pytest.mark.spec("ROUTE-3")
@pytest.mark.parametrize("invalid", [*INVALID, ModelTimeout(), ModelUnavailable(), ModelReplyInvalid()])
async def test_one_failure_is_retried_with_the_same_bytes(invalid: ModelReply | Exception) -> None:
    model = FakeModel(invalid, intent("KNOWLEDGE_QUERY"))

    assert await route(model) is Intent.KNOWLEDGE_QUERY

    first, second = model.requests
    assert first.model_dump_json().encode() == second.model_dump_json().encode()


@pytest.mark.spec("ROUTE-3", "ROUTE-4")
@pytest.mark.parametrize("invalid", INVALID)
async def test_a_second_failure_is_no_intent(invalid: ModelReply) -> None:
    model = FakeModel(invalid, invalid, intent("DIAGNOSIS"))

    with pytest.raises(RoutingUnavailable):
        await route(model)

    assert len(model.requests) == 2


@pytest.mark.spec("ROUTE-3")
async def test_an_attempt_that_hangs_is_cancelled_and_counted() -> None:
    model = FakeModel(HANG, intent("DIAGNOSIS"))

    assert await router.route(RunModel(model, context(), 0.01), "why?", PriorContext()) is Intent.DIAGNOSIS
    assert model.cancelled == 1


@pytest.mark.spec("ROUTE-5")
@pytest.mark.parametrize("error", [RunCancelled(), BudgetExhausted("tokens", 1), ModelRefused(), ModelMisconfigured()])
async def test_what_is_no_failure_of_routing_is_not_retried(error: SuperBizAgentError) -> None:
    model = FakeModel(error, intent("DIAGNOSIS"))

    with pytest.raises(type(error)):
        await route(model)

    assert len(model.requests) == 1


@pytest.mark.spec("ROUTE-5", "BUDGET-1")
async def test_a_retry_that_the_budget_does_not_allow_is_a_budget_end() -> None:
    model = FakeModel(text("?"), intent("DIAGNOSIS"))

    with pytest.raises(BudgetExhausted):
        await route(model, model_calls=1)

    assert len(model.requests) == 1


@pytest.mark.spec("ROUTE-5")
async def test_a_reply_after_cancellation_is_no_route() -> None:
    run = context()

    def cancel(_: object) -> ModelReply:
        run.cancel(CancelReason.CLIENT_REQUEST)
        return intent("DIAGNOSIS")

    model = FakeModel(cancel, intent("DIAGNOSIS"))

    with pytest.raises(RunCancelled):
        await router.route(RunModel(model, run, 5.0), "why?", PriorContext())

    assert run.state is Lifecycle.CANCELLED
    assert len(model.requests) == 1


@pytest.mark.spec("ROUTE-4", "LIFE-5")
async def test_the_run_fails_and_no_executor_is_called() -> None:
    stage = Stage(FakeModel(text("?"), text("?"), default=intent("DIAGNOSIS")))

    result = await stage.run()

    assert (result.outcome, result.failure_code) == (ReleaseOutcome.FAILED, "ROUTING_UNAVAILABLE")
    assert stage.row.intent is None
    assert stage.observer.codes == ["started", "ROUTING"]
    assert len(stage.model.requests) == 2


@pytest.mark.spec("ROUTE-5", "BUDGET-3")
async def test_a_budget_that_ends_while_routing_fails_the_run_with_its_own_code() -> None:
    stage = Stage(FakeModel(text("?"), answer({})), limits=limits(model_calls=1))

    result = await stage.run()

    assert (result.outcome, result.failure_code) == (ReleaseOutcome.FAILED, "BUDGET_EXHAUSTED")
    assert stage.row.model_calls == 1
