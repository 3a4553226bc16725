"""What the tests of the gateway share."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import boto3
from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient
from mypy_boto3_lambda import LambdaClient
from websockets.asyncio.client import ClientConnection, connect

from local.gateway import ChildInfo, Gateway
from local.gateway.clock import Clock

STACK = Path(__file__).parent / "stack"
TEMPLATE = STACK / "template.yaml"
CREDENTIALS: dict[str, Any] = {
    "region_name": "us-east-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}


class Start(Protocol):
    def __call__(self, clock: Clock | None = None, **config: Any) -> AbstractAsyncContextManager["Running"]: ...


@dataclass(frozen=True)
class Running:
    gateway: Gateway
    records: Path
    cleanup: ExitStack

    def socket(self, query: str = "", **options: Any) -> Any:
        """A client connection: `async with running.socket() as socket`."""
        return connect(self.gateway.websocket_url + query, proxy=None, **{"compression": None, **options})

    def api(self) -> ApiGatewayManagementApiClient:
        endpoint = self.gateway.management_url
        client = boto3.client("apigatewaymanagementapi", endpoint_url=endpoint, **CREDENTIALS)
        self.cleanup.callback(client.close)
        return client

    def lambda_api(self) -> LambdaClient:
        client = boto3.client("lambda", endpoint_url=self.gateway.http_url, **CREDENTIALS)
        self.cleanup.callback(client.close)
        return client

    def recorded(self, function: str) -> list[dict[str, Any]]:
        path = self.records / function
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def events(self, function: str) -> list[dict[str, Any]]:
        return [record["event"] for record in self.recorded(function)]

    async def wait_for_events(self, function: str, count: int = 1) -> list[dict[str, Any]]:
        await until(lambda: len(self.recorded(function)) >= count)
        return self.events(function)

    def open_gate(self, name: str) -> None:
        (self.records / name).touch()

    def children(self, function: str) -> list[ChildInfo]:
        return [child for child in self.gateway.children if child.function == function]


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """A bounded wait for something that another process or task does."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - other processes set no asyncio events
            await asyncio.sleep(0.01)


async def ask(socket: ClientConnection, action: str, **fields: Any) -> Any:
    await say(socket, action, **fields)
    return await hear(socket)


async def say(socket: ClientConnection, action: str, **fields: Any) -> None:
    await socket.send(json.dumps({"action": action, **fields}))


async def hear(socket: ClientConnection) -> Any:
    async with asyncio.timeout(60):
        return json.loads(await socket.recv())


async def hears_nothing_else(socket: ClientConnection) -> bool:
    """Asks for a pong of the gateway's own: whatever was on its way before has come by then."""
    answer = await ask(socket, "ping")
    return set(answer) == {"pong"}


def process_state(pid: int) -> str:
    """The letter of the process's state, or nothing once it has gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    state = stat.rpartition(")")[2].split()[0]
    return "" if state in "ZX" else state
