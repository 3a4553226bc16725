"""One blocking call in a thread of its own, awaited from the event loop.

Not the loop's default executor: its few threads are shared with everything else, so that slow
statements could keep the thread waiting that has to stop them. This thread ends with its call, and
being a daemon it can't keep a process alive that wants to exit.
"""

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

_running: set[threading.Thread] = set()


def in_thread(work: Callable[[], T], name: str) -> "asyncio.Future[T]":
    """Starts `work` now; the future has its result or error. Cancelling the future doesn't stop it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    # A result or error that nobody waits for any more is nobody's.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    context = contextvars.copy_context()

    def settle(action: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            action(value)

    def run() -> None:
        action: Callable[[Any], None] = future.set_result
        value: Any
        try:
            value = context.run(work)
        except BaseException as error:
            action, value = future.set_exception, error
        # The loop may have been closed while we worked.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, action, value)
        _running.discard(thread)

    thread = threading.Thread(target=run, name=name, daemon=True)
    _running.add(thread)
    thread.start()
    return future


def quiet(within: float) -> bool:
    """Whether no call is at work, after waiting up to `within` seconds for those that nobody waits for."""
    end = time.monotonic() + within
    for thread in _running.copy():
        thread.join(max(end - time.monotonic(), 0.0))
    return not _running
