"""Embeddings of passages, kept under a digest of what was embedded: unchanged passages never pay twice."""

from sqlalchemy import Column, Integer, LargeBinary, String
from sqlalchemy.dialects.mysql import MEDIUMBLOB

from migrations import steps

revision = "V015"
down_revision = "V014"


def upgrade() -> None:
    # Null for passages indexed before: the next ingest indexes every file anew and fills it.
    steps.add_columns("knowledge_chunk", Column("embedding_digest", String(64), nullable=True))
    steps.create_index("ix_knowledge_chunk_embedding", "knowledge_chunk", "embedding_digest")
    steps.create_table(
        "knowledge_embedding",
        Column("model", String(200), primary_key=True),
        Column("digest", String(64), primary_key=True),
        Column("dimension", Integer, nullable=False),
        # float32, little-endian; a plain BLOB ends at 16,383 of them.
        Column("vector", LargeBinary().with_variant(MEDIUMBLOB(), "mysql"), nullable=False),
    )


def downgrade() -> None:
    steps.drop_table("knowledge_embedding")
    steps.drop_index("ix_knowledge_chunk_embedding", "knowledge_chunk")
    steps.drop_columns("knowledge_chunk", "embedding_digest")
