"""Which columns of a result hold secrets, by the columns of the tables that they come from (SEC-3).

Redaction knows a weak password by its column's name only, and a statement may give it another one, or
make something else of it: a part, a comparison, a number. What comes from such a column is followed
through aliases, subqueries and common table expressions. Names are not told apart by their table:
where one is a secret somewhere in the statement, it is one everywhere.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from itertools import zip_longest
from typing import Final

from sqlglot import exp

from superbizagent.errors import StatementRefused

_MIXED: Final = "A column of secrets can't be mixed with other values. Select it by itself."


class Exposure(IntEnum):
    """How a column of a result is shown: as it is, as a field for a password, or not at all."""

    PLAIN = 0
    FIELD = 1
    DERIVED = 2


Outputs = list[tuple[str, Exposure]]


class SecretColumns:
    """One statement's; `is_secret` tells by a column's name whether it holds secrets."""

    def __init__(self, root: exp.Expr, is_secret: Callable[[str], bool]) -> None:
        self._root = root
        self._known = {
            name: Exposure.FIELD
            for name in {identifier.name.lower() for identifier in root.find_all(exp.Identifier)}
            if is_secret(name)
        }
        if self._known:
            self._follow()

    def check(self) -> None:
        """Raises StatementRefused where rows are chosen, grouped or ordered by what a secret is.

        How many there are would tell whether a guess is right, though no secret is shown.
        """
        if not self._known:
            return
        for query in self._root.find_all(exp.Query):
            self._check_mixing(query)
        for alias in self._root.find_all(exp.TableAlias):
            if any(not exposure and name in self._known for name, exposure in self._named(alias)):
                raise StatementRefused(_MIXED)
        for clause in self._root.find_all(exp.Where, exp.Having, exp.Join, exp.Order, exp.Group):
            for column in self._secrets(clause):
                if not _harmless(column, self):
                    raise StatementRefused(
                        f"The values of {column.name[:64]} are secret: it can be counted, grouped, joined with another "
                        "secret column and tested for NULL, and not be compared otherwise."
                    )

    def _check_mixing(self, query: exp.Query) -> None:
        """A guess under a secret's name, or in a column with secrets, would be compared with them."""
        if isinstance(query, exp.SetOperation):
            sides = zip(self._outputs(query.this), self._outputs(query.expression), strict=False)
            mixed = any(bool(left[1]) != bool(right[1]) for left, right in sides)
        else:
            names = {name.lower() for name, exposure in self._outputs(query) if exposure is Exposure.PLAIN}
            mixed = query is not self._root and not names.isdisjoint(self._known)
        if mixed:
            raise StatementRefused(_MIXED)

    def exposures(self, names: Sequence[str]) -> tuple[Exposure, ...]:
        """Of the result's columns, whose `names` the server told."""
        outputs = self._outputs(self._root)
        if len(outputs) == len(names) and all(name != "*" for name, _ in outputs):
            return tuple(exposure for _, exposure in outputs)
        return tuple(self._known.get(name.lower(), Exposure.PLAIN) for name in names)

    def is_secret(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and node.name.lower() in self._known

    def _follow(self) -> None:
        """Each pass follows a name one alias further; there are no more aliases than that."""
        queries = list(self._root.find_all(exp.Query))
        before = -1
        while before != (before := sum(self._known.values())):
            for query in queries:
                self._learn(self._outputs(query))
            for alias in self._root.find_all(exp.TableAlias):
                self._learn(self._named(alias))

    def _learn(self, outputs: Outputs) -> None:
        for name, exposure in outputs:
            if exposure and name:
                self._known[name.lower()] = max(exposure, self._known.get(name.lower(), Exposure.PLAIN))

    def _named(self, alias: exp.TableAlias) -> Outputs:
        """Columns that get names with their table: `t(a, b)`."""
        if not alias.columns or not isinstance(alias.parent, exp.CTE | exp.Subquery):
            return []
        outputs = self._outputs(alias.parent.this)
        return [(column.name.lower(), exposure) for column, (_, exposure) in zip(alias.columns, outputs, strict=False)]

    def _outputs(self, query: exp.Expr) -> Outputs:
        if isinstance(query, exp.Subquery | exp.Paren):
            return self._outputs(query.this)
        if isinstance(query, exp.SetOperation):
            pairs = zip_longest(
                self._outputs(query.this), self._outputs(query.expression), fillvalue=("", Exposure.PLAIN)
            )
            return [(left[0], max(left[1], right[1])) for left, right in pairs]
        return [(_name(item), self._exposure(item)) for item in query.expressions]

    def _exposure(self, item: exp.Expr) -> Exposure:
        inner = item.unalias().unnest()
        if isinstance(inner, exp.Column):
            return self._known.get(inner.name.lower(), Exposure.PLAIN)
        if isinstance(inner, exp.Query):
            inner = inner.unnest()
        return Exposure.DERIVED if any(self._secrets(inner)) else Exposure.PLAIN

    def _secrets(self, node: exp.Expr) -> Iterator[exp.Column]:
        """The secret columns in it that more than NULL or not is told of."""
        for column in node.walk(prune=_tells_of_null_only):
            if isinstance(column, exp.Column) and self.is_secret(column) and not _tells_of_null_only(column.parent):
                yield column


def _name(item: exp.Expr) -> str:
    return "*" if item.is_star else item.alias_or_name


def _tells_of_null_only(node: exp.Expr | None) -> bool:
    """COUNT(column), COUNT(DISTINCT column), column IS NULL."""
    if isinstance(node, exp.Is):
        return isinstance(node.expression, exp.Null)
    if not isinstance(node, exp.Count):
        return False
    counted = node.this.expressions if isinstance(node.this, exp.Distinct) else [node.this]
    return all(isinstance(item, exp.Column | exp.Star | exp.Literal) for item in counted)


def _harmless(column: exp.Column, columns: SecretColumns) -> bool:
    parent = column.parent
    if isinstance(parent, exp.EQ | exp.NullSafeEQ):
        return columns.is_secret(parent.this) and columns.is_secret(parent.expression)
    if isinstance(parent, exp.Ordered):
        parent = parent.parent
    # What a subquery selects is judged where it is compared.
    return isinstance(parent, exp.Group | exp.Order | exp.Join | exp.Rollup) or _selected_by_secret_in(column, columns)


def _selected_by_secret_in(column: exp.Column, columns: SecretColumns) -> bool:
    """`secret IN (SELECT secret …)`, either of the two; or in a table that is derived for a join."""
    select = column.parent_select if isinstance(column.parent, exp.Select | exp.Alias) else None
    place = column.parent if select is None else _place(select)
    if not isinstance(place, exp.In):
        return select is not None and isinstance(place, exp.From | exp.Join | exp.CTE)
    query = place.args.get("query")
    chosen = query.unnest().expressions if query is not None else place.expressions
    return columns.is_secret(place.this) and all(columns.is_secret(item.unalias()) for item in chosen)


def _place(query: exp.Expr) -> exp.Expr | None:
    """Where a query stands, whatever brackets are around it."""
    place = query.parent
    while isinstance(place, exp.Subquery | exp.SetOperation | exp.Paren):
        place = place.parent
    return place
