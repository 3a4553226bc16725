"""The Channel port over API Gateway's connection API (`@connections`), by boto3."""

import asyncio
import contextlib
import random
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from superbizagent.adapters.worker_thread import in_thread
from superbizagent.errors import ChannelUnavailable, ClientGone, ConfigurationError

if TYPE_CHECKING:
    from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient

CONNECT_SECONDS = 1.0
READ_SECONDS = 1.7
ATTEMPTS = 2
PAUSE_SECONDS = 0.3
POST_SECONDS = 4.0
"""A post takes no longer, attempts and all: the two limits above are those of one wait for one byte, which a
server that drips evades."""
# The system's: processes that are restored from one snapshot would share the state of Python's own.
_chance = random.SystemRandom()


class _Passing(ChannelUnavailable):
    """A failure that the next attempt may not meet."""


class ConnectionApi:
    """Posts frames to open connections. `endpoint` is the stage's https address."""

    def __init__(self, endpoint: str) -> None:
        if not endpoint:
            raise ConfigurationError("CONNECTIONS_ENDPOINT is empty: set it to the stage's https address")
        self._endpoint = endpoint

    async def post(self, connection_id: str, frame: bytes) -> None:
        # Before the time runs: boto3 takes a moment to load.
        client = await in_thread(self._ready, "connection-api")
        try:
            async with asyncio.timeout(POST_SECONDS):
                await self._attempted(partial(_post, client, connection_id, frame))
        except TimeoutError as error:
            # The thread reads on alone until its peer ends; it doesn't post again.
            raise ChannelUnavailable(f"the connection API took more than {POST_SECONDS:g} seconds") from error

    def _ready(self) -> "ApiGatewayManagementApiClient":
        with _translated():
            return self._client

    async def _attempted(self, post: "partial[None]") -> None:
        """Repeated here rather than by boto3, whose thread can't be told that nobody waits any more."""
        for _ in range(ATTEMPTS - 1):
            try:
                return await in_thread(post, "connection-api")
            except _Passing:
                await asyncio.sleep(PAUSE_SECONDS * _chance.uniform(0.5, 1.5))
        return await in_thread(post, "connection-api")

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
                retries={"total_max_attempts": 1, "mode": "standard"},
            ),
        )


def _post(client: "ApiGatewayManagementApiClient", connection_id: str, frame: bytes) -> None:
    with _translated():
        client.post_to_connection(ConnectionId=connection_id, Data=frame)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        NoRegionError,
        PartialCredentialsError,
    )

    try:
        yield
    except ClientError as error:
        code, status = _code_of(error.response)
        if code == "GoneException" or status == HTTPStatus.GONE:
            raise ClientGone from error
        passing = status is None or status == HTTPStatus.TOO_MANY_REQUESTS or status >= 500
        kind = _Passing if passing else ChannelUnavailable
        raise kind(f"the connection API answered {status} {code}") from error
    except (NoRegionError, NoCredentialsError, PartialCredentialsError) as error:
        raise ConfigurationError(f"no frame can be signed: {type(error).__name__}") from error
    except (BotoCoreError, ValueError) as error:
        # ValueError: an error body that is not even text, which botocore decodes without care.
        raise _Passing(f"the connection API did not answer: {type(error).__name__}") from error


def _code_of(response: Mapping[str, Any]) -> tuple[str, int | None]:
    """AWS's code for the refusal and its HTTP status. Not its message, which quotes the request."""
    code, status = response.get("Error", {}).get("Code"), response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return str(code), status
