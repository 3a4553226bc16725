"""Which statements may reach the business database (SEC-1): one SELECT over the listed tables.

The text that is checked is the text that runs, so nothing that a server could read differently gets
through: comments are taken out beforehand (those that servers execute are refused), and refused are
characters outside of quotes that parsers disagree about. What is left is parsed, and the tree may hold only the node
types, functions and tables that are listed here; all else is refused.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from superbizagent.adapters.business_database.comments import without_comments
from superbizagent.adapters.business_database.quotes import Dialect, after_quoted, opening_quotes
from superbizagent.adapters.business_database.secret_columns import SecretColumns
from superbizagent.adapters.business_database.statement_cost import check_cost
from superbizagent.adapters.business_database.vocabulary import (
    ARGUMENTS,
    FUNCTIONS,
    KEYWORDS_BEFORE_BRACKET,
    NODES,
)
from superbizagent.errors import StatementRefused

MAX_LENGTH: Final = 10_000
MAX_NESTING: Final = 24
MAX_TOKENS: Final = 2_000

# The parser logs the text of statements that it does not know.
logging.getLogger("sqlglot").disabled = True

# Without those that only some servers give a meaning: newer ones read $$ as a quote, for one.
_OUTSIDE_QUOTES: Final = frozenset(" \t\r\n_(),.;+-*/%<>=!&|^~")
# Among them what MariaDB answers without brackets.
_REFUSED_WORDS: Final = frozenset(
    (
        *("into", "outfile", "dumpfile", "procedure", "lock", "table"),
        *("current_role", "current_user", "session_user", "system_user"),
    )
)
_LOCKING_AFTER_FOR: Final = frozenset(("update", "share", "no", "key"))
# SQLite folds the case of ASCII letters only; folding more could take another table for a listed one.
_ASCII_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_FIRST_WORDS: Final = frozenset(("select", "with", "("))


def _nothing(_: str) -> bool:
    return False


def _without_secrets() -> SecretColumns:
    return SecretColumns(exp.Select(), _nothing)


@dataclass(frozen=True)
class CheckedStatement:
    """A statement that may run as it is. `tables` are those it reads; `limit` is its own outermost one.

    `secrets` knows which of its columns hold secrets.
    """

    text: str
    tables: tuple[str, ...]
    limit: int | None
    secrets: SecretColumns = field(default_factory=_without_secrets, compare=False, repr=False)


def check_statement(
    statement: str, dialect: Dialect, tables: Collection[str], is_secret: Callable[[str], bool] = _nothing
) -> CheckedStatement:
    """The statement without comments and a last semicolon; raises StatementRefused with a hint for the model.

    `is_secret` tells by a column's name whether it holds secrets.
    """
    if len(statement) > MAX_LENGTH:
        raise StatementRefused(f"The statement has {len(statement)} characters; at most {MAX_LENGTH} are allowed.")
    text = without_comments(statement, dialect).strip(" \t\r\n")
    text = text[:-1].rstrip(" \t\r\n") if text.endswith(";") else text
    if not text:
        raise StatementRefused("The statement is empty. Write one SELECT.")
    _check_characters(text, dialect)
    try:
        tokens = sqlglot.tokenize(text, dialect=dialect)
        _check_tokens(tokens)
        trees = sqlglot.parse(text, dialect=dialect)
        return _checked(text, tokens, trees, dialect, tables, is_secret)
    except StatementRefused:
        raise
    except (SqlglotError, RecursionError, ValueError, AttributeError, TypeError, KeyError, IndexError):
        # Not chained: the parser's error quotes the statement, which no log may hold (SEC-4).
        raise StatementRefused(
            "The statement could not be parsed. Write one plain SELECT, without comments or variables."
        ) from None


def _checked(
    text: str,
    tokens: list[Token],
    trees: list[exp.Expr | None],
    dialect: Dialect,
    tables: Collection[str],
    is_secret: Callable[[str], bool],
) -> CheckedStatement:
    if len(trees) != 1 or trees[0] is None:
        raise StatementRefused("Only one statement is allowed.")
    root = trees[0]
    if not isinstance(root, exp.Select | exp.SetOperation | exp.Subquery):
        raise StatementRefused("Only a SELECT is allowed; the tables and their columns are listed already.")
    if isinstance(root, exp.Select) and not root.expressions:
        raise StatementRefused("The statement selects nothing. Write one SELECT.")
    names = _TableNames(dialect, tables)
    read: dict[str, None] = {}
    for node in root.walk():
        if isinstance(node, exp.Table) and (name := names.check(node)):
            read[name] = None
        _check_node(node)
    _check_calls(tokens, names.common(root))
    check_cost(root, dialect)
    secrets = SecretColumns(root, is_secret)
    secrets.check()
    return CheckedStatement(text, tuple(read), _limit_of(root), secrets)


def _limit_of(root: exp.Expr) -> int | None:
    limit = _written_limit(root.args.get("limit"))
    if limit is None:
        return None
    selected = root.args.get("expressions") or []
    if selected and "group" not in {key for key, value in root.args.items() if value}:
        single = all(isinstance(item.unalias(), exp.AggFunc) for item in selected)
        if single:
            return None
    return int(limit) if limit.isdecimal() else None


def _written_limit(limit: exp.Expr | None) -> str | None:
    """Of `LIMIT n` or `FETCH FIRST n ROWS ONLY`, which is one row where no number is written."""
    if isinstance(limit, exp.Fetch):
        count = limit.args.get("count") or exp.Literal.number(1)
    else:
        count = limit.expression if isinstance(limit, exp.Limit) else None
    return count.name if isinstance(count, exp.Literal) else None


# Before parsing: characters and comments


def _check_characters(text: str, dialect: Dialect) -> None:
    if "\0" in text:
        raise StatementRefused("The statement holds a zero character.")
    depth = 0
    for part in _outside_quotes(text, dialect):
        _check_outside(part)
        for character in part:
            depth += {"(": 1, ")": -1}.get(character, 0)
            if depth > MAX_NESTING:
                raise StatementRefused(f"Brackets may be nested {MAX_NESTING} deep at most.")


def _check_outside(part: str) -> None:
    if any(mark in part for mark in ("/*", "*/", "--")):
        raise StatementRefused("A comment is not closed or not opened. Leave comments out.")
    if "@" in part:
        raise StatementRefused("User and system variables are not allowed.")
    for character in part:
        if not character.isalnum() and character not in _OUTSIDE_QUOTES:
            raise StatementRefused(
                "Outside quotes only letters, digits, operators and white space are allowed:"
                " no parameters, braces, backslashes, dollar signs or typographic characters."
            )


def _outside_quotes(text: str, dialect: Dialect) -> Iterator[str]:
    """The pieces of `text` that are not in quotes, by the server's own rules of quoting."""
    position = 0
    begin = 0
    quotes = opening_quotes(dialect)
    while position < len(text):
        if text[position] not in quotes:
            position += 1
            continue
        yield text[begin:position]
        position = begin = after_quoted(text, position, dialect)
    yield text[begin:]


