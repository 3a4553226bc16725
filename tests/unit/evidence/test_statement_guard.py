"""Which statements may run (SEC-1), by the hazards that others met."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from superbizagent.adapters.business_database.quotes import Dialect
from superbizagent.adapters.business_database.statement_guard import check_statement
from superbizagent.errors import StatementRefused

TABLES = ("runs", "orders")
DIALECTS: tuple[Dialect, ...] = ("mysql", "sqlite")

EXECUTED_COMMENTS = (  # P070
    "SELECT 1 /*! UNION SELECT secret FROM runs */",
    "SELECT /*!50000 SLEEP*/(3)",
    "SELECT 1 /*M! UNION SELECT secret FROM runs */",
    "SELECT 1 /*!100000 UNION SELECT secret FROM runs */",
    "SELECT 1 /* /*! UNION SELECT secret FROM runs */",
    "SELECT 1 -- /*! UNION SELECT secret FROM runs */",
    "SELECT 1 --UNION",
    "SELECT 1 */ 2",
    "SELECT /*+ MAX_EXECUTION_TIME(0) */ 1",
    "SELECT 1 /* never closed",
)
FILES = (  # P073, P075
    "SELECT 'x' INTO OUTFILE '/tmp/p'",
    "SELECT * FROM runs INTO OUTFILE '/tmp/p'",
    "SELECT 1 UNION SELECT 2 INTO DUMPFILE '/tmp/p'",
    "SELECT 1 INTO/**/OUTFILE '/tmp/p'",
    "LOAD/**/DATA INFILE 'x' INTO TABLE runs",
    "SEL/**/ECT 1",
    "SELECT id INTO @a FROM runs",
    "SELECT id INTO a FROM runs",
)
OTHER_STATEMENTS = (  # P077, P078, P091
    "WITH d AS (SELECT 1) DELETE FROM runs",
    "WITH d AS (SELECT 1) UPDATE runs, d SET status='x'",
    "COMMIT; UPDATE runs SET status=1; SELECT 1",
    "SELECT 1; SELECT 2",
    "SELECT 1;;SELECT 2",
    "COMMIT",
    "ROLLBACK",
    "BEGIN",
    "SET TRANSACTION READ WRITE",
    "SHOW PROCESSLIST",
    "SHOW GRANTS",
    "SHOW VARIABLES LIKE '%pass%'",
    "SHOW CREATE USER",
    "DESCRIBE runs",
    "EXPLAIN SELECT 1",
    "TABLE runs",
    "VALUES (1)",
    "CALL p()",
    "DO 1",
    "HANDLER runs OPEN",
    "PRAGMA table_info(runs)",
    "ATTACH 'x' AS y",
    "REPLACE INTO runs VALUES (1)",
    "INSERT INTO runs SELECT 1",
    "FLUSH TABLES",
    "",
    ";",
    "   ",
    "```sql\nSELECT 1\n```",
)
FUNCTIONS = tuple(  # P080
    template.format(call)
    for call in (
        "SLEEP(10)",
        "sleep (10)",
        "BENCHMARK(1e9,MD5(1))",
        "GET_LOCK('x',60)",
        "RELEASE_ALL_LOCKS()",
        "LOAD_FILE('/etc/passwd')",
        "`LOAD_FILE`(0x2f65)",
        "MASTER_POS_WAIT('a',1,60)",
        "sys_exec('id')",
        "mysql.f(1)",
        "load_extension('x')",
        "randomblob(1000000000)",
        "REPEAT('a', 1000000000)",
        "USER()",
        "VERSION()",
        "CURRENT_USER()",
        "CURRENT_USER",
        "DATABASE()",
        "NEXTVAL(s)",
    )
    for template in (
        "SELECT {}",
        "SELECT 1 FROM runs WHERE {}",
        "SELECT 1 FROM runs ORDER BY (SELECT {})",
        "SELECT IF(1, {}, 2)",
        "SELECT COUNT(*) FROM runs HAVING {}",
        "WITH c AS (SELECT {}) SELECT * FROM c",
        "SELECT 1 FROM runs JOIN orders ON {}",
        "SELECT CASE WHEN {} THEN 1 END",
        "SELECT SUM(1) OVER (ORDER BY {})",
    )
)
LOCKS = (  # P082
    "SELECT * FROM runs FOR UPDATE",
    "SELECT * FROM (SELECT id FROM runs LOCK IN SHARE MODE) t",
    "SELECT 1 UNION (SELECT id FROM runs FOR UPDATE)",
    "(SELECT 1) FOR UPDATE",
    "SELECT * FROM runs FOR SHARE SKIP LOCKED",
)
VARIABLES = ("SELECT @@global.secure_file_priv", "SELECT @a", "SELECT @a := 1", "SELECT @@version")  # P091
OTHER_TABLES = (
    "SELECT * FROM users",
    "SELECT * FROM (SELECT 1 FROM users) t",
    "SELECT (SELECT password FROM users)",
    "SELECT 1 FROM runs JOIN users USING (id)",
    "SELECT 1 FROM runs WHERE EXISTS (SELECT 1 FROM users)",
    "SELECT 1 UNION SELECT password FROM users",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM mysql.user",
    "SELECT * FROM other.runs",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM pragma_table_info('runs')",
    "WITH users AS (SELECT * FROM users) SELECT * FROM users",
    "SELECT * FROM users WHERE EXISTS (WITH users AS (SELECT 1) SELECT * FROM users)",
    "WITH a AS (SELECT * FROM users), users AS (SELECT 1) SELECT * FROM a",
    "WITH sleep(x) AS (SELECT 1) SELECT sleep(10) FROM sleep",
    "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT * FROM r",
    "SELECT * FROM JSON_TABLE('[]', '$[*]' COLUMNS (a INT PATH '$')) j",
)
OVERSIZED = (  # P092
    "SELECT " + "(" * 60 + "1" + ")" * 60,
    "SELECT 1 WHERE " + " OR ".join(["id = 1"] * 3_000),
    "SELECT 1 WHERE " + " OR ".join(["1"] * 1_500),
    "x" * 1_000_000,
    "SELECT " + "NOT " * 1_900 + "1",
    "SELECT " + "CASE WHEN 1 THEN " * 300 + "1" + " END" * 300,
    "SELECT " + "-" * 0 + "~" * 1_900 + "1",
)
ODD_TEXT = (
    "SELECT $$'$$, (SELECT password FROM users), $$'$$",
    "SELECT 1::text",
    "SELECT CURRENT_ROLE",
    "SELECT 1 FROM `dual`",
    "SELECT\u00a01",
    "SELECT 1\0",
    "SELECT 'a",
    "SELECT `a",
    "SELECT ?",
    "SELECT :a",
    "SELECT \u202e1",
    "SELECT \\N",
)


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "statement",
    [
        *EXECUTED_COMMENTS,
        *FILES,
        *OTHER_STATEMENTS,
        *FUNCTIONS,
        *LOCKS,
        *VARIABLES,
        *OTHER_TABLES,
        *OVERSIZED,
        *ODD_TEXT,
    ],
    ids=lambda statement: statement[:60],
)
def test_refused(statement: str, dialect: Dialect) -> None:
    with pytest.raises(StatementRefused) as raised:
        check_statement(statement, dialect, TABLES)

    assert len(raised.value.hint) < 300


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT '/*! x */'",
        "SELECT '-- # @a ; INTO OUTFILE' AS a FROM runs",
        "SELECT 'a%b', '%s', ':x' FROM runs WHERE name LIKE '%err%'",
        "SELECT DATE_FORMAT(t, '%Y-%m-%d') FROM runs",
        "SELECT `id`, COUNT(*) FROM `runs` GROUP BY (id) HAVING COUNT(*) > 1 ORDER BY 2 DESC LIMIT 5",
        "WITH d AS (SELECT id FROM runs), e(x) AS (SELECT id FROM d) SELECT x FROM e",
        "(SELECT id FROM runs) UNION ALL (SELECT id FROM orders) LIMIT 3",
        "SELECT r.id % 2 FROM runs r LEFT JOIN orders o ON o.id = r.id WHERE o.id IS NULL",
        "SELECT id FROM runs WHERE t >= NOW() - INTERVAL 1 HOUR AND status IN ('a', 'b')",
        "SELECT SUM(CASE WHEN status = 'x' THEN 1 ELSE 0 END) / COUNT(*) FROM runs",
        "SELECT ROW_NUMBER() OVER (PARTITION BY status ORDER BY id) FROM runs",
        "SELECT JSON_EXTRACT(payload, '$.a'), payload->>'$.b' FROM runs",
        "SELECT 名称 FROM runs WHERE 名称 = '支付网关'",
        "SELECT TIMESTAMPDIFF(SECOND, a, b), COALESCE(a, b), CAST(a AS CHAR), IFNULL(a, 1) FROM runs",
        "SELECT COUNT(DISTINCT id) FROM runs WHERE a BETWEEN 1 AND 2 AND NOT (b <=> 3) AND c REGEXP '^x'",
        "SELECT 1 FROM DUAL",
        "SELECT MAKETIME(1, 2, 3), INET6_ATON(a), IS_IPV4(b), GROUPING(c) FROM runs GROUP BY c WITH ROLLUP",
        "SELECT PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY a) OVER (PARTITION BY b) FROM runs",
        "SELECT MEDIAN(a) OVER (PARTITION BY b), JSON_QUERY(c, '$.a'), NVL2(d, 1, 2) FROM runs",
        "select id from runs where created_at >= '2026-11-30 14:00:00' order by id;",
    ],
)
def test_allowed_as_it_stands(statement: str) -> None:
    """P041, P072: the text that was checked is the text that runs."""
    assert check_statement(statement, "mysql", TABLES).text == statement.removesuffix(";")


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("-- failed ones\nSELECT 1", "SELECT 1"),
        ("/* why; */ SELECT 1 -- ; SELECT 2", "SELECT 1"),
        ("SELECT id -- bob's\n, 'a -- b' FROM runs; -- end", "SELECT id  \n, 'a -- b' FROM runs"),
        ("SELECT/**/1", "SELECT 1"),
        ("SELECT 1 /* \" */ , '/* x */'", "SELECT 1   , '/* x */'"),
        ("SELECT 1 --\r\n", "SELECT 1"),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_server_gets_a_comment(statement: str, text: str, dialect: Dialect) -> None:
    """P072: what is left without them is what was checked and what runs."""
    assert check_statement(statement, dialect, TABLES).text == text


@pytest.mark.spec("SEC-1")
def test_only_mysql_has_comments_after_a_hash() -> None:
    assert check_statement("SELECT 1 # it's\n+ 1", "mysql", TABLES).text == "SELECT 1  \n+ 1"
    with pytest.raises(StatementRefused):
        check_statement("SELECT 1 # it's\n+ 1", "sqlite", TABLES)


@pytest.mark.spec("SEC-1")
@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("SELECT 1--1", "write `- -1`"),
        ("SELECT /*+ NO_MERGE(t) */ 1", "hints"),
        ("SELECT id FROM runs USE INDEX (a)", "index hint"),
        ("SELECT SQL_NO_CACHE id FROM runs", "modifier after SELECT"),
        ("SELECT TO_BASE64(id) FROM runs", "TO_BASE64"),
        ("SELECT _utf8mb4'a'", "introducers"),
        ("SELECT * FROM (VALUES (1)) AS v", "UNION ALL"),
        ("WITH RECURSIVE h AS (SELECT 0 AS h UNION ALL SELECT h + 1 FROM h) SELECT h FROM h", "group by the times"),
        ("SELECT id FROM nope", "runs, orders"),
        ("SELECT id FROM x.runs", "without a schema"),
        ("DESCRIBE runs", "listed already"),
        ("SELECT", "selects nothing"),
    ],
)
def test_a_refusal_tells_what_to_write_instead(statement: str, hint: str) -> None:
    with pytest.raises(StatementRefused) as raised:
        check_statement(statement, "mysql", TABLES)

    assert hint in raised.value.hint


def test_tables_and_the_outermost_limit_are_told() -> None:
    checked = check_statement(
        "SELECT id FROM runs WHERE id IN (SELECT id FROM orders LIMIT 9) LIMIT 3", "mysql", TABLES
    )

    assert (set(checked.tables), checked.limit) == ({"runs", "orders"}, 3)
    assert check_statement("SELECT COUNT(*) FROM runs LIMIT 1", "mysql", TABLES).limit is None


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(("count", "limit"), [("3 ROWS", 3), ("1 ROW", 1), ("ROW", 1)])
def test_the_standard_s_limit_is_told_like_mysql_s(count: str, limit: int) -> None:
    assert check_statement(f"SELECT id FROM runs FETCH FIRST {count} ONLY", "mysql", TABLES).limit == limit


@pytest.mark.spec("SEC-1")
def test_mysql_tables_are_told_apart_by_case_and_sqlite_tables_are_not() -> None:
    assert check_statement("SELECT 1 FROM RUNS", "sqlite", TABLES).tables == ("runs",)
    with pytest.raises(StatementRefused, match="runs, orders"):
        check_statement("SELECT 1 FROM RUNS", "mysql", TABLES)


_PIECES = st.sampled_from(
    [
        "SELECT ",
        "FROM ",
        "runs ",
        "users ",
        "(",
        ")",
        "'",
        '"',
        "`",
        "/*",
        "!",
        "*/",
        "--",
        ";",
        "INTO ",
        "\\",
        ",",
        "SLEEP",
        "(1)",
        "UNION ",
        "WITH ",
        "AS ",
        "1 ",
        "* ",
        "WHERE ",
        "\n",
        "@",
        "é",
        "[",
        "]",
        "LIMIT ",
        "END ",
    ]
)


@pytest.mark.spec("SEC-1")
@given(st.lists(_PIECES, max_size=20).map("".join))
def test_any_text_is_accepted_or_refused_and_nothing_else(text: str) -> None:
    for dialect in DIALECTS:
        try:
            checked = check_statement(text, dialect, TABLES)
        except StatementRefused:
            continue
        assert set(checked.tables) <= set(TABLES)
        assert "sleep" not in checked.text.lower() or "(" not in checked.text or any(q in checked.text for q in "'\"`[")


def test_the_parser_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StatementRefused):
        check_statement("SELECT 1 UNION CALL secret_procedure()", "mysql", TABLES)

    assert caplog.text == ""
