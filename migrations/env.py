"""What Alembic runs: by `migrations.run`, or by its own command line (`alembic -x url=… history`)."""

from typing import Any

from alembic import context
from alembic.util import CommandError
from sqlalchemy import JSON, Connection
from sqlalchemy.dialects.mysql import LONGTEXT

from superbizagent.adapters.store import Database, metadata


def compare_type(
    _context: Any, _inspected: Any, _column: Any, inspected_type: Any, metadata_type: Any
) -> bool | None:
    """MariaDB's JSON is LONGTEXT with a check, and reads back as that."""
    if isinstance(metadata_type, JSON) and isinstance(inspected_type, LONGTEXT):
        return False
    return None


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        compare_type=compare_type,
        # Alembic assumes the driver's default, which commits before DDL; ours leaves transactions to us.
        transactional_ddl=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations()


def connect_and_run() -> None:
    url = context.get_x_argument(as_dictionary=True).get("url")
    if not isinstance(url, str):
        raise CommandError("name the database with -x url=URL, or use python -m migrations")
    database = Database(url)
    try:
        with database.engine.connect() as connection:
            run(connection)
            connection.commit()
    finally:
        database.close()


if context.is_offline_mode():
    raise CommandError("the steps look at the database to be repeatable, so they can't be printed as SQL")
given = context.config.attributes.get("connection")
if given is None:
    connect_and_run()
else:
    run(given)
