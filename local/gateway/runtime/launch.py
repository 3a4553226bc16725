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
BOOTSTRAP = str(Path(__file__).resolve().with_name("bootstrap.py"))


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


def set_up(handler: str) -> None:
    """The search path and the arguments that `python -m awslambdaric HANDLER` has in the task's folder."""
    sys.path[0] = str(Path.cwd())
    sys.argv = [BOOTSTRAP, handler]


def has_awslambdaric() -> bool:
    return all(map(importlib.util.find_spec, ("awslambdaric", "runtime_client")))


def run_handler(*, own_runtime: bool) -> None:
    if not own_runtime and has_awslambdaric():
        runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(BOOTSTRAP, run_name="__main__")


def main(parent: int, handler: str, *options: str) -> None:
    die_with(parent)
    set_up(handler)
    run_handler(own_runtime="--own-runtime" in options)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
