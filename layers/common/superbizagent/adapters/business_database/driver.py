"""What the two kinds of database have in common: limits, fetched rows, and one statement's execution."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from superbizagent.adapters.business_database.quotes import Dialect
from superbizagent.adapters.business_database.statement_guard import CheckedStatement

# Bytes or characters of raw values that one result may hold in memory, whatever is shown of them.
MAX_FETCHED: Final = 16 * 1024 * 1024


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


def first_rows(rows: Iterable[Sequence[Any]], count: int) -> tuple[tuple[Sequence[Any], ...], bool]:
    """At most `count` rows, fewer when they are very long, and whether there was one beyond them."""
    taken: list[Sequence[Any]] = []
    size = 0
    for row in rows:
        if len(taken) == count or size > MAX_FETCHED:
            return tuple(taken), True
        taken.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
    return tuple(taken), False


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
