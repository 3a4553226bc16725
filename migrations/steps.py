"""Schema changes that can be repeated.

MySQL commits each DDL statement by itself. A migration that broke off half-way, by a lost
connection or a function's time limit, is simply run again: each step looks first whether it is done.
"""

from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Column, DateTime, Inspector, Integer, Text, inspect
from sqlalchemy.dialects.mysql import DATETIME, MEDIUMTEXT
from sqlalchemy.schema import SchemaItem


def create_table(name: str, *parts: SchemaItem) -> None:
    """Character set and collation by name: a server's or a database's own default may be latin1."""
    if not _inspector().has_table(name):
        op.create_table(name, *parts, mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin")


def drop_table(name: str) -> None:
    op.drop_table(name, if_exists=True)


def add_columns(table: str, *columns: Column[Any]) -> None:
    present = _columns(table)
    for column in columns:
        if column.name not in present:
            op.add_column(table, column)


def drop_columns(table: str, *names: str) -> None:
    present = _columns(table)
    for name in names:
        if name in present:
            op.drop_column(table, name)


def create_index(name: str, table: str, *columns: str, unique: bool = False) -> None:
    """Unique constraints too are made as indexes: SQLite can drop those without rebuilding the table."""
    if name not in _indexes(table):
        op.create_index(name, table, list(columns), unique=unique)


def drop_index(name: str, table: str) -> None:
    if name in _indexes(table):
        op.drop_index(name, table)


def row_number() -> Column[int]:
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)


def instant() -> Any:
    """UTC with microseconds."""
    return DateTime().with_variant(DATETIME(fsp=6), "mysql")


def long_text() -> Any:
    return Text().with_variant(MEDIUMTEXT(), "mysql")


def _inspector() -> Inspector:
    # A new one each time: an inspector remembers what it saw before the last step.
    return inspect(op.get_bind())


def _columns(table: str) -> set[str]:
    return {column["name"] for column in _inspector().get_columns(table)}


def _indexes(table: str) -> set[str | None]:
    return {index["name"] for index in _inspector().get_indexes(table)}
