"""`python -m local.demo.make DIR`: writes the demo incident: logs, database, runbooks."""

import argparse
import gzip
import shutil
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

from local.demo.database import write_database
from local.demo.logs import Checkout, Inventory, Line, Payments
from local.demo.story import DEFAULT_DAY, SEED, Story, tell

_HERE = Path(__file__).parent
_ROTATIONS = (timedelta(hours=6), timedelta(hours=12))


def make(directory: Path, day: date = DEFAULT_DAY, seed: int = SEED) -> None:
    """Writes the incident into `directory`, made if need be; files of an earlier run are replaced."""
    story = tell(day, seed)
    logs = directory / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    _write(logs / "checkout.log", Checkout(story).lines())
    _write(logs / "payments.log", Payments(story).lines())
    _write_rotated(logs, story, Inventory(story).lines())
    write_database(story, directory / "business.db")
    shutil.copytree(_HERE / "runbooks", directory / "runbooks", dirs_exist_ok=True)
    shutil.copyfile(_HERE / "evidence.toml", directory / "evidence.toml")


def _encoded(lines: Sequence[Line]) -> bytes:
    return "".join(f"{line.text}\n" for line in lines).encode()


def _write(path: Path, lines: Sequence[Line]) -> None:
    path.write_bytes(_encoded(lines))


def _write_rotated(logs: Path, story: Story, lines: Sequence[Line]) -> None:
    """As logrotate leaves it: the newest plain, the next plain, the oldest compressed."""
    early, late = (story.at(rotation) for rotation in _ROTATIONS)
    oldest = _encoded([line for line in lines if line.at < early])
    # No name and no time in the header, so that the same story gives the same bytes.
    (logs / "inventory.log.2.gz").write_bytes(gzip.compress(oldest, mtime=0))
    _write(logs / "inventory.log.1", [line for line in lines if early <= line.at < late])
    _write(logs / "inventory.log", [line for line in lines if line.at >= late])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m local.demo.make", description=__doc__)
    parser.add_argument("directory", type=Path, help="where to write it")
    parser.add_argument(
        "--day", type=date.fromisoformat, default=DEFAULT_DAY, help=f"the day, UTC (default {DEFAULT_DAY})"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="other orders; FACTS.md holds for the default")
    options = parser.parse_args(arguments)
    make(options.directory, options.day, options.seed)
    print(f"wrote the demo incident of {options.day} to {options.directory}")


if __name__ == "__main__":
    main()
