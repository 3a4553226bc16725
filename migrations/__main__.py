"""``python -m migrations upgrade head | downgrade V012 | current [--url URL]``.

Without a URL on the database that the settings name, as the functions do: DATABASE_URL, or DATABASE_HOST with a secret.
"""

import argparse
import contextlib
import sys

from migrations.run import TIMEOUTS, current, downgrade, upgrade
from superbizagent.adapters.store import Database
from superbizagent.bootstrap import Services
from superbizagent.errors import ConfigurationError, SuperBizAgentError


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        database = Services(options.url or None).open_database(TIMEOUTS)
    except ConfigurationError as error:
        print(f"Name the database with --url, or in DATABASE_URL ({error}).", file=sys.stderr)
        return 2
    with contextlib.closing(database):
        try:
            _execute(options.command, getattr(options, "revision", ""), database)
        except SuperBizAgentError as error:
            print(f"{error.code}: {error}", file=sys.stderr)
            return 1
    return 0


def _execute(command: str, revision: str, database: Database) -> None:
    if command == "upgrade":
        upgrade(database.engine, revision)
    elif command == "downgrade":
        downgrade(database.engine, revision)
    print(current(database.engine) or "base")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m migrations", description="Migrates the database.")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("upgrade", help="go forward to a revision, by default to the newest")
    up.add_argument("revision", nargs="?", default="head")
    down = commands.add_parser("downgrade", help="go back to a revision (V012, -1, base)")
    down.add_argument("revision")
    for command in (up, down, commands.add_parser("current", help="print the revision the database has")):
        command.add_argument("--url", help="SQLAlchemy URL; by default the settings' own")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
