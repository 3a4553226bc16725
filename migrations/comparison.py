"""How the schema in the database is compared with the tables in the code."""

from typing import Any

from sqlalchemy import JSON
from sqlalchemy.dialects.mysql import LONGTEXT

from superbizagent.adapters.knowledge.tables import metadata as knowledge
from superbizagent.adapters.store.tables import metadata as store

METADATA = [store, knowledge]
"""Every table of the product."""


def compare_type(_context: Any, _inspected: Any, _column: Any, inspected_type: Any, metadata_type: Any) -> bool | None:
    """MariaDB's JSON is LONGTEXT with a check, and reads back as that."""
    if isinstance(metadata_type, JSON) and isinstance(inspected_type, LONGTEXT):
        return False
    return None


def include_object(_object: Any, name: str | None, kind: str, reflected: bool, _compare_to: Any) -> bool:
    """Full-text indexes are each server's own and exist in the migrations only."""
    own = ("knowledge_chunk_fts",) if kind == "table" else ("ft_",)
    return not (reflected and name is not None and name.startswith(own))
