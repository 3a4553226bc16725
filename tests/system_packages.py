"""What the tests need of the system's packages, installed where that is ours to do: as root on Debian or Ubuntu.

`python -m tests.system_packages` does it before the tests start, so that a person sees what is installed.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")


def install(package: str, find: Callable[[], Found | None]) -> Found | None:
    """What `find` finds after installing `package`; None where it can't be installed here.

    One process at a time, for apt locks itself: another one may have installed it while this one waited.
    """
    apt = shutil.which("apt-get")
    if os.geteuid() != 0 or apt is None:
        return None
    with Path(tempfile.gettempdir(), "test-system-packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return find() or _apt_install(apt, package, find)


def _apt_install(apt: str, package: str, find: Callable[[], Found | None]) -> Found | None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}  # noqa: TID251
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", package]):
        command = [apt, *arguments]
        print("installing what the tests need:", *command, file=sys.stderr, flush=True)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr, flush=True)
    return find()


def main() -> int:
    """Exit status 1 with a sentence for each thing that is missing and can't be installed here."""
    from tests import database_server
    from tests.e2e import chromium

    missing = 0
    for ensure in (database_server.ensure_program, chromium.find_or_install):
        try:
            ensure()
        except (database_server.DatabaseServerMissing, chromium.ChromiumMissing) as error:
            print(error, file=sys.stderr)
            missing = 1
    return missing


if __name__ == "__main__":
    sys.exit(main())
