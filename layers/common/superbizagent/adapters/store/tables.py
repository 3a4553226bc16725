"""The tables as the migrations leave them; a test holds the two together."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.dialects.mysql import DATETIME, MEDIUMTEXT
from sqlalchemy.types import TypeEngine

metadata = MetaData()


class UtcDateTime(TypeDecorator[datetime]):
    """An instant with microseconds, stored as UTC without a zone; aware on both sides."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        # A plain DATETIME rounds to the second, even into the future.
        return dialect.type_descriptor(DATETIME(fsp=6) if dialect.name == "mysql" else DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("an instant without a zone can't be stored")
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


def _table(name: str, *parts: Column[Any] | Index) -> Table:
    """utf8mb4_bin throughout: ids and codes are case-sensitive on every server, as they are here."""
    return Table(name, metadata, *parts, mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin")


def _row_number() -> Column[int]:
    return Column(
        "id",
        BigInteger().with_variant(Integer, "sqlite"),
        primary_key=True,
        autoincrement=True,
        nullable=False,
    )


# SQL NULL, not the JSON value null, is what "nothing stored" looks like.
_json = JSON(none_as_null=True)
# MySQL's TEXT ends at 64 KB.
_long_text = Text().with_variant(MEDIUMTEXT(), "mysql")

chat_session = _table(
    "chat_session",
    Column("session_id", String(64), primary_key=True),
    Column("owner", String(255), nullable=False),
    Column("message_pairs", Integer, nullable=False, server_default="0"),
    Column("created_at", UtcDateTime, nullable=False),
    Column("last_active_at", UtcDateTime, nullable=False),
    Index("ix_chat_session_owner", "owner", "last_active_at"),
)

diagnosis_run = _table(
    "diagnosis_run",
    _row_number(),
    Column("run_id", String(64), nullable=False),
    Column("session_id", String(64), ForeignKey("chat_session.session_id"), nullable=False),
    Column("query", _long_text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("failure_code", String(64)),
    Column("content", _json),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    Column("model_calls", Integer, nullable=False, server_default="0"),
    Column("tool_calls", Integer, nullable=False, server_default="0"),
    Column("duration_ms", BigInteger),
    Column("created_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    # V012
    Column("intent", String(32)),
    Column("release_outcome", String(16)),
    Column("published_result", _json),
    # V013; null in rows written before it
    Column("owner", String(255)),
    Column("request_id", String(64)),
    Column("gateway_request_id", String(128)),
    Column("connection_id", String(128)),
    Column("deadline_at", UtcDateTime),
    Index("ux_diagnosis_run_run_id", "run_id", unique=True),
    Index("ix_diagnosis_run_session", "session_id", "created_at", "id"),
    Index("ix_diagnosis_run_previous_turn", "session_id", "intent", "release_outcome", "created_at", "id"),
    Index("ux_diagnosis_run_request", "owner", "request_id", unique=True),
    Index("ix_diagnosis_run_deadline", "status", "deadline_at"),
)

run_cancel = _table(
    "run_cancel",
    _row_number(),
    Column("connection_id", String(128)),
    Column("run_id", String(64)),
    Column("reason", String(32), nullable=False),
    Column("requested_at", UtcDateTime, nullable=False),
    # Unique, so that a request delivered twice is one row.
    Index("ux_run_cancel_connection", "connection_id", unique=True),
    Index("ux_run_cancel_run", "run_id", unique=True),
    Index("ix_run_cancel_requested", "requested_at"),
)

ws_connection = _table(
    "ws_connection",
    Column("connection_id", String(128), primary_key=True),
    Column("principal", String(255), nullable=False),
    Column("connected_at", UtcDateTime, nullable=False),
    Index("ix_ws_connection_connected", "connected_at"),
)
