"""The Channel port over API Gateway's connection API (`@connections`), by boto3."""

from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from superbizagent.adapters.worker_thread import in_thread
from superbizagent.errors import ChannelUnavailable, ClientGone, ConfigurationError

if TYPE_CHECKING:
    from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient

CONNECT_SECONDS = 2.0
READ_SECONDS = 4.0
ATTEMPTS = 2
"""With these a frame that can't be delivered delays its run by about twelve seconds at most."""


class ConnectionApi:
    """Posts frames to open connections. `endpoint` is the stage's https address."""

    def __init__(self, endpoint: str) -> None:
        if not endpoint:
            raise ConfigurationError("CONNECTIONS_ENDPOINT is empty: set it to the stage's https address")
        self._endpoint = endpoint

    async def post(self, connection_id: str, frame: bytes) -> None:
        await in_thread(lambda: self._post(connection_id, frame), "connection-api")

    def _post(self, connection_id: str, frame: bytes) -> None:
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            NoCredentialsError,
            NoRegionError,
            PartialCredentialsError,
        )

        try:
            self._client.post_to_connection(ConnectionId=connection_id, Data=frame)
        except ClientError as error:
            code, status = _code_of(error.response)
            if code == "GoneException" or status == HTTPStatus.GONE:
                raise ClientGone from error
            raise ChannelUnavailable(f"the connection API answered {status} {code}") from error
        except (NoRegionError, NoCredentialsError, PartialCredentialsError) as error:
            raise ConfigurationError(f"no frame can be signed: {type(error).__name__}") from error
        except (BotoCoreError, ValueError) as error:
            # ValueError: an error body that is not even text, which botocore decodes without care.
            raise ChannelUnavailable(f"the connection API did not answer: {type(error).__name__}") from error

    @cached_property
    def _client(self) -> "ApiGatewayManagementApiClient":
        """Made at first use: boto3 takes a quarter of a second to load, which a refused message need not wait for."""
        import boto3
        from botocore.config import Config

        # A session of its own: the default one is not to be used from threads.
        return boto3.session.Session().client(
            "apigatewaymanagementapi",
            endpoint_url=self._endpoint,
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            ),
        )


def _code_of(response: Mapping[str, Any]) -> tuple[str, int | None]:
    """AWS's code for the refusal and its HTTP status. Not its message, which quotes the request."""
    code, status = response.get("Error", {}).get("Code"), response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return str(code), status
