"""Read-only SQL over the corpus: `python -m bench.evidence.sql_guard`.

Hostile statements have to be refused by the guard alone, before anything runs. Benign ones run through
the whole adapter, on a private MariaDB as a SELECT-only user, and have to give a plain client's rows.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.engine import make_url

from superbizagent.adapters.business_database import read_only_database
from superbizagent.adapters.business_database.quotes import Dialect
from superbizagent.adapters.business_database.statement_guard import check_statement
from superbizagent.domain.evidence import QueryMysql
from superbizagent.errors import StatementRefused, SuperBizAgentError
from tests.corpus import plain_client
from tests.corpus.statements import TABLES, CorpusStatement, benign, hostile
from tests.database_server import private_server


@dataclass
class Guarded:
    """How many statements passed the guard, and the milliseconds each took it."""

    statements: int = 0
    accepted: int = 0
    times: list[float] = field(default_factory=list)


def guarded(statements: Iterable[CorpusStatement], dialect: Dialect) -> Guarded:
    result = Guarded()
    for statement in statements:
        begin = time.perf_counter()
        try:
            check_statement(statement.sql, dialect, tuple(TABLES))
            result.accepted += 1
        except StatementRefused:
            pass
        result.statements += 1
        result.times.append((time.perf_counter() - begin) * 1000)
    return result


async def equal(url: str, dialect: Dialect, client: plain_client.Client) -> int:
    """How many benign statements give what the plain client gives; names the others."""
    database = read_only_database(url, TABLES, limits=plain_client.LIMITS)
    same = 0
    for statement in benign(dialect):
        try:
            evidence = await database.query(QueryMysql(statement=statement.sql))
        except SuperBizAgentError as error:
            print(f"not answered: {statement.sql} ({type(error).__name__})", file=sys.stderr)
            continue
        if plain_client.shown_rows(evidence.lines) == client(statement.sql):
            same += 1
        else:
            print(f"not equal: {statement.sql}", file=sys.stderr)
    return same


@contextmanager
def _mysql() -> Iterator[tuple[str, plain_client.Client]]:
    with private_server() as server, server.new_database() as url, server.reader(url) as reader:
        plain_client.fill_mysql(url)
        # The driver would read the machine's certificates for each connection.
        plain = make_url(reader).update_query_dict({"ssl_disabled": "1"}).render_as_string(hide_password=False)
        with plain_client.mysql_client(url) as client:
            yield plain, client


@contextmanager
def _sqlite() -> Iterator[tuple[str, plain_client.Client]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "business.db")
        plain_client.fill_sqlite(path)
        with plain_client.sqlite_client(path) as client:
            yield f"sqlite:///{path}", client


def main() -> None:
    columns = ("hostile refused", "benign accepted", "equal", "guard ms: median", "p99")
    print(f"{'dialect':7} " + " ".join(f"{column:>16}" for column in columns))
    print(_row("mysql", _mysql()))
    print(_row("sqlite", _sqlite()))


def _row(dialect: Dialect, server: AbstractContextManager[tuple[str, plain_client.Client]]) -> str:
    bad, good = guarded(hostile(dialect), dialect), guarded(benign(dialect), dialect)
    with server as (url, client):
        same = asyncio.run(equal(url, dialect, client))
    times = sorted(bad.times + good.times)
    cells = (
        f"{bad.statements - bad.accepted}/{bad.statements}",
        f"{good.accepted}/{good.statements}",
        f"{same}/{good.statements}",
        f"{statistics.median(times):.2f}",
        f"{times[int(len(times) * 0.99)]:.2f}",
    )
    return f"{dialect:7} " + " ".join(f"{cell:>16}" for cell in cells)


if __name__ == "__main__":
    main()
