"""The tables of the index, as migrations V014 to V016 make them."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects.mysql import MEDIUMBLOB, MEDIUMTEXT

_Key = BigInteger().with_variant(Integer, "sqlite")
_LongText = Text().with_variant(MEDIUMTEXT(), "mysql")

COLLECTION_CHARACTERS = 64
SOURCE_CHARACTERS = 500
MODEL_CHARACTERS = 200

metadata = MetaData()

knowledge_document = Table(
    "knowledge_document",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("collection", String(COLLECTION_CHARACTERS), nullable=False),
    Column("source", String(SOURCE_CHARACTERS), nullable=False),
    Column("title", String(200), nullable=False),
    Column("digest", String(64), nullable=False),
    # What `knowledge_embedding` has this document's beginning under; null until it is indexed anew after V016.
    Column("embedding_digest", String(64)),
    Index("ux_knowledge_document_source", "collection", "source", unique=True),
)

knowledge_chunk = Table(
    "knowledge_chunk",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("document_id", _Key, ForeignKey("knowledge_document.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("passage_id", String(16), nullable=False),
    Column("heading_path", JSON, nullable=False),
    Column("text", _LongText, nullable=False),
    # Three lines: the terms of the title, of the headings, of the text. The full-text index is on this.
    Column("terms", _LongText, nullable=False),
    Column("length", Integer, nullable=False),
    # What `knowledge_embedding` has this passage under; null until it is indexed anew after V015.
    Column("embedding_digest", String(64)),
    Index("ux_knowledge_chunk_position", "document_id", "position", unique=True),
    Index("ix_knowledge_chunk_embedding", "embedding_digest"),
)

knowledge_embedding = Table(
    "knowledge_embedding",
    metadata,
    Column("model", String(MODEL_CHARACTERS), primary_key=True),
    Column("digest", String(64), primary_key=True),
    Column("dimension", Integer, nullable=False),
    # float32, little-endian, of length one.
    Column("vector", LargeBinary().with_variant(MEDIUMBLOB(), "mysql"), nullable=False),
)
