"""Migrations by function call: one at a time per database, however many processes start at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from superbizagent.adapters.store import Timeouts
from superbizagent.adapters.store.engine import BEGIN_IMMEDIATE
from superbizagent.errors import ConfigurationError, StoreError

LOCK_SECONDS = 60
TIMEOUTS = Timeouts(read=900, write=900, lock=60)
"""For the Database of a migration: rebuilding a large table takes its time."""
# Alembic's environment is one global of the process.
_alembic = threading.Lock()


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Goes forward to `revision`. Raises StoreError, and ConfigurationError for an unknown revision."""
    with _exclusive(engine) as connection:
        command.upgrade(config(connection), revision)


def downgrade(engine: Engine, revision: str) -> None:
    """Goes back to `revision` ("base": before everything). Raises like `upgrade`."""
    with _exclusive(engine) as connection:
        command.downgrade(config(connection), revision)


def current(engine: Engine) -> str | None:
    """The revision the database has; None before the first. Raises StoreError."""
    with _translated(), engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def config(connection: Connection | None = None) -> Config:
    """Found by this file's place, not by pyproject.toml: that one isn't deployed."""
    result = Config(attributes={"connection": connection})
    result.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return result


@contextmanager
def _exclusive(engine: Engine) -> Iterator[Connection]:
    with _alembic, _translated(), engine.connect() as connection:
        # SQLite: its DDL is transactional, so one write transaction around everything is the lock.
        connection.execution_options(**{BEGIN_IMMEDIATE: True})
        if engine.dialect.name != "mysql":
            yield connection
            connection.commit()
            return
        lock = {"name": lock_name(engine)}
        taken = connection.scalar(text("SELECT GET_LOCK(:name, :seconds)"), lock | {"seconds": LOCK_SECONDS})
        connection.commit()
        if taken != 1:
            raise StoreError("another migration is running")
        try:
            yield connection
            connection.commit()
        finally:
            connection.rollback()
            connection.execute(text("DO RELEASE_LOCK(:name)"), lock)
            connection.commit()


def lock_name(engine: Engine) -> str:
    """Advisory locks are the whole server's, and their names end at 64 characters."""
    return f"migrate {engine.url.database}"[:64]


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except CommandError as error:
        raise ConfigurationError(str(error)) from error
    except SQLAlchemyError as error:
        raise StoreError(f"the database refused: {type(error).__name__}") from error
