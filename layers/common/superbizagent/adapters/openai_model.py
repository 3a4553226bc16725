"""The Model port over any OpenAI-compatible server, by the openai SDK.

Servers differ in what they take. Each difference that a server names in a refusal is remembered for its
endpoint (`_Dialect`), so that it costs one refused request a process and not one a call.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import openai

from superbizagent.adapters.openai_client import (
    errors_translated,
    host_of,
    is_content_refused,
    is_too_long,
    openai_client,
    refusal_text,
    storable,
)
from superbizagent.domain.conversation import Message, ModelReply, ModelRequest, OutputSchema, ToolCall
from superbizagent.errors import ModelMisconfigured, ModelRefused

_MAX_REQUESTS = 5
"""For one call: as often as a server may refuse a form of it, each in another respect."""
_MAX_TOKENS = 2**31 - 1
# Keywords of JSON Schema that strict response formats refuse; the answer is held to them on our side.
_UNPORTABLE = frozenset({"minLength", "maxLength", "minItems", "maxItems", "pattern", "format", "minimum", "maximum"})
# Keywords under which names are the schema's own, not keywords.
_NAMED = frozenset({"properties", "$defs", "definitions"})


@dataclass(frozen=True)
class _Dialect:
    """What one endpoint takes."""

    output: Literal["json_schema", "json_object", "none"] = "json_schema"
    limit_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    force_tools: bool = True


Changes = dict[str, Any]
"""Fields of a _Dialect that differ from what was known before a call."""


class OpenAIModel:
    """One endpoint and one model name. `timeout` in seconds bounds each read; the caller bounds the whole call."""

    def __init__(self, *, api_key: str, base_url: str | None, model: str, timeout: float = 60.0) -> None:
        self._client = openai_client(api_key, base_url, timeout)
        self._host = host_of(self._client)
        self._model = model
        self._dialect = _Dialect()
        self._taken: set[str] = set()

    async def complete(self, request: ModelRequest) -> ModelReply:
        changes: Changes = {}
        for _ in range(_MAX_REQUESTS):
            dialect = replace(self._dialect, **changes)
            with errors_translated(self._host, "a chat completions server"):
                try:
                    reply = _reply(await self._send(request, dialect))
                except openai.APIStatusError as error:
                    more = self._adjustment(dialect, changes, error, request)
                    if more is None:
                        raise
                    changes |= more
                    continue
            self._learn(changes, request)
            return reply
        raise ModelMisconfigured(f"{self._host} refuses every form of this request")

    def _learn(self, changes: Changes, request: ModelRequest) -> None:
        """Only what has been taken, and only what this call changed: calls may learn at the same time."""
        self._dialect = replace(self._dialect, **changes)
        if request.output is not None:
            self._taken.add(request.output.name)

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

    def _adjustment(
        self, dialect: _Dialect, changes: Changes, error: openai.APIStatusError, request: ModelRequest
    ) -> Changes | None:
        """What to try next after a refusal that names a parameter; None when it doesn't."""
        if is_too_long(error) or is_content_refused(error):
            return None
        if error.status_code in (400, 404, 422):
            return _renounced(dialect, changes, refusal_text(error), request)
        # llama-cpp-python answers json_schema with a bare 500. Where this output has been taken before, a 500
        # is an outage, and to ask again would be a retry.
        if error.status_code == 500 and request.output is not None and request.output.name not in self._taken:
            return _weaker_output(dialect)
        return None


def _message(message: Message) -> dict[str, Any]:
    content = storable(message.content)
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": content}
    if message.tool_calls:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": storable(call.arguments)}}
            for call in message.tool_calls
        ]
        return {"role": message.role, "content": content or None, "tool_calls": calls}
    return {"role": message.role, "content": content}


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
        return {key: _portable_value(key, value) for key, value in schema.items() if key not in _UNPORTABLE}
    return [_portable(item) for item in schema] if isinstance(schema, list) else schema


def _portable_value(key: str, value: Any) -> Any:
    if key in _NAMED and isinstance(value, dict):
        return {name: _portable(definition) for name, definition in value.items()}
    return _portable(value)


def _renounced(dialect: _Dialect, changes: Changes, text: str, request: ModelRequest) -> Changes | None:
    """The dialect's change that does without what the refusal names; the limit's name is changed once."""
    if "limit_parameter" not in changes and re.search(rf"{dialect.limit_parameter}\b|max_completion_tokens", text):
        other = "max_completion_tokens" if dialect.limit_parameter == "max_tokens" else "max_tokens"
        return {"limit_parameter": other}
    if "tool_choice" in text and request.tools and dialect.force_tools:
        return {"force_tools": False}
    if re.search(r"response_format|json_schema|json_object|schema", text) and request.output is not None:
        return _weaker_output(dialect)
    return None


def _weaker_output(dialect: _Dialect) -> Changes | None:
    match dialect.output:
        case "json_schema":
            return {"output": "json_object"}
        case "json_object":
            return {"output": "none"}
        case _:
            return None


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
    if not isinstance(arguments, str):
        # Some servers hand the arguments over as an object instead of its text.
        arguments = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    return ToolCall(id=_text(_dict(call).get("id")), name=_text(function.get("name")), arguments=storable(arguments))


def _tokens(usage: dict[str, Any]) -> int | None:
    """What was billed; some servers give the two parts only. None for what can't be a count."""
    total = usage.get("total_tokens")
    if total is None and "prompt_tokens" in usage:
        parts = (usage["prompt_tokens"], usage.get("completion_tokens") or 0)
        total = sum(parts) if all(isinstance(part, int) for part in parts) else None
    return total if isinstance(total, int) and 0 <= total <= _MAX_TOKENS else None


def _text(value: Any) -> str:
    """Text, or the text parts of a list of parts."""
    if isinstance(value, list):
        value = "".join(_text(_dict(part).get("text")) for part in value)
    return storable(value) if isinstance(value, str) else ""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None
