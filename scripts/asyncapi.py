"""Writes docs/asyncapi.yaml from the models of the wire contract: `python scripts/asyncapi.py`.

The models are the source; a test fails when the committed document is not what this script makes.
"""

import re
import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "layers" / "common"))  # run as a file, the package is not on the path yet

from superbizagent import errors, frames, history_frames, websocket  # noqa: E402

TARGET = ROOT / "docs" / "asyncapi.yaml"
CHANNEL = "connection"

Document = dict[str, Any]

CLIENT_MESSAGES: dict[str, type[BaseModel]] = {
    "chat": websocket.ChatMessage,
    "cancel": websocket.CancelMessage,
    "history": websocket.HistoryMessage,
}
SERVER_FRAMES: dict[str, type[BaseModel]] = {
    "started": frames.StartedFrame,
    "status": frames.StatusFrame,
    "content": frames.ContentFrame,
    "done": frames.DoneFrame,
    "error": websocket.ErrorFrame,
    "cancelled": frames.CancelledFrame,
    "historyPage": history_frames.HistoryFrame,
}
SUMMARIES = {
    "chat": "Ask a question.",
    "cancel": "Cancel a run of one's own.",
    "history": "Ask for sessions, or for the turns of one. Also keeps the connection alive.",
    "started": "The run is stored; its ids.",
    "status": "A fixed step of the run.",
    "content": "What the run publishes, already stored.",
    "done": "The run has ended with what `content` carried.",
    "error": "A refused message, or a run that failed.",
    "cancelled": "The run was cancelled.",
    "historyPage": "One frame of an answer to `history`.",
    "gatewayError": "Sent by API Gateway itself, not by the service; has no `type`. A running run goes on.",
}
GATEWAY_ERROR: Document = {
    "title": "GatewayError",
    "type": "object",
    "description": "What API Gateway sends when it could not deliver a message to the service.",
    "properties": {
        "message": {"type": "string"},
        "connectionId": {"type": "string"},
        "requestId": {"type": "string", "description": "The gateway's own request id, not the client's."},
    },
    "required": ["message", "connectionId", "requestId"],
    "not": {"required": ["type"]},
}
OVERVIEW = """\
One WebSocket connection a browser tab. Every message is one JSON object in one text frame of at most
32 KB; binary frames are refused.

The client sends `chat`, `cancel` and `history`. For a question the service sends `started`, any number of
`status`, then `content` and `done`, or `error`, or `cancelled`; nothing follows these three. All of them
carry `sessionId`, `runId`, `requestId` and `seq`, which counts from 1 without gaps. A client ignores a
`seq` it has seen and asks `history` when one is missing. Content is stored before it is sent: what got
lost on the way is in `history`.

`requestId` is made by the client. The same `requestId` with the same question is the same run, however
often it is sent, so a client that got no answer sends it again after reconnecting; frames that repeat a
stored run carry `replayed: true`. A refused message gets one `error` without `runId` and `seq`.

An answer to `history` is a sequence of `history` frames that ends with kind `end`; its `before`, if there
is one, asks for the turns before. A frame whose arrival was not confirmed is sent again: without a `seq`
that tells, an `error` or a `history` frame may come twice, and is about its `requestId` or `sessionId` then too.

Absent fields are left out, never null. Clients ignore fields and codes they don't know; codes are the
contract, texts may change.
"""


