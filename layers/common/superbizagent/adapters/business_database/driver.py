"""What the two kinds of database have in common: limits, fetched rows, and one statement's execution."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from superbizagent.adapters.business_database.statement_guard import CheckedStatement, Dialect


@dataclass(frozen=True)
class QueryLimits:
    """`time` in seconds, of the statement at the server; `rows` and `cell` (characters) and `size` (bytes of
    text) of what is returned."""

    rows: int = 50
    time: float = 10.0
    cell: int = 500
    size: int = 32 * 1024


@dataclass(frozen=True)
class Fetched:
    """The first rows of a result. `more` when the result has rows beyond them."""

    columns: tuple[str, ...]
    rows: tuple[Sequence[Any], ...]
    more: bool


@dataclass(frozen=True)
class Column:
    name: str
    type: str


class Execution(Protocol):
    """One statement on one connection that is used for nothing else."""

    def run(self) -> Fetched:
        """Blocks; raises EvidenceError. The connection is rolled back and closed in every case."""

    def stop(self) -> None:
        """From another thread, at any time, more than once: makes run() end soon."""


class Driver(Protocol):
    @property
    def dialect(self) -> Dialect: ...

    def columns(self, tables: Sequence[str]) -> dict[str, tuple[Column, ...]]:
        """Blocks; the columns of those tables that exist. Raises EvidenceUnavailable."""

    def execution(self, statement: CheckedStatement) -> Execution: ...


Stopped = Callable[[], bool]
