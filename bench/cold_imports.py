"""What importing each function costs, in processor time, beside the imports of others that it can't do without.

    make bench-imports

Bare are the modules of others that the function's import loads, imported by themselves: what is above them is our own.
That the function loads none that it doesn't need is for tests/architecture/test_imports.py to say. Each figure is the
least of several processes, with bytecode present as in the layer; the two take turns, so that a busy machine is as
unfair to one as to the other. Chat also loads what its runs need: above all the model SDK, the SQL parser and boto3.

A function pauses Python's garbage collector while it imports, which makes others' modules cheaper than they are by
themselves; with `--uncollected` there is no collection on either side, and the rest is our own code alone.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from superbizagent.settings import environment

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))
OURS = ("functions", "migrations", "superbizagent")

_OTHERS = """
import json, sys
before = set(sys.modules)
import functions.{name}.app
print(json.dumps([name for name in sys.modules if name not in before and name.partition(".")[0] not in {ours}]))
"""
_OWN = """
import contextlib, gc, importlib, json, sys, time
json.load(sys.stdin)
{collector}
start = time.process_time()
import functions.{name}.app
print(time.process_time() - start)
"""
# A module that another one has put there under a name of its own can't be imported by it, and costs nothing.
_BARE = """
import contextlib, gc, importlib, json, sys, time
names = json.load(sys.stdin)
{collector}
start = time.process_time()
for name in names:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
print(time.process_time() - start)
"""


def output(code: str, cache: str, given: str = "") -> str:
    variables = {
        **environment(),
        "PYTHONPYCACHEPREFIX": cache,
        "PYTHONDONTWRITEBYTECODE": "",
        "PYDANTIC_DISABLE_PLUGINS": "__all__",  # as template.yaml has it
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=variables, cwd=ROOT, input=given, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


def measured(name: str, runs: int, cache: str, collector: str) -> tuple[float, float]:
    """Seconds of the function's import, and of those of others in it."""
    others = output(_OTHERS.format(name=name, ours=OURS), cache)  # which writes the bytecode, too
    own, bare = [], []
    for _ in range(runs):
        own.append(float(output(_OWN.format(name=name, collector=collector), cache, others)))
        bare.append(float(output(_BARE.format(collector=collector), cache, others)))
    return min(own), min(bare)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cold_imports", description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--uncollected", action="store_true", help="no garbage collection on either side")
    parser.add_argument("functions", nargs="*", default=FUNCTIONS)
    options = parser.parse_args(arguments)
    collector = "gc.set_threshold(0)" if options.uncollected else ""
    print(f"{'function':12}{'ms':>8}{'bare':>8}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as cache:
        for name in options.functions:
            own, bare = measured(name, options.runs, cache, collector)
            print(f"{name:12}{own * 1000:>8.0f}{bare * 1000:>8.0f}{own / bare:>8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
