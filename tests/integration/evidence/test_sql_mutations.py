"""Hostile statements, mutated: what the guard then accepts must do no harm, even as the administrator.

Most mutations are refused as well; some make a statement harmless (its payload ends up in a quotation,
say) and are accepted. Those run on a real server, in a session that could do all the harm there is.
"""

import sqlite3
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from superbizagent.adapters.business_database.mysql_driver import session_statements
from superbizagent.adapters.business_database.quotes import Dialect
from superbizagent.adapters.business_database.statement_guard import check_statement
from superbizagent.errors import StatementRefused
from tests.corpus import plain_client
from tests.corpus.statements import SECRETS, TABLES, benign, hostile
from tests.database_server import DatabaseServer

EXAMPLES = 400
# Names a folder of the test's own in place of the corpus' /tmp/p.
FILE = "/tmp/p"  # noqa: S108

Mutation = Callable[[str, int], str]


def _at(text: str, place: int, inserted: str) -> str:
    place %= len(text) + 1
    return text[:place] + inserted + text[place:]


def _nth_blank(text: str, place: int, replacement: str) -> str:
    blanks = [index for index, character in enumerate(text) if character == " "]
    if not blanks:
        return text
    index = blanks[place % len(blanks)]
    return text[:index] + replacement + text[index + 1 :]


def _blank(replacement: str) -> Mutation:
    return lambda text, place: _nth_blank(text, place, replacement)


def _insert(inserted: str) -> Mutation:
    return lambda text, place: _at(text, place, inserted)


def _around(template: str) -> Mutation:
    return lambda text, _place: template.replace("{}", text)


def _everywhere(wanted: str, replacement: str) -> Mutation:
    return lambda text, _place: text.replace(wanted, replacement)


def _without(text: str, place: int) -> str:
    place %= len(text) or 1
    return text[:place] + text[place + 1 :]


def _wide(text: str, place: int) -> str:
    """One ASCII character as its full-width form."""
    place %= len(text) or 1
    return (
        text[:place]
        + "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text[place : place + 1])
        + (text[place + 1 :])
    )


def _random_case(text: str, place: int) -> str:
    return "".join(c.upper() if (place >> index % 24) & 1 else c.lower() for index, c in enumerate(text))


BLANKS = ("\t", "\n", "\r\n", "  ", "/**/", "/*!*/", "\u00a0", "\u3000", "\x0b", "\f", "+", "", "(")
INSERTED = (
    *(
        "/**/",
        "/*!50000",
        "*/",
        "-- ",
        "#",
        "\n",
        ";",
        "'",
        '"',
        "`",
        "\\",
        "\0",
        "\\'",
        "''",
        "$$",
        "\u200b",
        "\ufeff",
    ),
    *(
        "(",
        ")",
        ",",
        "@",
        "{",
        "}",
        "[",
        "]",
        ".",
        "\u017f",
        " AS a",
        " -- '",
        " INTO @a ",
        " FOR UPDATE",
        " FROM users",
    ),
    " UNION SELECT password FROM users ",
)
TEMPLATES = (
    *("{};", "({})", "{} UNION {}", "SELECT 1; {}", "SELECT ({})", "SELECT 1 UNION ALL {}", "EXPLAIN {}"),
    *("/*! {} */", "SELECT 1 /* {} */", "SELECT 1 -- {}", "SELECT $${}$$", "PREPARE s FROM '{}'"),
    *("SELECT '{}'", 'SELECT "{}"', "SELECT '\\'{}'", "SELECT `{}` FROM orders"),
    *("SELECT * FROM ({}) t", "WITH c AS ({}) SELECT * FROM c", "(WITH c AS ({}) SELECT * FROM c) UNION (SELECT 2)"),
    *("SELECT 1 FROM orders WHERE EXISTS ({})", "SELECT 1 FROM orders WHERE id IN ({})"),
    *("SELECT CASE WHEN 1 THEN ({}) END", "SELECT SUM(({})) OVER () FROM orders"),
    *("WITH users AS (SELECT 1 AS password) {}", "SELECT id FROM orders ORDER BY ({})"),
    "SELECT 1 FROM orders JOIN ({}) t ON 1 = 1",
)

MUTATIONS: tuple[Mutation, ...] = (
    _random_case,
    lambda text, _: text.upper(),
    lambda text, _: text.swapcase(),
    *(_blank(blank) for blank in BLANKS),
    *(_insert(text) for text in INSERTED),
    *(_around(template) for template in TEMPLATES),
    _everywhere("'", '"'),
    _everywhere('"', "'"),
    _everywhere("`", '"'),
    _everywhere("'", "\u2019"),
    _everywhere("users", "`users`"),
    _everywhere("users", "shop.users"),
    _everywhere("orders", "users"),
    _everywhere("(", " ("),
    _everywhere("=", " LIKE "),
    _without,
    _wide,
    lambda text, _: urllib.parse.quote(text),
    lambda text, _: "0x" + text.encode("utf-8", "surrogatepass").hex(),
    lambda text, place: text[place % (len(text) + 1) :],
    lambda text, place: text[: place % (len(text) + 1)],
)


