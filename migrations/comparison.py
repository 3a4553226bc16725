"""How a column's type in the database is compared with the code's."""

from typing import Any

from sqlalchemy import JSON
from sqlalchemy.dialects.mysql import LONGTEXT


def compare_type(_context: Any, _inspected: Any, _column: Any, inspected_type: Any, metadata_type: Any) -> bool | None:
    """MariaDB's JSON is LONGTEXT with a check, and reads back as that."""
    if isinstance(metadata_type, JSON) and isinstance(inspected_type, LONGTEXT):
        return False
    return None
