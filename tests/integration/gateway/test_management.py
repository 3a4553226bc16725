"""@connections and Lambda's Invoke API, as boto3's own clients use them; static files."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from botocore.exceptions import ClientError

from local.gateway import StaticSite
from tests.integration.gateway.support import Start, hear
from tests.integration.gateway.test_connections import closed, left

SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=test"}


async def call(method: Any, **arguments: Any) -> Any:
    return await asyncio.to_thread(method, **arguments)


async def fails(method: Any, **arguments: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as caught:
        await call(method, **arguments)
    response: Any = caught.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


async def test_post_get_and_delete(start: Start) -> None:
    async with start() as running, running.socket(user_agent_header="tester") as socket:
        api, connection_id = running.api(), running.gateway.connection_ids[0]
        await call(api.post_to_connection, ConnectionId=connection_id, Data='"é😀"'.encode())
        assert await hear(socket) == "é😀"
        found = await call(api.get_connection, ConnectionId=connection_id)
        assert found["Identity"] == {"SourceIp": "127.0.0.1", "UserAgent": "tester"}
        assert found["ConnectedAt"] <= found["LastActiveAt"]
        await call(api.delete_connection, ConnectionId=connection_id)
        assert await closed(socket) == (1000, "Connection Closed Normally")
        assert await left(running) == (1000, "Connection Closed Normally")
        assert await fails(api.get_connection, ConnectionId=connection_id) == ("GoneException", 410)


async def test_a_connection_that_has_gone_is_410(start: Start) -> None:
    async with start() as running:
        api = running.api()
        gone = ("GoneException", 410)
        assert await fails(api.post_to_connection, ConnectionId="L0SM9cOFvHcCIhw=", Data=b"x") == gone
        assert await fails(api.delete_connection, ConnectionId="never") == gone
        with pytest.raises(api.exceptions.GoneException):
            await call(api.get_connection, ConnectionId="never")
        async with running.socket():
            connection_id = running.gateway.connection_ids[0]
        await left(running)
        assert await fails(api.post_to_connection, ConnectionId=connection_id, Data=b"x") == gone


async def test_more_than_128_kb_is_413(start: Start) -> None:
    async with start() as running, running.socket(max_size=None) as socket:
        api, connection_id = running.api(), running.gateway.connection_ids[0]
        await call(api.post_to_connection, ConnectionId=connection_id, Data=b"1" * 131_072)
        async with asyncio.timeout(10):
            assert len(await socket.recv()) == 131_072
        for size in (131_073, 8_000_000):
            failed = await fails(api.post_to_connection, ConnectionId=connection_id, Data=b"1" * size)
            assert failed == ("PayloadTooLargeException", 413)


async def test_data_that_is_not_utf_8_is_refused(start: Start) -> None:
    async with start() as running, running.socket():
        api, connection_id = running.api(), running.gateway.connection_ids[0]
        failed = await fails(api.post_to_connection, ConnectionId=connection_id, Data=b"\xff")
        assert failed == ("BadRequestException", 400)


async def test_another_stage_and_unsigned_calls_are_forbidden(start: Start) -> None:
    async with start() as running, running.socket(), aiohttp.ClientSession() as http:
        gateway = running.gateway
        path = f"@connections/{gateway.connection_ids[0]}"
        for url, headers in (
            (f"{gateway.http_url}/other/{path}", SIGNED),
            (f"{gateway.management_url}/{path}", {}),
            (f"{gateway.http_url}/2015-03-31/functions/WorkFunction/invocations", {}),
        ):
            async with http.post(url, data=b"x", headers=headers) as response:
                assert response.status == 403
                assert response.headers["x-amzn-ErrorType"] == "ForbiddenException"
        assert running.events("WorkFunction") == []


async def test_invoke_through_boto3(start: Start) -> None:
    async with start() as running:
        client = running.lambda_api()
        found = await call(client.invoke, FunctionName="WorkFunction", Payload=b'{"mapped": 1}')
        assert (found["StatusCode"], json.load(found["Payload"])) == (200, {"mapped": 1})
        assert "FunctionError" not in found
        arn = running.gateway.stack.functions["WorkFunction"].arn
        payload = json.dumps({"body": '{"do": "fail"}'}).encode()
        found = await call(client.invoke, FunctionName=arn, Payload=payload)
        assert found["FunctionError"] == "Unhandled"
        assert json.load(found["Payload"])["errorMessage"] == "asked to fail"
        found = await call(client.invoke, FunctionName="local-DefaultFunction", InvocationType="Event")
        assert found["StatusCode"] == 202
        assert await running.wait_for_events("DefaultFunction") == [{}]
        assert await fails(client.invoke, FunctionName="Nope") == ("ResourceNotFoundException", 404)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    folder = tmp_path / "page"
    (folder / "js").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Hello</title>")
    (folder / "js" / "app.js").write_text("export const a = 1;\n")
    (folder / ".hidden").write_text("x")
    (tmp_path / "secret").write_text("x")
    return folder


async def test_static_files_with_strict_headers(start: Start, page: Path) -> None:
    site = StaticSite(folder=page, connect=("https://sign-in.example.com",))
    async with start(static=site) as running, aiohttp.ClientSession() as http:
        root, socket = running.gateway.http_url, running.gateway.websocket_url
        async with http.get(root + "/") as response:
            assert "Hello" in await response.text()
            assert response.content_type == "text/html"
            policy = response.headers["Content-Security-Policy"]
            assert f"connect-src 'self' {socket.rpartition('/')[0]} https://sign-in.example.com;" in policy
            assert response.headers["X-Content-Type-Options"] == "nosniff"
        async with http.get(root + "/js/app.js") as response:
            assert response.content_type in ("text/javascript", "application/javascript")
        async with http.get(root + "/config.json") as response:
            assert await response.json() == {"websocketUrl": socket}
        for path in (
            "/nope",
            "/js",
            "/.hidden",
            "/..%2fsecret",
            "/%2e%2e/secret",
            "/js/..%2f..%2fsecret",
            "/%00",
        ):
            async with http.get(root + path) as response:
                assert response.status == 404, path


async def test_headers_of_static_files_may_be_replaced(start: Start, page: Path) -> None:
    headers = {"Content-Security-Policy": "connect-src {websocket} {http}", "Referrer-Policy": None}
    site = StaticSite(folder=page, headers=headers)
    async with start(static=site) as running, aiohttp.request("GET", running.gateway.http_url) as response:
        socket = running.gateway.websocket_url.rpartition("/")[0]
        expected = f"connect-src {socket} {running.gateway.http_url}"
        assert response.headers["Content-Security-Policy"] == expected
        assert "Referrer-Policy" not in response.headers
