"""The model adapter against servers that really speak HTTP, well or badly."""

import asyncio
import json
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from typing import Any

import pytest

from superbizagent.adapters.openai_model import OpenAIModel
from superbizagent.domain.conversation import (
    Message,
    ModelReply,
    ModelRequest,
    OutputSchema,
    ToolCall,
    ToolSpec,
)
from superbizagent.errors import (
    ModelContextTooLong,
    ModelError,
    ModelMisconfigured,
    ModelRefused,
    ModelReplyInvalid,
    ModelThrottled,
    ModelTimeout,
    ModelUnavailable,
)
from tests.http_stub import HttpStub, Received, Reply, completion, http_stub, read_request, tcp_stub

KEY = "sk-canary-3f9a"
USER = Message(role="user", content="why is checkout slow? 🫠️")
OUTPUT = OutputSchema(
    name="intent",
    definition={
        "type": "object",
        "properties": {
            "intent": {"type": "string", "minLength": 1, "pattern": "^A"},
            "format": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        },
        "required": ["intent", "format"],
        "additionalProperties": False,
    },
)
TOOL = ToolSpec(name="query_logs", description="d", parameters={"type": "object", "properties": {}})
OTHER_TOOL = ToolSpec(name="submit_draft", description="d", parameters={"type": "object", "properties": {}})
PLAIN = ModelRequest(messages=(USER,), max_output_tokens=321)
SHAPED = ModelRequest(messages=(USER,), output=OUTPUT, max_output_tokens=321)
WITH_TOOLS = ModelRequest(messages=(USER,), tools=(TOOL, OTHER_TOOL), max_output_tokens=321)


@pytest.fixture
async def stub() -> AsyncIterator[HttpStub]:
    async with http_stub() as stub:
        yield stub


@pytest.fixture
async def model(stub: HttpStub) -> AsyncIterator[OpenAIModel]:
    async with _model(stub.url) as model:
        yield model


class _model:  # noqa: N801 - reads as the function it stands for
    """A model at `url`, closed at the end."""

    def __init__(self, url: str, timeout: float = 20.0) -> None:
        self._model = OpenAIModel(api_key=KEY, base_url=f"{url}/v1", model="m-1", timeout=timeout)

    async def __aenter__(self) -> OpenAIModel:
        return self._model

    async def __aexit__(self, *_: object) -> None:
        await self._model.close()


def _refusal(message: str, status: int = 400, **fields: Any) -> Reply:
    return Reply({"error": {"message": message, "type": "invalid_request_error", **fields}}, status=status)


def _formats(stub: HttpStub) -> list[str | None]:
    return [received.json.get("response_format", {}).get("type") for received in stub.received]


# Requests ------------------------------------------------------------------------------------------


async def test_a_plain_request_carries_model_messages_limit_and_key(stub: HttpStub, model: OpenAIModel) -> None:
    stub.script(Reply(completion("fine", tokens=42)))

    reply = await model.complete(PLAIN)

    assert reply == ModelReply(content="fine", tokens=42)
    [received] = stub.received
    assert received.path == "/v1/chat/completions"
    assert received.headers["Authorization"] == f"Bearer {KEY}"
    assert received.json == {
        "model": "m-1",
        "messages": [{"role": "user", "content": USER.content}],
        "max_tokens": 321,
    }


@pytest.mark.parametrize("request_", [PLAIN, SHAPED, WITH_TOOLS])
async def test_an_output_limit_is_always_sent(stub: HttpStub, model: OpenAIModel, request_: ModelRequest) -> None:
    stub.script(Reply(completion("x")))
    await model.complete(request_)
    assert stub.received[0].json["max_tokens"] == 321


async def test_history_is_sent_with_its_calls_and_their_answers(stub: HttpStub, model: OpenAIModel) -> None:
    stub.script(Reply(completion("x")))
    call = ToolCall(id="call_1", name="query_logs", arguments='{"a":1}')
    history = (
        Message(role="system", content="s"),
        USER,
        Message(role="assistant", tool_calls=(call,)),
        Message(role="tool", tool_call_id="call_1", content="[]"),
    )

    await model.complete(PLAIN.model_copy(update={"messages": history}))

    function = {"name": "query_logs", "arguments": '{"a":1}'}
    assert stub.received[0].json["messages"][2:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "[]"},
    ]


