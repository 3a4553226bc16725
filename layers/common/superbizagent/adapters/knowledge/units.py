"""What the index needs of the database it shares with the store."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection

T = TypeVar("T")


class UnitsOfWork(Protocol):
    """Units of work: each in one transaction, repeated after a transient failure. Raises StoreError."""

    async def read(self, unit: Callable[[Connection], T]) -> T:
        """Runs a unit that only reads, in a worker thread."""

    def run(self, unit: Callable[[Connection], T], *, writes: bool) -> T:
        """Runs a unit in the calling thread; what it wrote is committed when it returns."""
