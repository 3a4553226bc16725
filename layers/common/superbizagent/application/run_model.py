"""The model as one run may use it: charged to its budget and bounded by its deadline."""

import asyncio

from superbizagent.application.journal import code_of
from superbizagent.domain.budget import Reservation
from superbizagent.domain.conversation import ModelReply, ModelRequest
from superbizagent.domain.run_context import RunContext
from superbizagent.domain.steps import ModelCalled
from superbizagent.errors import ModelTimeout
from superbizagent.ports import Model


class RunModel:
    """One run's access to the model. `call_timeout` is in seconds."""

    def __init__(self, model: Model, context: RunContext, call_timeout: float) -> None:
        self._model = model
        self._context = context
        self._call_timeout = call_timeout

    async def complete(self, request: ModelRequest, within: float | None = None) -> ModelReply:
        """One charged call of at most `within` seconds; one that outlives them is really cancelled.

        Raises ModelError, BudgetExhausted, or RunCancelled when its reply comes too late (LIFE-8).
        """
        self._context.check()
        before, began = self._context.budget.usage.tokens, self._context.elapsed
        reservation = self._context.budget.reserve_model_call(request.estimated_tokens)
        try:
            reply = await self._bounded(request, reservation, within)
        except BaseException as error:
            self._tell(request, before, began, code_of(error, self._context))
            raise
        self._tell(request, before, began)
        return reply

    async def _bounded(self, request: ModelRequest, reservation: Reservation, within: float | None) -> ModelReply:
        allowed, remaining = self._call_timeout if within is None else within, self._context.remaining
        bound = asyncio.timeout(min(allowed, remaining))
        try:
            async with bound:
                reply = await self._model.complete(request)
        except TimeoutError as error:
            if bound.expired() and remaining <= allowed:
                # The loop's timer may fire a moment early: without this the deadline would be seen as
                # one slow call, and another call be started for nothing.
                self._context.exhaust()
            self._context.check()
            raise ModelTimeout from error
        if reply.tokens is not None:
            self._context.budget.settle(reservation, reply.tokens)
        self._context.check()
        return reply

    def _tell(self, request: ModelRequest, before: int, began: float, code: str | None = None) -> None:
        usage, seconds = self._context.budget.usage, self._context.elapsed - began
        self._context.tell(ModelCalled(request.purpose, usage.model_calls, usage.tokens - before, seconds, code))
