"""How the process of a function comes to be: from the interpreter, or from a snapshot of one that is ready."""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from local.gateway.clock import Tasks
from local.gateway.model import Function
from local.gateway.runtime.output import forward_lines

LAUNCH = Path(__file__).resolve().with_name("launch.py")
SNAPSHOT = LAUNCH.with_name("snapshot.py")
MOST_BYTES = 1 << 16


class Process(Protocol):
    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None:
        """None as long as nobody has waited for it: its number is its own until then."""
        ...

    async def wait(self) -> int: ...


Starter = Callable[[Mapping[str, str], int], Awaitable[Process]]
"""Starts a process with this environment, its output going to this descriptor, in a process group of its own.

Raises OSError.
"""


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """Each process starts a Python of its own and imports the handler: a cold start."""

    function: Function
    python: str
    own_runtime: bool

    @property
    def options(self) -> list[str]:
        return ["--own-runtime"] if self.own_runtime else []

    async def start(self, environment: Mapping[str, str], output: int) -> Process:
        return await asyncio.create_subprocess_exec(
            self.python,
            str(LAUNCH),
            str(os.getpid()),
            self.function.handler,
            *self.options,
            cwd=self.function.code,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,  # so that what the handler starts is stopped and ended with it
        )

    async def close(self) -> None:
        """There is nothing to close."""


class _Forked:
    """A process that is the snapshot's child: its end is heard of, not waited for."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def returncode(self) -> int | None:
        return self.ended.result() if self.ended.done() else None

    async def wait(self) -> int:
        return await asyncio.shield(self.ended)


class Snapshot:
    """Processes are forked from one that has imported the handler, as SnapStart restores a machine's memory.

    They share what they don't change, so that hundreds fit in the memory of dozens, and start in milliseconds.
    If the snapshot itself dies, so do they; the next start makes a new one.
    """

    def __init__(self, interpreter: Interpreter, write: Callable[[str], None]) -> None:
        self._interpreter = interpreter
        self._write = write
        self._tasks = Tasks()
        self._starting = asyncio.Lock()
        self._source: _Source | None = None

    async def start(self, environment: Mapping[str, str], output: int) -> Process:
        # One at a time: the socket holds a few dozen requests, and the snapshot is not there at once.
        async with self._starting:
            if self._source is None or self._source.ended:
                self._source = await self._new_source(environment)
            return await self._source.fork(environment, output)

    async def close(self) -> None:
        if self._source is not None:
            await self._source.close()
        await self._tasks.finish(1)
        await self._tasks.cancel()

    async def _new_source(self, environment: Mapping[str, str]) -> "_Source":
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        output, write_end = os.pipe()
        function, options = self._interpreter.function, self._interpreter.options
        try:
            process = await asyncio.create_subprocess_exec(
                self._interpreter.python,
                str(SNAPSHOT),
                str(os.getpid()),
                str(theirs.fileno()),
                function.handler,
                *options,
                cwd=function.code,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C is for the gateway
            )
        except BaseException:
            ours.close()
            os.close(output)
            raise
        finally:
            theirs.close()
            os.close(write_end)
        self._tasks.start(forward_lines(output, self._write))
        source = _Source(process, ours)
        self._tasks.start(source.listen())
        return source


class _Source:
    """The process that is forked, and what it tells."""

    def __init__(self, process: asyncio.subprocess.Process, connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._expected: asyncio.Future[_Forked] | None = None
        self._running: dict[int, _Forked] = {}
        self.ended = False

    async def fork(self, environment: Mapping[str, str], output: int) -> Process:
        """One at a time. Raises OSError where the snapshot has ended."""
        expected: asyncio.Future[_Forked] = asyncio.get_running_loop().create_future()
        socket.send_fds(self._connection, [json.dumps(dict(environment)).encode()], [output])
        self._expected = expected
        return await expected

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while message := await loop.sock_recv(self._connection, MOST_BYTES):
                self._take(**json.loads(message))
        except ConnectionError:
            pass  # it was killed
        finally:
            await self._end()

    def _take(self, pid: int, code: int | None = None) -> None:
        if code is not None:
            self._running.pop(pid).ended.set_result(code)
            return
        forked = self._running[pid] = _Forked(pid)
        if self._expected is not None and not self._expected.done():
            self._expected.set_result(forked)

    async def _end(self) -> None:
        self.ended = True
        await self._process.wait()
        self._connection.close()
        if self._expected is not None and not self._expected.done():
            self._expected.set_exception(ConnectionResetError("the snapshot ended"))
        # The kernel ends them with their parent.
        for forked in self._running.values():
            forked.ended.set_result(-9)

    async def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        await self._process.wait()


def starter(interpreter: Interpreter, write: Callable[[str], None], *, snapshots: bool) -> Interpreter | Snapshot:
    return Snapshot(interpreter, write) if snapshots and sys.platform == "linux" else interpreter