async def test_a_schema_goes_out_without_keywords_that_strict_servers_refuse(
    stub: HttpStub, model: OpenAIModel
) -> None:
    stub.script(Reply(completion("{}")))
    await model.complete(SHAPED)

    sent = stub.received[0].json["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"]) == ("intent", True)
    # A property may be called like a keyword.
    assert sent["schema"]["properties"] == {
        "intent": {"type": "string"},
        "format": {"type": "array", "items": {"type": "string"}},
    }
    assert sent["schema"]["required"] == ["intent", "format"]


async def test_unpaired_surrogates_are_replaced_on_the_way_out(stub: HttpStub, model: OpenAIModel) -> None:
    stub.script(Reply(completion("x")))
    broken = Message(role="user", content="a\ud83d b")
    called = Message(role="assistant", tool_calls=(ToolCall(id="1", name="query_logs", arguments='{"q":"\udc00"}'),))
    await model.complete(PLAIN.model_copy(update={"messages": (broken, called)}))
    messages = stub.received[0].json["messages"]
    assert messages[0]["content"] == "a\ufffd b"
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == '{"q":"\ufffd"}'


# Replies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(completion("a", finish="length"), ModelReply(content="a", tokens=7, cut=True), id="cut"),
        pytest.param(completion(None), ModelReply(tokens=7), id="null content"),
        pytest.param(completion({"x": 1}), ModelReply(tokens=7), id="object content"),
        pytest.param(
            completion([{"type": "text", "text": "a"}, {"type": "image"}, "b", {"text": "c"}]),
            ModelReply(content="ac", tokens=7),
            id="list of parts",
        ),
        pytest.param(completion("", reasoning_content="because"), ModelReply(tokens=7), id="reasoning only"),
        pytest.param(
            {"choices": [{"index": 0, "message": None, "finish_reason": "stop"}]}, ModelReply(), id="null message"
        ),
        pytest.param(completion("a", tool_calls=None), ModelReply(content="a", tokens=7), id="null tool calls"),
        pytest.param(completion("a", tool_calls={}), ModelReply(content="a", tokens=7), id="tool calls no list"),
        pytest.param(
            completion("a\ud83d\ud83c\udf78"), ModelReply(content="a\ufffd\U0001f378", tokens=7), id="surrogates"
        ),
        pytest.param(completion("a", tokens=None), ModelReply(content="a"), id="no usage"),
        pytest.param({**completion("a"), "usage": None}, ModelReply(content="a"), id="null usage"),
        pytest.param({**completion("a"), "usage": {"total_tokens": "9"}}, ModelReply(content="a"), id="text usage"),
        pytest.param({**completion("a"), "usage": {"total_tokens": -1}}, ModelReply(content="a"), id="less usage"),
        pytest.param(
            {**completion("a"), "usage": {"total_tokens": 10**30}}, ModelReply(content="a"), id="absurd usage"
        ),
        pytest.param(
            {**completion("a"), "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
            ModelReply(content="a", tokens=7),
            id="usage in parts",
        ),
        pytest.param(
            {"choices": [*completion("a")["choices"], *completion("b")["choices"]]},
            ModelReply(content="a"),
            id="two choices",
        ),
    ],
)
async def test_replies_of_many_shapes(stub: HttpStub, model: OpenAIModel, body: Any, expected: ModelReply) -> None:
    stub.script(Reply(body))
    assert await model.complete(PLAIN) == expected


