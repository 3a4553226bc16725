"""What a handler leaves behind when it returns: nothing, or the process ends with it."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection

from superbizagent import bootstrap
from superbizagent.adapters.worker_thread import in_thread

WAIT = 20.0


@pytest.fixture(autouse=True)
def process(sqlite_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process as Lambda starts it, whose runs keep back little time for their end."""
    monkeypatch.setenv("DATABASE_URL", sqlite_database)
    monkeypatch.setenv("TERMINAL_RESERVE_SECONDS", "0.2")
    yield
    bootstrap.services().database.close()
    bootstrap._runner().close()
    for cached in (bootstrap.services, bootstrap._runner):
        cached.cache_clear()


class Steps:
    """Work that says how far it came. It ends when it is freed, whatever else it is told."""

    def __init__(self) -> None:
        self.taken = 0
        self.cancelled = 0
        self.freed = False

    async def stubborn(self) -> None:
        while not self.freed:
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                self.cancelled += 1
            self.taken += 1


async def _leaving(work: Coroutine[Any, Any, Any]) -> str:
    """A handler's work that starts more than it waits for."""
    _left.add(asyncio.ensure_future(work))
    await asyncio.sleep(0)
    return "answered"


_left: set[asyncio.Future[Any]] = set()


async def _other_event() -> set[str]:
    await asyncio.sleep(0.01)
    return {task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}}


@pytest.mark.spec("CANCEL-4")
def test_a_task_that_is_left_is_cancelled_before_the_handler_returns() -> None:
    ended = threading.Event()

    async def polite() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    assert bootstrap.run(_leaving(polite())) == "answered"
    assert ended.is_set()
    assert bootstrap.run(_other_event()) == set()


@pytest.mark.spec("CANCEL-4", "CANCEL-2")
def test_a_task_that_does_not_stop_takes_its_process_with_it() -> None:
    steps = Steps()
    began = time.monotonic()
    with pytest.raises(SystemExit):
        bootstrap.run(_leaving(steps.stubborn()))
    assert steps.cancelled >= 1
    assert time.monotonic() - began < WAIT
    # Where the process did end, nothing of this would ever be run again.
    taken = steps.taken
    time.sleep(0.01)
    assert steps.taken == taken
    steps.freed = True
    bootstrap.run(_other_event())


@pytest.mark.spec("CANCEL-4")
def test_a_call_in_a_thread_is_waited_for() -> None:
    released, ended = threading.Event(), threading.Event()

    def call() -> None:
        assert released.wait(WAIT)
        ended.set()

    async def cancelled() -> None:
        future = in_thread(call, "a call")
        future.cancel()
        asyncio.get_running_loop().call_later(0.01, released.set)
        await asyncio.sleep(0.02)

    bootstrap.run(cancelled())
    assert ended.is_set()


@pytest.mark.spec("CANCEL-4")
def test_a_call_in_a_thread_that_does_not_end_takes_its_process_with_it() -> None:
    released = threading.Event()

    async def abandoned() -> None:
        in_thread(lambda: released.wait(WAIT), "a call").cancel()

    with pytest.raises(SystemExit):
        bootstrap.run(abandoned())
    released.set()
    bootstrap.run(_other_event())


@pytest.mark.spec("CANCEL-4", "LIFE-4")
def test_a_unit_of_work_that_nobody_waits_for_is_over_before_the_process_is_frozen() -> None:
    """Frozen in mid-transaction it would hold its row locks until the process is thawed."""
    began, released, ended = threading.Event(), threading.Event(), threading.Event()

    def unit(_connection: Connection) -> None:
        began.set()
        assert released.wait(WAIT)
        ended.set()

    async def impatient() -> None:
        writing = asyncio.create_task(bootstrap.services().database.write(unit))
        await asyncio.to_thread(began.wait, WAIT)
        writing.cancel()
        threading.Timer(0.02, released.set).start()

    bootstrap.run(impatient())
    assert ended.is_set()
