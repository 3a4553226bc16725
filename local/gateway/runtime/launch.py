"""Started by path as a function's process: launch.py PARENT_PID HANDLER [--own-runtime]

Ties the process to the gateway's life, then runs the handler with AWS's runtime interface client or, where
that is not installed, with the loop in `bootstrap.py`. Imports nothing of this project: the interpreter may
be another one.
"""

import importlib.util
import os
import runpy
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """A stopped process would not notice that the gateway was killed, so the kernel is asked to kill it.

    Elsewhere than on Linux the kernel hangs up stopped process groups that lose their parent by itself
    (POSIX calls them orphaned), and a process that runs fails at its next call of the Runtime API.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main(parent: int, handler: str, *options: str) -> None:
    die_with(parent)
    here = Path(__file__).resolve().parent
    # What `python -m` in the task's folder would have.
    sys.path[0] = str(Path.cwd())
    sys.argv = [str(here / "bootstrap.py"), handler]
    own = "--own-runtime" in options
    if not own and all(map(importlib.util.find_spec, ("awslambdaric", "runtime_client"))):
        runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(str(here / "bootstrap.py"), run_name="__main__")


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
