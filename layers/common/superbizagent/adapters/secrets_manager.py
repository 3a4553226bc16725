"""AWS Secrets Manager: texts by ARN, each read once a process, and the database login that is kept there.

By boto3 and not by a lighter client of our own: what takes the time is botocore, which either of them loads.
"""

import json
import threading
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from superbizagent.errors import ConfigurationError

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

CONNECT_SECONDS: Final = 2.0
READ_SECONDS: Final = 4.0
ATTEMPTS: Final = 3


class SecretsManager:
    """Raises ConfigurationError with AWS's code and the secret's name, never with a value. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}

    def text(self, arn: str) -> str:
        # The lock is held over the call: connections are often opened several at once, and one read is enough.
        with self._lock:
            if arn not in self._texts:
                self._texts[arn] = self._read(arn)
            return self._texts[arn]

    def fields(self, arn: str) -> Mapping[str, Any]:
        """Of a secret that is a JSON object."""
        try:
            fields = json.loads(self.text(arn))
        except ValueError:
            # Not chained: the error holds the text.
            fields = None
        if not isinstance(fields, dict):
            raise ConfigurationError(f"the secret {name_of(arn)} is not a JSON object")
        return fields

    def forget(self, arn: str) -> None:
        """The next read asks again: the secret has been rotated, as it seems."""
        with self._lock:
            self._texts.pop(arn, None)

    def _read(self, arn: str) -> str:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = self._client.get_secret_value(SecretId=arn)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            raise ConfigurationError(f"the secret {name_of(arn)} can't be read: {code}") from error
        except (BotoCoreError, ValueError) as error:
            # ValueError: an answer that is not even text, which botocore decodes without care.
            raise ConfigurationError(f"the secret {name_of(arn)} can't be read: {type(error).__name__}") from error
        text = answer.get("SecretString")
        if text is None:
            raise ConfigurationError(f"the secret {name_of(arn)} is no text")
        return text

    @cached_property
    def _client(self) -> "SecretsManagerClient":
        import boto3
        from botocore.config import Config

        # A session of its own: the default one is not to be used from threads.
        return boto3.session.Session().client(
            "secretsmanager",
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            ),
        )


class SecretLogin:
    """The user and password in a secret, read again when the server has refused them."""

    def __init__(self, secrets: SecretsManager, arn: str) -> None:
        self._secrets = secrets
        self._arn = arn

    def credentials(self) -> tuple[str, str]:
        """Raises ConfigurationError."""
        fields = self._secrets.fields(self._arn)
        user, password = fields.get("username"), fields.get("password")
        if not isinstance(user, str) or not isinstance(password, str):
            raise ConfigurationError(f"the secret {name_of(self._arn)} has no username and password")
        return user, password

    def forget(self) -> None:
        self._secrets.forget(self._arn)


def name_of(arn: str) -> str:
    """The last part of an ARN: the rest names the account."""
    return arn.rpartition(":secret:")[2]
