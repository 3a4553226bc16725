"""One question from frame to row to frame, on real parts."""

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from migrations.run import upgrade
from superbizagent.adapters.store import Database
from tests.database_server import restartable_server
from tests.integration.product.conftest import Start
from tests.product.client import TERMINAL
from tests.product.running import WAIT, Product, running

# `make run` stands on SQLite, a deployed stack on MySQL; what goes through SQL of its own is tried on both.
BOTH = pytest.mark.parametrize("database_url", ["sqlite", "mysql"], indirect=True)
# Every process starts cold here; a busy machine may take minutes over what takes seconds.
pytestmark = pytest.mark.timeout(300)
QUESTION = "Why are checkouts failing since 14:00 on 2026-11-30?"


@BOTH
@pytest.mark.spec(
    "LIFE-1", "LIFE-2", "LIFE-4", "EXEC-3", "RELEASE-1", "WIRE-2", "WIRE-4", "OBS-1", "STORE-2", "STORE-3"
)
async def test_a_diagnosis_from_frame_to_row_to_frame(start: Start) -> None:
    async with start() as product:
        browser = await product.connect()
        frames = await browser.run(QUESTION)
        assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
        assert frames[0]["type"] == "started"
        assert [frame["type"] for frame in frames[-2:]] == ["content", "done"]
        content = frames[-2]["content"]
        assert content["type"] == "DIAGNOSIS"
        assert "CHG-3107" in json.dumps(content)
        sources = {source["id"]: source for source in content["sources"]}
        assert all(claim["sourceIds"] and set(claim["sourceIds"]) <= sources.keys() for claim in content["claims"])
        (row,) = await product.rows()
        assert (row["run_id"], row["session_id"]) == (frames[0]["runId"], frames[0]["sessionId"])
        assert (row["status"], row["release_outcome"], row["intent"]) == ("SUCCESS", "SUCCESS", "DIAGNOSIS")
        assert row["query"] == QUESTION
        assert row["model_calls"] == len(product.model.requests)
        stored = json.loads(row["content"]) if isinstance(row["content"], str) else row["content"]
        assert stored == content
        published = row["published_result"]
        assert content["conclusion"][:50] in (published if isinstance(published, str) else json.dumps(published))


@pytest.mark.spec("EXEC-2", "KNOW-3", "KNOW-5")
async def test_a_knowledge_question_cites_the_runbook(start: Start) -> None:
    async with start() as product:
        browser = await product.connect()
        frames = await browser.run("What does the runbook say about payment gateway timeouts?")
        content = frames[-2]["content"]
        assert content["type"] == "KNOWLEDGE_ANSWER"
        assert content["references"][0]["source"] == "payment-gateway-timeouts.md"
        assert [record.kind for record in product.model.requests] == ["router", "knowledge"]


@BOTH
@pytest.mark.spec("EXEC-1", "PREV-1", "WIRE-5", "ISO-2")
async def test_after_a_reload_history_gives_back_the_turns(start: Start) -> None:
    async with start() as product:
        browser = await product.connect()
        first = await browser.run("What can you do?")
        session_id = first[0]["sessionId"]
        second = await browser.run(QUESTION, session_id)
        await browser.socket.close()
        reloaded = await product.connect()
        sessions = await reloaded.history()
        assert [entry["sessionId"] for entry in sessions[0]["sessions"]] == [session_id]
        *turns, _ = await reloaded.history(sessionId=session_id)
        assert [frame["turn"]["query"] for frame in turns] == ["What can you do?", QUESTION]
        assert turns[0]["turn"]["content"] == first[-2]["content"]
        # P105: the sources of an answer are the same after a reload.
        assert turns[1]["turn"]["content"] == second[-2]["content"]
        assert second[-2]["content"]["sources"]
        *page, end = await reloaded.history(sessionId=session_id, limit=1)
        assert [frame["turn"]["query"] for frame in page] == [QUESTION]
        *page, end = await reloaded.history(sessionId=session_id, limit=1, before=end["before"])
        assert [frame["turn"]["query"] for frame in page] == ["What can you do?"]
        assert "before" not in end


@pytest.mark.spec("CANCEL-1", "CANCEL-2", "OBS-2", "LIFE-3")
async def test_closing_the_tab_cancels_the_run_and_drops_the_model_call(start: Start) -> None:
    async with start() as product:
        product.model.enqueue(kind="agent", latency=60)
        browser = await product.connect()
        await browser.ask(QUESTION)
        await browser.until("INVESTIGATING")
        await product.eventually(lambda: product.model.requests[-1].kind == "agent")
        await browser.socket.close()
        row = await product.row_when(lambda row: row["status"] != "RUNNING")
        assert (row["status"], row["release_outcome"]) == ("CANCELLED", "CANCELLED")
        assert row["content"] is None
        await product.eventually(lambda: product.model.requests[-1].dropped)
        assert await product.rows("ws_connection") == []


