"""Time that passes when a test says so."""

import asyncio
import time


class VirtualClock:
    def __init__(self) -> None:
        self._now = float(int(time.time()))  # noqa: TID251 - a plausible start
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        entry = (self._now + seconds, asyncio.get_running_loop().create_future())
        self._sleepers.append(entry)
        try:
            await entry[1]
        finally:
            if entry in self._sleepers:
                self._sleepers.remove(entry)

    async def advance(self, seconds: float) -> None:
        """Wakes sleepers in the order of their times and lets each do what it does next."""
        await _let_others_run()  # so that what was started before starts now
        target = self._now + seconds
        while True:
            due = min((entry for entry in self._sleepers if entry[0] <= target), default=None, key=lambda e: e[0])
            if due is None:
                break
            self._now = due[0]
            self._sleepers.remove(due)
            due[1].set_result(None)
            await _let_others_run()
        self._now = target
        await _let_others_run()


async def _let_others_run() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
