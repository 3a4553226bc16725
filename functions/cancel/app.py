"""cancel: asks for the end of a run of one's own. The run itself sends the frame that confirms it."""

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from superbizagent import bootstrap
from superbizagent.events import MessageEvent
from superbizagent.exchange import Exchange
from superbizagent.websocket import CancelMessage

logger = Logger(service="superbizagent")
bootstrap.import_for("connections", "cancel")


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    bootstrap.run(bootstrap.services().answer(MessageEvent.model_validate(event), CancelMessage, _cancel))
    return {"statusCode": HTTPStatus.OK}


async def _cancel(exchange: Exchange[CancelMessage]) -> None:
    await bootstrap.services().cancel.cancel(exchange.message.run_id, exchange.principal)
