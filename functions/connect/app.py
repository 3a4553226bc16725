"""$connect: registers the connection and its principal. Never posts: the gateway answers 410 until it returns."""

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from superbizagent import bootstrap
from superbizagent.errors import SuperBizAgentError, Unauthenticated
from superbizagent.events import ConnectEvent

logger = Logger(service="superbizagent")


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    return {"statusCode": bootstrap.run(_connect(ConnectEvent.model_validate(event)))}


async def _connect(event: ConnectEvent) -> HTTPStatus:
    services = bootstrap.services()
    try:
        await services.connections.connect(event.connection_id, services.principal_of(event.principal))
    except Unauthenticated:
        return HTTPStatus.UNAUTHORIZED
    except SuperBizAgentError as error:
        logger.error("connection refused", extra={"code": error.code, "reason": str(error)})
        return HTTPStatus.SERVICE_UNAVAILABLE
    return HTTPStatus.OK
