"""Embeddings of documents' beginnings, beside those of their passages."""

from sqlalchemy import Column, String

from migrations import steps

revision = "V016"
down_revision = "V015"


def upgrade() -> None:
    # Null for documents indexed before: the next ingest indexes every file anew and fills it.
    steps.add_columns("knowledge_document", Column("embedding_digest", String(64), nullable=True))


def downgrade() -> None:
    steps.drop_columns("knowledge_document", "embedding_digest")
