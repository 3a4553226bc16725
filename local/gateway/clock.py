"""Wall clock and waiting, injectable so that tests need not wait ten minutes for an idle time-out."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def done_within(clock: Clock, seconds: float, future: asyncio.Future[Any]) -> bool:
    """Whether the future is done in time. It is left running when it is not: a function goes on
    after the gateway has stopped waiting for it."""
    if future.done():
        return True
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({future, timer}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
    return future.done()


class Tasks:
    """Background tasks that end with their owner; an unexpected error is logged by the event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, seconds: float | None) -> None:
        """Lets the tasks end by themselves for a while."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)

    async def cancel(self) -> None:
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
