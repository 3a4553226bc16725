"""The tables of the index, as migration V014 makes them."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects.mysql import MEDIUMTEXT

_Key = BigInteger().with_variant(Integer, "sqlite")
_LongText = Text().with_variant(MEDIUMTEXT(), "mysql")

COLLECTION_CHARACTERS = 64
SOURCE_CHARACTERS = 500

metadata = MetaData()

knowledge_document = Table(
    "knowledge_document",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("collection", String(COLLECTION_CHARACTERS), nullable=False),
    Column("source", String(SOURCE_CHARACTERS), nullable=False),
    Column("title", String(200), nullable=False),
    Column("digest", String(64), nullable=False),
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
    Index("ux_knowledge_chunk_position", "document_id", "position", unique=True),
)
