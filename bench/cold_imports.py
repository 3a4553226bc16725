"""What importing each function costs, in processor time, beside the imports of others that it can't do without.

    make bench-imports

Bare are the packages of others that the function's import loads, imported by themselves: what is above them is our own.
Each figure is the least of several processes, with bytecode present as in the layer. Chat also loads what its runs
need: above all the model SDK, the SQL parser and boto3.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from superbizagent.settings import environment

ROOT = Path(__file__).resolve().parent.parent
EVENTS = (
    "aws_lambda_powertools",
    "aws_lambda_powertools.utilities.parser.models",
    "aws_lambda_powertools.utilities.typing",
)
STORE = ("pydantic", "sqlalchemy", "sqlalchemy.dialects.mysql", "zoneinfo", "concurrent.futures", "asyncio", "sqlite3")
RUNS = ("openai", "openai.resources.chat.completions", "sqlglot", "boto3", "drain3", "markdown_it")
BARE = {
    **dict.fromkeys(("connect", "disconnect", "default", "cancel", "history", "authorizer"), (*EVENTS, *STORE)),
    "sweep": (*EVENTS, "aws_lambda_powertools.metrics", *STORE),
    "chat": (*EVENTS, "aws_lambda_powertools.metrics", *STORE, *RUNS),
    "migrate": (*EVENTS, *STORE, "alembic.command", "alembic.script"),
    "page": (*EVENTS, *STORE),
}


def seconds(statement: str, runs: int, cache: str) -> float:
    code = f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    variables = {**environment(), "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
    times = []
    for _ in range(runs + 1):  # the first one writes the bytecode
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, check=True)  # noqa: S603
        times.append(float(done.stdout))
    return min(times[1:])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cold_imports", description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args(arguments).runs
    print(f"{'function':12}{'ms':>8}{'bare':>8}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as cache:
        for name, modules in BARE.items():
            bare = seconds(f"import {', '.join(modules)}", runs, cache)
            own = seconds(f"import functions.{name}.app", runs, cache)
            print(f"{name:12}{own * 1000:>8.0f}{bare * 1000:>8.0f}{own / bare:>8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
