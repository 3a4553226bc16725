"""What a row and its columns are read as, whatever they are of."""

from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import Row

E = TypeVar("E", bound=StrEnum)
AnyRow = Row[*tuple[Any, ...]]


def member(kind: type[E], value: str | None) -> E | None:
    """None for what this release doesn't know, too."""
    try:
        return None if value is None else kind(value)
    except ValueError:
        return None
