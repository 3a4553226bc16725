"""Garbage in rounds, and what is left of it in memory."""

import gc
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.garbage.attack import Attack, Logs, Memory
from tests.faults.garbage.frames import garbage
from tests.product.running import Product

ROUND = 500


@dataclass(frozen=True)
class Report:
    outcomes: dict[str, int]
    growth: dict[str, int]
    """Bytes by process, from when everything was warm to the end."""
    log_lines: int

    @property
    def sent(self) -> int:
        return sum(self.outcomes.values())


async def bombard(
    product: Product, frames: int, seed: int, progress: Callable[[int], None] = lambda sent: None
) -> Report:
    """Sends that many frames; raises AssertionError for any outcome but the right one."""
    logs, warm = Logs(), None
    with logs.listening():
        async with Attack.on(product) as attack:
            for number, start in enumerate(range(0, frames, ROUND)):
                await attack.run(garbage(min(ROUND, frames - start), seed + number))
                await attack.check(logs)
                gc.collect()
                # By then Hypothesis, the gateway and its processes have all they load once.
                if warm is None or attack.sent <= frames / 4:
                    warm = Memory.of(product)
                progress(attack.sent)
            assert warm is not None
            return Report(dict(attack.outcomes.most_common()), warm.growth(Memory.of(product)), logs.lines)
