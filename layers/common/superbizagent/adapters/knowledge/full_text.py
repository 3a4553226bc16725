"""The two engines' full-text queries. Both are given terms of our own only (see `tokens`)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

# SQLite takes 500 parts of one UNION; each is one look-up in the index.
_COUNTED_AT_ONCE = 100


@dataclass(frozen=True)
class _Dialect:
    count: str
    ids: str
    any_of: str


_SQLITE = _Dialect(
    count="SELECT count(*) FROM knowledge_chunk_fts WHERE knowledge_chunk_fts MATCH {term}",
    ids=(
        "SELECT rowid FROM knowledge_chunk_fts WHERE knowledge_chunk_fts MATCH :terms ORDER BY rank, rowid LIMIT :limit"
    ),
    any_of=" OR ",
)

_MYSQL = _Dialect(
    count="SELECT count(*) FROM knowledge_chunk WHERE MATCH (terms) AGAINST ({term} IN BOOLEAN MODE)",
    ids=(
        "SELECT id FROM knowledge_chunk WHERE MATCH (terms) AGAINST (:terms IN BOOLEAN MODE)"
        " ORDER BY MATCH (terms) AGAINST (:terms IN BOOLEAN MODE) DESC, id LIMIT :limit"
    ),
    any_of=" ",
)


def passages_with(connection: Connection, terms: Sequence[str]) -> dict[str, int]:
    """In how many passages each term occurs."""
    counts: dict[str, int] = {}
    for start in range(0, len(terms), _COUNTED_AT_ONCE):
        some = terms[start : start + _COUNTED_AT_ONCE]
        counts.update(zip(some, _counts(connection, some), strict=True))
    return counts


def _counts(connection: Connection, terms: Sequence[str]) -> Sequence[int]:
    count = _dialect(connection).count
    # A union may return its parts in any order.
    parts = [f"SELECT {at}, ({count.format(term=f':t{at}')})" for at in range(len(terms))]
    rows = connection.execute(text(" UNION ALL ".join(parts)), {f"t{at}": term for at, term in enumerate(terms)})
    return [found for _, found in sorted((int(at), int(found)) for at, found in rows)]


def chunks_with_any(connection: Connection, terms: Sequence[str], limit: int) -> Sequence[int]:
    """Ids of chunks that hold any of the terms: all, or the `limit` that the engine ranks first."""
    dialect = _dialect(connection)
    rows = connection.execute(text(dialect.ids), {"terms": dialect.any_of.join(terms), "limit": limit})
    return [int(row[0]) for row in rows]


def _dialect(connection: Connection) -> _Dialect:
    return _SQLITE if connection.dialect.name == "sqlite" else _MYSQL
