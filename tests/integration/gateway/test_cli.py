"""The command line, in a process of its own."""

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from websockets.asyncio.client import connect

from local.gateway.cli import configuration, main, parser
from tests.integration.gateway.support import TEMPLATE, ask


@dataclass
class Process:
    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)

    async def line(self, pattern: str) -> re.Match[str]:
        """The next line that matches."""
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            while line := (await self.process.stdout.readline()).decode():
                self.lines.append(line)
                if match := re.search(pattern, line):
                    return match
        raise AssertionError(f"no {pattern} in {self.lines}")

    async def rest(self) -> str:
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            return (await self.process.stdout.read()).decode()


@asynccontextmanager
async def gateway(*options: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "local.gateway", "--template", str(TEMPLATE), *options),
        cwd=TEMPLATE.parents[4],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield Process(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_addresses_and_invocations_are_printed_and_signals_end_it(tmp_path: Path, number: signal.Signals) -> None:
    async with gateway("--env", f"RECORDS={tmp_path}") as running:
        url = (await running.line(r"^WebSocket +(ws://127\.0\.0\.1:\d+/v1)$"))[1]
        await running.line(r"^Management +http://127\.0\.0\.1:\d+/v1$")
        async with connect(url, proxy=None) as socket:
            await ask(socket, "work", do="print")
            await running.line(r"^\[WorkFunction\] line one$")
            await running.line(r"^WorkFunction [0-9a-f-]{36} \d+ ms ok$")
            running.process.send_signal(number)
            assert re.search(r"^DisconnectFunction .* ok$", await running.rest(), re.MULTILINE)
        assert await running.process.wait() == 0


async def test_quiet_with_static_files_and_variables(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("hello")
    variables = {"Parameters": {"A": "all", "B": "all"}, "WorkFunction": {"B": "one", "C": 3}}
    env_vars = tmp_path / "env.json"
    env_vars.write_text(json.dumps(variables))
    options = [
        "--quiet",
        "--static",
        str(tmp_path),
        "--env-vars",
        str(env_vars),
        "--env",
        f"RECORDS={tmp_path}",
    ]
    async with gateway(*options, "--parameter-overrides", "Selection=$request.body.kind") as running:
        url = (await running.line(r"^WebSocket +(ws://.*)$"))[1]
        page = (await running.line(r"^Page +(http://.*)$"))[1]
        async with aiohttp.request("GET", page) as response:
            assert await response.text() == "hello"
        async with connect(url, proxy=None) as socket:
            found = (await ask(socket, "x", kind="work", do="environment"))["environment"]
            assert {name: found[name] for name in "ABC"} == {"A": "all", "B": "one", "C": "3"}
        running.process.send_signal(signal.SIGTERM)
        assert "ms ok" not in await running.rest()


def test_the_command_line_wins_over_files(tmp_path: Path) -> None:
    env_vars = tmp_path / "env.json"
    env_vars.write_text(json.dumps({"Parameters": {"A": "file"}, "F": {"A": "function", "B": "function"}}))
    arguments = ["--env-vars", str(env_vars), "--env", "A=line", "--max-concurrency", "3", "--no-freeze"]
    config = configuration(parser().parse_args(arguments))
    assert config.environment == {"A": "line"}
    assert config.function_environment == {"F": {"A": "line", "B": "function"}}
    assert (config.max_concurrency, config.freeze, config.schedules) == (3, False, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--template", "/no/such/template.yaml"], "name it with --template"),
        (["--template", str(TEMPLATE), "--env", "novalue"], "KEY=VALUE"),
        (["--template", str(TEMPLATE), "--max-concurrency", "0"], "more than 0"),
        (["--template", str(TEMPLATE), "--parameter-overrides", "Nope=1"], "no parameter Nope"),
        (["--template", str(TEMPLATE), "--api", "Nope"], "no WebSocket API Nope"),
        (["--template", str(TEMPLATE), "--static", "/no/such/folder"], "correct --static"),
        (["--template", str(TEMPLATE), "--env-vars", "/no/such/file"], "--env-vars names"),
        (["--template", str(TEMPLATE), "--host", "192.0.2.1"], "choose another"),
    ],
)
def test_mistakes_are_told_in_a_sentence(capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    assert main(options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
