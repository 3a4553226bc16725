"""What one diagnosis leaves for the next: bounded at field boundaries, on write and on read (PREV-2)."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from superbizagent.domain.text import bound_characters

MAX_QUERY = 1_000
MAX_CONCLUSION = 1_500
MAX_SCOPE = 600
MAX_LIMITATIONS = 8
MAX_LIMITATION = 300
MAX_DOCUMENTS = 8
MAX_DOCUMENT_FIELD = 200


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class SourceDocument(_Value):
    """A document that a published claim cited."""

    document_id: str = Field(min_length=1)
    title: str = Field(min_length=1)
    source: str = ""

    @field_validator("*", mode="before")
    @classmethod
    def _bound(cls, value: Any) -> Any:
        return bound_characters(value, MAX_DOCUMENT_FIELD) if isinstance(value, str) else value


class PublishedResult(_Value):
    """The stored form. Never holds ids of tool calls, raw evidence, the draft or guard reasons (PREV-4)."""

    user_query: str = Field(min_length=1)
    published_conclusion: str = Field(min_length=1)
    scope: str = ""
    limitations: tuple[str, ...] = ()
    source_documents: tuple[SourceDocument, ...] = ()

    @field_validator("user_query", mode="before")
    @classmethod
    def _bound_query(cls, value: Any) -> Any:
        return bound_characters(value, MAX_QUERY) if isinstance(value, str) else value

    @field_validator("published_conclusion", mode="before")
    @classmethod
    def _bound_conclusion(cls, value: Any) -> Any:
        return bound_characters(value, MAX_CONCLUSION) if isinstance(value, str) else value

    @field_validator("scope", mode="before")
    @classmethod
    def _bound_scope(cls, value: Any) -> Any:
        return bound_characters(value, MAX_SCOPE) if isinstance(value, str) else value

    @field_validator("limitations", mode="after")
    @classmethod
    def _bound_limitations(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(bound_characters(item, MAX_LIMITATION) for item in value[:MAX_LIMITATIONS])

    @field_validator("source_documents", mode="after")
    @classmethod
    def _bound_documents(cls, value: tuple[SourceDocument, ...]) -> tuple[SourceDocument, ...]:
        return value[:MAX_DOCUMENTS]


class PreviousTurn(_Value):
    """The same session's last published diagnosis, as the next one may see it."""

    query: str
    conclusion: str
    scope: str
    limitations: tuple[str, ...]
    source_documents: tuple[SourceDocument, ...]


def previous_turn(stored: Any) -> PreviousTurn | None:
    """The previous turn in a stored JSON value; None when it is corrupt or incomplete (PREV-3)."""
    try:
        result = (
            PublishedResult.model_validate_json(stored)
            if isinstance(stored, str | bytes)
            else PublishedResult.model_validate(stored)
        )
    except ValidationError:
        return None
    return PreviousTurn(
        query=result.user_query,
        conclusion=result.published_conclusion,
        scope=result.scope,
        limitations=result.limitations,
        source_documents=result.source_documents,
    )
