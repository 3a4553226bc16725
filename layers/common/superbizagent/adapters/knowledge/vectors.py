"""The table of embeddings."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from superbizagent.adapters.knowledge.embedding import Vector, embedded_opening, embedded_text, from_bytes, to_bytes
from superbizagent.adapters.knowledge.tables import knowledge_chunk, knowledge_document, knowledge_embedding


@dataclass(frozen=True)
class Pending:
    """A text without an embedding; `after` continues the listing behind it."""

    digest: str
    text: str
    after: int


def vectors_of(connection: Connection, model: str, digests: Collection[str]) -> Mapping[str, Vector]:
    """Those that are stored, by digest."""
    table = knowledge_embedding
    statement = select(table.c.digest, table.c.vector).where(_of(model), table.c.digest.in_(digests))
    return {row.digest: from_bytes(bytes(row.vector)) for row in connection.execute(statement)}


def any_stored(connection: Connection, model: str) -> bool:
    return connection.execute(select(knowledge_embedding.c.digest).where(_of(model)).limit(1)).first() is not None


def opening_vectors(connection: Connection, model: str, limit: int) -> Mapping[int, Vector]:
    """Of the first `limit` documents, by document: the vector of its beginning, which says what it is about."""
    document, table = knowledge_document, knowledge_embedding
    statement = (
        select(document.c.id, table.c.vector)
        .join(table, table.c.digest == document.c.embedding_digest)
        .where(_of(model))
        .order_by(document.c.id)
        .limit(limit)
    )
    return {row.id: from_bytes(bytes(row.vector)) for row in connection.execute(statement)}


def pending_passages(connection: Connection, model: str, after: int, limit: int) -> Sequence[Pending]:
    """Passages without an embedding of this model."""
    chunk, document = knowledge_chunk, knowledge_document
    statement = (
        select(chunk.c.id, chunk.c.embedding_digest, chunk.c.heading_path, chunk.c.text, document.c.title)
        .join(document, chunk.c.document_id == document.c.id)
        .where(chunk.c.id > after, _without_vector(chunk.c.embedding_digest, model))
        .order_by(chunk.c.id)
        .limit(limit)
    )
    return [
        Pending(row.embedding_digest, embedded_text(row.title, row.heading_path, row.text), row.id)
        for row in connection.execute(statement)
    ]


def pending_openings(connection: Connection, model: str, after: int, limit: int) -> Sequence[Pending]:
    """Documents whose beginning has no embedding of this model."""
    document = knowledge_document
    statement = (
        select(document.c.id, document.c.embedding_digest, document.c.title)
        .where(document.c.id > after, _without_vector(document.c.embedding_digest, model))
        .order_by(document.c.id)
        .limit(limit)
    )
    rows = connection.execute(statement).all()
    texts = _texts(connection, [row.id for row in rows])
    return [Pending(row.embedding_digest, embedded_opening(row.title, texts[row.id]), row.id) for row in rows]


def _texts(connection: Connection, documents: Collection[int]) -> Mapping[int, Sequence[str]]:
    """Those of each document's passages, in order."""
    chunk = knowledge_chunk
    statement = (
        select(chunk.c.document_id, chunk.c.text).where(chunk.c.document_id.in_(documents)).order_by(chunk.c.position)
    )
    texts: defaultdict[int, list[str]] = defaultdict(list)
    for row in connection.execute(statement):
        texts[row.document_id].append(row.text)
    return texts


def store(connection: Connection, model: str, vectors: Mapping[str, Vector]) -> None:
    """Those that another ingest has stored meanwhile stay; a race for one is lost and the unit repeated."""
    table = knowledge_embedding
    known = select(table.c.digest).where(_of(model), table.c.digest.in_(vectors))
    present = set(connection.execute(known).scalars())
    rows = [
        {"model": model, "digest": digest, "dimension": len(vector), "vector": to_bytes(vector)}
        for digest, vector in vectors.items()
        if digest not in present
    ]
    if rows:
        connection.execute(insert(table), rows)


def remove_unused(connection: Connection) -> None:
    """Embeddings of what no document says any more, whichever model made them."""
    table = knowledge_embedding
    used = (
        select(column).where(column.is_not(None))
        for column in (knowledge_chunk.c.embedding_digest, knowledge_document.c.embedding_digest)
    )
    connection.execute(delete(table).where(*(table.c.digest.not_in(digests) for digests in used)))


def _without_vector(digest: ColumnElement[str | None], model: str) -> ColumnElement[bool]:
    table = knowledge_embedding
    has_vector = select(table.c.digest).where(_of(model), table.c.digest == digest).exists()
    return digest.is_not(None) & ~has_vector


def _of(model: str) -> ColumnElement[bool]:
    return knowledge_embedding.c.model == model
