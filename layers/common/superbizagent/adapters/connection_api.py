"""The Channel port over API Gateway's connection API (`@connections`), by boto3."""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

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
        await asyncio.to_thread(self._post, connection_id, frame)

    def _post(self, connection_id: str, frame: bytes) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._client.post_to_connection(ConnectionId=connection_id, Data=frame)
        except ClientError as error:
            if _is_gone(error.response.get("Error", {}).get("Code"), error.response["ResponseMetadata"]):
                raise ClientGone from error
            raise ChannelUnavailable from error
        except BotoCoreError as error:
            raise ChannelUnavailable from error

    @cached_property
    def _client(self) -> "ApiGatewayManagementApiClient":
        """Made at first use: boto3 takes a quarter of a second to load, which a refused message need not wait for."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "apigatewaymanagementapi",
            endpoint_url=self._endpoint,
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            ),
        )


def _is_gone(code: object, metadata: object) -> bool:
    status = metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None
    return code == "GoneException" or status == 410
