"""Garbage for the product on this machine: `python -m tests.faults.garbage --frames 100000 --seed 1`."""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from local.demo.make import make as make_demo
from migrations.run import upgrade
from superbizagent.adapters.store import Database
from tests.faults.garbage.rounds import Report, bombard
from tests.product.running import running


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.garbage", description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1, help="the same seed sends the same frames")
    options = parser.parse_args(arguments)
    print(f"sending {options.frames} frames, --seed {options.seed}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="garbage-") as folder:
        report = asyncio.run(_bombard(Path(folder), options.frames, options.seed))
    _show(report, time.monotonic() - started)
    return 0


async def _bombard(folder: Path, frames: int, seed: int) -> Report:
    url = f"sqlite:///{folder / 'garbage.db'}"
    make_demo(folder / "demo")
    with contextlib.closing(Database(url)) as database:
        upgrade(database.engine)
    async with running(url, folder / "demo") as product:
        return await bombard(
            product, frames, seed, lambda sent: print(f"\r{sent}", end="", file=sys.stderr, flush=True)
        )


def _show(report: Report, seconds: float) -> None:
    print(f"\n{report.sent} frames in {seconds:.0f} s, each with the one outcome it should have:")
    for outcome, count in report.outcomes.items():
        print(f"  {count:>8}  {outcome}")
    print(f"{report.log_lines} log lines, none of them an error or a traceback")
    print("growth of memory since the first quarter, KiB (of a function's processes the one that grew most):")
    for name, grown in report.growth.items():
        print(f"  {grown // 1024:>8}  {name}")


if __name__ == "__main__":
    sys.exit(main())
