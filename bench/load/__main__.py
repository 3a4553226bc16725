"""`make bench-load`: the product on this machine under many sockets and many runs at once, quiet or disturbed.

Starts its own database server, model server and product, asks, and prints what became of every question and what
each part cost. Exits with 1 if any question had no end, two ends, a wrong one, or one that its client was told wrongly.
Loopback only; bounded by --runs and --seconds, whichever comes first.
"""

import argparse
import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Sequence

from bench.load.disturbance import Disturbance
from bench.load.processes import Sampler
from bench.load.stack import Stack, StackOptions, running
from bench.load.traffic import Traffic
from bench.load.verdict import Verdict, judge, most_connections, wait_until_ended

# The sweep comes once a minute, and waits for a run's reserve past its deadline.
SWEEP_SECONDS = 120.0
FORGET_EVERY = 20.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    stack_options = StackOptions(
        processes=options.concurrency,
        pool_size=options.pool_size,
        latency=options.latency,
        run_seconds=options.run_seconds,
        snapshots=not options.cold_starts,
    )
    with running(stack_options) as stack:
        sampler = Sampler()
        with sampler.watching():
            traffic, disturbance = asyncio.run(load(stack, options))
        say("waiting for the sweep to end what was killed" if disturbance else "reading the rows")
        wait_until_ended(stack.database_url, options.run_seconds + SWEEP_SECONDS)
        disturbances = disturbance.dropped + disturbance.killed if disturbance else 0
        verdict = judge(stack.database_url, traffic.asked, disturbances=disturbances)
        used = most_connections(stack.database_url)
        report(options, traffic, verdict, disturbance)
        report_parts(sampler)
        say(f"\ndatabase connections, most at one time: {used} of {stack_options.database_connections} configured")
        for kind, count in sorted(stack.log.lines.items()):
            say(f"{kind} in the product's log: {count}, the first: {stack.log.samples[kind]}")
    return 1 if verdict.wrongs else 0


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    add = options.add_argument
    add("--sockets", type=int, default=1000, help="open at the same time")
    add("--concurrency", type=int, default=200, help="runs at the same time, and processes a function")
    add("--runs", type=int, default=5000)
    add("--seconds", type=float, default=1200, help="no question is asked after these")
    add("--latency", type=float, default=2.0, help="seconds that the model takes for an answer")
    add("--run-seconds", type=int, default=240, help="limit of one run")
    add("--cold-starts", action="store_true", help="every process imports its handler: 120 MB and a second of CPU each")
    add("--pool-size", type=int, default=2, help="database connections kept by a process")
    add("--ramp", type=float, default=1.5, help="seconds between the first questions of two clients")
    add("--disturb", type=float, metavar="SECONDS", help="drop a socket or kill a process every so often")
    add("--seed", type=int, default=1)
    return options


async def load(stack: Stack, options: argparse.Namespace) -> tuple[Traffic, Disturbance | None]:
    traffic = Traffic(
        url=stack.websocket_url,
        sockets=options.sockets,
        runs=options.runs,
        concurrency=options.concurrency,
        seconds=options.seconds,
        ramp=options.ramp,
        # Past a run's deadline nothing more comes from it.
        patience=options.run_seconds + 30.0,
        seed=options.seed,
    )
    say(f"opening {options.sockets} sockets")
    began = time.monotonic()
    await traffic.open()
    say(f"opened in {time.monotonic() - began:.0f} s; up to {options.runs} questions, {options.concurrency} at a time")
    disturbance = Disturbance(traffic, options.disturb, options.seed) if options.disturb else None
    async with beside(progress(traffic), forgetting(stack), *([disturbance.run()] if disturbance else [])):
        await traffic.run()
    say("closing the sockets")
    await traffic.close()
    return traffic, disturbance


@contextlib.asynccontextmanager
async def beside(*jobs: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Runs endless jobs for as long as the block lasts; one that fails ends it."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if not isinstance(result, asyncio.CancelledError | None):
                raise result


async def progress(traffic: Traffic) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(15)
        say(f"  {time.monotonic() - began:4.0f} s: {len(traffic.asked)} ended, {len(traffic.busy)} running")


async def forgetting(stack: Stack) -> None:
    while True:
        await asyncio.sleep(FORGET_EVERY)
        # A model server that is too busy to answer this forgets the next time.
        with contextlib.suppress(OSError):
            await asyncio.to_thread(stack.forget_requests)


def report(options: argparse.Namespace, traffic: Traffic, verdict: Verdict, disturbance: Disturbance | None) -> None:
    say(f"\n{len(traffic.asked)} questions, {verdict.runs} runs, {len(verdict.wrongs)} wrong; seed {options.seed}")
    if disturbance:
        say(f"{disturbance.dropped} sockets dropped, {disturbance.killed} processes killed on the way")
        say(f"{verdict.lost} questions lost with them before their run was stored")
    for wrong in verdict.wrongs[:20]:
        say(f"  WRONG {wrong}")
    for end, count in sorted(verdict.ends.items()):
        say(f"  {count:6}  {end}")
    say(f"\n{'seconds':34} {'median':>8} {'p95':>8} {'p99':>8} {'max':>8}")
    row("stored start to frame `started`", verdict.start_delays)
    row("stored end to last frame", verdict.end_delays)
    for intent, durations in sorted(verdict.durations.items()):
        row(f"question to last frame, {intent}", durations)


def row(name: str, values: Sequence[float]) -> None:
    if len(values) < 2:
        return
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    say(f"{name:34} {cuts[49]:8.3f} {cuts[94]:8.3f} {cuts[98]:8.3f} {max(values):8.3f}")


def report_parts(sampler: Sampler) -> None:
    say(f"\n{'part':22} {'most processes':>14} {'most MB':>8} {'CPU s':>8} {'of a core':>9}")
    for name, part in sorted(sampler.parts.items()):
        share = part.cpu_seconds / sampler.elapsed
        say(f"{name:22} {part.processes:14} {part.memory_mb:8.0f} {part.cpu_seconds:8.0f} {share:9.2f}")


def say(sentence: str) -> None:
    print(sentence, flush=True)


if __name__ == "__main__":
    sys.exit(main())
