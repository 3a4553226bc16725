"""The wire contract: client messages and server frames (WIRE-*).

`docs/asyncapi.yaml` publishes these shapes; a test holds the two together (WIRE-1).
"""

import re
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from superbizagent.domain.content import ContentType, PublicContent
from superbizagent.domain.run import Intent, ReleaseOutcome, RunStatus, valid_session_id
from superbizagent.domain.text import ELLIPSIS, bound_characters
from superbizagent.errors import InvalidQuery, MalformedRequest, SuperBizAgentError, UnknownAction
from superbizagent.ports import SessionSummary, StatusCode, StoredRun

MAX_FRAME_BYTES = 32_768
"""API Gateway's limit for one WebSocket frame (WIRE-4)."""
MAX_QUERY_CHARACTERS = 8_000
MAX_QUERY_BYTES = 24 * 1024
QUERY_PATTERN = r"[^\s\x00-\x1f\x7f-\x9f\ufeff]"
"""A question has something to read. Spelt out, because \\s alone is another set in JavaScript than in Python."""
MAX_HISTORY_LIMIT = 50
MAX_TITLE_CHARACTERS = 60
"""Fifty session entries with such titles fit one frame, even where JSON escapes each character (WIRE-4)."""

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


def _whole_number(value: object) -> object:
    """To JSON Schema 20.0 is an integer too, and some clients write every number that way."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _only_wire_names(cls, data: Any) -> Any:
        """Pydantic takes a field's Python name for known, and ignores it: a session_id would start a new session."""
        known = {field.alias or name for name, field in cls.model_fields.items()}
        if isinstance(data, dict) and data.keys() - known:
            raise ValueError("unknown fields")
        return data


class ChatMessage(_Message):
    """Ask a question. The same `requestId` of the same principal is the same run (LIFE-6)."""

    action: Literal["chat"]
    request_id: Identifier
    session_id: str | None = None
    query: str


class CancelMessage(_Message):
    """Cancel a run of one's own (CANCEL-3)."""

    action: Literal["cancel"]
    run_id: Identifier


class HistoryMessage(_Message):
    """Without a session: the principal's sessions. With one: its turns (WIRE-5)."""

    action: Literal["history"]
    session_id: str | None = None
    before: Identifier | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_HISTORY_LIMIT), BeforeValidator(_whole_number)] = 20


class UnroutedMessage(_Message):
    """What is expected where no message is: every one is refused."""


ClientMessage = ChatMessage | CancelMessage | HistoryMessage | UnroutedMessage


class Frame(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True, serialize_by_alias=True)

    def encode(self) -> bytes:
        """UTF-8 JSON, not escaped to ASCII: a CJK character costs 3 bytes, not 6."""
        return self.model_dump_json(exclude_none=True).encode()


class _RunFrame(Frame):
    """A frame of a run. `seq` counts from 1 without gaps; `replayed` frames repeat a stored run (LIFE-6)."""

    session_id: str
    run_id: str
    request_id: str
    seq: int
    replayed: bool | None = None


class StartedFrame(_RunFrame):
    type: Literal["started"] = "started"


class StatusFrame(_RunFrame):
    type: Literal["status"] = "status"
    code: StatusCode
    intent: str | None = None
    tool: str | None = None
    status: str | None = None


class ContentFrame(_RunFrame):
    type: Literal["content"] = "content"
    content_type: ContentType
    content: PublicContent


class DoneFrame(_RunFrame):
    type: Literal["done"] = "done"
    outcome: ReleaseOutcome


class CancelledFrame(_RunFrame):
    type: Literal["cancelled"] = "cancelled"


class ErrorFrame(Frame):
    """A refused message, or a failed run: then with the run's ids and its `seq`."""

    type: Literal["error"] = "error"
    code: str
    message: str
    session_id: str | None = None
    run_id: str | None = None
    request_id: str | None = None
    seq: int | None = None
    replayed: bool | None = None


class SessionEntry(Frame):
    session_id: str
    title: str
    message_pairs: int
    created_at: AwareDatetime
    last_active_at: AwareDatetime


class Turn(Frame):
    """A stored run. `query_truncated`: the stored question is longer than fits this frame."""

    run_id: str
    request_id: str
    query: str
    query_truncated: bool | None = None
    status: RunStatus
    intent: Intent | None = None
    outcome: ReleaseOutcome | None = None
    failure_code: str | None = None
    content: PublicContent | None = None
    created_at: AwareDatetime
    finished_at: AwareDatetime | None = None


