"""Embeddings of documents' beginnings, beside those of their passages."""

from alembic import op
from sqlalchemy import Column, String

from migrations import steps

revision = "V016"
down_revision = "V015"


def upgrade() -> None:
    steps.add_columns("knowledge_document", Column("embedding_digest", String(64), nullable=True))
    # A file whose digest is the stored one is not indexed anew, and the column stays null.
    op.execute("UPDATE knowledge_document SET digest = ''")


def downgrade() -> None:
    steps.drop_columns("knowledge_document", "embedding_digest")
