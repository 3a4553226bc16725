"""How each physical connection to MySQL signs in; one place for the store and for the business database.

User names and passwords change while a process lives: a token of IAM is good for fifteen minutes, and a
secret is rotated.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import Engine, event

from superbizagent.errors import StoreError, SuperBizAgentError

T = TypeVar("T")

ACCESS_DENIED: Final = 1045

PAUSES: Final = (0.0, 0.5, 1.5)
"""Seconds before each further try of a refused connection. Whoever rotates a password changes it at the server first
and in the secret a moment later."""


class Login(Protocol):
    """Asked for each new connection. May raise anything; what is ours is told the operator, the rest is not."""

    def credentials(self) -> tuple[str, str]:
        """User name and password."""

    def forget(self) -> None:
        """The server has refused them: the next ones have to be new."""


def sign_in(engine: Engine, login: Login) -> None:
    """Connections of this engine are made with what `login` says at that moment. Raises StoreError there."""

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _record: object, arguments: list[Any], parameters: dict[str, Any]) -> Any:
        return signed_in(login, lambda credentials: dialect.connect(*arguments, **{**parameters, **credentials}))


def signed_in(login: Login, connect: Callable[[Mapping[str, str]], T]) -> T:
    """What `connect` returns, given the driver's arguments user and password; again with new ones when refused."""
    # Loaded by whoever connects to MySQL, and not by all who could.
    from pymysql import OperationalError

    for pause in PAUSES:
        try:
            return connect(_credentials(login))
        except OperationalError as error:
            if not error.args or error.args[0] != ACCESS_DENIED:
                raise
        login.forget()
        time.sleep(pause)
    return connect(_credentials(login))


def _credentials(login: Login) -> Mapping[str, str]:
    try:
        user, password = login.credentials()
    except SuperBizAgentError as error:
        raise StoreError(f"no login for the database could be had: {error}") from error
    except Exception as error:
        raise StoreError("no login for the database could be had") from error
    return {"user": user, "password": password}
