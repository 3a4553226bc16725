"""The scripted model server over real HTTP, with the client that the assistant uses."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    BadRequestError,
    NotFoundError,
)

from local.model_server import MODEL, ScriptedModelServer
from tests.scripted_prompts import CHECKOUT_BODY, block, fenced, question, system_prompt

ROUTER = {"type": "json_schema", "json_schema": {"name": "intent", "schema": {"type": "object"}}}
TOOL_NAMES = ("lookup_knowledge", "query_logs", "query_mysql", "submit_draft")
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in TOOL_NAMES]


@pytest.fixture
async def server() -> AsyncIterator[ScriptedModelServer]:
    async with ScriptedModelServer.start(latency=0) as started:
        yield started


@pytest.fixture
async def client(server: ScriptedModelServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=server.base_url, api_key="unused", max_retries=0) as opened:
        yield opened


async def ask(client: AsyncOpenAI, content: str, **options: Any) -> Any:
    messages = options.pop("messages", None) or [{"role": "user", "content": content}]
    return await client.chat.completions.create(**{"model": MODEL, "messages": messages, **options})


async def until(condition: Callable[[], bool]) -> None:
    """Waits for something that another task is about to do."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the server under test has no event for it
            await asyncio.sleep(0.005)


async def test_it_says_that_it_is_a_script(client: AsyncOpenAI) -> None:
    (model,) = (await client.models.list()).data
    assert (model.id, model.owned_by) == ("scripted-demo", "superbizagent-local-script")
    assert (await client.models.retrieve("scripted-demo")).id == "scripted-demo"
    reply = await ask(client, "what can you do?")
    assert "scripted demo model" in reply.choices[0].message.content
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0


async def test_a_router_call_answers_json(client: AsyncOpenAI, server: ScriptedModelServer) -> None:
    reply = await ask(client, json.dumps({"query": "Why is checkout failing?"}), response_format=ROUTER)
    assert json.loads(reply.choices[0].message.content) == {"intent": "DIAGNOSIS"}
    assert reply.choices[0].finish_reason == "stop"
    assert [record.kind for record in server.requests] == ["router"]


async def test_json_object_is_understood_without_a_schema(client: AsyncOpenAI) -> None:
    form = {"type": "json_object"}
    routed = await ask(client, json.dumps({"query": "hi"}), response_format=form)
    assert json.loads(routed.choices[0].message.content) == {"intent": "SYSTEM_CHAT"}
    passages = block("E1", "lookup_knowledge", {}, "documents", "document D-1: Disk (d.md)", "Delete rotated logs.")
    head = fenced(json.dumps({"query": "disk", "call_id": "K1"}))
    known = await ask(client, f"{head}\n{passages}", response_format=form)
    assert json.loads(known.choices[0].message.content)["items"][0]["document_ids"] == ["D-1"]


async def test_a_whole_investigation_over_http(client: AsyncOpenAI) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": system_prompt()},
        {"role": "user", "content": question("Why are checkouts failing since 14:00?")},
    ]
    names: list[str] = []
    number = 0
    while "submit_draft" not in names:
        assert len(messages) < 40
        reply = await ask(client, "", messages=messages, tools=TOOLS, tool_choice="required", seed=1, user="u")
        (choice,) = reply.choices
        assert choice.finish_reason == "tool_calls"
        calls = choice.message.tool_calls
        messages.append({"role": "assistant", "content": None, "tool_calls": [c.model_dump() for c in calls]})
        for call in calls:
            number += 1
            names.append(call.function.name)
            arguments = json.loads(call.function.arguments)
            found = arguments.get("source") == "checkout" and arguments["levels"]
            body = CHECKOUT_BODY if found else ()
            status = "READY" if found else "NO_EVIDENCE"
            result = block(f"E{number}", call.function.name, arguments, *body, status=status)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    assert {"query_logs", "query_mysql", "lookup_knowledge"} < set(names)
    ids = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    assert len(ids) == len(set(ids))
    assert "198x ERROR" in arguments["conclusion"]


USER = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"model": None}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": ["user"]}]}, "messages[0].role"),
        ({"messages": ["x"]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [USER, {"role": "tool", "tool_call_id": "c"}]}, "messages[1].tool_call_id"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [{}]}]}, "messages[1].tool_calls"),
        ({"stream": True}, "stream"),
        ({"n": 2}, "n"),
        ({"tools": {}}, "tools"),
        ({"tools": [{}]}, "tools[0].function.name"),
        ({"tool_choice": 3}, "tool_choice"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.name"),
    ],
)
async def test_a_bad_request_gets_an_error_of_openais_shape(
    server: ScriptedModelServer, wrong: dict[str, Any], param: str
) -> None:
    body = {"model": MODEL, "messages": [USER], **wrong}
    status, error = await posted(server, json.dumps(body).encode())
    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert server.requests[0].status == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000])
async def test_a_body_that_is_no_json_object_is_refused(server: ScriptedModelServer, body: bytes) -> None:
    status, error = await posted(server, body)
    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", None)


async def test_fields_it_does_not_know_are_ignored(server: ScriptedModelServer) -> None:
    body = {"model": MODEL, "messages": [{**USER, "odd": 1}], "stream": False, "n": 1, "novelty": {"a": 1}}
    url = f"{server.base_url}/chat/completions"
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
        assert response.status == 200


async def posted(server: ScriptedModelServer, body: bytes) -> tuple[int, dict[str, Any]]:
    url = f"{server.base_url}/chat/completions"
    async with aiohttp.ClientSession() as session, session.post(url, data=body) as response:
        return response.status, (await response.json())["error"]


