"""What the tools may be asked, and the observations that come back: the only form of evidence."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from superbizagent.domain.codes import ObservationStatus, ToolName, Unit


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, data: Any) -> Any:
        """Models fill optional fields with null; that says nothing, so the default stands."""
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, dict) else data


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


Text = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_not_blank)]

LogLevel = Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"]


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("is out of range") from error


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""In UTC, so that one instant has one spelling (DIAG-3)."""


def _ordered(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


class LookupKnowledge(_Value):
    """Search the runbooks and other documents for passages about a topic."""

    query: Annotated[str, Field(min_length=1, max_length=8_000, description="What to look for, in plain words.")]
    limit: Annotated[int, Field(ge=1, le=10, description="How many passages at most.")] = 5


class QueryLogs(_Value):
    """Read the log lines of one source in a time window, with counts by level and time."""

    source: Annotated[Text, Field(description="The name of one of the listed log sources.")]
    start: Annotated[
        Instant | None,
        Field(description="First instant, ISO 8601 with zone. Null: no bound."),
    ] = None
    end: Annotated[
        Instant | None,
        Field(description="Instant after the last, ISO 8601 with zone. Null: no bound."),
    ] = None
    levels: Annotated[
        tuple[LogLevel, ...],
        AfterValidator(_ordered),
        Field(max_length=6, description="Only these levels. Empty: all."),
    ] = ()
    contains: Annotated[
        tuple[Text, ...],
        AfterValidator(_ordered),
        Field(max_length=8, description="Only lines with all of these texts, in any case."),
    ] = ()
    excludes: Annotated[
        tuple[Text, ...],
        AfterValidator(_ordered),
        Field(max_length=8, description="No line with any of these texts, in any case."),
    ] = ()
    limit: Annotated[int, Field(ge=1, le=200, description="How many lines to show at most.")] = 40


class QueryMysql(_Value):
    """Run one read-only SELECT over the listed tables of the business database."""

    statement: Annotated[str, Field(min_length=1, max_length=10_000, description="One SELECT statement.")]


type_of_tool: dict[ToolName, type[LookupKnowledge] | type[QueryLogs] | type[QueryMysql]] = {
    ToolName.LOOKUP_KNOWLEDGE: LookupKnowledge,
    ToolName.QUERY_LOGS: QueryLogs,
    ToolName.QUERY_MYSQL: QueryMysql,
}

ToolArguments = LookupKnowledge | QueryLogs | QueryMysql


def canonical_arguments(arguments: ToolArguments) -> str:
    """The one spelling of these arguments: equal calls have equal text (DIAG-3)."""
    return json.dumps(arguments.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)


class Coverage(_Value):
    """What an observation did and did not look at.

    `start` and `end` bound the window that was searched; None where the source has no such bound.
    `scanned` is None where the source can't tell. `truncated`: what matched is more than what is shown.
    `partial`: the source was not searched to its end. `filtered`: only lines of some level or wording
    were looked for, so that silence about others proves nothing.
    """

    unit: Unit
    start: AwareDatetime | None = None
    end: AwareDatetime | None = None
    scanned: int | None = None
    matched: int
    shown: int
    truncated: bool = False
    partial: bool = False
    filtered: bool = False
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether absence in this observation is absence in the window (GUARD-2)."""
        return not self.truncated and not self.partial


class DocumentRef(_Value):
    """A document passage that a reader can open (KNOW-5)."""

    document_id: str
    title: str
    heading_path: tuple[str, ...] = ()
    source: str


class Evidence(_Value):
    """What a source returns for one call, before it becomes an observation.

    `title` names the source for a reader. `summary` holds the source's own counts, one line each;
    `lines` the records themselves, in order; for documents the lines of all passages.
    """

    title: str
    summary: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    coverage: Coverage
    documents: tuple[DocumentRef, ...] = ()


class Observation(_Value):
    """The canonical result of one tool call (DIAG-2): bounded, redacted, with its coverage."""

    evidence_id: str
    tool: str
    arguments: str
    status: ObservationStatus
    error_code: str | None = None
    title: str = ""
    projection: str = ""
    coverage: Coverage | None = None
    documents: tuple[DocumentRef, ...] = ()
    digest: str = ""
    observed_at: datetime

    @property
    def ready(self) -> bool:
        return self.status is ObservationStatus.READY

    @property
    def safe(self) -> bool:
        """Whether it says something true about a source: what was found, or that nothing was."""
        return self.status is not ObservationStatus.ERROR

    def asked(self) -> dict[str, Any] | None:
        """The arguments as values; None for an ERROR, whose arguments may be any text that a model wrote."""
        if not self.safe:
            return None
        try:
            arguments = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return None
        return arguments if isinstance(arguments, dict) else None


def digest_of(tool: str, status: ObservationStatus, projection: str) -> str:
    """Equal for equal evidence of one tool; how saturation is noticed (DIAG-4)."""
    return hashlib.sha256(f"{tool}\0{status}\0{projection}".encode("utf-8", "replace")).hexdigest()
