"""$connect: registers the connection and its principal. Never posts: the gateway answers 410 until it returns."""

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from superbizagent import bootstrap
from superbizagent.errors import SuperBizAgentError, Unauthenticated
from superbizagent.events import ConnectEvent

logger = Logger(service="superbizagent")
bootstrap.import_for("connections")


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    connecting = ConnectEvent.model_validate(event)
    answer: dict[str, Any] = {"statusCode": bootstrap.run(_connect(connecting))}
    if connecting.subprotocol is not None:
        answer["headers"] = {"Sec-WebSocket-Protocol": connecting.subprotocol}
    return answer


async def _connect(event: ConnectEvent) -> HTTPStatus:
    try:
        await bootstrap.services().connections.connect(event.connection_id, event.principal)
    except Unauthenticated:
        return HTTPStatus.UNAUTHORIZED
    except SuperBizAgentError as error:
        logger.error("connection refused", extra={"code": error.code, "reason": str(error)})
        return HTTPStatus.SERVICE_UNAVAILABLE
    return HTTPStatus.OK
