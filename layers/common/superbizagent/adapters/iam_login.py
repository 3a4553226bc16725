"""Tokens of IAM in the place of a database password (RDS and its proxy)."""

from functools import cached_property
from typing import TYPE_CHECKING

from superbizagent.errors import ConfigurationError

if TYPE_CHECKING:
    from mypy_boto3_rds import RDSClient


class IamLogin:
    """A token for each connection, signed here without a call; a server takes it for fifteen minutes."""

    def __init__(self, host: str, port: int, user: str) -> None:
        self._host = host
        self._port = port
        self._user = user

    def credentials(self) -> tuple[str, str]:
        """Raises ConfigurationError."""
        from botocore.exceptions import BotoCoreError

        try:
            token = self._client.generate_db_auth_token(DBHostname=self._host, Port=self._port, DBUsername=self._user)
        except BotoCoreError as error:
            raise ConfigurationError(f"no token can be signed: {type(error).__name__}") from error
        return self._user, token

    def forget(self) -> None:
        """There is nothing to forget: each token is new."""

    @cached_property
    def _client(self) -> "RDSClient":
        import boto3

        # A session of its own: the default one is not to be used from threads.
        return boto3.session.Session().client("rds")
