"""Functions' processes: unchanged handlers, freezing, time-outs, deaths."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from local.gateway import Gateway, GatewayConfig
from tests.integration.gateway.support import (
    TEMPLATE,
    Running,
    Start,
    ask,
    hear,
    process_state,
    say,
    until,
)
from tests.integration.gateway.virtual_clock import VirtualClock

snapshots = pytest.mark.parametrize("snapshots", [False, True], ids=["cold", "snapshot"])
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


async def environment_of(running: Running) -> dict[str, str]:
    async with running.socket() as socket:
        answer = await ask(socket, "work", do="environment")
    return {str(name): str(value) for name, value in answer["environment"].items()}


@linux
@snapshots
async def test_a_process_is_stopped_between_events(start: Start, snapshots: bool) -> None:
    async with start(snapshots=snapshots) as running, running.socket() as socket:
        pid = (await ask(socket, "work"))["pid"]
        await until(lambda: process_state(pid) == "T")
        (child,) = running.children("WorkFunction")
        assert (child.pid, child.state, child.frozen, child.request_id) == (pid, "idle", True, None)
        await say(socket, "work", do="wait", gate="gate")
        await until(lambda: process_state(pid) in tuple("RS"))
        (child,) = running.children("WorkFunction")
        assert (child.pid, child.state, child.frozen) == (pid, "busy", False)
        assert child.request_id
        running.open_gate("gate")
        assert (await hear(socket))["pid"] == pid
        await until(lambda: process_state(pid) == "T")


@linux
async def test_freezing_can_be_turned_off(start: Start) -> None:
    async with start(freeze=False) as running, running.socket() as socket:
        pid = (await ask(socket, "work"))["pid"]
        await until(lambda: running.children("WorkFunction")[0].state == "idle")
        assert process_state(pid) in tuple("RS")
        assert (await ask(socket, "work"))["pid"] == pid


@snapshots
@pytest.mark.parametrize("own_runtime", [False, True])
async def test_both_runtime_clients_run_the_same_handlers(start: Start, own_runtime: bool, snapshots: bool) -> None:
    async with start(own_runtime=own_runtime, snapshots=snapshots) as running, running.socket() as socket:
        first = await ask(socket, "work", id="é😀")
        assert first["id"] == "é😀"
        assert (await ask(socket, "work"))["pid"] == first["pid"]
        assert (await ask(socket, "work", do="fail"))["message"] == "Internal server error"
        # A handler that raises leaves its process in place.
        await until(lambda: running.children("WorkFunction")[0].state == "idle")
        assert (await ask(socket, "work"))["pid"] == first["pid"]
        assert (await ask(socket, "broken"))["message"] == "Internal server error"
        context = running.recorded("WorkFunction")[0]["context"]
        assert len(context["id"]) == 36
        assert 0 < context["left"] <= 60_000


@pytest.mark.parametrize("own_runtime", [False, True])
async def test_errors_of_a_function_are_described(start: Start, own_runtime: bool) -> None:
    async with start(own_runtime=own_runtime) as running:
        result = await running.gateway.invoke("WorkFunction", b'{"body": "{\\"do\\": \\"fail\\"}"}')
        assert (result.error is not None, result.message) == (True, "asked to fail")
        assert b'"errorType": "ValueError"' in result.payload
        result = await running.gateway.invoke("BrokenFunction", b"{}")
        assert "this module cannot be imported" in result.message


@snapshots
async def test_a_process_that_is_killed_in_an_event_fails_that_event_and_is_replaced(
    start: Start, snapshots: bool
) -> None:
    async with start(snapshots=snapshots) as running, running.socket() as socket:
        await say(socket, "work", do="wait", gate="never")
        await running.wait_for_events("WorkFunction")
        (child,) = running.children("WorkFunction")
        os.kill(child.pid, signal.SIGKILL)
        assert (await hear(socket))["message"] == "Internal server error"
        assert (await ask(socket, "work"))["pid"] != child.pid
        assert len(running.children("WorkFunction")) == 1


@snapshots
async def test_a_process_that_is_killed_between_events_is_replaced(start: Start, snapshots: bool) -> None:
    async with start(snapshots=snapshots) as running, running.socket() as socket:
        pid = (await ask(socket, "work"))["pid"]
        os.kill(pid, signal.SIGKILL)
        await until(lambda: running.children("WorkFunction") == [])
        assert (await ask(socket, "work"))["pid"] != pid


async def test_the_time_out_of_a_function_kills_its_process(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = VirtualClock()
    async with start(clock) as running, running.socket() as socket:
        await say(socket, "brief", do="wait", gate="never")
        await running.wait_for_events("BriefFunction")
        (child,) = running.children("BriefFunction")
        await clock.advance(0.9)
        assert running.children("BriefFunction")[0].state == "busy"
        await clock.advance(0.2)
        assert (await hear(socket))["message"] == "Internal server error"
        assert "Task timed out after 1.00 seconds" in caplog.text
        await until(lambda: process_state(child.pid) == "")
        assert (await running.gateway.invoke("BriefFunction", b"{}")).error is None


@pytest.mark.parametrize("freeze", [True, False])
async def test_what_a_handler_starts_ends_with_its_process(start: Start, freeze: bool) -> None:
    async with start(freeze=freeze) as running, running.socket() as socket:
        answer = await ask(socket, "work", do="child")
        os.kill(answer["pid"], signal.SIGKILL)
        await until(lambda: process_state(answer["child"]) == "")


@snapshots
async def test_no_process_outlives_the_gateway(start: Start, snapshots: bool) -> None:
    async with start(snapshots=snapshots) as running, running.socket() as socket:
        await say(socket, "work", do="wait", gate="never")
        await running.wait_for_events("WorkFunction")
        await ask(socket, "work")
        pids = [child.pid for child in running.gateway.children]
        assert len(pids) == 3
    assert [process_state(pid) for pid in pids] == ["", "", ""]
    assert running.gateway.children == []


@snapshots
async def test_at_most_max_concurrency_processes(start: Start, snapshots: bool) -> None:
    async with start(max_concurrency=2, snapshots=snapshots) as running, running.socket() as socket:
        for number in range(5):
            await say(socket, "work", do="wait", gate="gate", id=number)
        await running.wait_for_events("WorkFunction", 2)
        assert len(running.children("WorkFunction")) == 2
        running.open_gate("gate")
        assert {(await hear(socket))["id"] for _ in range(5)} == set(range(5))
        assert len(running.children("WorkFunction")) == 2


async def test_the_environment_is_that_of_lambda_and_of_the_template(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THIS_MACHINE", "x")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    options: dict[str, Any] = {
        "environment": {"EXTRA": "all"},
        "function_environment": {"WorkFunction": {"ONE": "1", "COLOUR": "green"}},
        "region": "eu-west-1",
    }
    async with start(**options) as running:
        environment = await environment_of(running)
        gateway = running.gateway
    expected = {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_ENDPOINT_URL_LAMBDA": gateway.http_url,
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128",
        "AWS_LAMBDA_FUNCTION_NAME": "local-WorkFunction",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_REGION": "eu-west-1",
        "COLOUR": "green",
        "ENDPOINT": gateway.management_url,
        "EXTRA": "all",
        "LAMBDA_TASK_ROOT": str(TEMPLATE.parent / "handlers"),
        "ONE": "1",
        "PYTHONUNBUFFERED": "1",
        "SOCKET": gateway.websocket_url,
        "_HANDLER": "worker.handler",
    }
    assert {name: environment.get(name) for name in expected} == expected
    assert "SECRET_OF_THIS_MACHINE" not in environment
    assert "DATABASE" not in environment


@snapshots
async def test_output_is_forwarded_with_the_function_s_name(
    start: Start, caplog: pytest.LogCaptureFixture, snapshots: bool
) -> None:
    caplog.set_level("INFO", "local.gateway.output")
    async with start(snapshots=snapshots) as running, running.socket() as socket:
        await ask(socket, "work", do="print")
        await until(lambda: "[WorkFunction] line one" in caplog.text)
        await until(lambda: "[WorkFunction] line two é" in caplog.text)


@snapshots
async def test_an_interpreter_that_cannot_be_started_is_an_error_of_the_event(start: Start, snapshots: bool) -> None:
    async with start(python="/no/such/python", snapshots=snapshots) as running:
        result = await running.gateway.invoke("WorkFunction", b"{}")
        assert result.error == "Runtime.StartError"


@linux
@pytest.mark.parametrize("options", [[], ["--snap-start"]], ids=["cold", "snapshot"])
async def test_processes_end_when_the_gateway_is_killed(tmp_path: Path, options: list[str]) -> None:
    """Also those that are stopped, which can't notice by themselves."""
    gateway = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "local.gateway",
        "--template",
        str(TEMPLATE),
        "--env",
        f"RECORDS={tmp_path}",
        *options,
        stdout=asyncio.subprocess.PIPE,
        cwd=TEMPLATE.parents[4],
    )
    assert gateway.stdout is not None
    url = ""
    while not url:
        line = (await gateway.stdout.readline()).decode()
        url = line.split()[1] if line.startswith("WebSocket") else ""
    async with connect(url, proxy=None) as socket:
        pid = (await ask(socket, "work"))["pid"]
        await until(lambda: process_state(pid) == "T")
        gateway.kill()
        await gateway.wait()
        await until(lambda: process_state(pid) == "")