class _WireSchema(GenerateJsonSchema):
    """Frames are written without nulls: an optional field is absent, any other is always there."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        if self.mode == "serialization":
            return self.generate_inner(schema["schema"])
        return super().nullable_schema(schema)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        result = super().default_schema(schema)
        if result.get("default", ...) is None or self.mode == "serialization":
            result.pop("default", None)
        return result

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # "Sessionid" says nothing that `sessionId` doesn't

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        inner = field["schema"]
        if self.mode == "serialization" and inner["type"] == "default":
            return inner.get("default", ...) is not None
        return super().field_is_required(field, total)


def error_messages() -> dict[str, str]:
    """Every public code with its text, sorted by code."""
    found: dict[str, str] = {}
    pending: list[type[errors.SuperBizAgentError]] = [errors.SuperBizAgentError]
    while pending:
        kind = pending.pop()
        found[kind.code] = kind.message
        pending.extend(kind.__subclasses__())
    return dict(sorted(found.items()))


def document() -> Document:
    """The AsyncAPI 3 document as plain values."""
    names = [*CLIENT_MESSAGES, *SERVER_FRAMES, "gatewayError"]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "SuperBizAgent WebSocket",
            "version": "1.0.0",
            "description": OVERVIEW,
            "license": {"name": "MIT"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "gateway": {
                "host": "{host}",
                "protocol": "wss",
                "description": "Clients read the whole address from `websocketUrl` in `/config.json`.",
                "variables": {"host": {"description": "The gateway's host name."}},
            }
        },
        "channels": {
            CHANNEL: {
                "address": "/",
                "title": "A client's connection",
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
            }
        },
        "operations": _operations(),
        "components": {"messages": _messages(names), "schemas": _schemas()},
    }


def render() -> str:
    modules = "superbizagent/websocket.py, frames.py and history_frames.py"
    header = f"# Written by scripts/asyncapi.py from {modules}. Don't edit.\n"
    return header + yaml.dump(
        document(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False
    )


class _Dumper(yaml.SafeDumper):
    """Block text stays readable, and equal values aren't aliased."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _operations() -> Document:
    run_frames = ["started", "status", "content", "done", "error", "cancelled"]
    return {
        "ask": _receive("chat", run_frames),
        "cancel": _receive("cancel", ["cancelled", "error"]),
        "readHistory": _receive("history", ["historyPage", "error"]),
        "reportRun": _send("Frames of a run.", run_frames),
        "giveHistory": _send("Frames of an answer to `history`.", ["historyPage"]),
        "reportGatewayError": _send("API Gateway's own report.", ["gatewayError"]),
    }


def _receive(message: str, replies: list[str]) -> Document:
    return {
        "action": "receive",
        "channel": {"$ref": f"#/channels/{CHANNEL}"},
        "summary": SUMMARIES[message],
        "messages": [_on_channel(message)],
        "reply": {
            "channel": {"$ref": f"#/channels/{CHANNEL}"},
            "messages": [_on_channel(reply) for reply in replies],
        },
    }


def _send(summary: str, messages: list[str]) -> Document:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{CHANNEL}"},
        "summary": summary,
        "messages": [_on_channel(name) for name in messages],
    }


def _on_channel(name: str) -> Document:
    return {"$ref": f"#/channels/{CHANNEL}/messages/{name}"}


def _messages(names: list[str]) -> Document:
    models = CLIENT_MESSAGES | SERVER_FRAMES
    return {
        name: {
            "name": name,
            "summary": SUMMARIES[name],
            "payload": {"$ref": f"#/components/schemas/{models[name].__name__ if name in models else 'GatewayError'}"},
        }
        for name in names
    }


def _schemas() -> Document:
    inputs: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in CLIENT_MESSAGES.values()),
        *((model, "serialization") for model in SERVER_FRAMES.values()),
    ]
    _, definitions = models_json_schema(
        inputs, ref_template="#/components/schemas/{model}", schema_generator=_WireSchema
    )
    schemas: Document = _plain(definitions["$defs"])
    # These two are checked by functions, which a schema generator can't read.
    chat = schemas["ChatMessage"]["properties"]
    for name in ("ChatMessage", "HistoryMessage"):
        schemas[name]["properties"]["sessionId"]["pattern"] = r"^[A-Za-z0-9_-]{1,64}$"
    chat["query"] |= {
        "minLength": 1,
        "maxLength": websocket.MAX_QUERY_CHARACTERS,
        "pattern": websocket.QUERY_PATTERN,
        "description": f"Not blank; at most {websocket.MAX_QUERY_BYTES} bytes of UTF-8.",
    }
    codes = error_messages()
    schemas["ErrorFrame"]["properties"]["code"] = {"$ref": "#/components/schemas/ErrorCode"}
    schemas["Turn"]["properties"]["failureCode"] = {"$ref": "#/components/schemas/ErrorCode"}
    schemas["ErrorCode"] = {
        "title": "ErrorCode",
        "type": "string",
        "enum": list(codes),
        "description": "\n".join(f"{code}: {message}" for code, message in codes.items()) + "\n",
    }
    schemas["GatewayError"] = GATEWAY_ERROR
    return dict(sorted(schemas.items()))


def _plain(value: Any) -> Any:
    """Pydantic's schema as AsyncAPI has it: a discriminator is the property's name alone.

    Docstrings lose the indent of their source and the ids of our specification, which mean nothing here.
    """
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {key: _plain(item) for key, item in value.items()}
    if isinstance(result.get("discriminator"), dict):
        result["discriminator"] = result["discriminator"]["propertyName"]
    if isinstance(result.get("description"), str):
        result["description"] = re.sub(r" \([A-Z]+-\d+\)", "", result["description"])
    return result


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}")