class HistoryFrame(Frame):
    """One frame of an answer to `history`; the last one of each answer has kind `end`.

    Kind `sessions` carries `sessions`, kind `turn` one `turn`. `before` in the end frame asks for the
    turns before these; it is absent when there are none.
    """

    type: Literal["history"] = "history"
    kind: Literal["sessions", "turn", "end"]
    session_id: str | None = None
    sessions: tuple[SessionEntry, ...] | None = None
    turn: Turn | None = None
    before: str | None = None


class _Envelope(BaseModel):
    action: str
    request_id: str | None = Field(default=None, alias="requestId")
    session_id: str | None = Field(default=None, alias="sessionId")


_NOT_BLANK = re.compile(QUERY_PATTERN)
_text: TypeAdapter[str] = TypeAdapter(str)
_identifier: TypeAdapter[str] = TypeAdapter(Identifier)
_parsers: dict[str, TypeAdapter[ClientMessage]] = {
    "chat": TypeAdapter(ChatMessage),
    "cancel": TypeAdapter(CancelMessage),
    "history": TypeAdapter(HistoryMessage),
}


def parse(body: str | bytes | None) -> ClientMessage:
    """The client message in `body`.

    Raises MalformedRequest, UnknownAction, InvalidQuery or InvalidSessionId; nothing else, whatever
    the bytes. Unpaired surrogates and deep nesting are the JSON parser's to refuse; of a field given
    twice the last one counts, wherever the gateway has routed the message.
    """
    try:
        value = _json(body)
        action = _Envelope.model_validate(value).action
        if action not in _parsers:
            raise UnknownAction
        message = _parsers[action].validate_python(value)
    except ValueError as error:
        raise MalformedRequest from error
    if isinstance(message, ChatMessage | HistoryMessage) and message.session_id is not None:
        valid_session_id(message.session_id)
    if isinstance(message, ChatMessage):
        _check_query(message.query)
    return message


def ids_of(body: str | bytes | None) -> tuple[str | None, str | None]:
    """The request and session id in a message that is refused, so that its error frame can name them."""
    try:
        envelope = _Envelope.model_validate(_json(body))
    except ValueError:
        return None, None
    return _valid(envelope.request_id), _valid(envelope.session_id)


def _json(body: str | bytes | None) -> Any:
    """Raises ValueError, as pydantic's own errors are. JSON has no infinity, and no number that is none."""
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return from_json(data or b"", allow_inf_nan=False)


def _valid(candidate: str | None) -> str | None:
    try:
        return None if candidate is None else _identifier.validate_python(candidate)
    except ValidationError:
        return None


def _check_query(query: str) -> None:
    blank = not _NOT_BLANK.search(query)
    if blank or len(query) > MAX_QUERY_CHARACTERS or len(query.encode()) > MAX_QUERY_BYTES:
        raise InvalidQuery


def error_frame(error: SuperBizAgentError, request_id: str | None = None, session_id: str | None = None) -> ErrorFrame:
    """The frame of a refusal; the ids are those of the refused message, where it has them."""
    return ErrorFrame(code=error.code, message=error.message, request_id=request_id, session_id=session_id)


def session_entry(summary: SessionSummary) -> SessionEntry:
    return SessionEntry(
        session_id=summary.session_id,
        title=bound_characters(summary.title, MAX_TITLE_CHARACTERS),
        message_pairs=summary.message_pairs,
        created_at=summary.created_at,
        last_active_at=summary.last_active_at,
    )


def turn_frame(run: StoredRun) -> HistoryFrame:
    """One stored run as one frame; a question too long to fit beside its answer is cut and marked.

    Content that fits no frame on its own is left out: it was stored by a version with other limits.
    """
    frame = _turn(run, run.query, truncated=None)
    if len(frame.encode()) <= MAX_FRAME_BYTES:
        return frame
    room = MAX_FRAME_BYTES - len(_turn(run, "", truncated=True).encode())
    if room < 0:
        return turn_frame(replace(run, content=None))
    return _turn(run, _bound_encoded(run.query, room), truncated=True)


def _bound_encoded(text: str, limit: int) -> str:
    """`text`, cut so that it takes at most `limit` bytes as JSON, where one character may take six."""
    size = len(ELLIPSIS.encode())
    for index, character in enumerate(text):
        size += len(_text.dump_json(character)) - 2
        if size > limit:
            return text[:index] + ELLIPSIS if limit >= len(ELLIPSIS.encode()) else ""
    return text


def _turn(run: StoredRun, query: str, truncated: bool | None) -> HistoryFrame:
    return HistoryFrame(
        kind="turn",
        session_id=run.session_id,
        turn=Turn(
            run_id=run.run_id,
            request_id=run.request_id,
            query=query,
            query_truncated=truncated,
            status=run.status,
            intent=run.intent,
            outcome=run.outcome,
            failure_code=run.failure_code,
            content=run.content,
            created_at=run.created_at,
            finished_at=run.finished_at,
        ),
    )
