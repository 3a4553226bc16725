"""`make sam-local`: every function in the runtime image of AWS, by the events under `events/`, with `sam local invoke`.

Builds the functions for this machine's architecture, starts a database, a model server and servers for the connection
API and sign-in, and checks of each event what it answers, stores and says. Takes Docker or podman.
"""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from tests.database_server import DatabaseServerMissing, ensure_program
from tests.sam_local.build import build
from tests.sam_local.cases import CASES, Case
from tests.sam_local.engine import Engine, architecture, engine
from tests.sam_local.invocation import Invoked, Sam
from tests.sam_local.processes import Failed
from tests.sam_local.world import World, new_certificate, read_event, world

LOG_LINES = 25


@dataclass(frozen=True)
class Verdict:
    case: Case
    invoked: Invoked
    problems: tuple[str, ...]

    @property
    def row(self) -> str:
        ms = "" if self.invoked.ms is None else f"{self.invoked.ms:.0f}"
        result = "WRONG" if self.problems else "ok"
        return f"{self.case.function:12}{self.case.name:34}{self.invoked.seconds:>8.1f}{ms:>8}  {result}"


HEADER = f"{'function':12}{'event':34}{'s':>8}{'ms':>8}  result"


async def play(folder: Path, found: Engine) -> list[Verdict]:
    machine = architecture()
    new_certificate(folder, found.host)
    say(f"building the functions for {machine}")
    template = await build(folder, machine)
    image = found.provide_runtime(machine)
    say(f"{len(CASES)} events in {image} by {found.name}")
    async with world(folder, found.host) as around:
        variables = folder / "variables.json"
        variables.write_text(json.dumps({"Parameters": around.variables}))
        sam = Sam(found, template, variables, folder)
        say(HEADER)
        verdicts: list[Verdict] = []
        # Each builds on those before it: what follows a wrong one would be wrong by that.
        while len(verdicts) < len(CASES) and not any(verdict.problems for verdict in verdicts):
            verdicts.append(await judged(CASES[len(verdicts)], around, sam))
        return verdicts


async def judged(case: Case, around: World, sam: Sam) -> Verdict:
    await case.given(around)
    around.forget()
    invoked = await sam.invoke(case.function, case.edit(around, read_event(case.event)))
    problems = []
    expected = case.expected(around)
    if invoked.answer != expected:
        problems.append(f"answered {invoked.answer!r}, not {expected!r}")
    try:
        seen = case.then(around)
    except (LookupError, ValueError, SQLAlchemyError) as error:
        problems.append(f"left nothing to look at: {error!r}")
    else:
        if seen != case.found:
            problems.append(f"left {seen!r}, not {case.found!r}")
    verdict = Verdict(case, invoked, tuple(problems))
    say(verdict.row)
    return verdict


def report(verdicts: Sequence[Verdict], seconds: float) -> int:
    right = sum(not verdict.problems for verdict in verdicts)
    for verdict in verdicts[right:]:
        say(f"\n{verdict.case.name}")
        for problem in verdict.problems:
            say(f"  {problem}")
        for line in verdict.invoked.log.splitlines()[-LOG_LINES:]:
            say(f"  | {line}")
    say(f"\n{right} of {len(CASES)} as they should be, in {seconds:.0f} s")
    return 0 if right == len(CASES) else 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sam_local", description=__doc__)
    parser.add_argument("--images", type=Path, help="where podman keeps images from one time to the next")
    options = parser.parse_args(arguments)
    # Else nothing that was started would be ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    began = time.monotonic()
    try:
        ensure_program()
        with (
            tempfile.TemporaryDirectory(prefix="sam-local-") as name,
            engine(Path(name), options.images and options.images.resolve()) as found,
            found.tidied(Path(name)),
        ):
            verdicts = asyncio.run(play(Path(name), found))
    except (Failed, DatabaseServerMissing) as error:
        print(error, file=sys.stderr)
        return 1
    return report(verdicts, time.monotonic() - began)


def say(sentence: str) -> None:
    print(sentence, flush=True)


if __name__ == "__main__":
    sys.exit(main())
