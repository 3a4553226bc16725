"""Sessions that belong to an owner, and one row for each run."""

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Integer, String

from migrations import steps

revision = "V011"
down_revision = None


def upgrade() -> None:
    steps.create_table(
        "chat_session",
        Column("session_id", String(64), primary_key=True),
        Column("owner", String(255), nullable=False),
        Column("message_pairs", Integer, nullable=False, server_default="0"),
        Column("created_at", steps.instant(), nullable=False),
        Column("last_active_at", steps.instant(), nullable=False),
    )
    steps.create_index("ix_chat_session_owner", "chat_session", "owner", "last_active_at")
    steps.create_table(
        "diagnosis_run",
        steps.row_number(),
        Column("run_id", String(64), nullable=False),
        Column("session_id", String(64), ForeignKey("chat_session.session_id"), nullable=False),
        Column("query", steps.long_text(), nullable=False),
        Column("status", String(16), nullable=False),
        Column("failure_code", String(64)),
        Column("content", JSON),
        Column("tokens", BigInteger, nullable=False, server_default="0"),
        Column("model_calls", Integer, nullable=False, server_default="0"),
        Column("tool_calls", Integer, nullable=False, server_default="0"),
        Column("duration_ms", BigInteger),
        Column("created_at", steps.instant(), nullable=False),
        Column("finished_at", steps.instant()),
    )
    steps.create_index("ux_diagnosis_run_run_id", "diagnosis_run", "run_id", unique=True)
    steps.create_index("ix_diagnosis_run_session", "diagnosis_run", "session_id", "created_at", "id")


def downgrade() -> None:
    steps.drop_table("diagnosis_run")
    steps.drop_table("chat_session")
