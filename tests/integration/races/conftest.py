from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from superbizagent.adapters.store import Database
from tests.fakes.model import FakeModel, intent, text
from tests.integration.races.schedule import HeldModel, Process

NewProcess = Callable[..., Process]


@pytest.fixture
def new_process(database_url: str) -> Iterator[NewProcess]:
    """Processes at one database; `model` answers a greeting unless another is given."""
    with ExitStack() as opened:

        def new(model: HeldModel | None = None, **fields: Any) -> Process:
            database = opened.enter_context(closing(Database(database_url)))
            return Process(database, model or greeting(), **fields)

        yield new


def greeting(at: int = 0) -> HeldModel:
    """Answers the router and then the question."""
    return HeldModel(FakeModel(intent("SYSTEM_CHAT"), text("Hello.")), at)
