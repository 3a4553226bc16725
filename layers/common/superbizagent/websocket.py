"""The wire contract: client messages, and the frame of a refusal, which is all that most functions send (WIRE-*).

The frames of runs and of history, with all that content can be, are in `frames.py` and `history_frames.py`: few
functions load them.
`docs/asyncapi.yaml` publishes these shapes; a test holds the two together (WIRE-1).
"""

from typing import Annotated, Any, Literal

from pydantic import (
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

from superbizagent.domain.pattern import Pattern
from superbizagent.domain.run import valid_session_id
from superbizagent.errors import InvalidQuery, MalformedRequest, SuperBizAgentError, UnknownAction

MAX_FRAME_BYTES = 32_768
"""API Gateway's limit for one WebSocket frame (WIRE-4)."""
MAX_QUERY_CHARACTERS = 8_000
MAX_QUERY_BYTES = 24 * 1024
QUERY_PATTERN = r"[^\s\x00-\x1f\x7f-\x9f\ufeff]"
"""A question has something to read. Spelt out, because \\s alone is another set in JavaScript than in Python."""
MAX_HISTORY_LIMIT = 50

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


def _whole_number(value: object) -> object:
    """To JSON Schema 20.0 is an integer too, and some clients write every number that way."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class _Message(BaseModel):
    # Built when one is read: each function serves one kind.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel, defer_build=True)

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


class ErrorFrame(Frame):
    """A refused message, or a failed run: then with the run's ids and its `seq`."""

    model_config = ConfigDict(defer_build=True)
    type: Literal["error"] = "error"
    code: str
    message: str
    session_id: str | None = None
    run_id: str | None = None
    request_id: str | None = None
    seq: int | None = None
    replayed: bool | None = None


class _Envelope(BaseModel):
    action: str
    request_id: str | None = Field(default=None, alias="requestId")
    session_id: str | None = Field(default=None, alias="sessionId")


_NOT_BLANK = Pattern(QUERY_PATTERN)
_identifier: TypeAdapter[str] = TypeAdapter(Identifier)
_kinds: dict[str, type[ClientMessage]] = {"chat": ChatMessage, "cancel": CancelMessage, "history": HistoryMessage}


def parse(body: str | bytes | None) -> ClientMessage:
    """The client message in `body`.

    Raises MalformedRequest, UnknownAction, InvalidQuery or InvalidSessionId; nothing else, whatever
    the bytes. Unpaired surrogates and deep nesting are the JSON parser's to refuse; of a field given
    twice the last one counts, wherever the gateway has routed the message.
    """
    try:
        value = _json(body)
        action = _Envelope.model_validate(value).action
        if action not in _kinds:
            raise UnknownAction
        message = _kinds[action].model_validate(value)
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
