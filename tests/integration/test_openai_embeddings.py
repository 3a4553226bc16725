"""The embeddings adapter against servers that really speak HTTP, well or badly."""

import asyncio
import json
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest

from superbizagent.adapters.openai_embeddings import OpenAIEmbeddings
from superbizagent.errors import (
    ModelContextTooLong,
    ModelError,
    ModelMisconfigured,
    ModelReplyInvalid,
    ModelThrottled,
    ModelTimeout,
    ModelUnavailable,
)
from tests.http_stub import HttpStub, Received, Reply, http_stub

KEY = "sk-canary-71c0"


@pytest.fixture
async def stub() -> AsyncIterator[HttpStub]:
    async with http_stub() as stub:
        yield stub


@pytest.fixture
async def embeddings(stub: HttpStub) -> AsyncIterator[OpenAIEmbeddings]:
    adapter = OpenAIEmbeddings(
        api_key=KEY, base_url=f"{stub.url}/v1", model="m", query_model="m-query", redact=redact, timeout=1
    )
    yield adapter
    await adapter.close()


def redact(text: str) -> str:
    return text.replace("hunter2", "[SECRET]")


def body(*vectors: Any, first: int = 0) -> dict[str, Any]:
    data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors, first)]
    return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}


async def test_vectors_come_back_in_the_order_of_the_texts(stub: HttpStub, embeddings: OpenAIEmbeddings) -> None:
    reply = body([1.0, 2], [3, 4.5])
    reply["data"].reverse()
    stub.script(Reply(reply))

    assert await embeddings.passages(["a \ud800", ""]) == [[1.0, 2.0], [3.0, 4.5]]

    [request] = stub.received
    assert request.path == "/v1/embeddings"
    assert request.json == {"model": "m", "input": ["a \ufffd", " "], "encoding_format": "float"}
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["Connection"] == "close"


async def test_a_question_is_asked_under_the_name_for_questions(stub: HttpStub, embeddings: OpenAIEmbeddings) -> None:
    stub.script(Reply(body([1.0])))
    assert await embeddings.query("why 🫠") == [1.0]
    assert (stub.received[0].json["model"], stub.received[0].json["input"]) == ("m-query", ["why 🫠"])

    plain = OpenAIEmbeddings(api_key=KEY, base_url=f"{stub.url}/v1", model="m", redact=redact)
    await plain.query("why")
    await plain.close()
    assert stub.received[1].json["model"] == plain.model == "m"


@pytest.mark.spec("SEC-3")
async def test_no_secret_of_a_document_or_a_question_is_sent(stub: HttpStub, embeddings: OpenAIEmbeddings) -> None:
    stub.script(Reply(body([1.0])))
    await embeddings.passages(["password=hunter2"])
    await embeddings.query("why does hunter2 not work")
    assert [request.json["input"] for request in stub.received] == [
        ["password=[SECRET]"],
        ["why does [SECRET] not work"],
    ]


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"<html>",
        b"\xff\xfe",
        b"[" * 100_000,
        {},
        [],
        {"data": None},
        body(),
        body([1.0], [1.0]),
        body([1.0], first=1),
        body([]),
        body(None),
        body("AACAPw=="),
        body(["x"]),
        body([0.0, 0.0]),
        b'{"data":[{"index":0,"embedding":[NaN,1]}]}',
        b'{"data":[{"index":0,"embedding":[1e999,1]}]}',
        b'{"data":[{"index":0,"embedding":[1.7e308,1.7e308]}]}',
        {"error": {"message": "canary"}},
    ],
)
async def test_what_is_no_list_of_vectors_is_an_invalid_reply(
    stub: HttpStub, embeddings: OpenAIEmbeddings, reply: Any
) -> None:
    stub.script(Reply(reply))
    with pytest.raises(ModelReplyInvalid):
        await embeddings.query("why")
    assert len(stub.received) == 1


async def test_vectors_of_unequal_dimension_are_an_invalid_reply(stub: HttpStub, embeddings: OpenAIEmbeddings) -> None:
    stub.script(Reply(body([1.0], [1.0, 2.0])))
    with pytest.raises(ModelReplyInvalid):
        await embeddings.passages(["a", "b"])


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (400, "This model's maximum context length is 512 tokens", ModelContextTooLong),
        (413, "", ModelContextTooLong),
        (422, "`inputs` must have less than 512 tokens. Given: 900", ModelContextTooLong),
        (400, "batch size is invalid, it should not be larger than 10", ModelContextTooLong),
        (400, "Invalid 'input': array too long", ModelContextTooLong),
        (400, "unknown field encoding_format", ModelMisconfigured),
        (401, "bad key sk-canary-71c0", ModelMisconfigured),
        (403, "maximum number of keys", ModelMisconfigured),
        (404, "no such model", ModelMisconfigured),
        (408, "", ModelUnavailable),
        (429, "too many tokens per minute", ModelThrottled),
        (500, "", ModelUnavailable),
        (503, "model is loading", ModelUnavailable),
    ],
)
async def test_refusals_are_told_apart(
    stub: HttpStub, embeddings: OpenAIEmbeddings, status: int, text: str, expected: type[ModelError]
) -> None:
    stub.script(Reply(json.dumps({"error": {"message": text}}).encode(), status=status))
    with pytest.raises(ModelError) as caught:
        await embeddings.passages(["a"])
    assert type(caught.value) is expected
    assert KEY not in str(caught.value)
    assert len(stub.received) == 1, "retrying is the caller's"


async def test_a_server_that_is_not_there_or_silent(stub: HttpStub) -> None:
    nobody = OpenAIEmbeddings(api_key=KEY, base_url="http://127.0.0.1:9", model="m", redact=redact)
    with pytest.raises(ModelUnavailable) as caught:
        await nobody.query("why")
    await nobody.close()
    assert KEY not in "".join(traceback.format_exception(caught.value))

    async def silent(_: Received) -> Reply:
        await asyncio.sleep(30)
        return Reply()

    stub.answer = silent
    impatient = OpenAIEmbeddings(api_key=KEY, base_url=stub.url, model="m", redact=redact, timeout=0.2)
    with pytest.raises(ModelTimeout):
        await impatient.query("why")
    await impatient.close()
