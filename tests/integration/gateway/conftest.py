from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from local.gateway import Gateway, GatewayConfig
from local.gateway.clock import Clock
from tests.integration.gateway.support import TEMPLATE, Running, Start


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts a gateway on the test stack, or on another template, with options of GatewayConfig."""

    @asynccontextmanager
    async def start_gateway(clock: Clock | None = None, **config: Any) -> AsyncIterator[Running]:
        environment = {"RECORDS": str(tmp_path), **config.pop("environment", {})}
        settings = GatewayConfig(**{"template": TEMPLATE, "environment": environment, **config})
        async with Gateway.start(settings, clock) as gateway:
            with ExitStack() as cleanup:
                yield Running(gateway, tmp_path, cleanup)

    return start_gateway
