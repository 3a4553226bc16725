"""docs/asyncapi.yaml is the contract of the models: the same shapes, nothing more and nothing less."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import BaseModel

from scripts import asyncapi
from superbizagent import errors, frames, history_frames, websocket
from superbizagent.domain.codes import MissingContext, ObservationStatus, ToolName, Unit
from superbizagent.domain.content import (
    CheckedSource,
    CoverageView,
    DiagnosisContent,
    FallbackContent,
    FallbackReason,
    KnowledgeContent,
    KnowledgeItem,
    PublicClaim,
    PublicContent,
    Reference,
    SystemChatContent,
    VerifiedSource,
)
from superbizagent.domain.run import Intent, ReleaseOutcome, RunStatus
from superbizagent.history_frames import HistoryFrame, SessionEntry, Turn

NOW = datetime(2026, 3, 1, 2, 30, 0, 123456, tzinfo=UTC)
IDS = {"session_id": "s1", "run_id": "r1", "request_id": "q1"}
COVERAGE = CoverageView(unit=Unit.LINES, start=NOW, end=NOW, scanned=9, matched=3, shown=3, complete=True)
REFERENCE = Reference(document_id="d1", title="Runbook", heading_path=("A", "B"), source="docs/runbook.md")

CONTENTS: list[PublicContent] = [
    SystemChatContent(text="I answer on-call questions."),
    KnowledgeContent(
        items=(KnowledgeItem(text="Restart it.", document_ids=("d1",)),),
        references=(REFERENCE,),
        limitations=("Only runbooks were read.",),
    ),
    KnowledgeContent(items=()),
    DiagnosisContent(
        conclusion="支付网关超时",
        claims=(PublicClaim(text="Three timeouts.", source_ids=("S1",), quotes=("timeout",)),),
        scope="checkout",
        limitations=("one",),
        next_steps=("two",),
        sources=(
            VerifiedSource(
                id="S1",
                kind=ToolName.QUERY_LOGS,
                title="checkout",
                detail="ERROR lines",
                coverage=COVERAGE,
                excerpt=("timeout",),
                references=(REFERENCE,),
                fetched_at=NOW,
            ),
        ),
    ),
    FallbackContent(
        reason=FallbackReason.CONTEXT_MISSING,
        text="More is needed.",
        checked=(
            CheckedSource(
                kind=ToolName.QUERY_MYSQL,
                title="orders",
                detail="SELECT 1",
                status=ObservationStatus.ERROR,
                error_code="EVIDENCE_TIMEOUT",
            ),
            CheckedSource(
                kind=ToolName.LOOKUP_KNOWLEDGE,
                title="runbooks",
                detail="timeout",
                status=ObservationStatus.NO_EVIDENCE,
                coverage=CoverageView(unit=Unit.PASSAGES, matched=0, shown=0, complete=False, notes=("n",)),
            ),
        ),
        missing_context=tuple(MissingContext),
        next_steps=("Name the service.",),
    ),
]

TURN = Turn(
    run_id="r1",
    request_id="q1",
    query="why?",
    query_truncated=True,
    status=RunStatus.SUCCESS,
    intent=Intent.DIAGNOSIS,
    outcome=ReleaseOutcome.SUCCESS,
    content=CONTENTS[0],
    created_at=NOW,
    finished_at=NOW,
)
FRAMES: list[tuple[str, websocket.Frame]] = [
    ("started", frames.StartedFrame(**IDS, seq=1)),
    ("started", frames.StartedFrame(**IDS, seq=1, replayed=True)),
    ("status", frames.StatusFrame(**IDS, seq=2, code="ROUTED", intent="DIAGNOSIS")),
    ("status", frames.StatusFrame(**IDS, seq=3, code="TOOL_FINISHED", tool="query_logs", status="READY")),
    *(
        ("content", frames.ContentFrame(**IDS, seq=4, content_type=content.type, content=content))
        for content in CONTENTS
    ),
    ("done", frames.DoneFrame(**IDS, seq=5, outcome=ReleaseOutcome.FALLBACK)),
    ("cancelled", frames.CancelledFrame(**IDS, seq=5)),
    ("error", websocket.ErrorFrame(**IDS, seq=5, code="ROUTING_UNAVAILABLE", message="No.")),
    ("error", websocket.error_frame(errors.SessionBusy(), "q1")),
    ("error", websocket.error_frame(errors.MalformedRequest())),
    (
        "historyPage",
        HistoryFrame(
            kind="sessions",
            sessions=(
                SessionEntry(session_id="s1", title="why?", message_pairs=1, created_at=NOW, last_active_at=NOW),
            ),
        ),
    ),
    ("historyPage", HistoryFrame(kind="sessions", sessions=())),
    ("historyPage", HistoryFrame(kind="turn", session_id="s1", turn=TURN)),
    (
        "historyPage",
        HistoryFrame(
            kind="turn",
            session_id="s1",
            turn=Turn(
                run_id="r2",
                request_id="q2",
                query="why?",
                status=RunStatus.FAILED,
                outcome=ReleaseOutcome.FAILED,
                failure_code="RUN_ABANDONED",
                created_at=NOW,
            ),
        ),
    ),
    ("historyPage", HistoryFrame(kind="end", session_id="s1", before="r1")),
]


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(asyncapi.TARGET.read_text(encoding="utf-8"))
    return document


def payload_errors(document: dict[str, Any], message: str, payload: object) -> list[str]:
    """What the document's schema of `message` says against `payload`."""
    schema = document["components"]["messages"][message]["payload"]
    validator = jsonschema.Draft202012Validator(
        {"components": document["components"], **schema},
        format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
    )
    return [error.message for error in validator.iter_errors(payload)]


