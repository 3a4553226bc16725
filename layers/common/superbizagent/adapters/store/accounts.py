"""The functions' own account of MySQL, made by the database's owner: it reads and writes rows and changes no table."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection

from superbizagent.adapters.store.database import Database
from superbizagent.errors import ConfigurationError

RIGHTS: Final = "SELECT, INSERT, UPDATE, DELETE"


@dataclass(frozen=True)
class Account:
    """`password` None: it signs in with tokens of IAM, which only RDS knows."""

    name: str
    password: str | None


def provide_account(database: Database, account: Account) -> None:
    """Makes the account, or an old one sign in as this says; safe to repeat. Raises StoreError and ConfigurationError.

    Its rights are those on the schema of `database`, from any host but only over TLS.
    """
    engine = database.engine
    if engine.dialect.name != "mysql":
        return
    user = f"{_quoted(account.name)}@'%'"
    schema = engine.dialect.identifier_preparer.quote_identifier(engine.url.database or "")
    how = "WITH AWSAuthenticationPlugin AS 'RDS'" if account.password is None else f"BY {_quoted(account.password)}"
    for statement in (
        f"CREATE USER IF NOT EXISTS {user} IDENTIFIED {how} REQUIRE SSL",
        f"ALTER USER {user} IDENTIFIED {how} REQUIRE SSL",
        f"GRANT {RIGHTS} ON {schema}.* TO {user}",
    ):
        database.run(partial(_execute, statement), writes=True)


def _execute(statement: str, connection: Connection) -> None:
    # The driver formats what it is given, even without parameters.
    connection.exec_driver_sql(statement.replace("%", "%%"))


def _quoted(value: str) -> str:
    """A literal under any sql_mode: what would need escaping doesn't occur in those of ours."""
    if not value.isascii() or any(character in "'\"\\" or not character.isprintable() for character in value):
        raise ConfigurationError("a database account's name or password has quotes, backslashes or the like")
    return f"'{value}'"
