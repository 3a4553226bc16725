"""Public content: what a finished run shows, stores and sends. One shape for each content type."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from superbizagent.domain.codes import MissingContext, ObservationStatus, ToolName, Unit

MAX_CONTENT_BYTES = 22_000
"""Encoded bytes of one stored content: with its query and envelope it fits a 32 KB frame (WIRE-4)."""


class _Value(BaseModel):
    """Stored and sent in camelCase, like every field on the wire."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, serialize_by_alias=True
    )


class ContentType(StrEnum):
    SYSTEM_CHAT = "SYSTEM_CHAT"
    KNOWLEDGE_ANSWER = "KNOWLEDGE_ANSWER"
    DIAGNOSIS = "DIAGNOSIS"
    FALLBACK = "FALLBACK"


class SystemChatContent(_Value):
    type: Literal[ContentType.SYSTEM_CHAT] = ContentType.SYSTEM_CHAT
    text: str


class Reference(_Value):
    """A document a reader can open (KNOW-5)."""

    document_id: str
    title: str
    heading_path: tuple[str, ...] = ()
    source: str


class KnowledgeItem(_Value):
    text: str
    document_ids: tuple[str, ...]


class KnowledgeContent(_Value):
    """An answer from documents; each item names the references it rests on (KNOW-3)."""

    type: Literal[ContentType.KNOWLEDGE_ANSWER] = ContentType.KNOWLEDGE_ANSWER
    items: tuple[KnowledgeItem, ...]
    references: tuple[Reference, ...] = ()
    limitations: tuple[str, ...] = ()


class CoverageView(_Value):
    """What was looked at, for a reader."""

    unit: Unit
    start: AwareDatetime | None = None
    end: AwareDatetime | None = None
    scanned: int | None = None
    matched: int
    shown: int
    complete: bool
    notes: tuple[str, ...] = ()


class VerifiedSource(_Value):
    """Evidence that a published claim rests on: what was asked and covered, and the lines that show it."""

    id: str
    kind: ToolName
    title: str
    detail: str
    coverage: CoverageView | None = None
    excerpt: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    fetched_at: AwareDatetime


class PublicClaim(_Value):
    text: str
    source_ids: tuple[str, ...]
    quotes: tuple[str, ...] = ()


class DiagnosisContent(_Value):
    """A conclusion that passed both guards (RELEASE-1)."""

    type: Literal[ContentType.DIAGNOSIS] = ContentType.DIAGNOSIS
    conclusion: str
    claims: tuple[PublicClaim, ...]
    scope: str = ""
    limitations: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    sources: tuple[VerifiedSource, ...]


class FallbackReason(StrEnum):
    INSUFFICIENT_EVIDENCE = "INSUFFICIENT_EVIDENCE"
    CONTEXT_MISSING = "CONTEXT_MISSING"
    BUDGET_REACHED = "BUDGET_REACHED"
    GUARD_REJECTED = "GUARD_REJECTED"


class CheckedSource(_Value):
    """One thing that was looked at, in counts and fixed words only (RELEASE-2)."""

    kind: ToolName
    title: str
    detail: str
    status: ObservationStatus
    error_code: str | None = None
    coverage: CoverageView | None = None


class FallbackContent(_Value):
    """An honest bounded account of what was checked; no model prose in it (RELEASE-2)."""

    type: Literal[ContentType.FALLBACK] = ContentType.FALLBACK
    reason: FallbackReason
    text: str
    checked: tuple[CheckedSource, ...] = ()
    missing_context: tuple[MissingContext, ...] = ()
    next_steps: tuple[str, ...] = ()


PublicContent = Annotated[
    SystemChatContent | KnowledgeContent | DiagnosisContent | FallbackContent, Field(discriminator="type")
]

public_content: TypeAdapter[PublicContent] = TypeAdapter(PublicContent)


def encoded_size(content: BaseModel) -> int:
    """Bytes of `content` as it is stored and sent: UTF-8, not escaped to ASCII."""
    return len(content.model_dump_json(exclude_none=True).encode())
