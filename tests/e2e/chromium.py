"""Finds Chromium on this machine, or installs Debian's package."""

import shutil

from tests import system_packages

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
    return find() or system_packages.install("chromium", find) or _give_up()


def _give_up() -> str:
    raise ChromiumMissing(MISSING)
