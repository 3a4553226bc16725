"""Calls functions by their logical id, waiting for the answer or not, with the retries of the template."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from local.gateway.clock import Clock, Tasks
from local.gateway.errors import FunctionNotFound
from local.gateway.model import Function
from local.gateway.runtime.child import Child, ChildInfo, Start
from local.gateway.runtime.environment import child_environment
from local.gateway.runtime.invocation import Invocation, Result
from local.gateway.runtime.pool import Pool, Throttled
from local.gateway.runtime.server import RuntimeServer
from local.gateway.runtime.starting import Interpreter, starter

invocations = logging.getLogger("local.gateway.invocation")
output = logging.getLogger("local.gateway.output")
RETRY_DELAYS = (60.0, 120.0)  # as Lambda waits before its first and second retry


@dataclass(frozen=True, kw_only=True)
class RuntimeSettings:
    python: str
    region: str
    max_concurrency: int = 10
    freeze: bool = True
    own_runtime: bool = False
    snapshots: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    function_environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class Functions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._functions: Mapping[str, Function] = {}
        self._server = RuntimeServer()
        self._tasks = Tasks()
        self._pools: dict[str, Pool] = {}

    async def start(self, functions: Mapping[str, Function], settings: RuntimeSettings) -> None:
        """The settings carry the gateway's addresses, so its ports are open before."""
        await self._server.start()
        self._functions = functions
        for logical_id, function in functions.items():
            self._pools[logical_id] = self._pool(function, settings)

    async def close(self) -> None:
        await self._tasks.cancel()
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))
        await self._server.close()

    @property
    def children(self) -> list[ChildInfo]:
        return [info for pool in self._pools.values() for info in pool.children]

    def find(self, name: str) -> str:
        """The logical id for a logical id, a name or an ARN."""
        plain = name.rpartition(":function:")[2].partition(":")[0]
        for logical_id, function in self._functions.items():
            if plain in (logical_id, function.name):
                return logical_id
        raise FunctionNotFound(f"Function not found: {name}")

    async def invoke(self, logical_id: str, invocation: Invocation, *, patience: float | None = None) -> Result:
        started = self._clock.now()
        result = await self._pools[logical_id].invoke(invocation, patience=patience)
        elapsed = (self._clock.now() - started) * 1000
        outcome = f"{result.error}: {result.message}" if result.error else "ok"
        invocations.info("%s %s %.0f ms %s", logical_id, invocation.request_id, elapsed, outcome)
        return result

    def submit(self, logical_id: str, invocation: Invocation) -> None:
        """Asynchronous invocation: the caller learns nothing of the outcome."""
        self._tasks.start(self._run_event(self._functions[logical_id], invocation))

    async def _run_event(self, function: Function, invocation: Invocation) -> None:
        expires = self._clock.now() + function.max_event_age
        for attempt in range(function.retries + 1):
            remaining = expires - self._clock.now()
            try:
                result = await self.invoke(function.logical_id, invocation, patience=remaining)
            except Throttled:
                self._drop(function, invocation, "it waited longer than MaximumEventAgeInSeconds")
                return
            if result.error is None:
                return
            if attempt < function.retries:
                await self._clock.sleep(RETRY_DELAYS[min(attempt, len(RETRY_DELAYS) - 1)])
                if self._clock.now() >= expires:
                    self._drop(function, invocation, "its next retry is later than MaximumEventAgeInSeconds")
                    return
        self._drop(function, invocation, f"it failed {function.retries + 1} time(s)")

    def _drop(self, function: Function, invocation: Invocation, reason: str) -> None:
        invocations.warning("%s %s dropped: %s", function.logical_id, invocation.request_id, reason)

    def _pool(self, function: Function, settings: RuntimeSettings) -> Pool:
        extra = {**settings.environment, **settings.function_environment.get(function.logical_id, {})}
        interpreter = Interpreter(function=function, python=settings.python, own_runtime=settings.own_runtime)

        def write(line: str) -> None:
            output.info("[%s] %s", function.logical_id, line)

        source = starter(interpreter, write, snapshots=settings.snapshots)
        start = Start(
            function=function,
            starter=source.start,
            environment=lambda address: child_environment(function, address, settings.region, extra),
            freeze=settings.freeze,
            output=write,
        )
        limit = min(settings.max_concurrency, function.concurrency or settings.max_concurrency)
        return Pool(lambda: Child(start, self._server, self._clock), limit, self._clock, source.close)