@linux
async def test_processes_from_a_snapshot_have_imported_the_handler_once(start: Start) -> None:
    async with start(snapshots=True) as running, running.socket() as socket:
        answers = [await ask(socket, "work", do="imported")]
        await say(socket, "work", do="wait", gate="gate")
        await running.wait_for_events("WorkFunction", 2)
        answers.append(await ask(socket, "work", do="imported"))
        running.open_gate("gate")
    first, second = answers
    assert first["pid"] != second["pid"]
    assert first["imported_by"] == second["imported_by"] not in (first["pid"], second["pid"])


@linux
async def test_a_snapshot_that_is_killed_is_made_anew(start: Start) -> None:
    async with start(snapshots=True) as running, running.socket() as socket:
        before = await ask(socket, "work", do="imported")
        os.kill(before["imported_by"], signal.SIGKILL)
        await until(lambda: running.children("WorkFunction") == [])
        after = await ask(socket, "work", do="imported")
        assert after["imported_by"] != before["imported_by"]


async def test_the_interpreter_may_be_named_from_here(start: Start) -> None:
    relative = os.path.relpath(sys.executable)  # noqa: ASYNC240 - nothing else runs yet
    async with start(python=relative) as running:
        assert (await running.gateway.invoke("WorkFunction", b"{}")).error is None


async def test_the_gateway_can_be_started_again_and_again() -> None:
    for _ in range(3):
        async with Gateway.start(GatewayConfig(template=TEMPLATE)) as gateway:
            assert gateway.websocket_url.startswith("ws://127.0.0.1:")
