"""One Logs Insights query from its start to its end. Nothing of it runs on once nobody waits for it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from superbizagent.adapters.cloudwatch_logs.calls import Calls, NoSuchResource, Page, Request, TryAgain
from superbizagent.adapters.worker_thread import in_thread
from superbizagent.errors import EvidenceError, EvidenceTimeout, EvidenceUnavailable
from superbizagent.ports import Clock

POLL_SECONDS: Final = 1.0
"""The least time between two looks at a query: an account has few such calls a second."""

_LONGEST_POLL: Final = 4.0
_LONGEST_BACKOFF: Final = 8.0
_STOP_SECONDS: Final = 3.0
_STOP_ATTEMPTS: Final = 3
_MAX_PAGES: Final = 20

_TOO_SLOW: Final = "The logs were not searched in time. Ask for a shorter window."

T = TypeVar("T")

Pause = Callable[[float], Awaitable[object]]


@dataclass(frozen=True)
class Results:
    """What a query found that ran to its end; `matched` and `scanned` are events."""

    rows: tuple[Mapping[str, str], ...]
    matched: int
    scanned: int | None


class _Query:
    """A query at AWS, known to the thread that starts it and to the task that waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._id: str | None = None
        self._abandoned = False
        self.starting: asyncio.Future[str] | None = None

    def started(self, query_id: str) -> bool:
        """Whether anybody still wants it."""
        with self._lock:
            self._id = None if self._abandoned else query_id
            return not self._abandoned

    def ended(self) -> None:
        with self._lock:
            self._id = None

    def abandon(self) -> str | None:
        """The id of the query if it is running; one that starts later is stopped by its thread."""
        with self._lock:
            self._abandoned = True
            query_id, self._id = self._id, None
            return query_id


class Insights:
    """Runs queries. `pause` waits for so many seconds; `jitter` is a number from 0 to 1, new each time."""

    def __init__(self, calls: Calls, clock: Clock, pause: Pause, jitter: Callable[[], float]) -> None:
        self._calls = calls
        self._clock = clock
        self._pause = pause
        self._jitter = jitter

    async def run(self, request: Request, deadline: float) -> Results:
        """Raises EvidenceError when it does not run to its end before `deadline` of the clock."""
        query = _Query()
        try:
            query_id = await self.retried(lambda: self._start(query, request), deadline)
            return await self._polled(query, query_id, request.limit, deadline)
        except BaseException:
            # Shielded, because a second cancellation must not leave the query running.
            await asyncio.shield(self._stopped(query))
            raise

    async def retried(self, call: Callable[[], "asyncio.Future[T]"], deadline: float) -> T:
        """The call's result; repeated, ever more slowly, while AWS is busy and time is left."""
        delay = POLL_SECONDS
        while True:
            try:
                return await self._within(call(), deadline)
            except TryAgain as error:
                await self._wait(delay * (1 + self._jitter()), deadline, error)
                delay = min(delay * 2, _LONGEST_BACKOFF)

    def _start(self, query: _Query, request: Request) -> "asyncio.Future[str]":
        def start() -> str:
            query_id = self._calls.start(request)
            if not query.started(query_id):
                with suppress(EvidenceError):
                    self._calls.stop(query_id)
            return query_id

        query.starting = in_thread(start, "cloudwatch-start")
        return query.starting

    async def _polled(self, query: _Query, query_id: str, limit: int, deadline: float) -> Results:
        delay = POLL_SECONDS
        while True:
            await self._wait(delay * (1 + self._jitter() / 2), deadline, EvidenceTimeout(_TOO_SLOW))
            page = await self._page(query_id, None, deadline)
            if page.status not in ("Scheduled", "Running"):
                break
            delay = min(delay * 1.5, _LONGEST_POLL)
        if page.status in _ENDS:
            query.ended()
        if page.status != "Complete":
            raise _failure(page.status)
        rows = await self._rows(query_id, page, limit, deadline)
        return Results(rows[:limit], max(page.matched or 0, len(rows)), page.scanned)

    async def _rows(self, query_id: str, page: Page, limit: int, deadline: float) -> tuple[Mapping[str, str], ...]:
        rows, token = list(page.rows), page.next_token
        for _ in range(_MAX_PAGES):
            if token is None or len(rows) >= limit:
                break
            more = await self._page(query_id, token, deadline)
            rows += more.rows
            token = more.next_token
        return tuple(rows)

    async def _page(self, query_id: str, token: str | None, deadline: float) -> Page:
        try:
            return await self.retried(
                lambda: in_thread(lambda: self._calls.results(query_id, token), "cloudwatch-results"), deadline
            )
        except NoSuchResource as error:
            raise EvidenceUnavailable("CloudWatch Logs no longer knows this search. Ask again.") from error

    async def _within(self, future: "asyncio.Future[T]", deadline: float) -> T:
        try:
            async with asyncio.timeout(max(deadline - self._clock.monotonic(), 0)):
                return await asyncio.shield(future)
        except TimeoutError:
            raise EvidenceTimeout(_TOO_SLOW) from None

    async def _wait(self, seconds: float, deadline: float, otherwise: EvidenceError) -> None:
        if self._clock.monotonic() + seconds >= deadline:
            raise otherwise
        await self._pause(seconds)

    async def _stopped(self, query: _Query) -> None:
        """Stops the query at AWS, in bounded time; never raises for what AWS answers."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                if query.starting is not None and not query.starting.done():
                    query_id = query.abandon()
                    await asyncio.wait({query.starting})
                else:
                    query_id = query.abandon()
                if query_id is not None:
                    await self._stop(query_id)

    async def _stop(self, query_id: str) -> None:
        for attempt in range(_STOP_ATTEMPTS):
            try:
                await in_thread(lambda: self._calls.stop(query_id), "cloudwatch-stop")
                return
            except TryAgain:
                await self._pause(0.2 * (attempt + 1))
            except EvidenceError:
                # It has ended by itself.
                return


_ENDS: Final = frozenset(("Complete", "Failed", "Cancelled", "Timeout"))


def _failure(status: str) -> EvidenceError:
    match status:
        case "Failed":
            return EvidenceUnavailable("CloudWatch Logs could not run this search. Ask for a shorter window.")
        case "Cancelled":
            return EvidenceUnavailable("Somebody stopped this search at CloudWatch Logs. Ask again if it is needed.")
        case "Timeout":
            return EvidenceTimeout("CloudWatch Logs gave this search up: it took too long. Ask for a shorter window.")
        case _:
            return EvidenceUnavailable("CloudWatch Logs can't tell what became of this search. Ask again.")
