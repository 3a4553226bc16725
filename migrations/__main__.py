"""``python -m migrations upgrade head | downgrade V012 | current [--url URL]``."""

import argparse
import sys

from migrations.run import TIMEOUTS, current, downgrade, upgrade
from superbizagent.adapters.store import Database
from superbizagent.errors import SuperBizAgentError
from superbizagent.settings import environment


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    url = options.url or default_url()
    if not url:
        print("Name the database with --url or in DATABASE_URL.", file=sys.stderr)
        return 2
    try:
        return _execute(options.command, getattr(options, "revision", ""), Database(url, timeouts=TIMEOUTS))
    except SuperBizAgentError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 1


def default_url() -> str | None:
    """The one place that knows where the database is when nobody says."""
    return environment().get("DATABASE_URL")


def _execute(command: str, revision: str, database: Database) -> int:
    try:
        if command == "upgrade":
            upgrade(database.engine, revision)
        elif command == "downgrade":
            downgrade(database.engine, revision)
        print(current(database.engine) or "base")
        return 0
    finally:
        database.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m migrations", description="Migrates the database.")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("upgrade", help="go forward to a revision, by default to the newest")
    up.add_argument("revision", nargs="?", default="head")
    down = commands.add_parser("downgrade", help="go back to a revision (V012, -1, base)")
    down.add_argument("revision")
    for command in (up, down, commands.add_parser("current", help="print the revision the database has")):
        command.add_argument("--url", help="SQLAlchemy URL; by default what DATABASE_URL says")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
