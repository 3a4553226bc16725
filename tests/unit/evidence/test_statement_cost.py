"""What a server could not stop in time is refused before it runs; what people write is not."""

import pytest

from superbizagent.adapters.business_database.quotes import Dialect
from superbizagent.adapters.business_database.statement_cost import MAX_TABLES
from superbizagent.adapters.business_database.statement_guard import check_statement
from superbizagent.errors import StatementRefused

TABLES = ("runs", "orders")
DIALECTS: tuple[Dialect, ...] = ("mysql", "sqlite")
A = "a" * 90
LONG = f"REPLACE(REPLACE('{A}', 'a', '{A}'), 'a', '{A}')"
LIKE_ITSELF = "x LIKE CONCAT('%', x, 'b')"
TEN = ", ".join(["note"] * 10)
TEN_X = ", ".join("x" * 10)


def _doubled(times: int, first: str, step: str) -> str:
    steps = "".join(f", c{n} AS ({step.format(n - 1)})" for n in range(1, times + 1))
    return f"WITH c0 AS ({first}){steps} SELECT x FROM c{times}"


def _ten_times(levels: int) -> str:
    """A subquery whose column x is 10 to the power of `levels` as long as a stored value."""
    query = "SELECT note AS x FROM runs"
    for level in range(levels):
        query = f"SELECT CONCAT({', '.join(['x'] * 10)}) AS x FROM ({query}) t{level}"
    return query


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT {LONG} LIKE '%b%'",
        f"SELECT LENGTH({LONG})",
        f"SELECT INSTR({LONG}, {LONG}) FROM runs",
        f"SELECT 1 FROM runs WHERE {LONG} = note",
        f"SELECT 1 FROM runs ORDER BY {LONG}",
        f"SELECT COUNT(*) FROM runs GROUP BY {LONG}",
        f"SELECT COUNT(*) FROM runs HAVING MAX({LONG}) > 'a'",
        f"SELECT SUM(1) OVER (PARTITION BY {LONG}) FROM runs",
        f"SELECT 1 FROM runs JOIN orders ON {LONG} = orders.id",
        f"SELECT 1 FROM (runs JOIN orders ON {LONG} = orders.id)",
        f"SELECT 1 FROM ((SELECT 1 AS y) s JOIN orders ON {LONG} = orders.id)",
        f"SELECT CASE WHEN {LONG} THEN 1 END",
        f"SELECT 1 UNION SELECT {LONG}",
        f"SELECT (SELECT {LONG})",
        f"SELECT {LIKE_ITSELF} FROM ({_ten_times(2)}) t",
        f"SELECT {LIKE_ITSELF} FROM ((SELECT 1 AS y) s JOIN ({_ten_times(2)}) t ON 1 = 1)",
        f"SELECT 1 FROM (runs JOIN ({_ten_times(2)}) t ON {LIKE_ITSELF})",
        f"SELECT 1 FROM runs JOIN ({_ten_times(2)}) t ON {LIKE_ITSELF}",
        f"SELECT CONCAT({', '.join(['note'] * 99)}) AS x FROM runs HAVING {LIKE_ITSELF}",
        f"WITH t AS ({_ten_times(2)}) SELECT 1 FROM runs WHERE EXISTS (SELECT 1 FROM t WHERE {LIKE_ITSELF})",
        f"SELECT (SELECT {LIKE_ITSELF}) FROM ({_ten_times(2)}) t",
        f"SELECT CONCAT({TEN}) AS x, (SELECT CONCAT({TEN_X})) AS y, (SELECT y LIKE CONCAT(y, y)) FROM runs",
        _ten_times(5),
        "SELECT CAST(note AS CHAR(5000000)) FROM runs",
        "SELECT LPAD(note, 5000000, 'x') FROM runs",
        "SELECT LPAD(note, id, 'x') FROM runs",
        "SELECT RPAD(note, 9e9, 'x') FROM runs",
        _doubled(12, "SELECT 1 AS x", "SELECT a.x FROM c{0} a, c{0} b"),
        _doubled(12, "SELECT id AS x FROM runs", "SELECT x FROM c{0} UNION ALL SELECT x FROM c{0}"),
        _doubled(12, "SELECT 1 AS x", "SELECT x FROM c{0} WHERE x IN (SELECT x FROM c{0})"),
        _doubled(12, "SELECT 1 AS x", "SELECT (SELECT MAX(x) FROM c{0}) AS x FROM c{0}"),
        _doubled(12, "SELECT 1 AS x", "SELECT x FROM c{0} ORDER BY (SELECT MAX(x) FROM c{0})"),
        _doubled(12, "SELECT 1 AS x", "SELECT a.x FROM (c{0} a JOIN c{0} b ON a.x = b.x)"),
        _doubled(12, "SELECT 1 AS x", "SELECT a.x FROM c{0} a JOIN runs ON a.x = (SELECT MAX(x) FROM c{0})"),
        "SELECT 1 FROM " + ", ".join(f"runs r{n}" for n in range(MAX_TABLES + 1)),
    ],
    ids=lambda statement: statement[:70],
)
def test_refused(statement: str, dialect: Dialect) -> None:
    with pytest.raises(StatementRefused, match=r"too long|long values|written out"):
        check_statement(statement, dialect, TABLES)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT CONCAT_WS(' | ', a, b, c, d, e, f, g, h, i, j) FROM runs",
        "SELECT " + ", ".join(f"CONCAT(a{n}, ': ', b{n})" for n in range(60)) + " FROM runs",
        "SELECT 1 FROM runs WHERE " + " OR ".join(f"note LIKE '%word {n}%'" for n in range(150)),
        "SELECT id FROM runs WHERE id IN (" + ", ".join(map(str, range(900))) + ")",
        "SELECT REPLACE(REPLACE(REPLACE(note, '<', '&lt;'), '>', '&gt;'), ' ', '') FROM runs",
        "SELECT GROUP_CONCAT(note ORDER BY id SEPARATOR '; ') AS notes FROM runs HAVING notes LIKE '%timeout%'",
        "SELECT note REGEXP 'a+' OR note REGEXP 'b+' OR note REGEXP 'c+' FROM runs",
        "SELECT LPAD(id, 8, '0'), RPAD(note, 40, '.') FROM runs",
        "SELECT a.note FROM runs a JOIN orders b ON a.note LIKE CONCAT('%', b.note, '%')",
        "SELECT DATE_FORMAT(t, '%Y-%m-%d %H:%i:%s'), SUBSTRING_INDEX(note, ' ', 3), CAST(note AS CHAR(200)) FROM runs",
        _doubled(5, "SELECT id AS x FROM runs", "SELECT x FROM c{0} UNION ALL SELECT x FROM c{0}"),
        _doubled(30, "SELECT id AS x FROM runs", "SELECT x FROM c{0} WHERE x > 1"),
        "WITH e AS (SELECT LOWER(CONCAT(a, b)) AS m FROM runs) SELECT CONCAT('* ', m) FROM e WHERE m LIKE '%y%'",
    ],
    ids=lambda statement: statement[:70],
)
def test_what_people_write_is_allowed(statement: str) -> None:
    assert check_statement(statement, "mysql", TABLES).text == statement
