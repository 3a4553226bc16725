"""Lanes on one database server, and the cases played in them."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.cases import Case, Question, boundaries, matrix
from tests.faults.checker import problems
from tests.faults.injection import plan_of
from tests.faults.lane import Lane, impatient_server, lane, shop
from tests.faults.peers import PeerCase
from tests.faults.peers import plan_of as peer_plan
from tests.faults.play import Plan, Seen, played

AnyCase = Case | PeerCase
TRIES = 3
"""Of a case whose run ended before it came to the boundary: on a busy machine a run may meet its limit first."""


@dataclass(frozen=True)
class Verdict:
    case: AnyCase
    problems: tuple[str, ...]
    client: str
    row: str
    seconds: float
    log: tuple[str, ...] = ()
    """What the functions logged of the run, where something did not hold."""

    @property
    def line(self) -> str:
        verdict = "ok" if not self.problems else "; ".join(self.problems)
        return f"{self.case!s:62} | {self.client:34} | {self.row:32} | {self.seconds:5.1f} s | {verdict}"


@contextlib.asynccontextmanager
async def stage(demo: Path, lanes: int, **limits: str) -> AsyncIterator[list[Lane]]:
    with impatient_server() as server, shop(server, demo) as shop_url:
        async with contextlib.AsyncExitStack() as stack:
            yield [await stack.enter_async_context(lane(server, shop_url, demo, limits)) for _ in range(lanes)]


async def recording(lane: Lane) -> Sequence[AnyCase]:
    """The matrix of what a run of each question passes when nothing is wrong; checks those runs too."""
    passed = {}
    for question in Question:
        await played(lane, Plan(question))  # warms the processes up
        seen = await played(lane, Plan(question))
        assert not problems(seen), problems(seen)
        passed[question] = boundaries(reached.boundary for reached in seen.heard)
    return matrix(passed)


async def judged(lanes: Sequence[Lane], cases: Sequence[AnyCase], seed: int) -> AsyncIterator[Verdict]:
    """Plays the cases, one at a time in each lane; verdicts in the order in which they come."""
    waiting = list(reversed(cases))
    verdicts: asyncio.Queue[Verdict] = asyncio.Queue()

    async def play(lane: Lane) -> None:
        while waiting:
            case = waiting.pop()
            await verdicts.put(await _judged(lane, case, seed))

    players = [asyncio.ensure_future(play(lane)) for lane in lanes]
    try:
        for _ in cases:
            yield await verdicts.get()
    finally:
        for player in players:
            player.cancel()
        await asyncio.gather(*players, return_exceptions=True)


async def _judged(lane: Lane, case: AnyCase, seed: int) -> Verdict:
    dice = random.Random(f"{seed} {case}")  # noqa: S311 - a choice of tests
    started = time.monotonic()
    try:
        for _ in range(TRIES):
            seen = await played(lane, _plan(case), dice.randrange)
            if seen.reached:
                break
    except Exception as error:  # whatever it is, it is this case's, and the others are to be played
        await _start_over(lane)
        problem = f"{type(error).__name__} {error}"
        return Verdict(case, (problem,), "-", "-", time.monotonic() - started)
    found = problems(seen) if seen.reached else ["the run never came there"]
    log = lane.said(seen.rows[0]["run_id"]) if found and seen.rows else ()
    return Verdict(case, tuple(found), _told(seen), _stored(seen), time.monotonic() - started, log)


def _plan(case: AnyCase) -> Plan:
    return plan_of(case) if isinstance(case, Case) else peer_plan(case)


async def _start_over(lane: Lane) -> None:
    for child in lane.chat_children:
        os.kill(child.pid, signal.SIGKILL)
    if lane.boundaries.hold is not None:
        lane.boundaries.hold.release()
    await lane.quiet()


def _told(seen: Seen) -> str:
    if not seen.frames:
        return "nothing"
    last = seen.frames[-1]
    return " ".join(filter(None, (f"{len(seen.frames)} to", last["type"], last.get("outcome") or last.get("code"))))


def _stored(seen: Seen) -> str:
    return ", ".join(f"{row['release_outcome']} {row['failure_code'] or ''}".strip() for row in seen.rows) or "no row"