@pytest.mark.spec("DIAG-6")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(
            {"id": "c1", "type": "function", "function": {"name": "query_logs", "arguments": '{"q":"'}},
            ToolCall(id="c1", name="query_logs", arguments='{"q":"'),
            id="cut arguments stay as they are",
        ),
        pytest.param(
            {"id": None, "function": {"name": "query_logs", "arguments": {"q": "ä"}}},
            ToolCall(name="query_logs", arguments='{"q": "ä"}'),
            id="arguments as an object",
        ),
        pytest.param(
            {"function": {"name": "query_logs", "arguments": {"q": "\ud83d"}}},
            ToolCall(name="query_logs", arguments='{"q": "\ufffd"}'),
            id="surrogate in an object",
        ),
        pytest.param(
            {"function": {"name": "query_logs", "arguments": '{"q":"\ud83d"}'}},
            ToolCall(name="query_logs", arguments='{"q":"\ufffd"}'),
            id="surrogate in text",
        ),
        pytest.param(
            {"function": {"name": "q", "arguments": None}}, ToolCall(name="q", arguments="{}"), id="null arguments"
        ),
        pytest.param(
            {"function": {"name": "q", "arguments": 0}}, ToolCall(name="q", arguments="0"), id="number arguments"
        ),
        pytest.param({"id": "c1", "function": None}, ToolCall(id="c1", arguments="{}"), id="null function"),
        pytest.param({"id": 5}, ToolCall(arguments="{}"), id="no function"),
        pytest.param(None, ToolCall(arguments="{}"), id="null call"),
        pytest.param("query_logs", ToolCall(arguments="{}"), id="text call"),
    ],
)
async def test_tool_calls_of_many_shapes(stub: HttpStub, model: OpenAIModel, call: Any, expected: ToolCall) -> None:
    stub.script(Reply(completion(None, tool_calls=[call], finish="tool_calls")))
    assert (await model.complete(WITH_TOOLS)).tool_calls == (expected,)


@pytest.mark.spec("DIAG-6")
@pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call", ""])
@pytest.mark.parametrize("calls", [0, 1])
async def test_calls_are_what_is_there_whatever_the_end_is_called(
    stub: HttpStub, model: OpenAIModel, finish: str, calls: int
) -> None:
    """P064: servers end a turn of calls with "stop", and one without any with "tool_calls"."""
    call = {"id": "c1", "type": "function", "function": {"name": "query_logs", "arguments": "{}"}}
    stub.script(Reply(completion(None, tool_calls=[call] * calls, finish=finish)))

    assert await model.complete(WITH_TOOLS) == ModelReply(
        tool_calls=(ToolCall(id="c1", name="query_logs", arguments="{}"),) * calls, tokens=7
    )


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(b"<html>hello</html>", content_type="text/html"), id="HTML"),
        pytest.param(Reply(b"data: {}\n\ndata: [DONE]\n\n", content_type="text/event-stream"), id="event stream"),
        pytest.param(Reply(b""), id="empty"),
        pytest.param(Reply(b'{"choices": [{"mess'), id="truncated"),
        pytest.param(Reply(b"\xff\xfe\x00"), id="not UTF-8"),
        pytest.param(Reply(b"[" * 100_000), id="deep"),
        pytest.param(Reply([]), id="array"),
        pytest.param(Reply(b"null"), id="null"),
        pytest.param(Reply({"choices": []}), id="no choice"),
        pytest.param(Reply({"choices": None}), id="null choices"),
        pytest.param(Reply({"choices": [None]}), id="null choice"),
        pytest.param(Reply({"error": {"message": "overloaded"}}), id="error in a 200"),
        pytest.param(Reply(b"1" * 5000), id="absurd number"),
    ],
)
@pytest.mark.parametrize("request_", [PLAIN, SHAPED])
async def test_what_is_no_completion_is_an_invalid_reply_that_names_the_host(
    stub: HttpStub, model: OpenAIModel, reply: Reply, request_: ModelRequest
) -> None:
    stub.script(reply)
    with pytest.raises(ModelReplyInvalid, match=r"127\.0\.0\.1"):
        await model.complete(request_)
    assert len(stub.received) == 1


@pytest.mark.parametrize(
    "body", [completion("x", finish="content_filter"), completion(None, refusal="I can't help with that.")]
)
async def test_a_refusal_in_a_reply_is_named(stub: HttpStub, model: OpenAIModel, body: Any) -> None:
    stub.script(Reply(body))
    with pytest.raises(ModelRefused):
        await model.complete(PLAIN)
    assert len(stub.received) == 1


# Refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ModelMisconfigured),
        (401, ModelMisconfigured),
        (402, ModelMisconfigured),
        (403, ModelMisconfigured),
        (404, ModelMisconfigured),
        (405, ModelMisconfigured),
        (408, ModelUnavailable),
        (409, ModelUnavailable),
        (413, ModelContextTooLong),
        (418, ModelMisconfigured),
        (422, ModelMisconfigured),
        (425, ModelUnavailable),
        (429, ModelThrottled),
        (500, ModelUnavailable),
        (502, ModelUnavailable),
        (503, ModelUnavailable),
        (504, ModelUnavailable),
        (529, ModelUnavailable),
    ],
)
@pytest.mark.parametrize("request_", [PLAIN, WITH_TOOLS])
async def test_each_status_is_one_error_after_one_request(
    stub: HttpStub, model: OpenAIModel, status: int, error: type[ModelError], request_: ModelRequest
) -> None:
    stub.script(_refusal("no", status))
    with pytest.raises(error):
        await model.complete(request_)
    assert len(stub.received) == 1


@pytest.mark.parametrize("status", [400, 429, 500])
@pytest.mark.parametrize(
    "reply",
    [
        Reply([{"error": {"message": "x"}}]),
        Reply({"error": "plain text"}),
        Reply({"error": None}),
        Reply({"error": ["a", 1]}),
        Reply(b"null"),
        Reply(b"<html>Bad gateway</html>", content_type="text/html"),
        Reply(b""),
        Reply(b"\xff\xfe", content_type="application/json; charset=no-such-charset"),
    ],
)
async def test_odd_error_bodies_map_like_others(stub: HttpStub, model: OpenAIModel, status: int, reply: Reply) -> None:
    stub.script(Reply(reply.body, status, reply.content_type))
    with pytest.raises(ModelMisconfigured if status == 400 else ModelUnavailable):
        await model.complete(PLAIN)
    assert len(stub.received) == 1


