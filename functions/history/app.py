"""history: the principal's sessions, or the turns of one of them, from the store."""

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from superbizagent import bootstrap
from superbizagent.events import MessageEvent
from superbizagent.websocket import HistoryMessage

logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    bootstrap.run(_history(MessageEvent.model_validate(event)))
    return {"statusCode": HTTPStatus.OK}


async def _history(event: MessageEvent) -> None:
    services = bootstrap.services()
    async with services.exchange(event, HistoryMessage) as exchange:
        asked, principal, socket = exchange.message, exchange.principal, exchange.socket
        if asked.session_id is None:
            await socket.post_sessions(await services.history.sessions(principal, asked.limit))
            return
        turns, before = await services.history.turns(asked.session_id, principal, asked.before, asked.limit)
        await socket.post_turns(asked.session_id, turns, before)
