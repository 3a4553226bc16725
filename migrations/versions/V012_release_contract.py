"""What a run was asked for and what it released.

Nullable columns only: writers of the release before go on working, and going back loses nothing of theirs.
"""

from sqlalchemy import JSON, Column, String

from migrations import steps

revision = "V012"
down_revision = "V011"


def upgrade() -> None:
    steps.add_columns(
        "diagnosis_run",
        Column("intent", String(32)),
        Column("release_outcome", String(16)),
        Column("published_result", JSON),
    )
    steps.create_index(
        "ix_diagnosis_run_previous_turn",
        "diagnosis_run",
        "session_id",
        "intent",
        "release_outcome",
        "created_at",
        "id",
    )


def downgrade() -> None:
    steps.drop_index("ix_diagnosis_run_previous_turn", "diagnosis_run")
    steps.drop_columns("diagnosis_run", "published_result", "release_outcome", "intent")
