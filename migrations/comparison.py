"""How the schema in the database is compared with the code's."""

from typing import Any

from sqlalchemy import JSON, MetaData
from sqlalchemy.dialects.mysql import LONGTEXT

from superbizagent.adapters.knowledge import metadata as knowledge
from superbizagent.adapters.store import metadata as store

# Each engine has its own full-text index, of which SQLAlchemy knows nothing.
_FULL_TEXT = ("knowledge_chunk_fts", "ft_knowledge_chunk_terms")


def whole_schema() -> MetaData:
    """The tables of every adapter."""
    whole = MetaData()
    for part in (store, knowledge):
        for table in part.sorted_tables:
            table.to_metadata(whole)
    return whole


def compare_type(_context: Any, _inspected: Any, _column: Any, inspected_type: Any, metadata_type: Any) -> bool | None:
    """MariaDB's JSON is LONGTEXT with a check, and reads back as that."""
    if isinstance(metadata_type, JSON) and isinstance(inspected_type, LONGTEXT):
        return False
    return None


def include_name(name: str | None, _kind: str, _parents: object) -> bool:
    return not (name or "").startswith(_FULL_TEXT)
