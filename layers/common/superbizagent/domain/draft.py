"""The agent's typed proposal. It becomes public only through Release."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from superbizagent.domain.codes import MissingContext

MAX_DRAFT_BYTES = 10_000
"""UTF-8 bytes of a whole draft: leaves room for its sources in one stored content (WIRE-4)."""

Sentence = Annotated[str, Field(min_length=1, max_length=600)]


class _Value(BaseModel):
    # Built when a diagnosis begins: other runs have no draft.
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, data: Any) -> Any:
        """Models fill optional fields with null; that says nothing, so the default stands."""
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, dict) else data


class Claim(_Value):
    """One checkable statement and the evidence it rests on."""

    text: Sentence
    evidence_ids: Annotated[
        tuple[str, ...], Field(max_length=8, description="Evidence ids such as E1 that show this claim.")
    ] = ()
    quotes: Annotated[
        tuple[Sentence, ...],
        Field(max_length=6, description="Passages copied letter by letter from it."),
    ] = ()
    document_ids: Annotated[
        tuple[str, ...],
        Field(max_length=8, description="Document ids that the cited lookup returned."),
    ] = ()


class Draft(_Value):
    """End the investigation: a conclusion with its claims, or what is missing to reach one."""

    conclusion: Annotated[
        str | None,
        Field(max_length=1_500, description="The cause, in a few sentences; null if unknown."),
    ] = None
    claims: Annotated[tuple[Claim, ...], Field(max_length=12)] = ()
    scope: Annotated[str, Field(max_length=600, description="Services, window and sources looked at.")] = ""
    limitations: Annotated[tuple[Sentence, ...], Field(max_length=8)] = ()
    next_steps: Annotated[tuple[Sentence, ...], Field(max_length=8)] = ()
    missing_context: Annotated[
        tuple[MissingContext, ...],
        Field(max_length=5, description="What only the user can tell."),
    ] = ()

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        size = len(self.model_dump_json().encode())
        if size > MAX_DRAFT_BYTES:
            raise ValueError(f"the draft has {size} bytes; at most {MAX_DRAFT_BYTES} are allowed")
        return self

    @property
    def concluded(self) -> bool:
        return bool(self.conclusion)
