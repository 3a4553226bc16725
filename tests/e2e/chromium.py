"""Finds Chromium on this machine, or installs Debian's package."""

import os
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "The browser tests need Chromium. Install it (Debian and Ubuntu: apt-get install chromium; "
    "Fedora: dnf install chromium; macOS: brew install --cask chromium) so that `chromium` is on the PATH."
)
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class ChromiumMissing(RuntimeError):
    """There is no Chromium, and it could not be installed."""


def find() -> str | None:
    """The path of a Chromium on the PATH."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def find_or_install() -> str:
    """The path of a Chromium; as root on Debian it is installed when there is none.

    Raises ChromiumMissing with a sentence that says what to install.
    """
    return find() or _install() or _give_up()


def _install() -> str | None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    print("Chromium is not installed: running `apt-get install chromium`, about 300 MB", flush=True)
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    for step in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
        subprocess.run([*apt, *step], check=False)
    return find()


def _give_up() -> str:
    raise ChromiumMissing(MISSING)
