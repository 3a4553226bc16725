"""The function's side of the harness: the product's own services, with every call through a port announced.

Announced means: the harness is told before the call and after it, over a socket, and says how to go on.
While it says nothing, the call is held. The product's code is the product's own.
"""

import asyncio
import builtins
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any

from superbizagent import bootstrap, errors
from superbizagent.application.chat import ChatRequest, ChatResult, ChatUseCase
from superbizagent.application.evidence_tools import EvidenceSources
from superbizagent.ports import Observer

ADDRESS = "FAULTS_ADDRESS"
RETURNING = 0.2
"""Seconds."""


class Announcer:
    def __init__(self, address: str) -> None:
        host, _, port = address.partition(":")
        self._host, self._port = host, int(port)

    async def reach(self, name: str, phase: str, **facts: Any) -> None:
        """Returns when the harness lets this go on; raises what it asks for."""
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            reached = {"pid": os.getpid(), "name": name, "phase": phase, "facts": facts}
            writer.write(json.dumps(reached).encode() + b"\n")
            instruction = json.loads(await reader.readline() or b"{}")
        finally:
            writer.close()
        await asyncio.sleep(instruction.get("sleep", 0))
        if wanted := instruction.get("raise"):
            raise _error(wanted)


def _error(name: str) -> Exception:
    made: Exception = (getattr(errors, name, None) or getattr(builtins, name))("injected")
    return made


Named = Callable[[str, tuple[Any, ...]], str]
"""A boundary's name, from the method called and its arguments."""


class Announced:
    """Stands before an adapter; its coroutines are announced, all else is the adapter's."""

    def __init__(self, target: Any, named: Named, announcer: Announcer) -> None:
        self._target = target
        self._named = named
        self._announcer = announcer

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._target, method)
        return partial(self._call, method, call) if inspect.iscoroutinefunction(call) else call

    async def _call(self, method: str, call: Callable[..., Any], *arguments: Any) -> Any:
        name = self._named(method, arguments)
        await self._announcer.reach(name, "before")
        result = await call(*arguments)
        await self._announcer.reach(name, "after")
        return result


class AnnouncedChat:
    """The chat use case with its observer announced."""

    def __init__(self, chat: ChatUseCase, announced: Callable[[Any, Named], Any]) -> None:
        self._chat = chat
        self._announced = announced

    async def execute(self, request: ChatRequest, observer: Observer) -> ChatResult:
        return await self._chat.execute(request, self._announced(observer, _observer_call))


class AnnouncedServices(bootstrap.Services):
    def __init__(self, announcer: Announcer) -> None:
        super().__init__()
        self._announcer = announcer

    async def answer(self, event: Any, expected: Any, serve: Any) -> Any:
        await self._announcer.reach(
            "event", "before", connection_id=event.connection_id, gateway_request_id=event.gateway_request_id
        )
        return await super().answer(event, expected, serve)

    @cached_property
    def _runs(self) -> Any:
        return self._announced(super()._runs, _of("store"))

    @cached_property
    def _connections(self) -> Any:
        return self._announced(super()._connections, _of("store"))

    @cached_property
    def _cancel_requests(self) -> Any:
        return self._announced(super()._cancel_requests, lambda *_: "poll")

    @cached_property
    def _model(self) -> Any:
        return self._announced(super()._model, _model_call)

    @cached_property
    def _sources(self) -> EvidenceSources:
        sources = super()._sources
        return replace(
            sources,
            logs=self._announced(sources.logs, _of("logs")),
            knowledge=self._announced(sources.knowledge, _of("knowledge")),
            database=self._announced(sources.database, _of("database")),
        )

    @cached_property
    def channel(self) -> Any:
        return self._announced(super().channel, _frame)

    @cached_property
    def chat(self) -> Any:
        return AnnouncedChat(super().chat, self._announced)

    def _announced(self, target: Any, named: Named) -> Any:
        return Announced(target, named, self._announcer)


def _of(port: str) -> Named:
    return lambda method, _: f"{port}.{method}"


def _model_call(_method: str, arguments: tuple[Any, ...]) -> str:
    request = arguments[0]
    return f"model.{request.output.name if request.output is not None else 'tools' if request.tools else 'text'}"


def _observer_call(method: str, arguments: tuple[Any, ...]) -> str:
    return f"observer.{'started' if method == 'on_started' else arguments[0]}"


def _frame(_method: str, arguments: tuple[Any, ...]) -> str:
    frame = json.loads(arguments[1])
    return ".".join(["frame", frame["type"], *([frame["code"]] if frame["type"] == "status" else [])])


async def _left_running() -> Mapping[str, list[str]]:
    """Tasks that are not this one, and threads that go on doing something."""
    tasks = [repr(task.get_coro()) for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    give_up = time.monotonic() + RETURNING
    # A thread that has handed over its result takes a moment to get back to its pool.
    while (threads := _busy()) and time.monotonic() < give_up:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    return {"tasks": tasks, "threads": threads}


def _busy() -> list[str]:
    frames = sys._current_frames()
    return [
        thread.name
        for thread in threading.enumerate()
        if thread is not threading.current_thread() and not _idle(frames.get(thread.ident or 0))
    ]


def _idle(frame: Any) -> bool:
    """Whether a thread of a pool waits for its next piece of work."""
    return frame is None or (frame.f_code.co_name == "_worker" and frame.f_code.co_filename.endswith("thread.py"))


def install() -> None:
    announcer = Announcer(os.environ[ADDRESS])  # noqa: TID251 - the harness's own variable
    services: Any = cache(lambda: AnnouncedServices(announcer))
    bootstrap.services = services
    bootstrap.run = _reporting(bootstrap.run, announcer)


def _reporting(run: Callable[[Any], Any], announcer: Announcer) -> Any:
    """Tells what is left once the handler's work has ended and been tidied up after."""

    def reported(work: Any) -> Any:
        left: Mapping[str, list[str]] | None = None
        try:
            return run(work)
        except SystemExit:
            # What would not stop ends with its process.
            left = {"tasks": [], "threads": []}
            raise
        finally:
            bootstrap._runner().run(_report(announcer, left))

    return reported


async def _report(announcer: Announcer, left: Mapping[str, list[str]] | None) -> None:
    await announcer.reach("event", "after", **(await _left_running() if left is None else left))
