"""The corpus of SQL statements: hostile and benign ones, one JSON object a line, over a small schema.

`sql` is the statement, `kind` what it stands for; `only` names the dialect in which it means that.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from superbizagent.adapters.business_database.quotes import Dialect

_FOLDER: Final = Path(__file__).parent / "sql"

# What the guard lets through; the schema's other table, users, holds SECRETS.
TABLES: Final = {
    "services": "One row a service",
    "orders": "One row an order; payload is JSON",
    "events": "One row a log event",
    "deploys": "One row a deployment",
    "支付记录": "支付流水",
}
SECRETS: Final = ("hunter2", "swordfish")


@dataclass(frozen=True)
class CorpusStatement:
    kind: str
    sql: str


def hostile(dialect: Dialect) -> list[CorpusStatement]:
    """What must be refused."""
    return _read("hostile.jsonl", dialect)


def benign(dialect: Dialect) -> list[CorpusStatement]:
    """What must run, and give what a plain client gives."""
    return _read("benign.jsonl", dialect)


def schema() -> list[str]:
    """Statements that make and fill the tables, on either kind of server."""
    return [line.removesuffix(";") for line in _lines("schema.sql")]


def _read(name: str, dialect: Dialect) -> list[CorpusStatement]:
    entries = [json.loads(line) for line in _lines(name)]
    return [CorpusStatement(entry["kind"], entry["sql"]) for entry in entries if entry.get("only", dialect) == dialect]


def _lines(name: str) -> list[str]:
    # Not splitlines(): the statements hold characters that it takes for line ends.
    return [line for line in (_FOLDER / name).read_text("utf-8").split("\n") if line]