@pytest.mark.parametrize(
    "reply",
    [
        _refusal("x", code="context_length_exceeded"),
        _refusal("This model's maximum context length is 8192 tokens. You requested 9000."),
        _refusal("the request exceeds the available context size, try increasing it"),
        _refusal("prompt is too long: 210000 tokens > 200000 maximum"),
        _refusal("Input is too long for requested model."),
        _refusal("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        _refusal("Range of input length should be [1, 30720]"),
        _refusal("Requested tokens (1234) exceed context window of 512", 500),
        # vLLM names both parameters: no refusal of either.
        _refusal(
            "'max_tokens' or 'max_completion_tokens' is too large: 321. This model's maximum context length is "
            "8192 tokens and your request has 8000 input tokens."
        ),
        # Names the schema too: shortening it by a weaker form helps nobody.
        _refusal("the prompt with its json_schema exceeds the context window"),
        Reply(b"<html>Request Entity Too Large</html>", 413, "text/html"),
        Reply({"error": "`inputs` tokens + `max_new_tokens` must be <= 4096"}, 422),
        Reply([{"error": {"message": "prompt is too long"}}], 400),
    ],
)
@pytest.mark.parametrize("request_", [PLAIN, SHAPED, WITH_TOOLS])
async def test_every_wording_of_too_long_is_recognised_at_once(
    stub: HttpStub, model: OpenAIModel, reply: Reply, request_: ModelRequest
) -> None:
    stub.script(reply)
    with pytest.raises(ModelContextTooLong):
        await model.complete(request_)
    assert len(stub.received) == 1


async def test_a_rate_limit_in_words_of_length_is_a_rate_limit(stub: HttpStub, model: OpenAIModel) -> None:
    stub.script(_refusal("Too many tokens, please wait before trying again.", 429))
    with pytest.raises(ModelUnavailable):
        await model.complete(PLAIN)


@pytest.mark.parametrize(
    "reply",
    [
        _refusal("filtered", code="content_filter", param="prompt"),
        _refusal("The response was filtered due to the prompt triggering the content management policy."),
        _refusal("Your request was rejected as a result of our safety system."),
        Reply({"error": "content_policy_violation"}, 400),
        Reply([{"error": {"code": "content_filter"}}], 403),
    ],
)
@pytest.mark.parametrize("request_", [PLAIN, SHAPED])
async def test_a_content_filter_is_named_and_not_asked_again(
    stub: HttpStub, model: OpenAIModel, reply: Reply, request_: ModelRequest
) -> None:
    stub.script(reply)
    with pytest.raises(ModelRefused):
        await model.complete(request_)
    assert len(stub.received) == 1


# What an endpoint doesn't take ---------------------------------------------------------------------


def _takes(*forms: str | None, status: int = 400, message: str | None = None) -> Any:
    """An endpoint that takes these response formats only."""

    def answer(received: Received) -> Reply:
        form = received.json.get("response_format", {}).get("type")
        if form in forms:
            return Reply(completion("{}"))
        return _refusal(message or f"This response_format type {form} is unavailable now", status)

    return answer


@pytest.mark.parametrize(
    ("forms", "first"),
    [
        (("json_schema",), ["json_schema"]),
        (("json_object", None), ["json_schema", "json_object"]),
        ((None,), ["json_schema", "json_object", None]),
    ],
)
@pytest.mark.parametrize(("status", "message"), [(400, None), (422, None), (500, "Internal Server Error"), (500, "")])
async def test_a_refused_response_format_is_weakened_once_and_remembered(
    stub: HttpStub, model: OpenAIModel, forms: tuple[Any, ...], first: list[Any], status: int, message: str | None
) -> None:
    stub.answer = _takes(*forms, status=status, message=message)

    for _ in range(3):
        assert (await model.complete(SHAPED)).content == "{}"

    assert _formats(stub) == [*first, first[-1], first[-1]]


async def test_what_was_not_taken_is_not_remembered(stub: HttpStub, model: OpenAIModel) -> None:
    stub.answer = lambda _: Reply(b"Internal Server Error", 500, "text/plain")
    with pytest.raises(ModelUnavailable):
        await model.complete(SHAPED)
    assert _formats(stub) == ["json_schema", "json_object", None]

    stub.received.clear()
    stub.answer = _takes("json_schema", "json_object", None)
    await model.complete(SHAPED)
    assert _formats(stub) == ["json_schema"]


async def test_a_500_where_the_form_was_taken_before_is_an_outage(stub: HttpStub, model: OpenAIModel) -> None:
    stub.script(Reply(completion("{}")), Reply(b"", 500), Reply(completion("{}")))
    await model.complete(SHAPED)
    with pytest.raises(ModelUnavailable):
        await model.complete(SHAPED)
    await model.complete(SHAPED)
    assert _formats(stub) == ["json_schema"] * 3


@pytest.mark.parametrize("status", [429, 502, 503])
async def test_no_retry_storm(stub: HttpStub, model: OpenAIModel, status: int) -> None:
    stub.script(Reply({"error": {"message": "later"}}, status, headers={"Retry-After": "30"}))
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            await model.complete(SHAPED)
    assert len(stub.received) == 2


LIMIT_REFUSALS = [
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "Unrecognized request argument supplied: max_tokens",
]


@pytest.mark.parametrize("message", LIMIT_REFUSALS)
async def test_the_other_name_of_the_limit_is_used_and_remembered(
    stub: HttpStub, model: OpenAIModel, message: str
) -> None:
    def answer(received: Received) -> Reply:
        return _refusal(message) if "max_tokens" in received.json else Reply(completion("x"))

    stub.answer = answer
    for _ in range(2):
        await model.complete(PLAIN)

    limits = [{name: value for name, value in one.json.items() if "tokens" in name} for one in stub.received]
    assert limits == [{"max_tokens": 321}, {"max_completion_tokens": 321}, {"max_completion_tokens": 321}]


async def test_an_endpoint_that_changes_its_mind_gets_the_first_name_again(stub: HttpStub, model: OpenAIModel) -> None:
    wanted = "max_completion_tokens"

    def answer(received: Received) -> Reply:
        if wanted in received.json:
            return Reply(completion("x"))
        given = next(name for name in received.json if "tokens" in name)
        return _refusal(f"Unrecognized request argument supplied: {given}")

    stub.answer = answer
    await model.complete(PLAIN)
    wanted = "max_tokens"
    await model.complete(PLAIN)
    assert len(stub.received) == 4


async def test_a_limit_refused_under_both_names_is_asked_twice_only(stub: HttpStub, model: OpenAIModel) -> None:
    stub.script(_refusal("max_tokens / max_completion_tokens must be at most 100"))
    with pytest.raises(ModelMisconfigured):
        await model.complete(PLAIN)
    assert len(stub.received) == 2


async def test_a_forced_tool_choice_that_is_refused_becomes_auto(stub: HttpStub, model: OpenAIModel) -> None:
    def answer(received: Received) -> Reply:
        forced = received.json["tool_choice"] != "auto"
        return _refusal("tool_choice 'required' is not supported") if forced else Reply(completion("x"))

    stub.answer = answer
    await model.complete(WITH_TOOLS)
    await model.complete(WITH_TOOLS)
    assert [one.json["tool_choice"] for one in stub.received] == ["required", "auto", "auto"]


async def test_one_tool_is_asked_for_by_name(stub: HttpStub, model: OpenAIModel) -> None:
    stub.script(Reply(completion("x")))
    await model.complete(WITH_TOOLS.model_copy(update={"tools": (OTHER_TOOL,)}))
    assert stub.received[0].json["tool_choice"] == {"type": "function", "function": {"name": "submit_draft"}}


async def test_an_endpoint_may_refuse_everything_at_once(stub: HttpStub, model: OpenAIModel) -> None:
    """Each respect in turn, in one call, and all of it remembered."""

    def answer(received: Received) -> Reply:
        body = received.json
        for part in ("max_tokens", "response_format"):
            if part in body:
                return _refusal(f"{part} is not supported", code="unsupported_parameter")
        return _refusal("tool_choice") if body.get("tool_choice") == "required" else Reply(completion("x"))

    stub.answer = answer
    both = SHAPED.model_copy(update={"tools": (TOOL, OTHER_TOOL)})
    await model.complete(both)
    assert len(stub.received) == 5
    await model.complete(both)
    assert len(stub.received) == 6


async def test_calls_at_the_same_time_keep_what_each_other_learned(stub: HttpStub, model: OpenAIModel) -> None:
    gate = asyncio.Event()

    async def slow() -> Reply:
        await gate.wait()
        return Reply(completion("x"))

    def answer(received: Received) -> Any:
        if "response_format" in received.json:
            return _refusal("response_format is not supported")
        return slow() if received.json["messages"][0]["content"] == "slow" else Reply(completion("x"))

    stub.answer = answer
    first = asyncio.create_task(
        model.complete(PLAIN.model_copy(update={"messages": (Message(role="user", content="slow"),)}))
    )
    await model.complete(SHAPED)
    gate.set()
    await first
    stub.received.clear()
    await model.complete(SHAPED)
    assert _formats(stub) == [None]


async def test_json_mode_servers_find_their_word_in_the_routers_prompt(stub: HttpStub, model: OpenAIModel) -> None:
    """Some answer json_object with a 400 unless a message says json."""
    from superbizagent.application import router
    from superbizagent.application.run_model import RunModel
    from superbizagent.domain.budget import Budget, BudgetLimits
    from superbizagent.domain.run import Intent
    from superbizagent.domain.run_context import RunContext
    from superbizagent.ports import PriorContext

    def answer(received: Received) -> Reply:
        form = received.json.get("response_format", {}).get("type")
        if form == "json_schema":
            return _refusal("json_schema is unavailable now")
        said = any("json" in str(message["content"]).lower() for message in received.json["messages"])
        assert form == "json_object"
        return Reply(completion('{"intent":"DIAGNOSIS"}')) if said else _refusal("must contain the word json")

    stub.answer = answer
    clock = asyncio.get_running_loop().time
    context = RunContext(
        session_id="s", run_id="r", query="q", budget=Budget(BudgetLimits()), deadline=clock() + 60, monotonic=clock
    )
    intent = await router.route(RunModel(model, context, 60.0), "ping?", PriorContext())
    assert intent is Intent.DIAGNOSIS


# Connections ---------------------------------------------------------------------------------------


async def test_nobody_listens() -> None:
    async with tcp_stub(_silence) as url:
        pass
    async with _model(url) as model:
        with pytest.raises(ModelUnavailable):
            await model.complete(PLAIN)


async def _silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Type: appl",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 5000\r\n\r\n{",
        b"SSH-2.0-OpenSSH_9.0\r\n",
    ],
)
async def test_a_connection_that_breaks_is_unavailable(sent: bytes) -> None:
    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(sent)
        await writer.drain()
        writer.transport.abort()

    async with tcp_stub(converse) as url, _model(url) as model:
        with pytest.raises(ModelUnavailable):
            await model.complete(PLAIN)


