"""The product as `make run` starts it, on a MySQL-compatible server of its own, each part a process to be measured."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.database_server import private_server

ROOT = Path(__file__).resolve().parents[2]
SOCKET_FUNCTIONS = 2
"""connect and disconnect: sockets that open or close all at once bring each to as many processes as it may have."""
OTHERS = 40
LINES_OF_TRACEBACK = 60
SIGNS = {"tracebacks": "Traceback", "errors": '"level":"ERROR"', "dropped events": " dropped: "}


@dataclass(frozen=True, kw_only=True)
class StackOptions:
    """`processes`: of one function at most. `latency`: seconds that the model takes for an answer."""

    processes: int
    pool_size: int
    latency: float
    run_seconds: int
    snapshots: bool

    @property
    def database_connections(self) -> int:
        """What the configuration allows: a pool in each chat process, one where no more is needed, a few for others."""
        return self.processes * (self.pool_size + SOCKET_FUNCTIONS) + OTHERS


@dataclass
class Log:
    """What the product printed, counted rather than kept: nothing in it should need reading."""

    lines: Counter[str] = field(default_factory=Counter)
    samples: dict[str, str] = field(default_factory=dict)
    _to_follow: int = 0

    def read(self, output: IO[str]) -> None:
        for line in output:
            if self._to_follow:
                self.samples["tracebacks"] += line[:300]
                self._to_follow -= 1
            for kind in (kind for kind, sign in SIGNS.items() if sign in line):
                self.lines[kind] += 1
                if kind not in self.samples:
                    self.samples[kind] = line[:3000]
                    self._to_follow = LINES_OF_TRACEBACK if kind == "tracebacks" else self._to_follow


@dataclass(frozen=True, kw_only=True)
class Stack:
    websocket_url: str
    model_url: str
    database_url: str
    log: Log

    def forget_requests(self) -> None:
        """The scripted model keeps every request for tests to look at; a load test would fill its memory."""
        body = json.dumps({"reset": True}).encode()
        request = urllib.request.Request(  # noqa: S310 - an address of ours
            self.model_url.removesuffix("/v1") + "/control", body, {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=30).close()  # noqa: S310


@contextlib.contextmanager
def running(options: StackOptions) -> Iterator[Stack]:
    """Database server, model server and product; all have ended when the block ends."""
    with (
        private_server(f"--max-connections={options.database_connections + 20}") as server,
        server.new_database() as database_url,
        tempfile.TemporaryDirectory(prefix="load-") as folder,
        _model(options.latency) as model_url,
        _product(options, folder, database_url, model_url) as (page, log),
    ):
        with urllib.request.urlopen(f"{page}config.json", timeout=30) as response:  # noqa: S310
            websocket_url = json.load(response)["websocketUrl"]
        yield Stack(websocket_url=websocket_url, model_url=model_url, database_url=database_url, log=log)


@contextlib.contextmanager
def _model(latency: float) -> Iterator[str]:
    command = [sys.executable, "-m", "local.model_server", "--latency", str(latency)]
    with _process(command, {}) as output:
        yield _line_with(output, " at ").partition(" at ")[2]


@contextlib.contextmanager
def _product(options: StackOptions, folder: str, database_url: str, model_url: str) -> Iterator[tuple[str, Log]]:
    command = [sys.executable, "-m", "local.run", "--verbose", "--port", "0", "--data", folder]
    command += ["--processes", str(options.processes), *(["--snap-start"] if options.snapshots else [])]
    variables = {
        "DATABASE_URL": database_url,
        "DATABASE_POOL_SIZE": str(options.pool_size),
        "OPENAI_API_KEY": "scripted",
        "OPENAI_BASE_URL": model_url,
        "OPENAI_MODEL": "scripted-demo",
        "RUN_SECONDS": str(options.run_seconds),
        "MODEL_CALL_SECONDS": str(options.run_seconds),
        "VERDICT_SECONDS": str(options.run_seconds),
    }
    with _process(command, variables) as output:
        page = _line_with(output, "open http").split()[1]
        log = Log()
        threading.Thread(target=log.read, args=[output], daemon=True).start()
        yield page, log


@contextlib.contextmanager
def _process(command: list[str], variables: Mapping[str, str]) -> Iterator[IO[str]]:
    process = subprocess.Popen(  # noqa: S603 - commands of ours
        command,
        cwd=ROOT,
        env={**os.environ, **variables},  # noqa: TID251 - the command's own surroundings
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None  # noqa: S101
    try:
        yield process.stdout
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=60)
        process.kill()
        process.wait()


def _line_with(output: IO[str], sign: str) -> str:
    """The first line with the sign; SystemExit with all that came before, if the process ends without it."""
    seen = []
    for line in output:
        if sign in line:
            return line.strip()
        seen.append(line)
    raise SystemExit("A part did not start:\n" + "".join(seen[-20:]))