async def test_the_sdk_reads_its_errors(client: AsyncOpenAI) -> None:
    with pytest.raises(NotFoundError) as unknown:
        await ask(client, "x", model="gpt-4o")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(BadRequestError):
        await ask(client, "not json", response_format=ROUTER)
    with pytest.raises(NotFoundError):
        await client.models.retrieve("other")
    with pytest.raises(NotFoundError):
        await client.embeddings.create(model=MODEL, input="x")


async def test_a_client_that_leaves_is_recorded_as_dropped(client: AsyncOpenAI, server: ScriptedModelServer) -> None:
    server.latency = 60
    asking = asyncio.create_task(ask(client, "hi"))
    await until(lambda: bool(server.requests) and server.requests[0].kind == "chat")
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await until(lambda: server.requests[0].finished is not None)
    assert server.requests[0].dropped
    assert server.requests[0].status is None


async def test_a_clients_timeout_is_recorded_as_dropped(client: AsyncOpenAI, server: ScriptedModelServer) -> None:
    server.enqueue(latency=60)
    with pytest.raises(APITimeoutError):
        await ask(client, "hi", timeout=0.3)
    await until(lambda: server.requests[0].finished is not None)
    assert server.requests[0].dropped
    assert not (await ask(client, "hi")).choices[0].message.tool_calls
    assert not server.requests[1].dropped


async def test_stopping_the_server_ends_waiting_requests() -> None:
    async with ScriptedModelServer.start(latency=60) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="unused", max_retries=0)
        asking = asyncio.create_task(ask(client, "hi"))
        await until(lambda: bool(server.requests))
    with pytest.raises(APIConnectionError):
        await asking
    await client.close()
    assert server.requests[0].dropped


async def test_queued_answers_come_first_and_in_order(client: AsyncOpenAI, server: ScriptedModelServer) -> None:
    server.enqueue("first")
    server.enqueue({"content": "second", "refusal": None})
    server.enqueue({"error": {"message": "busy", "type": "server_error"}}, status=503)
    server.enqueue_calls([("query_logs", {"source": "x"}), ("nonsense", "{not json")])
    server.enqueue(b"<html>", content_type="text/html")
    assert (await ask(client, "a")).choices[0].message.content == "first"
    assert (await ask(client, "b")).choices[0].message.content == "second"
    with pytest.raises(APIStatusError) as failed:
        await ask(client, "c")
    assert failed.value.status_code == 503
    calls = (await ask(client, "d")).choices[0].message.tool_calls
    assert [call.function.arguments for call in calls] == ['{"source": "x"}', "{not json"]
    assert await ask(client, "e") == "<html>"
    assert "scripted" in (await ask(client, "f")).choices[0].message.content
    assert [record.status for record in server.requests] == [200, 200, 503, 200, 200, 200]


async def test_a_queued_answer_can_wait_for_its_kind(client: AsyncOpenAI, server: ScriptedModelServer) -> None:
    server.enqueue("prose", kind="router")
    assert "scripted" in (await ask(client, "hi")).choices[0].message.content
    routed = await ask(client, json.dumps({"query": "hi"}), response_format=ROUTER)
    assert routed.choices[0].message.content == "prose"


async def test_the_knobs_are_there_over_http(client: AsyncOpenAI, server: ScriptedModelServer) -> None:
    control = server.base_url.removesuffix("/v1") + "/control"
    async with aiohttp.ClientSession() as session:
        wanted = {"latency": 0.01, "replies": [{"reply": "forced"}, {"status": 500}]}
        async with session.post(control, json=wanted) as response:
            assert await response.json() == {"latency": 0.01, "queued": 2}
        assert (await ask(client, "x")).choices[0].message.content == "forced"
        with pytest.raises(APIStatusError):
            await ask(client, "x")
        async with session.get(f"{control}/requests") as response:
            records = (await response.json())["requests"]
        assert [(record["kind"], record["status"], record["dropped"]) for record in records] == [
            ("chat", 200, False),
            ("chat", 500, False),
        ]
        async with session.post(control, json={"reset": True}) as response:
            assert (await response.json())["queued"] == 0
    assert server.requests == []


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"unknown": 1},
        {"latency": -1},
        {"latency": "2"},
        {"replies": [{"kind": "x"}]},
        {"replies": [{"status": 9}]},
        {"replies": [{"reply": 5}]},
    ],
)
async def test_a_wrong_knob_is_refused(server: ScriptedModelServer, body: Any) -> None:
    control = server.base_url.removesuffix("/v1") + "/control"
    async with aiohttp.ClientSession() as session, session.post(control, json=body) as response:
        assert response.status == 400
    assert server.latency == 0


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
async def test_a_web_page_cannot_turn_the_knobs(server: ScriptedModelServer, headers: dict[str, str]) -> None:
    control = server.base_url.removesuffix("/v1") + "/control"
    async with aiohttp.ClientSession() as session:
        async with session.post(control, json={"latency": 9}, headers=headers) as response:
            assert response.status == 403
        async with session.get(f"{control}/requests", headers=headers) as response:
            assert response.status == 403


async def test_requests_run_at_the_same_time(client: AsyncOpenAI, server: ScriptedModelServer) -> None:
    server.latency = 0.2
    await asyncio.gather(*(ask(client, "hi") for _ in range(5)))
    starts = [record.started for record in server.requests]
    ends = [record.finished or 0.0 for record in server.requests]
    assert max(starts) < min(ends)


async def test_the_command_prints_its_address_and_serves() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "local.model_server", "--port", "0", "--latency", "0"),
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            line = (await process.stdout.readline()).decode()
        base_url = line.split()[-1]
        async with aiohttp.ClientSession() as session, session.get(f"{base_url}/models") as response:
            assert (await response.json())["data"][0]["id"] == MODEL
    finally:
        process.terminate()
        await process.wait()
