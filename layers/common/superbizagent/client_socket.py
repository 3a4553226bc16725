"""One client's connection, and what becomes of a frame that doesn't arrive."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from superbizagent.application.defects import place_of
from superbizagent.errors import (
    ChannelError,
    ChannelUnavailable,
    ClientGone,
    ConfigurationError,
    SuperBizAgentError,
)
from superbizagent.websocket import Frame, error_frame

if TYPE_CHECKING:
    from superbizagent.ports import Channel

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patience:
    """Seconds that a run may lose to a connection API that is slow or dark.

    `statuses`: all statuses of a run together; then the rest is held back until its outcome. The post under way
    is waited for, so a post's own limit comes on top. `outcome`: for the frames that tell how it ended. Each is posted
    at least once, and again while this lasts, after pauses from `pause` up.
    """

    statuses: float = 6.0
    outcome: float = 12.0
    pause: float = 0.25


class Socket:
    """One client's connection. After the first sign that it is gone nothing more is posted to it."""

    def __init__(self, channel: Channel, connection_id: str, patience: Patience | None = None) -> None:
        self._channel = channel
        self.connection_id = connection_id
        self.patience = patience or Patience()
        self._gone = False

    async def post(self, frame: Frame) -> None:
        """Raises ClientGone or ChannelUnavailable."""
        if self._gone:
            raise ClientGone
        try:
            await self._channel.post(self.connection_id, frame.encode())
        except ClientGone:
            self._gone = True
            raise

    async def refuse(
        self, error: SuperBizAgentError, request_id: str | None = None, session_id: str | None = None
    ) -> None:
        """One error frame; a client that can't be told is no further failure."""
        await self.end(error_frame(error, request_id, session_id))

    async def end(self, *frames: Frame) -> None:
        """The frames that end an exchange: nothing depends on them any more, the database has it all."""
        try:
            async with asyncio.timeout(self.patience.outcome):
                for frame in frames:
                    await self.post(frame)
        except TimeoutError:
            too_slow = ChannelUnavailable(f"not within {self.patience.outcome:g} seconds")
            undelivered("frames not delivered", too_slow, connection_id=self.connection_id)
        except (ChannelError, ConfigurationError) as error:
            undelivered("frames not delivered", error, connection_id=self.connection_id)


def undelivered(event: str, error: Exception, **ids: str) -> None:
    """A client that left is everyday; a channel that doesn't work is for the operator to see."""
    level = logging.INFO if isinstance(error, ClientGone) else logging.WARNING
    if isinstance(error, SuperBizAgentError):
        why = {"code": error.code, "reason": str(error)}
    else:
        why = {"defect": place_of(error)}
    _log.log(level, event, extra={**ids, **why})
