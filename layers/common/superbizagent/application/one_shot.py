"""Strict reading of one-shot JSON answers."""

from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from superbizagent.domain.conversation import JsonSchema, ModelReply
from superbizagent.errors import ModelReplyInvalid

Answer = TypeVar("Answer", bound=BaseModel)


def read_answer(reply: ModelReply, shape: type[Answer]) -> Answer:
    """The reply as `shape`; raises ModelReplyInvalid for prose, fences, extra fields and cut answers."""
    if reply.cut:
        raise ModelReplyInvalid("the answer was cut")
    try:
        return shape.model_validate_json(reply.content)
    except ValidationError as error:
        raise ModelReplyInvalid("the answer does not fit its schema") from error


@cache
def schema_of(shape: type[BaseModel]) -> JsonSchema:
    """The JSON schema of `shape` as strict endpoints take it: no defaults, every property required.

    Made once a process, for it is part of every call; not to be changed by who gets it.
    """
    schema: JsonSchema = _strict(shape.model_json_schema())
    return schema


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(value) for key, value in schema.items() if key not in ("default", "title")}
    if strict.get("type") == "object" and "properties" in strict:
        # A property may itself be called "title" or "default": it was dropped above, so take it again.
        strict["properties"] = {name: _strict(value) for name, value in schema["properties"].items()}
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict
