"""chat: runs one question to its stored outcome and tells the client. Invoked asynchronously, never retried."""

from functools import partial
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from superbizagent import bootstrap
from superbizagent.application.chat import ChatRequest, ChatResult
from superbizagent.events import MessageEvent
from superbizagent.exchange import Exchange
from superbizagent.frames import RunFrames
from superbizagent.websocket import ChatMessage

logger = Logger(service="superbizagent")
metrics = Metrics()
bootstrap.import_for("connections", "runs")


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    message = MessageEvent.model_validate(event)
    serve = partial(_chat, message, context)
    result = bootstrap.run(bootstrap.services().answer(message, ChatMessage, serve))
    # A run of its own is counted by its journal.
    if result is None or result.repeated:
        name = "MessagesRefused" if result is None else "MessagesRepeated"
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=1)
        metrics.flush_metrics()
    return {"statusCode": HTTPStatus.OK}


async def _chat(event: MessageEvent, context: LambdaContext, exchange: Exchange[ChatMessage]) -> ChatResult | None:
    message = exchange.message
    # Built before the time is taken: a cold start loads the model SDK here.
    chat = bootstrap.services().chat
    request = ChatRequest(
        owner=exchange.principal,
        connection_id=event.connection_id,
        request_id=message.request_id,
        gateway_request_id=event.gateway_request_id,
        query=message.query,
        session_id=message.session_id,
        time_left=context.get_remaining_time_in_millis() / 1000,
    )
    frames = RunFrames(exchange.socket, message.request_id)
    return await frames.deliver(chat.execute(request, frames))
