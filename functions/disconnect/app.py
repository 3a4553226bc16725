"""$disconnect: cancels the connection's runs and forgets it. Safe to deliver twice."""

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from superbizagent import bootstrap
from superbizagent.errors import SuperBizAgentError
from superbizagent.events import DisconnectEvent

logger = Logger(service="superbizagent")
bootstrap.import_for("connections")


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    disconnected = DisconnectEvent.model_validate(event)
    return {"statusCode": bootstrap.run(_disconnect(disconnected.connection_id))}


async def _disconnect(connection_id: str) -> HTTPStatus:
    try:
        await bootstrap.services().connections.disconnect(connection_id)
    except SuperBizAgentError as error:
        # Nobody is left to tell. The run ends at its deadline, and the sweep removes the row.
        logger.error("disconnect not stored", extra={"code": error.code, "reason": str(error)})
        return HTTPStatus.SERVICE_UNAVAILABLE
    return HTTPStatus.OK
