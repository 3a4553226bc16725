"""What a plain client gets for a statement, to compare the guarded one with."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pymysql
from sqlalchemy.engine import make_url

from superbizagent.adapters.business_database import QueryLimits
from tests.corpus.statements import schema

# Wide enough that nothing of the corpus is cut.
LIMITS: Final = QueryLimits(rows=1_000, time=10, cell=100_000, size=10_000_000)

Row = tuple[Any, ...]
Client = Callable[[str], list[Row]]


def connect(url: str) -> "pymysql.Connection[Any]":
    """A client of its own, with the server's own settings but for the time zone, which we fix."""
    parsed = make_url(url)
    return pymysql.connect(
        host=parsed.host or "",
        port=parsed.port or 3306,
        user=parsed.username,
        password=parsed.password or "",
        database=parsed.database,
        charset="utf8mb4",
        autocommit=True,
        read_timeout=60,
        init_command="SET time_zone = '+00:00'",
    )


def fill_mysql(url: str) -> None:
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("ALTER DATABASE CHARACTER SET utf8mb4")
        for statement in schema():
            cursor.execute(statement)


def fill_sqlite(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(";\n".join(schema()))


@contextmanager
def mysql_client(url: str) -> Iterator[Client]:
    """Runs statements on one connection."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:

        def run(statement: str) -> list[Row]:
            cursor.execute(statement.strip().removesuffix(";"))
            return [_as_json(row) for row in cursor.fetchall()]

        yield run


@contextmanager
def sqlite_client(path: Path) -> Iterator[Client]:
    """Runs statements on one connection."""
    with closing(sqlite3.connect(path)) as connection:
        yield lambda statement: [_as_json(row) for row in connection.execute(statement)]


def shown_rows(lines: Sequence[str]) -> list[Row]:
    """The values in evidence lines; numbers exactly as they are written."""
    return [
        tuple(value for _, value in json.loads(line, parse_float=Decimal, object_pairs_hook=list)) for line in lines
    ]


def _as_json(row: Sequence[Any]) -> Row:
    return tuple(_value(value) for value in row)


def _value(value: Any) -> Any:
    match value:
        case float():
            return Decimal(repr(value))
        case bytes():
            return f"0x{value.hex()} ({len(value)} bytes)"
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return _time(value)
    return value


def _time(value: timedelta) -> str:
    sign = "-" if value < timedelta() else ""
    minutes, seconds = divmod(abs(value).seconds, 60)
    hours = abs(value).days * 24 + minutes // 60
    micros = f".{abs(value).microseconds:06}" if value.microseconds else ""
    return f"{sign}{hours:02}:{minutes % 60:02}:{seconds:02}{micros}"
