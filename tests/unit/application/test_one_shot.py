"""The JSON schemas that strict endpoints are asked for."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from superbizagent.application.one_shot import schema_of


def test_a_schema_is_what_strict_endpoints_take() -> None:
    class Part(BaseModel):
        title: str = "untitled"
        kind: Literal["a", "b"]

    class Whole(BaseModel):
        """A whole."""

        default: Annotated[int, Field(ge=1)] = 7
        parts: list[Part] = []

    part = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "kind": {"enum": ["a", "b"], "type": "string"}},
        "required": ["title", "kind"],
        "additionalProperties": False,
    }
    assert schema_of(Whole) == {
        "$defs": {"Part": part},
        "description": "A whole.",
        "type": "object",
        "properties": {
            "default": {"minimum": 1, "type": "integer"},
            "parts": {"items": {"$ref": "#/$defs/Part"}, "type": "array"},
        },
        "required": ["default", "parts"],
        "additionalProperties": False,
    }


def test_an_open_object_stays_open() -> None:
    class Labels(BaseModel):
        labels: dict[str, str]

    assert schema_of(Labels)["properties"] == {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}
