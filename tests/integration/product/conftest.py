"""The product as a fixture: on MySQL, or on what a test's parameter names."""

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from superbizagent import ingest
from tests.product.running import Product, running

Start = Callable[..., contextlib.AbstractAsyncContextManager[Product]]


@pytest.fixture
def database_url(request: pytest.FixtureRequest, demo: Path) -> str:
    """A migrated database with the demo's runbooks."""
    url: str = request.getfixturevalue(f"{getattr(request, 'param', 'mysql')}_database")
    assert ingest.main([str(demo / "runbooks"), "--url", url, "--collection", "runbooks"]) == 0
    return url


@pytest.fixture
def start(database_url: str, demo: Path) -> Start:
    """Starts the product with variables of one's own."""
    return partial(running, database_url, demo)