async def test_a_server_that_never_answers_times_out_by_itself() -> None:
    async with tcp_stub(_silence) as url, _model(url, timeout=0.2) as model:
        with pytest.raises(ModelTimeout):
            await model.complete(PLAIN)


@pytest.mark.spec("CANCEL-2")
@pytest.mark.parametrize("drip", [b"", b"X-Drip: 1\r\n"])
async def test_a_cancelled_call_drops_its_connection(drip: bytes) -> None:
    """A server that drips headers evades every read timeout; the caller's own limit ends it all the same."""
    asked, dropped = asyncio.Event(), asyncio.Event()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        asked.set()
        writer.write(b"HTTP/1.1 200 OK\r\n" if drip else b"")
        dripping = asyncio.create_task(_drip(writer, drip))
        try:
            assert await reader.read() == b""
        finally:
            dripping.cancel()
            dropped.set()

    async with tcp_stub(converse) as url, _model(url, timeout=5.0) as model:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await model.complete(PLAIN)
        assert asked.is_set()
        async with asyncio.timeout(5):
            await dropped.wait()


async def _drip(writer: asyncio.StreamWriter, drop: bytes) -> None:
    while drop:
        writer.write(drop)
        await asyncio.sleep(0.05)


@pytest.mark.spec("CANCEL-2")
async def test_a_cancelled_task_drops_its_connection_too() -> None:
    asked, dropped = asyncio.Event(), asyncio.Event()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        asked.set()
        assert await reader.read() == b""
        dropped.set()

    async with tcp_stub(converse) as url, _model(url) as model:
        task = asyncio.create_task(model.complete(PLAIN))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            await dropped.wait()


