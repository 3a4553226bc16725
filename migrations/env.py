"""What Alembic runs: by `migrations.run`, or by its own command line (`alembic -x url=… history`)."""

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection

from migrations.comparison import METADATA, compare_type, include_object
from superbizagent.adapters.store import Database


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        compare_type=compare_type,
        include_object=include_object,
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