@pytest.mark.spec("WIRE-1")
def test_committed_document_is_what_the_models_make() -> None:
    assert asyncapi.TARGET.read_text(encoding="utf-8") == asyncapi.render(), (
        "run `python scripts/asyncapi.py` and commit docs/asyncapi.yaml"
    )


@pytest.mark.spec("WIRE-1")
@pytest.mark.parametrize(("message", "frame"), FRAMES, ids=lambda value: str(value)[:40])
def test_frames_made_by_the_models_fit_the_document(
    published: dict[str, Any], message: str, frame: websocket.Frame
) -> None:
    assert payload_errors(published, message, json.loads(frame.encode())) == []


@pytest.mark.spec("WIRE-1")
@pytest.mark.parametrize(
    ("message", "payload"),
    [
        ("chat", {"action": "chat", "requestId": "q1", "query": "why?"}),
        ("chat", {"action": "chat", "requestId": "q1", "sessionId": "s-1", "query": "x" * 8_000}),
        ("cancel", {"action": "cancel", "runId": "r1"}),
        ("history", {"action": "history"}),
        ("history", {"action": "history", "sessionId": "s1", "before": "r1", "limit": 50}),
        ("history", {"action": "history", "limit": 20.0}),
    ],
)
def test_what_the_document_allows_is_accepted(published: dict[str, Any], message: str, payload: dict[str, Any]) -> None:
    assert payload_errors(published, message, payload) == []
    parsed = websocket.parse(json.dumps(payload))
    assert parsed.model_dump(by_alias=True, exclude_unset=True) == payload


@pytest.mark.spec("WIRE-1")
@pytest.mark.parametrize(
    ("message", "payload"),
    [
        ("chat", {"action": "chat", "query": "why?"}),
        ("chat", {"action": "chat", "requestId": "q 1", "query": "why?"}),
        ("chat", {"action": "chat", "requestId": "q1", "query": " \n"}),
        ("chat", {"action": "chat", "requestId": "q1", "query": "\ufeff\u0085\u0000"}),
        ("chat", {"action": "chat", "requestId": "q1", "query": "x" * 8_001}),
        ("chat", {"action": "chat", "requestId": "q1", "query": "why?", "session": "s1"}),
        ("chat", {"action": "chat", "requestId": "q1", "sessionId": "s 1", "query": "why?"}),
        ("cancel", {"action": "cancel", "runId": 5}),
        ("history", {"action": "history", "limit": 51}),
        ("history", {"action": "history", "limit": 0}),
    ],
)
def test_what_the_document_forbids_is_refused(published: dict[str, Any], message: str, payload: dict[str, Any]) -> None:
    assert payload_errors(published, message, payload)
    with pytest.raises(errors.RequestError):
        websocket.parse(json.dumps(payload))