def _mutated(dialect: Dialect) -> st.SearchStrategy[str]:
    hostile_ones = st.sampled_from([statement.sql for statement in hostile(dialect) if len(statement.sql) < 4_000])
    benign_ones = st.sampled_from([statement.sql for statement in benign(dialect)])
    steps = st.lists(st.tuples(st.sampled_from(MUTATIONS), st.integers(0, 2**24)), min_size=1, max_size=5)

    def apply(statement: str, host: str, place: int, moves: list[tuple[Mutation, int]], joined: bool) -> str:
        # Spliced into a benign one, a hostile one finds places that nobody thought of.
        text = _at(host, place, statement) if joined else statement
        for mutation, position in moves:
            text = mutation(text, position)
        return text[:12_000]

    return st.builds(apply, hostile_ones, benign_ones, st.integers(0, 10_000), steps, st.booleans())


@dataclass(frozen=True)
class Victim:
    """Where accepted statements run as the administrator; `folder` is all they might write to."""

    url: str
    folder: Path

    def state(self) -> object:
        """Everything that a statement could have changed."""
        with closing(plain_client.connect(self.url)) as connection, connection.cursor() as cursor:
            seen: list[object] = [sorted(path.name for path in self.folder.iterdir())]
            for statement in (
                *(f"SELECT * FROM `{table}` ORDER BY 1" for table in (*TABLES, "users")),
                "SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2",
                "SELECT * FROM information_schema.routines",
                "SELECT grantee FROM information_schema.user_privileges ORDER BY 1",
                "SELECT @@global.sql_mode, @@global.max_statement_time, @@global.general_log",
            ):
                cursor.execute(statement)
                seen.append(cursor.fetchall())
            return seen

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows; fails when a lock is held after it, within its transaction."""
        with closing(plain_client.connect(self.url)) as connection, connection.cursor() as cursor:
            for setting in session_statements(connection.get_server_info(), plain_client.LIMITS):  # type: ignore[no-untyped-call]
                cursor.execute(setting)
            cursor.execute("BEGIN")
            with suppress(pymysql.MySQLError):
                cursor.execute(statement)
            rows = list(cursor.fetchall() or ())
            self._assert_unlocked()
            connection.commit()
            return rows

    def _assert_unlocked(self) -> None:
        with closing(plain_client.connect(self.url)) as other, other.cursor() as cursor:
            for table in (*TABLES, "users"):
                cursor.execute(f"SELECT * FROM `{table}` FOR UPDATE NOWAIT")
            cursor.execute("SELECT IS_USED_LOCK('x')")
            assert cursor.fetchone() == (None,)


@pytest.fixture(scope="module")
def victim(mysql_server: DatabaseServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("written")
    folder.chmod(0o777)
    with mysql_server.new_database() as url:
        plain_client.fill_mysql(url)
        yield Victim(url, folder)


def _accepted(statement: str, dialect: Dialect) -> str | None:
    try:
        return check_statement(statement, dialect, tuple(TABLES)).text
    except StatementRefused:
        return None


@pytest.mark.spec("SEC-1")
def test_what_is_accepted_of_mutated_statements_does_no_harm_to_mysql(victim: Victim) -> None:
    before = victim.state()
    accepted = 0

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(_mutated("mysql"))
    def check(statement: str) -> None:
        nonlocal accepted
        text = _accepted(statement.replace(FILE, f"{victim.folder}/p"), "mysql")
        if text is None:
            return
        accepted += 1
        shown = repr(victim.run(text))
        assert not any(secret in shown for secret in SECRETS)
        assert victim.state() == before

    check()
    # A test in which nothing is ever accepted would prove little of the second half.
    assert accepted


@pytest.mark.spec("SEC-1")
def test_what_is_accepted_of_mutated_statements_does_no_harm_to_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "victim.db"
    plain_client.fill_sqlite(path)
    content = path.read_bytes()
    accepted = 0

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(_mutated("sqlite"))
    def check(statement: str) -> None:
        nonlocal accepted
        text = _accepted(statement.replace(FILE, f"{tmp_path}/p"), "sqlite")
        if text is None:
            return
        accepted += 1
        rows: list[Any] = []
        # A plain, writable connection: the guard alone stands before it.
        with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.Error, sqlite3.Warning):
            rows = connection.execute(text).fetchmany(1_000)
            connection.commit()
        assert not any(secret in repr(rows) for secret in SECRETS)
        assert (path.read_bytes(), sorted(entry.name for entry in tmp_path.iterdir())) == (content, [path.name])

    check()
    assert accepted
