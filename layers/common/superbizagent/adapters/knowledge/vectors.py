"""The table of embeddings."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from superbizagent.adapters.knowledge.embedding import Vector, embedded_text, from_bytes, to_bytes
from superbizagent.adapters.knowledge.tables import knowledge_chunk, knowledge_document, knowledge_embedding


@dataclass(frozen=True)
class Pending:
    """A passage without an embedding; `after` continues the listing behind it."""

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


def lead_vectors(connection: Connection, model: str, limit: int) -> Mapping[int, Vector]:
    """Of the first `limit` documents, by document: the vector of its first passage, which says what it is about."""
    chunk, table = knowledge_chunk, knowledge_embedding
    statement = (
        select(chunk.c.document_id, table.c.vector)
        .join(table, table.c.digest == chunk.c.embedding_digest)
        .where(chunk.c.position == 0, _of(model))
        .order_by(chunk.c.document_id)
        .limit(limit)
    )
    return {row.document_id: from_bytes(bytes(row.vector)) for row in connection.execute(statement)}


def pending(connection: Connection, model: str, after: int, limit: int) -> Sequence[Pending]:
    """Passages without an embedding of this model, each text once."""
    chunk, document, table = knowledge_chunk, knowledge_document, knowledge_embedding
    first = chunk.alias()
    has_vector = select(table.c.digest).where(_of(model), table.c.digest == chunk.c.embedding_digest)
    statement = (
        select(
            chunk.c.id,
            chunk.c.embedding_digest,
            chunk.c.heading_path,
            chunk.c.text,
            document.c.title,
            first.c.text.label("lead"),
        )
        .join(document, chunk.c.document_id == document.c.id)
        .join(first, (first.c.document_id == document.c.id) & (first.c.position == 0))
        .where(chunk.c.id > after, chunk.c.embedding_digest.is_not(None), ~has_vector.exists())
        .order_by(chunk.c.id)
        .limit(limit)
    )
    return [
        Pending(row.embedding_digest, embedded_text(row.title, row.heading_path, row.lead, row.text), row.id)
        for row in connection.execute(statement)
    ]


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
    """Embeddings of passages that no document has any more, whichever model made them."""
    used = select(knowledge_chunk.c.embedding_digest).where(knowledge_chunk.c.embedding_digest.is_not(None))
    connection.execute(delete(knowledge_embedding).where(knowledge_embedding.c.digest.not_in(used)))


def _of(model: str) -> ColumnElement[bool]:
    return knowledge_embedding.c.model == model
