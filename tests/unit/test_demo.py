"""The demo incident: it is the same each time, its parts agree, and FACTS.md tells the truth about it."""

import gzip
import hashlib
import re
import shutil
import sqlite3
import subprocess
import tomllib
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from local.demo.make import main, make

FACTS = Path(__file__).parents[2] / "local" / "demo" / "FACTS.md"


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("incident")
    make(directory)
    return directory


def _facts() -> list[tuple[str, str]]:
    """Each command of FACTS.md and what it says the command prints."""
    blocks = re.findall(r"^```\n(\$ .*?)^```$", FACTS.read_text("utf-8"), re.M | re.S)
    entries = [entry for block in blocks for entry in re.split(r"^\$ ", block, flags=re.M) if entry]
    return [(command, printed) for command, _, printed in (entry.partition("\n") for entry in entries)]


def _query(database: Path, statement: str) -> str:
    """What the command line tool prints; not every machine has it."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(statement).fetchall()
    return "".join("|".join(map(str, row)) + "\n" for row in rows)


def _sum(directory: Path) -> str:
    text = (directory / "logs/checkout.log").read_text("utf-8")
    amounts = re.findall(r"Payment gateway timed out.*amount_cents=(\d+)", text)
    return f"{sum(map(int, amounts))}\n"


def _run(directory: Path, command: str) -> str:
    if statement := re.fullmatch(r'sqlite3 business\.db "(.*)"', command):
        return _query(directory / "business.db", statement[1])
    if command.endswith("| bc") and not shutil.which("bc"):
        return _sum(directory)
    return subprocess.run(["sh", "-c", command], cwd=directory, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("command", "printed"), _facts(), ids=[str(i) for i in range(len(_facts()))])
def test_a_fact_is_what_its_command_prints(incident: Path, command: str, printed: str) -> None:
    assert _run(incident, command).replace(" ", "") == printed.replace(" ", "")


def test_there_are_facts() -> None:
    assert len(_facts()) > 20


def test_the_same_seed_gives_the_same_bytes(incident: Path, tmp_path: Path) -> None:
    main([str(tmp_path)])
    for path in (incident / "logs").iterdir():
        again = tmp_path / "logs" / path.name
        assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(again.read_bytes()).digest()


def test_another_day_changes_dates_only(incident: Path, tmp_path: Path) -> None:
    make(tmp_path, date(2027, 2, 28))
    text = (tmp_path / "logs/checkout.log").read_text("utf-8")
    assert text.replace("2027-02-28", "2026-11-30") == (incident / "logs/checkout.log").read_text("utf-8")
    assert "2027-02-28" in _query(tmp_path / "business.db", "SELECT MIN(created_at) FROM orders")


def test_writing_again_replaces_what_was_there(tmp_path: Path) -> None:
    make(tmp_path, date(2026, 1, 1))
    make(tmp_path, date(2026, 1, 2))
    assert "2026-01-01" not in (tmp_path / "logs/payments.log").read_text("utf-8")
    assert not list(tmp_path.glob("*.new"))


def test_stock_agrees_with_reservations(incident: Path) -> None:
    held = """
        SELECT s.sku FROM stock s LEFT JOIN reservations r ON r.sku = s.sku AND r.status = 'ACTIVE'
        GROUP BY s.sku HAVING s.reserved <> COALESCE(SUM(r.units), 0)
    """
    assert _query(incident / "business.db", held) == ""
    assert _query(incident / "business.db", "SELECT COUNT(*) FROM stock WHERE on_hand < reserved") == "0\n"


def test_logs_and_database_name_the_same_pending_orders(incident: Path) -> None:
    text = (incident / "logs/checkout.log").read_text("utf-8")
    logged = set(re.findall(r"stays PENDING order=(\S+) payment", text))
    rows = _query(incident / "business.db", "SELECT order_id FROM orders WHERE status = 'PENDING'")
    assert logged == set(rows.split())


def test_every_source_of_evidence_toml_has_files(incident: Path) -> None:
    config = tomllib.loads((incident / "evidence.toml").read_text("utf-8"))
    assert sorted(config["logs"]) == ["checkout", "inventory", "payments"]
    for source in config["logs"].values():
        assert [path for pattern in source["paths"] for path in incident.glob(pattern)]
    tables = _query(incident / "business.db", "SELECT name FROM sqlite_master WHERE type = 'table'")
    assert set(config["database"]["tables"]) == set(tables.split())


def test_it_is_small_and_has_ten_runbooks(incident: Path) -> None:
    assert sum(path.stat().st_size for path in incident.rglob("*") if path.is_file()) < 15_000_000
    assert len(list((incident / "runbooks").glob("*.md"))) == 10
    oldest = gzip.decompress((incident / "logs/inventory.log.2.gz").read_bytes()).decode()
    assert oldest.startswith("2026/11/30 08:00:")
