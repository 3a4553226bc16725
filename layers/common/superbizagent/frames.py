"""How what happens in a run, and what is asked of history, becomes frames on one connection."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from superbizagent.application.defects import place_of
from superbizagent.domain.run import ReleaseOutcome
from superbizagent.errors import (
    ChannelError,
    ChannelUnavailable,
    ClientGone,
    ConfigurationError,
    InternalFailure,
    SuperBizAgentError,
    message_of,
)
from superbizagent.ports import Channel, RunControl, SessionSummary, StatusCode, StoredRun
from superbizagent.websocket import (
    CancelledFrame,
    ContentFrame,
    DoneFrame,
    ErrorFrame,
    Frame,
    HistoryFrame,
    StartedFrame,
    StatusFrame,
    error_frame,
    session_entry,
    turn_frame,
)

if TYPE_CHECKING:
    from superbizagent.application.chat import ChatResult

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
        await self._last(error_frame(error, request_id, session_id))

    async def post_sessions(self, sessions: Sequence[SessionSummary]) -> None:
        entries = tuple(session_entry(summary) for summary in sessions)
        await self._last(HistoryFrame(kind="sessions", sessions=entries), HistoryFrame(kind="end"))

    async def post_turns(self, session_id: str, runs: Sequence[StoredRun], before: str | None) -> None:
        """One frame a turn, newest last, then the end frame (WIRE-5)."""
        end = HistoryFrame(kind="end", session_id=session_id, before=before)
        await self._last(*(turn_frame(run) for run in runs), end)

    async def _last(self, *frames: Frame) -> None:
        """The frames that end an exchange: nothing depends on them any more, the database has it all."""
        try:
            async with asyncio.timeout(self.patience.outcome):
                for frame in frames:
                    await self.post(frame)
        except TimeoutError:
            too_slow = ChannelUnavailable(f"not within {self.patience.outcome:g} seconds")
            _undelivered("frames not delivered", too_slow, connection_id=self.connection_id)
        except (ChannelError, ConfigurationError) as error:
            _undelivered("frames not delivered", error, connection_id=self.connection_id)


class RunFrames:
    """The Observer of a run as frames: numbered without gaps, content before done, nothing after (WIRE-2).

    A frame is posted until it is known to have arrived, and none before the one ahead of it: a post
    without an answer may have arrived all the same, and its number on another frame would be taken for
    a repetition.
    """

    def __init__(self, socket: Socket, request_id: str) -> None:
        self._socket = socket
        self._head: dict[str, Any] = {"request_id": request_id}
        self._sent = 0
        self._waited = 0.0
        self._give_up = 0.0
        self._unconfirmed: Frame | None = None
        self._posting: asyncio.Future[None] | None = None

    async def on_started(self, control: RunControl) -> None:
        self._name(control.session_id, control.run_id)
        await self._progress(StartedFrame)

    async def on_status(self, code: StatusCode, fields: dict[str, str]) -> None:
        await self._progress(StatusFrame, code=code, **fields)

    async def deliver(self, run: "Awaitable[ChatResult]") -> "ChatResult | None":
        """Waits for a run of which this is the observer and sends what it ended in; None if in no result."""
        try:
            return await self._ended(run)
        finally:
            # Lambda freezes the process when the handler returns: nothing may be in flight then.
            await self._quiet()

    async def _ended(self, run: "Awaitable[ChatResult]") -> "ChatResult | None":
        try:
            result = await run
        except SuperBizAgentError as error:
            await self._fail(error)
            return None
        await self._end(result)
        return result

    async def _end(self, result: "ChatResult") -> None:
        """The frames that a result ends in. A platform's redelivery is silent: its client has them (LIFE-6)."""
        if result.redelivered:
            return
        self._name(result.session_id, result.run_id)
        await self._assured(self._outcome(result))

    async def _fail(self, error: SuperBizAgentError) -> None:
        """The error frame of a request that came to no result: with the run's ids if it had started."""
        if "run_id" not in self._head:
            await self._socket.refuse(error, self._head["request_id"])
            return
        await self._assured(self._tell(ErrorFrame, code=error.code, message=error.message))

    def _name(self, session_id: str, run_id: str) -> None:
        self._head |= {"session_id": session_id, "run_id": run_id}

    async def _outcome(self, result: "ChatResult") -> None:
        if result.repeated:
            self._head["replayed"] = True
            await self._tell(StartedFrame)
        match result.outcome:
            case ReleaseOutcome.SUCCESS | ReleaseOutcome.FALLBACK:
                if result.content is not None:
                    await self._tell(ContentFrame, content_type=result.content.type, content=result.content)
                await self._tell(DoneFrame, outcome=result.outcome)
            case ReleaseOutcome.FAILED:
                code = result.failure_code or InternalFailure.code
                await self._tell(ErrorFrame, code=code, message=message_of(code))
            case ReleaseOutcome.CANCELLED:
                await self._tell(CancelledFrame)

    async def _assured(self, telling: Awaitable[None]) -> None:
        """The outcome is worth more than one try; the database has it all the same."""
        self._give_up = asyncio.get_running_loop().time() + self._socket.patience.outcome
        try:
            await telling
        except Exception as error:
            # A defect too: what it raises must not be told in the place of the stored outcome.
            _undelivered("outcome not delivered", error, run_id=self._head["run_id"])

    async def _tell(self, frame: type[Frame], **fields: Any) -> None:
        """Posts what is still unconfirmed, then this frame, each until it has arrived."""
        await self._quiet()
        await self._confirm()
        self._unconfirmed = self._next(frame, **fields)
        await self._confirm()

    async def _confirm(self) -> None:
        pause = self._socket.patience.pause
        while self._unconfirmed is not None:
            try:
                await self._post(self._unconfirmed)
            except ClientGone:
                raise
            except Exception as error:
                if asyncio.get_running_loop().time() + pause > self._give_up:
                    raise
                _undelivered("frame held back", error, run_id=self._head["run_id"])
                await asyncio.sleep(pause)
                pause *= 2

    async def _progress(self, frame: type[Frame], **fields: Any) -> None:
        """A status that can't be delivered holds nothing up for long; a client that is gone ends the run (OBS-2)."""
        if self._waited >= self._socket.patience.statuses:
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            await self._send(frame, **fields)
        except ChannelUnavailable as error:
            _undelivered("status held back", error, run_id=self._head["run_id"])
        finally:
            self._waited += loop.time() - began

    async def _send(self, frame: type[Frame], **fields: Any) -> None:
        """Posts what is still unconfirmed, then this frame. While that fails this one has no number: no gap."""
        await self._quiet()
        if self._unconfirmed is not None:
            await self._post(self._unconfirmed)
        await self._post(self._next(frame, **fields))

    def _next(self, frame: type[Frame], **fields: Any) -> Frame:
        return frame(**self._head, seq=self._sent + 1, **fields)

    async def _post(self, frame: Frame) -> None:
        """Shielded: a run is cancelled in the middle of a status, whose post can't be called back."""
        self._unconfirmed = frame
        self._posting = asyncio.ensure_future(self._confirmed(frame))
        await asyncio.shield(self._posting)

    async def _confirmed(self, frame: Frame) -> None:
        await self._socket.post(frame)
        self._sent += 1
        self._unconfirmed = None

    async def _quiet(self) -> None:
        """Waits until no post is in flight: one that a cancelled run left behind could overtake its end."""
        if self._posting is not None:
            await asyncio.wait([self._posting])
            self._posting = None


def _undelivered(event: str, error: Exception, **ids: str) -> None:
    """A client that left is everyday; a channel that doesn't work is for the operator to see."""
    level = logging.INFO if isinstance(error, ClientGone) else logging.WARNING
    if isinstance(error, SuperBizAgentError):
        why = {"code": error.code, "reason": str(error)}
    else:
        why = {"defect": place_of(error)}
    _log.log(level, event, extra={**ids, **why})
