"""Documents in passages, with a full-text index on terms of our own making."""

from alembic import op
from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Integer, String, inspect

from migrations import steps

revision = "V014"
down_revision = "V013"

FULL_TEXT = "ft_knowledge_chunk_terms"

# An index over the table's own column, kept in step within the same transaction. The terms are ASCII
# letters and digits, so the plainest tokenizer is the right one. Whoever rebuilds the table on SQLite
# has to make the triggers again.
_SQLITE_TABLE = """
CREATE VIRTUAL TABLE IF NOT EXISTS knowledge_chunk_fts
USING fts5(terms, content='knowledge_chunk', content_rowid='id', tokenize='ascii')
"""
_SQLITE_ADD = "INSERT INTO knowledge_chunk_fts (rowid, terms) VALUES (new.id, new.terms);"
_SQLITE_TAKE = """
INSERT INTO knowledge_chunk_fts (knowledge_chunk_fts, rowid, terms) VALUES ('delete', old.id, old.terms);
"""
_SQLITE_TRIGGERS = {"INSERT": _SQLITE_ADD, "DELETE": _SQLITE_TAKE, "UPDATE": _SQLITE_TAKE + _SQLITE_ADD}


def upgrade() -> None:
    steps.create_table(
        "knowledge_document",
        steps.row_number(),
        Column("collection", String(64), nullable=False),
        Column("source", String(500), nullable=False),
        Column("title", String(200), nullable=False),
        Column("digest", String(64), nullable=False),
    )
    steps.create_index("ux_knowledge_document_source", "knowledge_document", "collection", "source", unique=True)
    steps.create_table(
        "knowledge_chunk",
        steps.row_number(),
        Column(
            "document_id",
            BigInteger().with_variant(Integer, "sqlite"),
            ForeignKey("knowledge_document.id", ondelete="CASCADE"),
            nullable=False,
        ),
        Column("position", Integer, nullable=False),
        Column("passage_id", String(16), nullable=False),
        Column("heading_path", JSON, nullable=False),
        Column("text", steps.long_text(), nullable=False),
        Column("terms", steps.long_text(), nullable=False),
        Column("length", Integer, nullable=False),
    )
    steps.create_index("ux_knowledge_chunk_position", "knowledge_chunk", "document_id", "position", unique=True)
    _create_full_text_index()


def downgrade() -> None:
    if _on_sqlite():
        op.execute("DROP TABLE IF EXISTS knowledge_chunk_fts")
    steps.drop_table("knowledge_chunk")
    steps.drop_table("knowledge_document")


def _create_full_text_index() -> None:
    if _on_sqlite():
        op.execute(_SQLITE_TABLE)
        for event, action in _SQLITE_TRIGGERS.items():
            name = f"knowledge_chunk_{event.lower()}"
            op.execute(f"CREATE TRIGGER IF NOT EXISTS {name} AFTER {event} ON knowledge_chunk BEGIN {action} END")
        return
    present = {index["name"] for index in inspect(op.get_bind()).get_indexes("knowledge_chunk")}
    if FULL_TEXT not in present:
        op.create_index(FULL_TEXT, "knowledge_chunk", ["terms"], mysql_prefix="FULLTEXT")


def _on_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"