@pytest.mark.spec("CANCEL-3", "WIRE-2")
async def test_an_explicit_cancel_ends_the_run_while_the_socket_stays_open(start: Start) -> None:
    async with start() as product:
        product.model.enqueue(kind="router", latency=60)
        browser = await product.connect()
        await browser.ask(QUESTION)
        (started,) = await browser.until("started")
        await browser.send(action="cancel", runId=started["runId"])
        frames = await browser.until(*TERMINAL)
        assert frames[-1]["type"] == "cancelled"
        assert (await product.rows())[0]["release_outcome"] == "CANCELLED"
        assert (await browser.run("What can you do?"))[-1]["outcome"] == "SUCCESS"


async def swept(product: Product) -> dict[str, Any]:
    """The only run, once a sweep has found it overdue."""
    async with asyncio.timeout(WAIT):
        while True:
            await product.gateway.invoke("SweepFunction", b"{}")
            (row,) = await product.rows()
            if row["status"] != "RUNNING":
                return row


@pytest.mark.spec("LIFE-7", "STORE-2")
async def test_a_killed_process_is_swept_after_its_deadline(start: Start) -> None:
    async with start(RUN_SECONDS="4", TERMINAL_RESERVE_SECONDS="1") as product:
        product.model.enqueue(kind="router", latency=60)
        browser = await product.connect()
        await browser.ask(QUESTION)
        await browser.until("ROUTING")
        (chat,) = [child for child in product.gateway.children if child.function == "ChatFunction"]
        os.kill(chat.pid, signal.SIGKILL)
        assert (await product.rows())[0]["status"] == "RUNNING"
        row = await swept(product)
        assert (row["status"], row["failure_code"]) == ("FAILED", "RUN_ABANDONED")
        assert row["finished_at"] >= row["deadline_at"]
        await browser.ask("What can you do?", row["session_id"])
        assert (await browser.receive())["type"] == "started"


@pytest.mark.spec("LIFE-1", "CANCEL-2")
async def test_processes_of_one_snapshot_are_one_anothers_equals_and_nothing_more(start: Start) -> None:
    """They have the same memory to begin with: ids, connections and clients are each one's own."""
    async with start(snapshots=True) as product:
        browsers = [await product.connect() for _ in range(3)]
        for _ in browsers:
            product.model.enqueue(kind="router", latency=60)
        # Each of them takes a process for itself as long as the model keeps it waiting.
        begun = []
        for browser in browsers:
            await browser.ask("What can you do?")
            begun += (await browser.until("ROUTING"))[:1]
        chats = [child for child in product.gateway.children if child.function == "ChatFunction"]
        assert len({child.pid for child in chats}) == len(browsers)
        for name in ("sessionId", "runId"):
            assert len({frame[name] for frame in begun}) == len(browsers)
        for browser, frame in zip(browsers, begun, strict=True):
            await browser.send(action="cancel", runId=frame["runId"])
            assert (await browser.until(*TERMINAL))[-1]["runId"] == frame["runId"]
        for browser in browsers:
            assert (await browser.run("What can you do?"))[-1]["outcome"] == "SUCCESS"


@pytest.mark.spec("LIFE-4", "LIFE-7", "WIRE-5")
async def test_a_database_that_is_down_at_the_end_is_told_to_the_client_and_the_sweep_ends_the_run(demo: Path) -> None:
    with restartable_server() as (server, switch), server.new_database() as url:
        with contextlib.closing(Database(url)) as database:
            upgrade(database.engine)
        async with running(url, demo, RUN_SECONDS="30", TERMINAL_RESERVE_SECONDS="4") as product:
            down = asyncio.Event()
            product.model.enqueue(kind="chat", after=down)
            browser = await product.connect()
            await browser.ask("What can you do?")
            await product.eventually(lambda: bool(product.model.requests) and product.model.requests[-1].kind == "chat")
            await asyncio.to_thread(switch.stop)
            down.set()
            frames = await browser.until(*TERMINAL)
            assert (frames[-1]["type"], frames[-1]["code"]) == ("error", "RUN_PERSISTENCE_FAILED")
            assert "content" not in [frame["type"] for frame in frames]
            await asyncio.to_thread(switch.start)
            row = await swept(product)
            assert (row["status"], row["failure_code"], row["content"]) == ("FAILED", "RUN_ABANDONED", None)
            *turns, _ = await browser.history(sessionId=row["session_id"])
            assert [(frame["turn"]["query"], frame["turn"]["outcome"]) for frame in turns] == [
                ("What can you do?", "FAILED")
            ]


