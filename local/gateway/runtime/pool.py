"""The processes of one function: started on demand, at most so many, the most recently used first."""

import asyncio
from collections.abc import Awaitable, Callable

from local.gateway.clock import Clock, Tasks, done_within
from local.gateway.runtime.child import Child, ChildInfo
from local.gateway.runtime.invocation import Invocation, Result


class Throttled(Exception):
    """No process became free in the time that the caller was willing to wait."""


class Pool:
    def __init__(
        self, make: Callable[[], Child], limit: int, clock: Clock, close: Callable[[], Awaitable[None]]
    ) -> None:
        """`close` ends what `make` needs, when the last process has ended."""
        self._make = make
        self._close_source = close
        self._clock = clock
        self._slots = asyncio.Semaphore(limit)
        self._children: set[Child] = set()
        self._idle: list[Child] = []
        self._tasks = Tasks()
        self._starting = Tasks()
        self._closing = False

    @property
    def children(self) -> list[ChildInfo]:
        return [child.info for child in self._children if child.alive]

    async def invoke(self, invocation: Invocation, *, patience: float | None = None) -> Result:
        """Callers are served in the order in which they came."""
        await self._acquire(patience)
        child = None
        try:
            if self._closing:
                return Result.failed(invocation.request_id, "Gateway.Closing", "The gateway is closing")
            try:
                child = await self._take()
            except OSError as error:
                message = f"The process could not be started ({error})"
                return Result.failed(invocation.request_id, "Runtime.StartError", message)
            return await child.run(invocation)
        finally:
            if child is None:
                self._slots.release()
            else:
                self._tasks.start(self._give_back(child))

    async def close(self) -> None:
        self._closing = True
        await self._starting.finish(None)
        await asyncio.gather(*(child.close() for child in self._children))
        await self._tasks.cancel()
        await self._close_source()

    async def _acquire(self, patience: float | None) -> None:
        if patience is None:
            await self._slots.acquire()
            return
        turn = asyncio.ensure_future(self._slots.acquire())
        if not await done_within(self._clock, patience, turn):
            turn.cancel()
            raise Throttled

    async def _take(self) -> Child:
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
        # A start that is under way is finished even if its caller is cancelled: `close` then ends it in
        # good order, which a half-started process can't be.
        start = self._starting.start(self._start())
        return await asyncio.shield(start)

    async def _start(self) -> Child:
        child = self._make()
        await child.start()
        self._children.add(child)
        child.exited.add_done_callback(lambda _: self._children.discard(child))
        return child

    async def _give_back(self, child: Child) -> None:
        try:
            if await child.settle():
                self._idle.append(child)
        finally:
            self._slots.release()
