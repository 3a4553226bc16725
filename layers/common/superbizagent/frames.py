"""How what happens in a run becomes frames on one connection."""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict

from superbizagent.client_socket import Socket, undelivered
from superbizagent.domain.content import ContentType, PublicContent
from superbizagent.domain.run import ReleaseOutcome
from superbizagent.errors import ChannelUnavailable, ClientGone, InternalFailure, SuperBizAgentError, message_of
from superbizagent.ports import RunControl, StatusCode
from superbizagent.websocket import ErrorFrame, Frame

if TYPE_CHECKING:
    from superbizagent.application.chat import ChatResult


class _RunFrame(Frame):
    """A frame of a run. `seq` counts from 1 without gaps; `replayed` frames repeat a stored run (LIFE-6)."""

    # Built when one is sent: of those that end a run, one is.
    model_config = ConfigDict(defer_build=True)
    session_id: str
    run_id: str
    request_id: str
    seq: int
    replayed: bool | None = None


class StartedFrame(_RunFrame):
    type: Literal["started"] = "started"


class StatusFrame(_RunFrame):
    type: Literal["status"] = "status"
    code: StatusCode
    intent: str | None = None
    tool: str | None = None
    status: str | None = None


class ContentFrame(_RunFrame):
    type: Literal["content"] = "content"
    content_type: ContentType
    content: PublicContent


class DoneFrame(_RunFrame):
    type: Literal["done"] = "done"
    outcome: ReleaseOutcome


class CancelledFrame(_RunFrame):
    type: Literal["cancelled"] = "cancelled"


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
            undelivered("outcome not delivered", error, run_id=self._head["run_id"])

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
                undelivered("frame held back", error, run_id=self._head["run_id"])
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
            undelivered("status held back", error, run_id=self._head["run_id"])
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
