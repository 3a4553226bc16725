"""The whole product on this machine: gateway, functions in their processes, model server, real database."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import text

from local.gateway import Gateway
from local.model_server import MODEL, ScriptedModelServer
from local.run import Parts, product
from superbizagent.adapters.store import Database
from tests.oidc_issuer import CLIENT, OidcIssuer
from tests.product.client import Client, client

WAIT = 120.0
"""Seconds; a bound for a machine under load, not an expectation."""


@dataclass
class Product:
    gateway: Gateway
    model: ScriptedModelServer
    database: Database
    url: str
    clients: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    async def connect(self, token: str | None = None) -> Client:
        return await self.clients.enter_async_context(client(self.gateway.websocket_url, token))

    async def rows(self, table: str = "diagnosis_run") -> list[dict[str, Any]]:
        return await self.database.read(
            lambda connection: [dict(row) for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()]
        )

    async def row_when(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first run that fulfils the condition, as soon as there is one."""
        async with asyncio.timeout(WAIT):
            while True:
                for row in await self.rows():
                    if condition(row):
                        return row
                await asyncio.sleep(0.02)

    async def eventually(self, condition: Callable[[], bool]) -> None:
        """Waits for what other processes do: there is no event of theirs to wait for."""
        async with asyncio.timeout(WAIT):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(
    database_url: str, demo: Path, issuer: OidcIssuer | None = None, *, snapshots: bool = False, **variables: str
) -> AsyncIterator[Product]:
    """The product with these variables; with an issuer one has to sign in. Everything is gone when the block ends.

    With `snapshots` the processes of a function are forked from one that has imported it.
    """
    parts = Parts(database_url, demo / "evidence.toml", demo / "runbooks", demo=False)
    async with ScriptedModelServer.start(latency=0.0) as model:
        chosen: Mapping[str, str] = {
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_MODEL": MODEL,
            "CANCEL_POLL_SECONDS": "0.1",
            **({"AUTH_ISSUER": issuer.url, "AUTH_AUDIENCE": CLIENT} if issuer else {}),
            **variables,
        }
        async with product(parts, chosen, snapshots=snapshots, sign_in=issuer.sign_in if issuer else None) as gateway:
            with contextlib.closing(Database(database_url)) as database:
                running = Product(gateway, model, database, database_url)
                async with running.clients:
                    yield running