def _check_tokens(tokens: list[Token]) -> None:
    if len(tokens) > MAX_TOKENS:
        raise StatementRefused(f"The statement has {len(tokens)} words and signs; at most {MAX_TOKENS} are allowed.")
    if not tokens or tokens[0].text.lower() not in _FIRST_WORDS:
        raise StatementRefused("Only a SELECT is allowed; the tables and their columns are listed already.")
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise StatementRefused("Only one statement is allowed.")
        if not _quoted(token) and token.text.lower() in _REFUSED_WORDS:
            raise StatementRefused(f"{token.text.upper()} is not allowed.")
    for token, following in pairwise(tokens):
        if token.text.lower() == "for" and following.text.lower() in _LOCKING_AFTER_FOR and not _quoted(token):
            raise StatementRefused("Locking reads are not allowed.")


def _quoted(token: Token) -> bool:
    # A word may be tokenised as an identifier without having been quoted; its extent tells.
    return token.end - token.start + 1 > len(token.text) or token.token_type is TokenType.STRING


def _check_calls(tokens: list[Token], common: Collection[str]) -> None:
    """Every word before a bracket is a listed function, whatever the parser made of it."""
    for token, following in pairwise(tokens):
        if following.token_type is not TokenType.L_PAREN:
            continue
        # GROUP BY and its like are one token.
        word = token.text.lower().split()[-1] if token.text.strip() else ""
        if _quoted(token):
            if token.token_type is not TokenType.STRING and token.text not in common:
                raise StatementRefused("A function's name must not be quoted.")
            continue
        if not re.match(r"\w", word) or token.token_type is TokenType.NUMBER:
            continue
        if word not in FUNCTIONS and word not in KEYWORDS_BEFORE_BRACKET and token.text not in common:
            raise StatementRefused(f"The function {_shown(token.text)} is not allowed.")


