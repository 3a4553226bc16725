"""What each fault does, when the run has come to the boundary and stands there."""

import asyncio
import base64
import contextlib
import json
import os
import signal

from local.run import ROOT
from tests.faults.cases import ERRORS, Case, Fault
from tests.faults.lane import PEER_IDLE, WAIT, eventually
from tests.faults.play import Act, Plan, Scene, Stack, browser

LONGER_THAN_PEERS_WAIT = PEER_IDLE + 0.6
CANCEL_SEEN = 1.5
"""Seconds within which a run that can be cancelled has let go of the call it was held in."""

SILENT = frozenset({Fault.KILL, Fault.DISCONNECT, Fault.GONE})
CANCELLING = frozenset({Fault.CANCEL, Fault.DISCONNECT, Fault.GONE})


def plan_of(case: Case) -> Plan:
    fault = case.fault
    return Plan(
        case.question,
        case.boundary,
        FAULTS[fault],
        fault=fault,
        silent=fault in SILENT,
        cancels=fault in CANCELLING,
    )


async def _error(scene: Scene, _: Stack) -> None:
    scene.hold.release({"raise": ERRORS[scene.hold.boundary.port]})


async def _defect(scene: Scene, _: Stack) -> None:
    scene.hold.release({"raise": "RuntimeError"})


async def _gone(scene: Scene, _: Stack) -> None:
    scene.hold.release({"raise": "ClientGone"})


async def _delay(scene: Scene, _: Stack) -> None:
    scene.hold.release({"sleep": scene.lane.past_the_limit})


async def _reset(scene: Scene, _: Stack) -> None:
    """Before a call: one of its answers is lost. After it: whatever is kept open dies."""
    if scene.hold.boundary.phase == "before":
        scene.lane.proxies.of(scene.hold.boundary.port).reset_after(scene.dice(6))
    else:
        for proxy in (scene.lane.proxies.database, scene.lane.proxies.model, scene.lane.proxies.channel):
            proxy.reset_all()
    scene.hold.release()


async def _kill(scene: Scene, _: Stack) -> None:
    os.kill(scene.pid, signal.SIGKILL)
    await asyncio.wait_for(scene.hold.dropped.wait(), WAIT)


async def _stop(scene: Scene, _: Stack) -> None:
    os.kill(scene.pid, signal.SIGSTOP)
    await asyncio.sleep(LONGER_THAN_PEERS_WAIT)
    scene.hold.release()
    os.kill(scene.pid, signal.SIGCONT)


async def _sweep(scene: Scene, _: Stack) -> None:
    """One sweep too early, then one when the run is overdue and its process stands still; then it goes on."""
    await scene.lane.sweep()
    await _still_running(scene)
    os.kill(scene.pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(scene.lane.past_the_limit)
        await scene.lane.sweep()
        scene.swept = bool(
            await scene.lane.sql.rows(
                "SELECT 1 FROM diagnosis_run WHERE request_id = %s AND failure_code = 'RUN_ABANDONED'",
                scene.request_id,
            )
        )
    finally:
        scene.hold.release()
        os.kill(scene.pid, signal.SIGCONT)


async def _still_running(scene: Scene) -> None:
    swept = await scene.lane.sql.rows(
        "SELECT run_id FROM diagnosis_run WHERE request_id = %s AND failure_code = 'RUN_ABANDONED'", scene.request_id
    )
    assert not swept, "the sweep ended a run that was not overdue"


async def _cancel(scene: Scene, _: Stack) -> None:
    run = await scene.lane.sql.rows("SELECT run_id FROM diagnosis_run WHERE request_id = %s", scene.request_id)
    column, value = ("run_id", run[0]["run_id"]) if run else ("connection_id", scene.connection_id)
    await scene.lane.sql.rows(
        f"INSERT INTO run_cancel ({column}, reason, requested_at) VALUES (%s, 'CLIENT_REQUEST', UTC_TIMESTAMP(6))",
        value,
    )
    await _until_cancelled(scene)


async def _disconnect(scene: Scene, _: Stack) -> None:
    scene.browser.socket.transport.abort()
    cancelled = "SELECT id FROM run_cancel WHERE connection_id = %s"
    async with asyncio.timeout(WAIT):
        while not await scene.lane.sql.rows(cancelled, scene.connection_id):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await _until_cancelled(scene)


async def _until_cancelled(scene: Scene) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(scene.hold.dropped.wait(), CANCEL_SEEN)
    scene.hold.release()


async def _redelivery(scene: Scene, _: Stack) -> None:
    """The platform delivers the same message again, to another process."""
    facts = scene.lane.boundaries.of_first()[0].facts
    event = json.loads((ROOT / "events" / "chat.json").read_text())
    event["requestContext"] |= {"connectionId": scene.connection_id, "requestId": facts["gateway_request_id"]}
    event["body"] = base64.b64encode(
        json.dumps(
            {
                "action": "chat",
                "requestId": scene.request_id,
                "sessionId": scene.session_id,
                "query": scene.question,
            }
        ).encode()
    ).decode()
    await scene.lane.gateway.invoke("ChatFunction", json.dumps(event).encode())
    scene.hold.release()


async def _resend(scene: Scene, stack: Stack) -> None:
    """The client sends its question again, by another connection, as a page does that was cut off."""
    scene.other = await stack.enter_async_context(browser(scene.lane))
    await scene.other.ask(scene.question, scene.request_id, scene.session_id)
    await eventually(lambda: _second_pid(scene) is not None)
    second = _second_pid(scene)
    assert second is not None
    await asyncio.wait_for(scene.lane.boundaries.until_ended(second), WAIT)
    scene.hold.release()


def _second_pid(scene: Scene) -> int | None:
    return next((one.pid for one in scene.lane.boundaries.heard if one.pid != scene.pid), None)


FAULTS: dict[Fault, Act] = {
    Fault.ERROR: _error,
    Fault.DEFECT: _defect,
    Fault.DELAY: _delay,
    Fault.GONE: _gone,
    Fault.RESET: _reset,
    Fault.KILL: _kill,
    Fault.STOP: _stop,
    Fault.SWEEP: _sweep,
    Fault.CANCEL: _cancel,
    Fault.DISCONNECT: _disconnect,
    Fault.REDELIVERY: _redelivery,
    Fault.RESEND: _resend,
}
