"""What a statement can cost before a server listens: no time limit ends one long function call.

MySQL, MariaDB and SQLite look whether a statement was killed or ran too long between two rows, not
while they search one long string in another or write a common table expression out a million times.
So both are bounded before the statement runs, by an estimate from its tree: how long its values can
get, how much searching one row takes, and how many tables it reads once all its common table
expressions are written out. Values that are stored count as short ones: no statement made them long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from superbizagent.errors import StatementRefused

# Characters; the bound on what a server builds for one value.
MAX_VALUE: Final = 4_000_000
# Characters of one row: no client could take in a hundred columns of the longest value.
MAX_ROW: Final = 16_000_000
# Comparisons of characters a row; at five nanoseconds each, two seconds.
MAX_WORK: Final = 400_000_000
MAX_TABLES: Final = 128
# Characters. Servers are set to it for GROUP_CONCAT, see mysql_driver.
GROUP_CONCAT_LENGTH: Final = 16_384

_STORED: Final = 256
_NUMBER: Final = 64
_AGGREGATED: Final = 1_000_000
# Engines bound the backtracking of one match; this is about what they allow.
_MATCH_WORK: Final = 5_000_000
_MATCH_WORK_EACH: Final = 1_000

_TEXT_OPERATORS: Final = (exp.DPipe, exp.JSONExtract, exp.JSONExtractScalar, exp.Collate, exp.Escape)
_SEARCHES: Final = (
    exp.Like, exp.Glob, exp.StrPosition, exp.SubstringIndex, exp.Anonymous,
    exp.JSONExtract, exp.JSONExtractScalar, exp.JSONArrayContains, exp.JSONKeys, exp.JSONValue,
)  # fmt: skip
_MATCHES: Final = (
    exp.RegexpLike, exp.RegexpReplace, exp.RegexpExtract, exp.RegexpSubstr, exp.RegexpInstr, exp.RegexpFullMatch,
)  # fmt: skip
_COUNTS: Final = (
    exp.Count, exp.Sum, exp.Avg, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
    exp.Length, exp.ByteLength, exp.BitLength, exp.StrPosition, exp.RegexpInstr, exp.Extract,
    exp.Not, exp.Neg, exp.MatchAgainst, exp.RegexpLike, exp.Ascii, exp.Unicode, exp.RowNumber, exp.MD5, exp.SHA,
    exp.SHA2,
)  # fmt: skip
_UNBOUNDED_AGGREGATES: Final = (exp.JSONArrayAgg, exp.JSONObjectAgg)
_UNBOUNDED_BY_NAME: Final = frozenset(
    ("json_arrayagg", "json_objectagg", "json_group_array", "json_group_object", "string_agg")
)
# How much longer a text gets at most when its characters are written as escapes or as names.
_ESCAPED: Final = 6
_FORMATTED: Final = 20


@dataclass(frozen=True)
class _Cost:
    """Of an expression, or of any column of a query: its longest value, and the work that it takes."""

    value: int = 0
    work: int = 0

    def widest(self, other: "_Cost") -> "_Cost":
        return _Cost(max(self.value, other.value), max(self.work, other.work))


@dataclass(frozen=True)
class _Query:
    """`tables` counts what it reads when every common table expression is written out."""

    column: _Cost
    tables: int


@dataclass
class _Scope:
    """Where an expression stands: what a column of it costs, and one of the queries around it."""

    column: _Cost
    outer: _Cost
    common: Mapping[str, _Query]
    tables: int = 0
    conditions: list[exp.Expr] = field(default_factory=list)


def check_cost(root: exp.Expr, dialect: str) -> None:
    """Raises StatementRefused when a server could not stop the statement in time."""
    estimate = _Estimate(dialect)
    query = estimate.query(root, _Cost(), {})
    if query.tables > MAX_TABLES:
        raise StatementRefused(
            f"The statement reads tables {query.tables} times once its subqueries are written out;"
            f" at most {MAX_TABLES} are allowed."
        )


class _Estimate:
    def __init__(self, dialect: str) -> None:
        self._group_concat = GROUP_CONCAT_LENGTH if dialect == "mysql" else _AGGREGATED

    def query(self, node: exp.Expr, outer: _Cost, common: Mapping[str, _Query]) -> _Query:
        """`outer` is what a column of the queries around costs; `common` the named queries in scope."""
        with_ = node.args.get("with_")
        for cte in with_.expressions if isinstance(with_, exp.With) else ():
            common = {**common, cte.alias.lower(): self.query(cte.this, outer, common)}
        if isinstance(node, exp.Select):
            return self._select(node, outer, common)
        parts = [part for part in (node.this, node.args.get("expression")) if isinstance(part, exp.Query)]
        queries = [self.query(part, outer, common) for part in parts]
        column, tables = _Cost(), 0
        for query in queries:
            column, tables = column.widest(query.column), tables + query.tables
        scope = _Scope(column, outer.widest(column), common, tables)
        self._rest(node, scope, skip=("with_", "this", "expression"))
        return _Query(column, _bounded_tables(scope.tables))

    def _select(self, node: exp.Select, outer: _Cost, common: Mapping[str, _Query]) -> _Query:
        scope = _Scope(_Cost(_STORED), outer, common)
        sources = [node.args.get("from_"), *(node.args.get("joins") or ())]
        for source in sources:
            self._source(source, scope)
        scope.column = scope.column.widest(outer)
        scope.outer = scope.column
        selected = _Cost()
        work = 0
        row = 0
        for expression in node.expressions:
            cost = self._expression(expression, scope)
            selected = selected.widest(cost)
            work += cost.work
            row += cost.value
            # A subquery further right may use the names of those before it.
            scope.outer = scope.outer.widest(cost)
        # HAVING and ORDER BY use the names of what is selected.
        scope.column = scope.column.widest(selected)
        work += self._rest(node, scope, skip=("with_", "expressions", "from_", "joins"))
        work += sum(self._expression(condition, scope).work for condition in scope.conditions)
        _check_work(work)
        if row > MAX_ROW:
            raise StatementRefused("The statement could build rows that are too long. Select less.")
        # One without tables is written out like any other.
        return _Query(selected, _bounded_tables(max(scope.tables, 1)))

    def _source(self, node: exp.Expr | None, scope: _Scope) -> None:
        """Takes the tables and subqueries below FROM or JOIN into the scope."""
        if node is None:
            return
        if isinstance(node, exp.Table):
            found = scope.common.get(node.name.lower(), _Query(_Cost(_STORED), 1))
        elif isinstance(node, exp.Query) and not _is_bracketed_join(node):
            found = self.query(node, scope.outer, scope.common)
        else:
            found = None
        if isinstance(node, exp.Join) and node.args.get("on") is not None:
            scope.conditions.append(node.args["on"])
        if found is not None:
            scope.column = scope.column.widest(found.column)
            scope.tables += found.tables
        for name in ("this", "joins"):
            value = node.args.get(name)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, exp.From | exp.Join | exp.Table | exp.Paren) or (
                    isinstance(child, exp.Query) and found is None
                ):
                    self._source(child, scope)

    def _rest(self, node: exp.Expr, scope: _Scope, skip: tuple[str, ...]) -> int:
        """The work of the other clauses."""
        work = 0
        for name, value in node.args.items():
            if name in skip:
                continue
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, exp.Expr):
                    work += self._expression(child, scope).work
        return work

    def _expression(self, node: exp.Expr, scope: _Scope) -> _Cost:
        if isinstance(node, exp.Query):
            query = self.query(node, scope.outer, scope.common)
            scope.tables += query.tables
            return query.column
        if isinstance(node, exp.Column | exp.Star):
            return scope.column
        if isinstance(node, exp.Literal):
            return _Cost(len(node.name))
        children = [self._expression(child, scope) for child in node.iter_expressions()]
        cost = _cost(node, children, self._group_concat)
        cost = replace(cost, work=cost.work + sum(child.work for child in children))
        if cost.value > MAX_VALUE:
            raise StatementRefused("The statement could build values that are too long. Concatenate less.")
        _check_work(cost.work)
        return cost


def _is_bracketed_join(node: exp.Expr) -> bool:
    return isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Select | exp.SetOperation)


def _check_work(work: int) -> None:
    if work > MAX_WORK:
        raise StatementRefused("The statement searches long values that it builds itself. Search the columns.")


def _bounded_tables(tables: int) -> int:
    # The numbers of a hostile statement have hundreds of digits.
    return min(tables, 1_000_000_000)


def _cost(node: exp.Expr, children: list[_Cost], group_concat: int) -> _Cost:
    """Of this node alone, above its children."""
    together = sum(child.value for child in children)
    longest = max((child.value for child in children), default=0)
    work = 0
    if isinstance(node, _SEARCHES):
        work = longest * (together - longest + 1)
    if isinstance(node, _MATCHES):
        work = _MATCH_WORK + together * _MATCH_WORK_EACH
    value = _value(node, together, longest, group_concat)
    if isinstance(node, exp.Replace | exp.RegexpReplace):
        # The rest of the text is moved for each place that is replaced.
        work += max(value, longest) ** 2 // 8
    return _Cost(value, work)


def _value(node: exp.Expr, together: int, longest: int, group_concat: int) -> int:
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, exp.GroupConcat):
        return group_concat
    if isinstance(node, _UNBOUNDED_AGGREGATES) or name in _UNBOUNDED_BY_NAME:
        return _AGGREGATED
    if _is_number(node):
        return _NUMBER
    if isinstance(node, exp.Replace | exp.RegexpReplace):
        return _replaced(node, longest, together)
    if isinstance(node, exp.Pad):
        return max(_whole_number(node.args.get("expression")), 1)
    if isinstance(node, exp.Cast):
        return max(together, *(_whole_number(size.this) for size in node.to.find_all(exp.DataTypeParam)), 0)
    if isinstance(node, exp.TimeToStr | exp.Anonymous | exp.NumberToStr) and name not in ("concat", "elt"):
        return together * (_FORMATTED if not name else _ESCAPED) + _NUMBER
    if isinstance(node, exp.JSONObject | exp.JSONArray | exp.JSONFormat | exp.ParseJSON | exp.Hex | exp.LowerHex):
        return together * _ESCAPED + _NUMBER
    if isinstance(node, exp.ConcatWs):
        return together * 2 if not node.expressions else together + longest * len(node.expressions)
    return max(together, 1)


def _is_number(node: exp.Expr) -> bool:
    if isinstance(node, _TEXT_OPERATORS):
        return False
    return isinstance(node, (exp.Predicate, exp.Binary, *_COUNTS))


def _replaced(node: exp.Expr, longest: int, together: int) -> int:
    wanted, replacement = node.args.get("expression"), node.args.get("replacement")
    if isinstance(node, exp.Replace) and isinstance(wanted, exp.Literal) and isinstance(replacement, exp.Literal):
        growth = -(-len(replacement.name) // max(len(wanted.name), 1))
        return longest * max(growth, 1)
    # An expression may match the empty text, before and after each character.
    length = len(replacement.name) if isinstance(replacement, exp.Literal) else together
    return (longest + 1) * (length + 1)


def _whole_number(node: object) -> int:
    """The number that a length is given as; anything else could be any length."""
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal():
        return int(node.name)
    return MAX_VALUE + 1
