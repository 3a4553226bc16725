"""The chat completion protocol: requests read and checked, answers and errors in OpenAI's shape."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local.model_server.answers import Answer, Request
from local.model_server.text import has_chinese

MODEL = "scripted-demo"
OWNER = "superbizagent-local-script"
_ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True)
class ApiError(Exception):
    """A refusal. `param` names the field that is wrong, where one is."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None

    def body(self) -> dict[str, Any]:
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return {"error": error}


def _refused(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    return ApiError(400, message, param, code)


def read_request(raw: bytes) -> Request:
    """Raises ApiError for what no server of this protocol takes; unknown fields are ignored."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _refused("The body is not valid JSON.") from error
    if not isinstance(body, dict):
        raise _refused("The body has to be a JSON object.")
    _check_options(body)
    return Request(
        messages=_messages(body.get("messages")),
        tools=_tools(body.get("tools")),
        forced_tool=_forced_tool(body.get("tool_choice")),
        schema=_schema_name(body.get("response_format")),
        wants_json=_wants_json(body.get("response_format")),
    )


def _check_options(body: Mapping[str, Any]) -> None:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise _refused("The field model is required.", "model")
    if model != MODEL:
        message = f"The model {model!r} does not exist here; this server has only {MODEL!r}, which is a script."
        raise ApiError(404, message, "model", "model_not_found")
    if body.get("stream"):
        raise _refused("Streaming is not supported.", "stream", "unsupported_value")
    if body.get("n") not in (None, 1):
        raise _refused("Only one choice is supported.", "n", "unsupported_value")


def _messages(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not value:
        raise _refused("The field messages has to be a list that is not empty.", "messages")
    open_calls: set[str] = set()
    for index, message in enumerate(value):
        where = f"messages[{index}]"
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise _refused(f"{where} has to be an object with a known role.", f"{where}.role")
        if not isinstance(message.get("content"), str | list | None):
            raise _refused(f"The content of {where} has to be text.", f"{where}.content")
        if message["role"] == "tool" and message.get("tool_call_id") not in open_calls:
            raise _refused(f"{where} answers a tool call that no message before it made.", f"{where}.tool_call_id")
        open_calls |= _call_ids(message.get("tool_calls"), where)
    if not any(message["role"] == "user" for message in value):
        raise _refused("There has to be a user message.", "messages")
    return tuple(value)


def _call_ids(calls: Any, where: str) -> set[str]:
    if calls is None:
        return set()
    if not isinstance(calls, list) or not all(isinstance(c, dict) and isinstance(c.get("id"), str) for c in calls):
        raise _refused(f"The tool calls of {where} have to be objects with ids.", f"{where}.tool_calls")
    return {call["id"] for call in calls}


def _tools(value: Any) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, list):
        raise _refused("The field tools has to be a list.", "tools")
    names = set()
    for index, tool in enumerate(value):
        function = tool.get("function") if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str) or not name:
            raise _refused(f"tools[{index}] has to be a function with a name.", f"tools[{index}].function.name")
        names.add(name)
    return frozenset(names)


def _forced_tool(value: Any) -> str:
    if value is None or value in ("auto", "none", "required"):
        return ""
    function = value.get("function") if isinstance(value, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise _refused("The field tool_choice has to be auto, none, required or a function.", "tool_choice")
    return name


def _schema_name(value: Any) -> str:
    if not isinstance(value, dict) or value.get("type") != "json_schema":
        return ""
    schema = value.get("json_schema")
    if not isinstance(schema, dict) or not isinstance(schema.get("name"), str):
        raise _refused("The JSON schema needs a name.", "response_format.json_schema.name")
    return str(schema["name"])


def _wants_json(value: Any) -> bool:
    if value is None:
        return False
    if not isinstance(value, dict) or value.get("type") not in ("text", "json_object", "json_schema"):
        raise _refused("The field response_format is not one of text, json_object, json_schema.", "response_format")
    return bool(value["type"] != "text")


def completion(number: int, request: Request, answer: Answer) -> dict[str, Any]:
    """The body of a successful answer. `number` makes its ids unique on this server."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {
                    "name": call.tool,
                    "arguments": json.dumps(call.arguments, ensure_ascii=False),
                },
            }
            for index, call in enumerate(answer.calls)
        ]
    return envelope(number, message, prompt_tokens=_tokens(json.dumps(request.messages, ensure_ascii=False)))


def envelope(number: int, message: Mapping[str, Any], *, prompt_tokens: int) -> dict[str, Any]:
    """A completion around an assistant message. `created` is 0: the script has no clock."""
    completion_tokens = _tokens(json.dumps(message, ensure_ascii=False))
    return {
        "id": f"chatcmpl-script-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": dict(message),
                "logprobs": None,
                "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def _tokens(text: str) -> int:
    """About what a tokenizer would count: four letters a token, one for a Chinese character."""
    chinese = sum(has_chinese(character) for character in text) if has_chinese(text) else 0
    return max((len(text) - chinese) // 4 + chinese, 1)


def models() -> dict[str, Any]:
    entry = {"id": MODEL, "object": "model", "created": 0, "owned_by": OWNER}
    return {"object": "list", "data": [entry]}
