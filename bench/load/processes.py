"""CPU and memory of each part, read from outside while it works."""

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

EVERY = 15.0
"""Seconds between two looks; one at some hundred processes takes about a second."""


@dataclass
class Part:
    """`cpu_seconds` of all its processes, ended ones too; the most processes and the most memory seen at one time.

    Memory is proportional (what n processes share counts 1/n each), for the sum of resident sizes would count
    the interpreter once a process.
    """

    processes: int = 0
    memory_mb: float = 0.0
    cpu_by_process: dict[tuple[int, float], float] = field(default_factory=dict)

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu_by_process.values())


class Sampler:
    """Looks at all descendants of this process every few seconds, in a thread of its own."""

    def __init__(self) -> None:
        self.parts: dict[str, Part] = defaultdict(Part)
        self._stop = threading.Event()
        self.started = time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            self._look()

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            self._look()

    def _look(self) -> None:
        this = psutil.Process()
        seen: dict[str, list[float]] = defaultdict(list)
        for process in [this, *this.children(recursive=True)]:
            # Processes end between the listing and the look.
            with contextlib.suppress(psutil.Error, OSError):
                name = "this load generator" if process == this else part_of(process)
                times = process.cpu_times()
                self.parts[name].cpu_by_process[process.pid, process.create_time()] = times.user + times.system
                seen[name].append(process.memory_full_info().pss / 2**20)
        for name, memory in seen.items():
            part = self.parts[name]
            part.processes = max(part.processes, len(memory))
            part.memory_mb = max(part.memory_mb, sum(memory))


def part_of(process: psutil.Process) -> str:
    command = " ".join(process.cmdline())
    if "mariadbd" in command or "mysqld" in command:
        return "database server"
    if "local.model_server" in command:
        return "model server"
    if "local.run" in command:
        return "gateway"
    folder = Path(process.cwd())
    return f"function {folder.name}" if folder.parent.name == "functions" else "other"


def busy_chat_processes() -> list[psutil.Process]:
    """Those that run a question now: between events the gateway keeps them stopped.

    Not the snapshot that they are forked from: all of them would die with it, as no two environments of Lambda do.
    """
    processes = psutil.Process().children(recursive=True)
    parents = set()
    busy = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            parents.add(process.ppid())
            if part_of(process) == "function chat" and process.status() != psutil.STATUS_STOPPED:
                busy.append(process)
    return [process for process in busy if process.pid not in parents]
