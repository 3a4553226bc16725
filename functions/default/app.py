"""$default: every message that no other route takes gets one error frame and starts nothing (WIRE-3)."""

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from superbizagent import bootstrap
from superbizagent.events import MessageEvent
from superbizagent.exchange import Exchange
from superbizagent.websocket import UnroutedMessage

logger = Logger(service="superbizagent")
bootstrap.import_for("connections")


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    bootstrap.run(bootstrap.services().answer(MessageEvent.model_validate(event), UnroutedMessage, _unreachable))
    return {"statusCode": HTTPStatus.OK}


async def _unreachable(_: Exchange[UnroutedMessage]) -> None:
    """No message is of this kind, so that every one is refused before it gets here."""
