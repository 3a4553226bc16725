"""The Model port over any OpenAI-compatible server, by the openai SDK.

Servers differ in what they take. Each difference that a server names in a refusal is remembered for its
endpoint (`_Dialect`), so that it costs one refused request a process and not one a call.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

import openai

from superbizagent.domain.conversation import Message, ModelReply, ModelRequest, OutputSchema, ToolCall
from superbizagent.errors import (
    ModelContextTooLong,
    ModelError,
    ModelMisconfigured,
    ModelRefused,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
)

_MAX_ADJUSTMENTS = 4
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTEXT_TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window)|maximum context|prompt is too long|input is too long|too many tokens",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"content.?(filter|policy)|safety system|responsible ai", re.IGNORECASE)
# Keywords of JSON Schema that strict response formats refuse; the answer is held to them on our side.
_UNPORTABLE = frozenset({"minLength", "maxLength", "minItems", "maxItems", "pattern", "format", "minimum", "maximum"})


@dataclass(frozen=True)
class _Dialect:
    """What one endpoint takes."""

    output: Literal["json_schema", "json_object", "none"] = "json_schema"
    limit_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    force_tools: bool = True


class OpenAIModel:
    """One endpoint and one model name. `timeout` in seconds bounds each read; the caller bounds the whole call."""

    def __init__(self, *, api_key: str, base_url: str | None, model: str, timeout: float = 60.0) -> None:
        # The SDK's own retries are off: retrying is the caller's, who pays for each call from a budget.
        self._client = openai.AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0, timeout=timeout)
        self._host = urlsplit(str(self._client.base_url)).hostname or "?"
        self._model = model
        self._dialect = _Dialect()

    async def complete(self, request: ModelRequest) -> ModelReply:
        dialect = self._dialect
        for _ in range(_MAX_ADJUSTMENTS):
            try:
                reply = _reply(await self._send(request, dialect))
            except openai.APIStatusError as error:
                adjusted = _adjusted(dialect, error, request)
                if adjusted is None:
                    raise self._translated(error) from error
                dialect = adjusted
                continue
            except openai.APITimeoutError as error:
                raise ModelTimeout(self._host) from error
            except (openai.APIConnectionError, OSError) as error:
                raise ModelUnavailable(self._host) from error
            except (openai.OpenAIError, ValueError, RecursionError) as error:
                raise ModelReplyInvalid(f"{self._host} did not answer as a chat completions server does") from error
            self._dialect = dialect
            return reply
        raise ModelMisconfigured(f"{self._host} refuses every form of this request")

    async def close(self) -> None:
        await self._client.close()

    async def _send(self, request: ModelRequest, dialect: _Dialect) -> bytes:
        """The raw body: the SDK builds its models without checking, so that any field may be anything."""
        response = await self._client.chat.completions.with_raw_response.create(**self._body(request, dialect))
        body: bytes = response.content
        return body

    def _body(self, request: ModelRequest, dialect: _Dialect) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [_message(message) for message in request.messages],
            dialect.limit_parameter: request.max_output_tokens,
        }
        if request.tools:
            body["tools"] = [{"type": "function", "function": tool.model_dump()} for tool in request.tools]
            body["tool_choice"] = _tool_choice(request, dialect)
        if request.output is not None and dialect.output != "none":
            body["response_format"] = _response_format(request.output, dialect)
        return body

    def _translated(self, error: openai.APIStatusError) -> ModelError:
        text = _text_of(error)
        if error.status_code == 413 or _CONTEXT_TOO_LONG.search(text):
            return ModelContextTooLong(self._host)
        if _REFUSED.search(text):
            return ModelRefused(self._host)
        if error.status_code in (408, 409, 425, 429) or error.status_code >= 500:
            return ModelUnavailable(f"{self._host} answered {error.status_code}")
        return ModelMisconfigured(f"{self._host} answered {error.status_code}")


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if message.tool_calls:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
        return {"role": message.role, "content": message.content or None, "tool_calls": calls}
    return {"role": message.role, "content": message.content}


def _tool_choice(request: ModelRequest, dialect: _Dialect) -> Any:
    if not dialect.force_tools:
        return "auto"
    if len(request.tools) == 1:
        return {"type": "function", "function": {"name": request.tools[0].name}}
    return "required"


def _response_format(output: OutputSchema, dialect: _Dialect) -> dict[str, Any]:
    if dialect.output == "json_object":
        return {"type": "json_object"}
    schema = {"name": output.name, "strict": True, "schema": _portable(output.definition)}
    return {"type": "json_schema", "json_schema": schema}


def _portable(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _portable(value) for key, value in schema.items() if key not in _UNPORTABLE}
    return [_portable(item) for item in schema] if isinstance(schema, list) else schema


def _adjusted(dialect: _Dialect, error: openai.APIStatusError, request: ModelRequest) -> _Dialect | None:
    """What to try next after a refusal that names a parameter; None when it doesn't."""
    text = _text_of(error)
    if error.status_code in (400, 404, 422):
        if "max_completion_tokens" in text and dialect.limit_parameter == "max_tokens":
            return replace(dialect, limit_parameter="max_completion_tokens")
        if "max_tokens" in text and dialect.limit_parameter == "max_completion_tokens":
            return replace(dialect, limit_parameter="max_tokens")
        if "tool_choice" in text and request.tools and dialect.force_tools:
            return replace(dialect, force_tools=False)
        if re.search(r"response_format|json_schema|json_object|schema", text) and request.output is not None:
            return _weaker_output(dialect)
    # llama-cpp-python answers json_schema with a bare 500; the weaker form is remembered only if it is taken.
    if error.status_code == 500 and request.output is not None and dialect.output == "json_schema":
        return _weaker_output(dialect)
    return None


def _weaker_output(dialect: _Dialect) -> _Dialect | None:
    match dialect.output:
        case "json_schema":
            return replace(dialect, output="json_object")
        case "json_object":
            return replace(dialect, output="none")
        case _:
            return None


def _text_of(error: openai.APIStatusError) -> str:
    """The refusal's own words, from whatever shape its body has; only searched, never shown or logged."""
    try:
        return error.response.text[:4_000]
    except (RuntimeError, ValueError):
        return str(error.body)[:4_000]


# Replies -------------------------------------------------------------------------------------------


def _reply(body: bytes) -> ModelReply:
    """The reply in a chat completion body; raises ValueError when there is none."""
    completion = json.loads(body)
    choice = _dict(_first(_dict(completion).get("choices")))
    if not choice:
        raise ValueError("no choice in the reply")
    message = _dict(choice.get("message"))
    if choice.get("finish_reason") == "content_filter" or message.get("refusal"):
        raise ModelRefused
    return ModelReply(
        content=_text(message.get("content")),
        tool_calls=tuple(_tool_call(call) for call in _list(message.get("tool_calls"))),
        tokens=_tokens(_dict(_dict(completion).get("usage"))),
        cut=choice.get("finish_reason") == "length",
    )


def _tool_call(call: Any) -> ToolCall:
    function = _dict(_dict(call).get("function"))
    arguments = function.get("arguments")
    return ToolCall(
        id=_text(_dict(call).get("id")),
        name=_text(function.get("name")),
        # Some servers hand the arguments over as an object instead of its text.
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
    )


def _tokens(usage: dict[str, Any]) -> int | None:
    total = usage.get("total_tokens")
    return total if isinstance(total, int) and total >= 0 else None


def _text(value: Any) -> str:
    """Text, or the text parts of a list of parts; unpaired surrogates can't be stored or sent."""
    if isinstance(value, list):
        value = "".join(_text(_dict(part).get("text")) for part in value)
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else ""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None
