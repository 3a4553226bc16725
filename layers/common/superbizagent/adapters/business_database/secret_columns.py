"""Which columns of a result hold secrets, by the columns of the tables that they come from (SEC-3).

Redaction knows a weak password by its column's name only, and a statement may give it another one. So a
column of secrets is followed through aliases, subqueries and common table expressions. Nothing may be
made of one: a part or a comparison tells of it, and what is hidden still tells by an error, by the time
that it takes, by whether it is NULL or by how many rows there are whether a guess is right. Names are not
told apart by their table: where one is a secret somewhere in the statement, it is one everywhere. A star
has no names to follow: it may stand only where its columns keep theirs.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from sqlglot import exp

from superbizagent.errors import StatementRefused

_STAR: Final = "Columns that get other names or are compared can't be written as a star. Name them."
_MIXED: Final = "A column of secrets can't be mixed with other values. Select it by itself."

_COMPARISONS: Final = (exp.EQ, exp.NullSafeEQ, exp.In)
_NAMES_IN: Final = (exp.Column, exp.Alias, exp.TableAlias, exp.Table, exp.Join)

Outputs = list[tuple[str, bool]]
"""The columns of a query: the name of each, and whether it holds secrets."""


class SecretColumns:
    """One statement's; `is_secret` tells by a column's name whether it holds secrets."""

    def __init__(self, root: exp.Expr, is_secret: Callable[[str], bool]) -> None:
        self._root = root
        names = {identifier.name.lower() for identifier in root.find_all(exp.Identifier)}
        self._known = set(filter(is_secret, names))
        if self._known:
            self._follow()

    def check(self) -> None:
        """Raises StatementRefused where more is done with a secret than to show that there is one.

        How many there are would tell whether a guess is right, though no secret is shown.
        """
        self._check_stars()
        if not self._known:
            return
        for node in self._root.find_all(exp.Identifier, exp.Var):
            # The parser reads some names as something else than a column.
            if node.name.lower() in self._known and not isinstance(node.parent, _NAMES_IN):
                raise StatementRefused(_only(node.name))
        for column in self._root.find_all(exp.Column):
            if self.is_secret(column) and not _harmless(column, self):
                raise StatementRefused(_only(column.name))
        for query in self._root.find_all(exp.Query):
            self._check_mixing(query)
        for alias in self._root.find_all(exp.TableAlias):
            if any(not secret and name in self._known for name, secret in self._named(alias)):
                raise StatementRefused(_MIXED)

    def _check_stars(self) -> None:
        for alias in self._root.find_all(exp.TableAlias):
            if alias.columns and isinstance(alias.parent, exp.CTE | exp.Subquery) and _stars(alias.parent.this):
                raise StatementRefused(_STAR)
        for query in self._root.find_all(exp.SetOperation):
            if _stars(query) and len({_source(select) for select in _selects(query)}) > 1:
                raise StatementRefused(_STAR)
        for select in self._root.find_all(exp.Select):
            if _stars(select) and not isinstance(_place(select), exp.From | exp.Join | exp.CTE | exp.Exists | None):
                raise StatementRefused(_STAR)

    def _check_mixing(self, query: exp.Query) -> None:
        """A guess under a secret's name, or in a column with secrets, would be compared with them."""
        if isinstance(query, exp.SetOperation):
            sides = zip(self._outputs(query.this), self._outputs(query.expression), strict=False)
            mixed = any(left[1] != right[1] for left, right in sides)
        else:
            names = {name.lower() for name, secret in self._outputs(query) if not secret}
            mixed = not names.isdisjoint(self._known) and (query is not self._root or self._compares())
        if mixed:
            raise StatementRefused(_MIXED)

    def _compares(self) -> bool:
        """Whether secrets are compared with one another; some servers know the result's names there."""
        columns = filter(self.is_secret, self._root.find_all(exp.Column))
        return any(isinstance(column.parent, _COMPARISONS) for column in columns)

    def among(self, names: Sequence[str]) -> tuple[bool, ...]:
        """Which of the result's columns, whose `names` the server told, hold secrets."""
        outputs = self._outputs(self._root)
        if len(outputs) == len(names) and all(name != "*" for name, _ in outputs):
            return tuple(secret for _, secret in outputs)
        return tuple(name.lower() in self._known for name in names)

    def is_secret(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and node.name.lower() in self._known

    def _follow(self) -> None:
        """Each pass follows a name one alias further; there are no more aliases than that."""
        queries = list(self._root.find_all(exp.Query))
        before = -1
        while before != (before := len(self._known)):
            for query in queries:
                self._learn(self._outputs(query))
            for alias in self._root.find_all(exp.TableAlias):
                self._learn(self._named(alias))

    def _learn(self, outputs: Outputs) -> None:
        self._known.update(name.lower() for name, secret in outputs if secret and name)

    def _named(self, alias: exp.TableAlias) -> Outputs:
        """Columns that get names with their table: `t(a, b)`."""
        if not alias.columns or not isinstance(alias.parent, exp.CTE | exp.Subquery):
            return []
        outputs = self._outputs(alias.parent.this)
        return [(column.name.lower(), secret) for column, (_, secret) in zip(alias.columns, outputs, strict=False)]

    def _outputs(self, query: exp.Expr) -> Outputs:
        if isinstance(query, exp.Subquery | exp.Paren):
            return self._outputs(query.this)
        if isinstance(query, exp.SetOperation):
            pairs = zip_longest(self._outputs(query.this), self._outputs(query.expression), fillvalue=("", False))
            return [(left[0], left[1] or right[1]) for left, right in pairs]
        return [(_name(item), self.is_secret(item.unalias().unnest())) for item in query.expressions]


def _only(name: str) -> str:
    return (
        f"The values of {name[:64]} are secret: it can be selected by itself, counted, grouped, ordered by, joined with"
        " another secret column and tested for NULL. Nothing else may be compared with it or made of it."
    )


def _name(item: exp.Expr) -> str:
    return "*" if item.is_star else item.alias_or_name


def _harmless(column: exp.Column, columns: SecretColumns) -> bool:
    place = column.parent
    while isinstance(place, exp.Paren):
        place = place.parent
    if _tells_of_null_only(place):
        return True
    if isinstance(place, exp.Alias | exp.Select):
        return _is_selected(column, columns)
    if isinstance(place, exp.Ordered):
        return isinstance(place.parent, exp.Order) and isinstance(place.parent.parent, exp.Query | exp.Window)
    if isinstance(place, _COMPARISONS):
        return _is_compared(column, place, columns)
    return isinstance(place, exp.Group | exp.Rollup | exp.Window)


def _tells_of_null_only(node: exp.Expr | None) -> bool:
    """COUNT(column), COUNT(DISTINCT column), column IS NULL."""
    if isinstance(node, exp.Distinct):
        return _tells_of_null_only(node.parent)
    if isinstance(node, exp.Is):
        return isinstance(node.expression, exp.Null)
    if not isinstance(node, exp.Count):
        return False
    counted = node.this.expressions if isinstance(node.this, exp.Distinct) else [node.this]
    return all(isinstance(item, exp.Column | exp.Star | exp.Literal) for item in counted)


def _is_selected(column: exp.Column, columns: SecretColumns) -> bool:
    """By itself, in a query whose rows are shown, read by another query, or looked for among secrets."""
    select = column.parent_select
    if select is None or all(item.unalias().unnest() is not column for item in select.expressions):
        return False
    place = _place(select)
    if isinstance(place, exp.In):
        return columns.is_secret(place.this)
    return isinstance(place, exp.From | exp.Join | exp.CTE | exp.Exists | None)


def _is_compared(column: exp.Column, place: exp.Expr, columns: SecretColumns) -> bool:
    """With another column of secrets, where rows are chosen."""
    clause = column.find_ancestor(exp.Where, exp.Join, exp.Having, exp.Order, exp.Group)
    if not isinstance(clause, exp.Where | exp.Join):
        return False
    if not isinstance(place, exp.In):
        return columns.is_secret(place.this) and columns.is_secret(place.expression)
    query = place.args.get("query")
    chosen = query.unnest().expressions if query is not None else place.expressions
    return columns.is_secret(place.this) and all(columns.is_secret(item.unalias()) for item in chosen)


def _selects(query: exp.Expr) -> Iterator[exp.Select]:
    """Those whose rows are the rows of `query`."""
    if isinstance(query, exp.Select):
        yield query
    elif isinstance(query, exp.Subquery | exp.Paren):
        yield from _selects(query.this)
    elif isinstance(query, exp.SetOperation):
        yield from _selects(query.this)
        yield from _selects(query.expression)


def _stars(query: exp.Expr) -> bool:
    return any(item.is_star for select in _selects(query) for item in select.expressions)


def _source(select: exp.Select) -> tuple[str, ...]:
    """What is read, and what of it: where these are the same, a star means the same columns."""
    read = [part for part in (select.args.get("from_"), *(select.args.get("joins") or ())) if part is not None]
    # Columns with names of their own are compared one by one, where they stand at the same places.
    columns = [item.sql() if item.is_star else "" for item in select.expressions]
    return (*(part.sql() for part in read), *columns)


def _place(query: exp.Expr) -> exp.Expr | None:
    """Where a query stands, whatever brackets are around it."""
    place = query.parent
    while isinstance(place, exp.Subquery | exp.SetOperation | exp.Paren):
        place = place.parent
    return place
