"""`make faults`: each boundary of a run with each fault, as a table; fails when an invariant does not hold."""

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from local.demo.make import make as make_demo
from tests.faults.lane import Lane
from tests.faults.peers import FOR_PEERS, peer_cases
from tests.faults.stage import AnyCase, Verdict, judged, recording, stage


async def run(options: argparse.Namespace) -> list[Verdict]:
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        demo = Path(folder)
        make_demo(demo)
        peers = _chosen(peer_cases(), options)
        if peers:
            async with stage(demo, options.lanes, **FOR_PEERS) as lanes:
                verdicts += await _played(lanes, peers, options.seed)
        async with stage(demo, options.lanes) as lanes:
            verdicts += await _played(lanes, _chosen(await recording(lanes[0]), options), options.seed)
    return verdicts


def _chosen(cases: Sequence[AnyCase], options: argparse.Namespace) -> list[AnyCase]:
    chosen = [case for case in cases if options.only in str(case)]
    random.Random(options.seed).shuffle(chosen)  # noqa: S311 - a choice of tests
    return chosen[: options.size or None]


async def _played(lanes: Sequence[Lane], cases: Sequence[AnyCase], seed: int) -> list[Verdict]:
    print(f"seed {seed}: {len(cases)} cases in {len(lanes)} lanes", flush=True)
    verdicts = []
    async for verdict in judged(lanes, cases, seed):
        verdicts.append(verdict)
        print("\n    ".join((verdict.line, *verdict.log)), flush=True)
    return verdicts


def summary(verdicts: Sequence[Verdict]) -> str:
    """Faults and how many of their cases hold."""
    count, good = Counter[str](), Counter[str]()
    for verdict in verdicts:
        kind = verdict.case.kind
        count[kind] += 1
        good[kind] += not verdict.problems
    return "\n".join(f"{kind:14} {good[kind]:4} of {count[kind]:4}" for kind in count)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the order, and of what a reset cuts")
    parser.add_argument("--lanes", type=int, default=4, help="products that play cases side by side")
    parser.add_argument("--only", default="", help="cases whose name has this text, such as 'kill' or 'store.finish'")
    parser.add_argument("--size", type=int, default=0, help="at most so many cases; 0 for all")
    parser.add_argument("--verbose", action="store_true", help="what the functions log, too")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO if options.verbose else logging.ERROR, format="%(message)s")
    started = time.monotonic()
    verdicts = asyncio.run(run(options))
    if not verdicts:
        print(f"No case has {options.only!r} in its name; run without --only to see their names.", file=sys.stderr)
        return 2
    failed = [verdict for verdict in verdicts if verdict.problems]
    print(f"\n{summary(verdicts)}\n")
    for verdict in failed:
        print("\n    ".join((verdict.line, *verdict.log)))
    print(f"{len(verdicts) - len(failed)} of {len(verdicts)} hold, in {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
