"""One message of one client: parsed, its sender known, and answered with one error frame if it can't be served."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from superbizagent.application.defects import place_of
from superbizagent.client_socket import Socket
from superbizagent.errors import InternalFailure, RequestError, SuperBizAgentError, UnknownAction
from superbizagent.websocket import ClientMessage, ids_of, parse

if TYPE_CHECKING:
    from superbizagent.application.connections import ConnectionUseCase
    from superbizagent.events import MessageEvent
    from superbizagent.ports import Channel

_log = logging.getLogger(__name__)

Expected = TypeVar("Expected", bound=ClientMessage)
Served = TypeVar("Served")


@dataclass(frozen=True)
class Exchange(Generic[Expected]):
    message: Expected
    principal: str
    socket: Socket


Serve = Callable[[Exchange[Expected]], Awaitable[Served]]


async def answer(
    event: MessageEvent,
    expected: type[Expected],
    serve: Serve[Expected, Served],
    channel: Channel,
    connections: ConnectionUseCase,
) -> Served | None:
    """Serves the message in `event`; whatever goes wrong is told the client by its code, and None returned.

    Nothing is raised to the platform: it would deliver the message again, or log the error's text. The
    client is refused before the sender is looked up where the message is at fault, so that garbage
    costs no database call.
    """
    socket = Socket(channel, event.connection_id)
    try:
        message = parse(event.message)
        if not isinstance(message, expected):
            raise UnknownAction
        principal = await connections.principal(event.connection_id)
        return await serve(Exchange(message, principal, socket))
    except RequestError as error:
        _log.info("message refused", extra={"connection_id": event.connection_id, "code": error.code})
        await socket.refuse(error, *ids_of(event.message))
    except SuperBizAgentError as error:
        # Ours to mend: the reason names the variable or the part, in our own words.
        ids = {"connection_id": event.connection_id, "code": error.code}
        _log.error("message not served", extra={**ids, "reason": str(error)})
        await socket.refuse(error, *ids_of(event.message))
    except Exception as error:
        _log.error("message failed", extra={"connection_id": event.connection_id, "defect": place_of(error)})
        await socket.refuse(InternalFailure(), *ids_of(event.message))
    return None