# The tree


def _check_node(node: exp.Expr) -> None:
    kind = type(node).__name__
    if isinstance(node, exp.Anonymous):
        if not isinstance(node.this, str) or node.this.lower() not in FUNCTIONS:
            raise StatementRefused(f"The function {_shown(node.name)} is not allowed.")
    elif isinstance(node, exp.With) and node.args.get("recursive"):
        raise StatementRefused(
            "Recursive queries are not allowed. To count by time, group by the times that there are: a time that is"
            " missing has no rows."
        )
    elif kind not in NODES:
        raise StatementRefused(_not_allowed(node))
    allowed = ARGUMENTS.get(kind)
    if allowed is None:
        return
    for name, value in node.args.items():
        if value and name == "locks":
            raise StatementRefused("Locking reads are not allowed.")
        if value and name not in allowed:
            part = _PARTS.get(name, _shown(name.strip("_").upper()))
            raise StatementRefused(f"{part} is not allowed in a statement. Leave it out.")


# As SQL calls what the parser has names of its own for.
_PARTS: Final = {
    "hints": "An index hint (USE, FORCE, IGNORE INDEX)",
    "hint": "A hint",
    "operation_modifiers": "A modifier after SELECT (such as SQL_NO_CACHE, STRAIGHT_JOIN)",
    "into": "INTO",
    "partition": "PARTITION",
}


def _not_allowed(node: exp.Expr) -> str:
    if isinstance(node, exp.Func):
        return f"The function {_shown(node.sql_name())} is not allowed. Do without it."
    if isinstance(node, exp.Values):
        return "VALUES is not allowed as a table. Write SELECT … UNION ALL SELECT … instead."
    if isinstance(node, exp.Introducer):
        return "Character set introducers are not allowed. Leave them out: the connection uses utf8mb4."
    return f"{_shown(type(node).__name__)} is not allowed in a statement."


def _shown(name: str) -> str:
    """A name of the statement's as it may stand in a hint: short, and nothing but a name."""
    return re.sub(r"\W", "", name)[:40] or "of that name"


class _TableNames:
    """Which table a name means: a common table expression in scope, or one of the listed tables."""

    def __init__(self, dialect: Dialect, tables: Collection[str]) -> None:
        # MySQL tells tables apart by case on most systems; believing less than the server does could
        # let another table in.
        self._fold = _ascii_lower if dialect == "sqlite" else str
        self._dual = dialect == "mysql"
        self._tables = {self._fold(table): table for table in tables}

    def check(self, table: exp.Table) -> str | None:
        """The listed table that is read; None for a common table expression. Raises StatementRefused."""
        if not isinstance(table.this, exp.Identifier):
            raise StatementRefused("Table functions are not allowed. Read JSON with JSON_EXTRACT.")
        if table.args.get("db") or table.args.get("catalog"):
            raise StatementRefused("Write table names without a schema.")
        name = self._fold(table.name)
        if self._in_scope(table, name):
            return None
        if self._dual and not table.this.args.get("quoted") and name.lower() == "dual":
            return None
        if name not in self._tables:
            raise StatementRefused(
                f"There is no table {_shown(table.name)} here. The tables are: {', '.join(self._tables.values())}."
            )
        return self._tables[name]

    def common(self, root: exp.Expr) -> set[str]:
        """The names of all common table expressions."""
        return {cte.alias for cte in root.find_all(exp.CTE)}

    def _in_scope(self, table: exp.Table, name: str) -> bool:
        inner: exp.Expr = table
        outer = table.parent
        while outer is not None:
            with_ = outer.args.get("with_")
            # Inside the list of expressions itself only the earlier ones are known.
            if isinstance(with_, exp.With) and inner is not with_ and name in self._names(with_.expressions):
                return True
            if isinstance(outer, exp.With):
                earlier = outer.expressions[: _index(outer.expressions, inner)]
                if name in self._names(earlier):
                    return True
            inner, outer = outer, outer.parent
        return False

    def _names(self, expressions: list[exp.Expr]) -> set[str]:
        return {self._fold(expression.alias) for expression in expressions}


def _ascii_lower(name: str) -> str:
    return name.translate(_ASCII_LOWER)


def _index(expressions: list[exp.Expr], wanted: exp.Expr) -> int:
    return next((at for at, expression in enumerate(expressions) if expression is wanted), 0)
