"""One process that runs one function, one event at a time."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from local.gateway.clock import Clock, Tasks, done_within
from local.gateway.model import Function
from local.gateway.runtime.invocation import Invocation, Result
from local.gateway.runtime.output import forward_lines
from local.gateway.runtime.server import RuntimeServer
from local.gateway.runtime.starting import Starter

# Lambda gives a process 10 s to get ready; a laptop with cold disk caches may need more.
INIT_LIMIT = 60.0
PAUSE = 0.2


@dataclass(frozen=True, kw_only=True)
class ChildInfo:
    function: str
    pid: int
    state: Literal["idle", "busy"]
    request_id: str | None
    frozen: bool


@dataclass(frozen=True, kw_only=True)
class Start:
    """How processes of one function are started."""

    function: Function
    starter: Starter
    environment: Callable[[str], dict[str, str]]  # from the address of the Runtime API
    freeze: bool
    output: Callable[[str], None]


class _Event:
    """An invocation on its way through the process."""

    def __init__(self, invocation: Invocation) -> None:
        loop = asyncio.get_running_loop()
        self.invocation = invocation
        self.begun: asyncio.Future[None] = loop.create_future()
        self.outcome: asyncio.Future[Result] = loop.create_future()

    def begin(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)

    def end(self, result: Result) -> bool:
        self.begin()
        if self.outcome.done():
            return False
        self.outcome.set_result(result)
        return True


class Child:
    def __init__(self, start: Start, server: RuntimeServer, clock: Clock) -> None:
        self._start = start
        self._server = server
        self._clock = clock
        self._tasks = Tasks()
        self._inbox: asyncio.Queue[_Event | None] = asyncio.Queue()
        self._current: _Event | None = None
        self._ready = asyncio.Event()  # has asked for the next event
        self._frozen = False
        self._killed = False
        self._port = 0

    async def start(self) -> None:
        self._port = await self._server.attach(self)
        # A pipe of our own: asyncio takes a process with one of its pipes for running until the pipe is
        # closed, and something that the handler started may hold it open.
        output, write_end = os.pipe()
        try:
            environment = self._start.environment(f"127.0.0.1:{self._port}")
            self._process = await self._start.starter(environment, write_end)
        except BaseException:
            os.close(output)
            await self._server.detach(self._port)
            raise
        finally:
            os.close(write_end)
        self._tasks.start(forward_lines(output, self._start.output))
        self.exited = self._tasks.start(self._watch())

    @property
    def alive(self) -> bool:
        return not self._killed and not self.exited.done()

    @property
    def info(self) -> ChildInfo:
        event = self._current
        return ChildInfo(
            function=self._start.function.logical_id,
            pid=self._process.pid,
            state="busy" if event else "idle",
            request_id=event.invocation.request_id if event else None,
            frozen=self._frozen,
        )

    async def run(self, invocation: Invocation) -> Result:
        """The event's outcome; the process is ready for another once `settle` says so."""
        event = self._current = _Event(invocation)
        self._ready.clear()
        self._inbox.put_nowait(event)
        if not await done_within(self._clock, INIT_LIMIT, event.begun):
            self.kill()
            event.end(_failure(invocation, "Sandbox.Timedout", "The process did not ask for an event in time"))
        timeout = self._start.function.timeout
        if not await done_within(self._clock, timeout, event.outcome):
            self.kill()
            event.end(_timed_out(invocation, timeout))
        # The process asks for the next event about a millisecond after its answer. Without this pause a
        # client that answers an answer would start a second process.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ready.wait(), PAUSE if self.alive else 0)
        return event.outcome.result()

    async def settle(self) -> bool:
        """Waits until the process asks for the next event, as it does right after its answer; False when
        it ended instead or never asked."""
        if not self._ready.is_set():
            await self._wait_until_ready()
        self._current = None
        if not self._ready.is_set():
            self.kill()
        return self.alive

    async def _wait_until_ready(self) -> None:
        ready = asyncio.ensure_future(self._ready.wait())
        self.exited.add_done_callback(lambda _: ready.cancel())
        try:
            await done_within(self._clock, self._start.function.timeout, ready)
        finally:
            ready.cancel()

    def kill(self) -> None:
        self._killed = True
        self._signal(signal.SIGKILL)

    async def close(self) -> None:
        self.kill()
        await self.exited
        await self._tasks.finish(1)
        await self._tasks.cancel()  # output that a grandchild keeps open

    # What the process does through the Runtime API

    async def next(self) -> tuple[Invocation, float, str] | None:
        self._ready.set()
        if self._inbox.empty():
            self._freeze()
        event = await self._inbox.get()
        if event is None:
            return None
        self._ready.clear()
        self._thaw()
        event.begin()
        function = self._start.function
        return event.invocation, self._clock.now() + function.timeout, function.arn

    def respond(self, request_id: str, body: bytes) -> bool:
        return self._end(request_id, Result(request_id=request_id, payload=body))

    def fail(self, request_id: str, kind: str, body: bytes) -> bool:
        return self._end(request_id, Result(request_id=request_id, payload=body, error=kind))

    def fail_init(self, kind: str, body: bytes) -> None:
        if event := self._current:
            self._end(event.invocation.request_id, Result(request_id="", payload=body, error=kind))

    def _end(self, request_id: str, result: Result) -> bool:
        event = self._current
        return event is not None and event.invocation.request_id == request_id and event.end(result)

    # The process itself

    def _freeze(self) -> None:
        if self._start.freeze:
            self._frozen = True
            self._signal(signal.SIGSTOP)

    def _thaw(self) -> None:
        if self._frozen:
            self._frozen = False
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        # A group that has been waited for may belong to somebody else by now.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def _watch(self) -> None:
        code = await self._process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # what the handler started and left behind
        if event := self._current:
            how = f"signal: {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
            event.end(_failure(event.invocation, "Runtime.ExitError", f"Runtime exited with error: {how}"))
        self._inbox.put_nowait(None)
        await self._server.detach(self._port)


def _failure(invocation: Invocation, kind: str, message: str) -> Result:
    return Result.failed(invocation.request_id, kind, message)


def _timed_out(invocation: Invocation, timeout: float) -> Result:
    return _failure(invocation, "Sandbox.Timedout", f"Task timed out after {timeout:.2f} seconds")