@pytest.mark.spec("LIFE-6")
async def test_the_same_request_twice_at_once_is_one_run(start: Start) -> None:
    async with start() as product:
        browsers = [await product.connect() for _ in range(5)]
        await asyncio.gather(*(browser.ask("What can you do?", "one", "same") for browser in browsers))
        first = await browsers[0].receive()
        await product.row_when(lambda row: row["status"] != "RUNNING")
        assert len(await product.rows()) == 1
        assert len(product.model.requests) == 2
        late = await product.connect()
        await late.ask("What can you do?", "one", "same")
        replay = await late.until(*TERMINAL)
        assert [frame["type"] for frame in replay] == ["started", "content", "done"]
        assert all(frame["replayed"] for frame in replay)
        assert replay[0]["runId"] == first["runId"]
        await late.ask("Something else?", "one", "same")
        assert (await late.receive())["code"] == "REQUEST_CONFLICT"


@pytest.mark.spec("LIFE-1", "WIRE-2")
async def test_ten_sockets_at_once_get_each_their_own_run(start: Start) -> None:
    async with start() as product:
        browsers = [await product.connect() for _ in range(10)]
        runs = await asyncio.gather(*(browser.run("What can you do?") for browser in browsers))
        assert all(frames[-1]["outcome"] == "SUCCESS" for frames in runs)
        assert len({frames[0]["runId"] for frames in runs}) == 10
        assert all(len({frame["runId"] for frame in frames}) == 1 for frames in runs)


@pytest.mark.spec("WIRE-3")
async def test_garbage_gets_one_error_frame_each_and_creates_no_run(start: Start) -> None:
    garbage = {
        "hi": "MALFORMED_REQUEST",
        "[]": "MALFORMED_REQUEST",
        '{"action":null}': "MALFORMED_REQUEST",
        '{"action":"$connect"}': "UNKNOWN_ACTION",
        '{"action":"nope","requestId":"r1"}': "UNKNOWN_ACTION",
        '{"action":"chat","requestId":"r1"}': "MALFORMED_REQUEST",
        '{"action":"chat","requestId":"r1","query":" "}': "INVALID_QUERY",
        '{"action":"chat","requestId":"r1","query":"x","sessionId":"a b"}': "INVALID_SESSION_ID",
        '{"action":"chat","requestId":"r1","query":"\\ud83d oops"}': "MALFORMED_REQUEST",
        '{"action":"cancel","runId":"unknown"}': "RUN_NOT_FOUND",
        '{"action":"history","sessionId":"unknown"}': "SESSION_NOT_FOUND",
        "[" * 1000 + "]" * 1000: "MALFORMED_REQUEST",
    }
    async with start() as product:
        browser = await product.connect()
        for message, code in garbage.items():
            await browser.socket.send(message)
            frame = await browser.receive()
            assert (frame["type"], frame["code"]) == ("error", code), message[:60]
        assert await product.rows() == []


@pytest.mark.spec("LIFE-6")
async def test_a_second_question_waits_for_the_first(start: Start) -> None:
    async with start() as product:
        product.model.enqueue(kind="router", latency=60)
        browser = await product.connect()
        await browser.ask(QUESTION)
        (started,) = await browser.until("started")
        other = await product.connect()
        await other.ask("Another question?", started["sessionId"])
        assert (await other.receive())["code"] == "SESSION_BUSY"


@pytest.mark.spec("ROUTE-4", "LIFE-5")
async def test_a_model_that_fails_ends_the_run_with_a_code_of_ours(start: Start) -> None:
    async with start() as product:
        for _ in range(2):
            product.model.enqueue(status=500, kind="router")
        browser = await product.connect()
        frames = await browser.run(QUESTION)
        assert (frames[-1]["type"], frames[-1]["code"]) == ("error", "ROUTING_UNAVAILABLE")
        (row,) = await product.rows()
        assert (row["status"], row["failure_code"], row["content"]) == ("FAILED", "ROUTING_UNAVAILABLE", None)


@pytest.mark.spec("BUDGET-2", "RELEASE-2")
async def test_a_budget_end_after_an_observation_is_a_fallback(start: Start) -> None:
    async with start(RUN_SECONDS="6", TERMINAL_RESERVE_SECONDS="2") as product:
        product.model.enqueue_calls([("query_logs", {"source": "checkout", "levels": ["ERROR"]})], kind="agent")
        product.model.enqueue(kind="agent", latency=60)
        browser = await product.connect()
        frames = await browser.run(QUESTION)
        assert frames[-1] == frames[-1] | {"type": "done", "outcome": "FALLBACK"}
        content = frames[-2]["content"]
        assert content["reason"] == "BUDGET_REACHED"
        assert [checked["title"] for checked in content["checked"]] == ["logs checkout"]
        (row,) = await product.rows()
        assert (row["status"], row["release_outcome"], row["published_result"]) == ("SUCCESS", "FALLBACK", None)
