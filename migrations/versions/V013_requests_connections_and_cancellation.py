"""Requests delivered twice, runs that outlive their process, open connections, and cancel rows."""

from sqlalchemy import Column, String

from migrations import steps

revision = "V013"
down_revision = "V012"


def upgrade() -> None:
    steps.add_columns(
        "diagnosis_run",
        Column("owner", String(255)),
        Column("request_id", String(64)),
        Column("gateway_request_id", String(128)),
        Column("connection_id", String(128)),
        Column("deadline_at", steps.instant()),
    )
    # Rows from before have nulls here, and nulls never collide.
    steps.create_index("ux_diagnosis_run_request", "diagnosis_run", "owner", "request_id", unique=True)
    steps.create_index("ix_diagnosis_run_deadline", "diagnosis_run", "status", "deadline_at")
    steps.create_table(
        "run_cancel",
        steps.row_number(),
        Column("connection_id", String(128)),
        Column("run_id", String(64)),
        Column("reason", String(32), nullable=False),
        Column("requested_at", steps.instant(), nullable=False),
    )
    steps.create_index("ux_run_cancel_connection", "run_cancel", "connection_id", unique=True)
    steps.create_index("ux_run_cancel_run", "run_cancel", "run_id", unique=True)
    steps.create_index("ix_run_cancel_requested", "run_cancel", "requested_at")
    steps.create_table(
        "ws_connection",
        Column("connection_id", String(128), primary_key=True),
        Column("principal", String(255), nullable=False),
        Column("connected_at", steps.instant(), nullable=False),
    )
    steps.create_index("ix_ws_connection_connected", "ws_connection", "connected_at")


def downgrade() -> None:
    steps.drop_table("ws_connection")
    steps.drop_table("run_cancel")
    steps.drop_index("ix_diagnosis_run_deadline", "diagnosis_run")
    steps.drop_index("ux_diagnosis_run_request", "diagnosis_run")
    steps.drop_columns("diagnosis_run", "deadline_at", "connection_id", "gateway_request_id", "request_id", "owner")