async def _forgetful(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers one request of a connection and breaks it at the next, as a forgotten connection does."""
    await read_request(reader)
    body = json.dumps(completion("x")).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()
    await reader.readexactly(1)
    writer.transport.abort()


async def test_the_next_call_does_not_rely_on_a_connection_of_the_last() -> None:
    async with tcp_stub(_forgetful) as url, _model(url) as model:
        for _ in range(3):
            assert (await model.complete(PLAIN)).content == "x"


CHILD = """
    import asyncio, sys
    from superbizagent.adapters.openai_model import OpenAIModel
    from superbizagent.domain.conversation import Message, ModelRequest

    async def main():
        model = OpenAIModel(api_key="k", base_url=sys.argv[1] + "/v1", model="m")
        request = ModelRequest(messages=(Message(role="user", content="q"),), max_output_tokens=9)
        for _ in range(2):
            print((await model.complete(request)).content, flush=True)
            await asyncio.to_thread(sys.stdin.readline)
        await model.close()

    asyncio.run(main())
"""


async def test_a_frozen_and_thawed_process_calls_again_at_the_first_try() -> None:
    """The server forgets the connection while the process is stopped, as Lambda stops it between invocations."""
    async with tcp_stub(_forgetful) as url:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            textwrap.dedent(CHILD),
            url,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={"PYTHONPATH": "layers/common"},
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            assert await child.stdout.readline() == b"x\n"
            child.send_signal(signal.SIGSTOP)
            child.stdin.write(b"\n")
            await child.stdin.drain()
            child.send_signal(signal.SIGCONT)
            assert await child.stdout.readline() == b"x\n"
        finally:
            child.stdin.close()
            assert await child.wait() == 0


# Secrets -------------------------------------------------------------------------------------------


@pytest.mark.spec("SEC-4")
@pytest.mark.parametrize("status", [200, 400, 401, 403, 413, 429, 500])
async def test_no_error_says_the_key_or_the_question(stub: HttpStub, model: OpenAIModel, status: int) -> None:
    """Servers quote both."""
    body = {"error": {"message": f"Incorrect API key provided: {KEY}; asked: {USER.content}"}}
    stub.script(Reply(body, status))
    with pytest.raises(ModelError) as caught:
        await model.complete(PLAIN)
    assert KEY not in f"{caught.value!r} {caught.value.args} {caught.value}"
    assert "checkout" not in str(caught.value)


@pytest.mark.spec("SEC-4")
async def test_credentials_in_the_address_stay_out_of_errors(stub: HttpStub) -> None:
    async with _model(stub.url.replace("http://", "http://user:hunter2@")) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(PLAIN)
    assert "hunter2" not in str(caught.value)
