"""Migrations by function call: one at a time per database, however many processes start at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from superbizagent.adapters.store import Timeouts
from superbizagent.adapters.store.database import description
from superbizagent.adapters.store.engine import BEGIN_IMMEDIATE
from superbizagent.errors import ConfigurationError, MigrationLocked, StoreError

LOCK_SECONDS = 60
TABLE_LOCK_SECONDS = 30
"""How long a change waits for transactions that use its table. Every query that comes after it waits behind it, and the
server's own limit is a day or a year."""
TIMEOUTS = Timeouts(read=900, write=900, lock=60)
"""For the Database of a migration: rebuilding a large table takes its time."""
# Alembic's environment is one global of the process.
_alembic = threading.Lock()


@dataclass(frozen=True)
class Progress:
    """Revisions; None before the first. `newer`: of a later release than this code, and left as it is."""

    before: str | None
    after: str | None
    newer: bool = False


def roll_forward(engine: Engine, lock_seconds: float = LOCK_SECONDS) -> Progress:
    """Goes forward to the newest revision this code knows, and never back. Raises StoreError and MigrationLocked.

    A release that is rolled back finds the schema of the one after it: that is for its code to live with, which
    additive changes allow, while going back would lose rows.
    """
    with _exclusive(engine, lock_seconds) as connection:
        before = MigrationContext.configure(connection).get_current_revision()
        if before is not None and before not in known_revisions():
            return Progress(before, before, newer=True)
        if engine.dialect.name == "mysql":
            # Alembic commits each step, but none that another's transaction is around.
            connection.commit()
        command.upgrade(config(connection), "head")
        return Progress(before, MigrationContext.configure(connection).get_current_revision())


def known_revisions() -> list[str]:
    """Newest first."""
    return [script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()]


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
def _exclusive(engine: Engine, lock_seconds: float = LOCK_SECONDS) -> Iterator[Connection]:
    with _alembic, _translated(), engine.connect() as connection:
        # SQLite: its DDL is transactional, so one write transaction around everything is the lock.
        connection.execution_options(**{BEGIN_IMMEDIATE: True})
        if engine.dialect.name != "mysql":
            yield connection
            connection.commit()
            return
        lock = {"name": lock_name(engine)}
        connection.execute(text(f"SET SESSION lock_wait_timeout = {TABLE_LOCK_SECONDS}"))
        # The lock is the connection's: one that is lost loses it, and its migration can't go on without either.
        taken = connection.scalar(text("SELECT GET_LOCK(:name, :seconds)"), lock | {"seconds": lock_seconds})
        connection.commit()
        if taken != 1:
            raise MigrationLocked("another migration is running")
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
        raise StoreError(f"the database refused: {description(error)}") from error
