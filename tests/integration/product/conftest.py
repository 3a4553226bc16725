"""The whole product on this machine: gateway, functions in their processes, model server, real database."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from local.demo.make import make as make_demo
from local.gateway import Gateway
from local.model_server import MODEL, ScriptedModelServer
from local.run import Parts, product
from superbizagent import ingest
from superbizagent.adapters.store import Database
from tests.integration.product.client import Client, client

WAIT = 40.0


@dataclass
class Product:
    gateway: Gateway
    model: ScriptedModelServer
    database: Database
    url: str
    clients: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    async def connect(self) -> Client:
        return await self.clients.enter_async_context(client(self.gateway.websocket_url))

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


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    make_demo(folder)
    return folder


Start = Callable[..., contextlib.AbstractAsyncContextManager[Product]]


@pytest.fixture
def database_url(request: pytest.FixtureRequest, demo: Path) -> str:
    """A migrated database with the demo's runbooks: MySQL, or what a test's parameter names."""
    url: str = request.getfixturevalue(f"{getattr(request, 'param', 'mysql')}_database")
    assert ingest.main([str(demo / "runbooks"), "--url", url, "--collection", "runbooks"]) == 0
    return url


@pytest.fixture
def start(database_url: str, demo: Path) -> Start:
    """Starts the product with variables of one's own; everything is gone when the block ends."""

    @contextlib.asynccontextmanager
    async def started(**variables: str) -> AsyncIterator[Product]:
        parts = Parts(database_url, demo / "evidence.toml", demo / "runbooks", demo=False)
        async with ScriptedModelServer.start(latency=0.0) as model:
            chosen: Mapping[str, str] = {
                "OPENAI_API_KEY": "none",
                "OPENAI_BASE_URL": model.base_url,
                "OPENAI_MODEL": MODEL,
                "CANCEL_POLL_SECONDS": "0.1",
                **variables,
            }
            async with product(parts, chosen) as gateway:
                with contextlib.closing(Database(database_url)) as database:
                    running = Product(gateway, model, database, database_url)
                    async with running.clients:
                        yield running

    return started