@pytest.mark.spec("WIRE-1")
@pytest.mark.parametrize(
    ("message", "payload"),
    [
        ("started", {"type": "started", "sessionId": "s1", "runId": "r1", "requestId": "q1"}),
        ("status", json.loads(FRAMES[2][1].encode()) | {"code": "THINKING"}),
        ("done", json.loads(frames.DoneFrame(**IDS, seq=1, outcome=ReleaseOutcome.SUCCESS).encode())),
        ("error", {"type": "error", "code": "ORA-00600", "message": "x"}),
        ("historyPage", {"type": "history"}),
        ("gatewayError", {"message": "m", "connectionId": "c", "requestId": "r", "type": "error"}),
    ],
)
def test_the_document_tells_frames_apart(published: dict[str, Any], message: str, payload: dict[str, Any]) -> None:
    if message == "done":
        assert payload_errors(published, "cancelled", payload)
        assert payload_errors(published, message, payload | {"outcome": "MAYBE"})
    else:
        assert payload_errors(published, message, payload)


@pytest.mark.spec("WIRE-1")
def test_every_message_and_frame_of_the_code_is_published(published: dict[str, Any]) -> None:
    sent = {
        model.model_fields["type"].default
        for module in (frames, history_frames, websocket)
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, BaseModel) and "type" in model.model_fields
        if model.__module__ == module.__name__
    }
    schemas = published["components"]["schemas"]
    listed = {schema.get("properties", {}).get("type", {}).get("const") for schema in schemas.values()}
    actions = {schema.get("properties", {}).get("action", {}).get("const") for schema in schemas.values()}

    assert sent == {"started", "status", "content", "done", "error", "cancelled", "history"}
    assert sent <= listed
    assert actions - {None} == {"chat", "cancel", "history"}


@pytest.mark.spec("WIRE-1")
def test_every_error_code_is_listed_with_its_text(published: dict[str, Any]) -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    error_kinds = [kind for kind in kinds if issubclass(kind, errors.SuperBizAgentError)]
    listed = published["components"]["schemas"]["ErrorCode"]

    assert set(listed["enum"]) == {kind.code for kind in error_kinds}
    for kind in error_kinds:
        assert f"{kind.code}: {kind.message}\n" in listed["description"]


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def resolve(document: dict[str, Any], reference: str) -> Any:
    node: Any = document
    for part in reference.removeprefix("#/").split("/"):
        node = node[part]
    return node


@pytest.mark.spec("WIRE-1")
def test_the_document_is_asyncapi_3_in_structure(published: dict[str, Any]) -> None:
    assert published["asyncapi"].startswith("3.")
    assert {"title", "version"} <= published["info"].keys()
    for reference in references(published):
        assert reference.startswith("#/")
        assert resolve(published, reference) is not None
    for server in published["servers"].values():
        assert {"host", "protocol"} <= server.keys()
    on_channels = {
        f"#/channels/{name}/messages/{message}"
        for name, channel in published["channels"].items()
        for message in channel["messages"]
    }
    assert {operation["action"] for operation in published["operations"].values()} == {"send", "receive"}
    for operation in published["operations"].values():
        assert resolve(published, operation["channel"]["$ref"])
        used = [*operation["messages"], *operation.get("reply", {}).get("messages", [])]
        assert used
        assert {message["$ref"] for message in used} <= on_channels
    for schema in published["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert isinstance(schema.get("discriminator", ""), str)
