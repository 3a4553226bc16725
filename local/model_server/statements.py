"""Plain SQL over the tables that a prompt describes: the same for SQLite, MySQL and MariaDB."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from local.model_server.prompt import Column, Table
from local.model_server.text import overlap, terms
from local.model_server.times import Window

_STATUS = re.compile(r"(?:^|_)(?:status|state|outcome|result|phase|stage|severity|level)$", re.I)
_TIME_NAME = re.compile(
    r"(?:_at|_on|_time|_date|^time|^date|^timestamp|_ts|^ts|^created|^updated)$|^(?:time|date)", re.I
)
_TIME_TYPE = re.compile(r"DATE|TIME", re.I)
_NUMBER_TYPE = re.compile(r"INT|DECIMAL|NUMERIC", re.I)
_AMOUNT = re.compile(r"amount|total|price|cents", re.I)
_ERROR_NAME = re.compile(r"(?:^|_)(?:error_code|error_type|error|reason|failure_code|code)$", re.I)
_CHANGES = frozenset(
    {"deploy", "deployment", "change", "config", "release", "rollout", "migration", "变更", "发布"}
)
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_RESERVED = frozenset(
    [
        "add",
        "all",
        "alter",
        "and",
        "as",
        "asc",
        "between",
        "by",
        "case",
        "change",
        "check",
        "column",
        "condition",
        "create",
        "cross",
        "current_date",
        "database",
        "databases",
        "default",
        "delete",
        "desc",
        "describe",
        "distinct",
        "drop",
        "else",
        "end",
        "exists",
        "explain",
        "false",
        "for",
        "foreign",
        "from",
        "fulltext",
        "group",
        "groups",
        "having",
        "if",
        "in",
        "index",
        "inner",
        "insert",
        "int",
        "interval",
        "into",
        "is",
        "join",
        "key",
        "keys",
        "kill",
        "lead",
        "left",
        "like",
        "limit",
        "lock",
        "loop",
        "match",
        "not",
        "null",
        "of",
        "on",
        "option",
        "or",
        "order",
        "outer",
        "over",
        "partition",
        "primary",
        "range",
        "rank",
        "read",
        "references",
        "release",
        "rename",
        "repeat",
        "replace",
        "require",
        "return",
        "right",
        "row",
        "rows",
        "schema",
        "select",
        "set",
        "show",
        "sql",
        "ssl",
        "starting",
        "system",
        "table",
        "then",
        "to",
        "trigger",
        "true",
        "undo",
        "union",
        "unique",
        "unlock",
        "update",
        "usage",
        "use",
        "using",
        "values",
        "when",
        "where",
        "while",
        "window",
        "with",
        "write",
        "user",
        "signal",
        "status_",
        "public",
    ]
)
_MOST_ROWS = 20


def _name(identifier: str) -> str:
    """Quoted with backticks only where need be: all three servers take them."""
    parts = identifier.strip('`"').split(".")
    quoted = (
        p if _PLAIN.fullmatch(p) and p.lower() not in _RESERVED else f"`{p.replace('`', '')}`" for p in parts
    )
    return ".".join(quoted)


def status_column(table: Table) -> Column | None:
    named = (column for column in table.columns if _STATUS.search(column.name))
    return next(named, None) or next((c for c in table.columns if _ERROR_NAME.search(c.name)), None)


def time_column(table: Table) -> Column | None:
    """When a row came to be, by the column's name and type."""
    likely = [
        column
        for column in table.columns
        if _TIME_TYPE.search(column.type)
        or (_TIME_NAME.search(column.name) and not _NUMBER_TYPE.search(column.type))
    ]
    began = re.compile(r"creat|start|change|deploy|occur|happen|open|insert|begin|applied|released", re.I)
    return next((column for column in likely if began.search(column.name)), likely[0] if likely else None)


def tells_changes(table: Table) -> bool:
    """Whether its rows are changes that people or programs made to the system."""
    return bool(terms(table.name) & _CHANGES) and time_column(table) is not None


def relevance(table: Table, wanted: frozenset[str]) -> int:
    """How well the table's name, description and columns match; its name counts most."""
    columns = " ".join(column.name for column in table.columns)
    return 4 * overlap(wanted, table.name) + 2 * overlap(wanted, table.description) + overlap(wanted, columns)


def status_tables(
    tables: Sequence[Table], asked: frozenset[str], found: frozenset[str], limit: int = 2
) -> list[Table]:
    """The tables with a status that match best, words of the question before words of what was found."""
    scored = [
        (3 * relevance(table, asked) + relevance(table, found), table)
        for table in tables
        if status_column(table) and not tells_changes(table)
    ]
    matching = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: -pair[0])
    return [table for _, table in matching[:limit]]


def status_statement(table: Table, window: Window | None) -> str:
    """How many rows there are of each status, with first and last time and the sum of amounts."""
    status = status_column(table)
    at = time_column(table)
    if status is None:
        raise ValueError(f"{table.name} has no status column")
    shown = [_name(status.name), "COUNT(*) AS row_count"]
    if at is not None:
        shown.append(f"MIN({_name(at.name)}) AS first_{_alias(at)}")
        shown.append(f"MAX({_name(at.name)}) AS last_{_alias(at)}")
    amount = next((c for c in table.columns if _AMOUNT.search(c.name) and _NUMBER_TYPE.search(c.type)), None)
    if amount is not None:
        shown.append(f"SUM({_name(amount.name)}) AS total_{_alias(amount)}")
    return (
        f"SELECT {', '.join(shown)} FROM {_name(table.name)}{_where(at, window)} "  # noqa: S608 - names are quoted, values checked
        f"GROUP BY {_name(status.name)} ORDER BY row_count DESC LIMIT {_MOST_ROWS}"
    )


def change_statement(table: Table, around: datetime | None) -> str:
    """The rows of a table of changes: those near `around`, or the latest."""
    at = time_column(table)
    if at is None:
        raise ValueError(f"{table.name} has no time column")
    shown = ", ".join(_name(column.name) for column in table.columns[:12])
    window = Window(around - timedelta(hours=3), around + timedelta(minutes=5)) if around else None
    return (
        f"SELECT {shown} FROM {_name(table.name)}{_where(at, window)} "  # noqa: S608 - names are quoted, values checked
        f"ORDER BY {_name(at.name)} DESC LIMIT {_MOST_ROWS}"
    )


def identifier_statement(table: Table, identifier: str) -> str | None:
    """The rows that a named thing has, by the column whose name ends in `id`; None without such a column."""
    if not re.fullmatch(r"[\w.:-]+", identifier):
        return None
    columns = [c for c in table.columns if re.search(r"(?:^|_)(?:id|no|number|code)$|id$", c.name, re.I)]
    columns = [c for c in columns if not _NUMBER_TYPE.search(c.type)]
    if not columns:
        return None
    shown = ", ".join(_name(column.name) for column in table.columns[:12])
    tests = " OR ".join(f"{_name(column.name)} = '{identifier}'" for column in columns[:4])
    return f"SELECT {shown} FROM {_name(table.name)} WHERE {tests} LIMIT {_MOST_ROWS}"  # noqa: S608 - names are quoted, values checked


def _alias(column: Column) -> str:
    return re.sub(r"\W", "_", column.name)


def _where(at: Column | None, window: Window | None) -> str:
    if at is None or window is None:
        return ""
    tests = []
    if window.start:
        tests.append(f"{_name(at.name)} >= '{_literal(window.start)}'")
    if window.end:
        tests.append(f"{_name(at.name)} < '{_literal(window.end)}'")
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def _literal(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
