"""What goes wrong while the load is on: sockets drop, processes are killed."""

import asyncio
import contextlib
import random
from dataclasses import dataclass

import psutil

from bench.load.processes import busy_chat_processes
from bench.load.traffic import Traffic


@dataclass
class Disturbance:
    """Alternately drops a socket that waits for an answer and kills a process that works on one."""

    traffic: Traffic
    every: float
    seed: int
    dropped: int = 0
    killed: int = 0

    async def run(self) -> None:
        choose = random.Random(self.seed)  # noqa: S311
        while True:
            await asyncio.sleep(self.every)
            if busy := self.traffic.busy:
                choose.choice(busy).drop()
                self.dropped += 1
            await asyncio.sleep(self.every)
            if processes := await asyncio.to_thread(busy_chat_processes):
                with contextlib.suppress(psutil.Error):
                    choose.choice(processes).kill()
                    self.killed += 1
