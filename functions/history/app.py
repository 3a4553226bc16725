"""history: the principal's sessions, or the turns of one of them, from the store."""

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from superbizagent import bootstrap
from superbizagent.events import MessageEvent
from superbizagent.exchange import Exchange
from superbizagent.history_frames import session_frames, turn_frames
from superbizagent.websocket import HistoryMessage

logger = Logger(service="superbizagent")
bootstrap.import_for("connections", "history")


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    bootstrap.run(bootstrap.services().answer(MessageEvent.model_validate(event), HistoryMessage, _history))
    return {"statusCode": HTTPStatus.OK}


async def _history(exchange: Exchange[HistoryMessage]) -> None:
    history, asked, principal = bootstrap.services().history, exchange.message, exchange.principal
    if asked.session_id is None:
        await exchange.socket.end(*session_frames(await history.sessions(principal, asked.limit)))
        return
    turns, before = await history.turns(asked.session_id, principal, asked.before, asked.limit)
    await exchange.socket.end(*turn_frames(asked.session_id, turns, before))
