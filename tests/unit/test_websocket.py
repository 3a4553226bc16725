"""Hostile messages in, bounded frames out."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from superbizagent.domain.content import (
    MAX_CONTENT_BYTES,
    FallbackContent,
    FallbackReason,
    PublicContent,
    SystemChatContent,
    encoded_size,
)
from superbizagent.domain.run import Intent, ReleaseOutcome, RunStatus
from superbizagent.domain.stored_run import SessionSummary, StoredRun
from superbizagent.errors import (
    InvalidQuery,
    InvalidSessionId,
    MalformedRequest,
    RequestError,
    UnknownAction,
)
from superbizagent.frames import ContentFrame
from superbizagent.history_frames import HistoryFrame, session_entry, turn_frame
from superbizagent.websocket import (
    MAX_FRAME_BYTES,
    MAX_HISTORY_LIMIT,
    CancelMessage,
    ChatMessage,
    HistoryMessage,
    UnroutedMessage,
    ids_of,
    parse,
)

NOW = datetime(2026, 11, 30, 15, 4, 5, 678901, tzinfo=UTC)
ID = "x" * 64
DEEP = "[" * 1000 + "]" * 1000


def _chat(**fields: Any) -> bytes:
    return json.dumps({"action": "chat", "requestId": "q1", "query": "why?", **fields}).encode()


# Messages ------------------------------------------------------------------------------------------


@pytest.mark.spec("WIRE-1")
def test_well_formed_messages() -> None:
    assert parse(_chat()) == ChatMessage(action="chat", requestId="q1", query="why?")
    assert parse(_chat(sessionId="s-1_A")) == ChatMessage(
        action="chat", requestId="q1", sessionId="s-1_A", query="why?"
    )
    assert parse(b'{"action":"cancel","runId":"r1"}') == CancelMessage(action="cancel", runId="r1")
    assert parse('{"action":"history"}') == HistoryMessage(action="history")
    assert parse(b'{"action":"history","sessionId":"s","before":"r","limit":50}') == HistoryMessage(
        action="history", sessionId="s", before="r", limit=50
    )


@pytest.mark.spec("LIFE-1")
@pytest.mark.parametrize("query", [" q ", "\n\tq\n", "a\u0000b", "𠮷 👨‍👩‍👧", '"\\', "q" * 8000, "a\u202eb"])
def test_a_query_is_taken_unchanged(query: str) -> None:
    message = parse(_chat(query=query))
    assert isinstance(message, ChatMessage)
    assert message.query == query


@pytest.mark.spec("WIRE-3")
@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        b"",
        "hi",
        "[]",
        "null",
        "123",
        '"chat"',
        "{}",
        '{"action":null}',
        '{"action":{"a":1}}',
        '{"action":["chat"]}',
        '{"action":1}',
        '{"Action":"chat"}',
        '{"action":"chat"',
        "{'action':'chat'}",
        DEEP,
        '{"action":"chat","x":' + DEEP + "}",
        "[" * 200_000,
        b"\xff\xfe\x00",
        b"\xef\xbb\xbf" + _chat(),
        _chat().decode().encode("utf-16"),
        b"\x00" * 100,
        _chat()[:-2],
        _chat() + b"{}",
        '{"action":"chat","requestId":"q1","query":"\\ud83d oops"}',
        '{"action":"chat","requestId":"q1","query":"\ud83d oops"}',
        b'{"action":"chat","requestId":"q1","query":"\xed\xa0\xbd"}',
        b'{"action":"chat","requestId":"q1","query":"a\nb"}',
        _chat(query=None),
        _chat(query=5),
        _chat(query=["why?"]),
        _chat(query={"$gt": ""}),
        _chat(extra=1),
        _chat(requestId=None),
        _chat(requestId=1),
        _chat(requestId=""),
        _chat(requestId="x" * 65),
        _chat(requestId="a b"),
        _chat(requestId="a\n"),
        _chat(requestId="ä"),
        _chat(sessionId=7),
        _chat(sessionId={}),
        '{"action":"chat","requestId":"q1"}',
        '{"action":"chat","query":"why?"}',
        '{"action":"cancel"}',
        '{"action":"cancel","runId":""}',
        '{"action":"cancel","runId":"a/../b"}',
        '{"action":"cancel","runId":"r","extra":1}',
        '{"action":"history","limit":0}',
        '{"action":"history","limit":51}',
        '{"action":"history","limit":"20"}',
        '{"action":"history","limit":2.5}',
        '{"action":"history","limit":true}',
        '{"action":"history","limit":NaN}',
        # No JSON, whatever the action.
        '{"action":"nope","x":NaN}',
        '{"action":"nope","x":-Infinity}',
        '{"action":"history","limit":1e400}',
        '{"action":"history","limit":' + "9" * 5000 + "}",
        '{"action":"history","before":"a b"}',
    ],
)
def test_malformed_messages_are_refused_as_such(body: str | bytes | None) -> None:
    with pytest.raises(MalformedRequest):
        parse(body)


@pytest.mark.spec("WIRE-3")
@pytest.mark.parametrize("action", ["nope", "", "$connect", "$disconnect", "$default", "Chat", "chat ", "unrouted"])
def test_unknown_actions_are_refused_as_such(action: str) -> None:
    with pytest.raises(UnknownAction):
        parse(_chat(action=action))


@pytest.mark.spec("WIRE-3")
@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "\n\t\u3000\u00a0",
        # White space to JavaScript or to Python only, and what nobody can read.
        "\ufeff",
        "\u0085\u001f",
        "\u0000\u001b\u007f",
        "q" * 8001,
        # 8,000 characters and more than 24 KB.
        "👍" * 6145,
        "界" * 8000 + "q",
        "界" * 7999 + "👍界",
    ],
)
def test_empty_and_oversized_queries_are_refused_as_such(query: str) -> None:
    with pytest.raises(InvalidQuery):
        parse(_chat(query=query))


@pytest.mark.parametrize("query", ["q" * 8000, "界" * 8000, "👍" * 6144, "q"])
def test_queries_at_the_bounds_are_taken(query: str) -> None:
    assert isinstance(parse(_chat(query=query)), ChatMessage)
    assert len(query.encode()) <= 24 * 1024


@pytest.mark.spec("WIRE-3")
@pytest.mark.parametrize("session_id", ["", "a b", "x" * 65, "ä", "a\n", "../x", "s'--"])
@pytest.mark.parametrize("action", ["chat", "history"])
def test_bad_session_ids_are_refused_as_such(session_id: str, action: str) -> None:
    chat = {"requestId": "q", "query": "q"} if action == "chat" else {}
    with pytest.raises(InvalidSessionId):
        parse(json.dumps({"action": action, "sessionId": session_id, **chat}))


def test_of_a_field_given_twice_the_last_counts() -> None:
    assert isinstance(parse('{"action":"chat","action":"cancel","runId":"a","runId":"b"}'), CancelMessage)


# Whatever comes in ---------------------------------------------------------------------------------

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
NAMES = st.sampled_from(["action", "requestId", "sessionId", "query", "runId", "before", "limit"])
ACTIONS = st.sampled_from(["chat", "cancel", "history"])
LIKELY = st.fixed_dictionaries(
    {"action": ACTIONS | ANY_JSON},
    optional={
        name: st.text() | ANY_JSON | st.just("q1") | st.integers(0, 60)
        for name in ["requestId", "sessionId", "query", "runId", "before", "limit"]
    },
)


def _parses_or_refuses(body: str | bytes) -> None:
    try:
        message = parse(body)
    except RequestError:
        pass
    else:
        assert isinstance(message, ChatMessage | CancelMessage | HistoryMessage)
        assert not isinstance(message, UnroutedMessage)
    name, _ = ids_of(body)
    assert name is None or (1 <= len(name) <= 64 and name.isascii())


@pytest.mark.spec("WIRE-3")
@given(st.binary())
def test_any_bytes_give_a_message_or_a_refusal(body: bytes) -> None:
    _parses_or_refuses(body)


@pytest.mark.spec("WIRE-3")
@given(st.text(st.characters(codec=None, categories=None)))
def test_any_text_gives_a_message_or_a_refusal(body: str) -> None:
    _parses_or_refuses(body)


@pytest.mark.spec("WIRE-3")
@given(st.one_of(ANY_JSON, LIKELY, st.dictionaries(NAMES, ANY_JSON)), st.booleans())
def test_any_json_gives_a_message_or_a_refusal(value: Any, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    _parses_or_refuses(text)
    _parses_or_refuses(text.encode("utf-8", "surrogatepass"))


@given(st.text(min_size=1))
def test_any_query_comes_out_as_it_went_in_or_is_refused(query: str) -> None:
    try:
        message = parse(json.dumps({"action": "chat", "requestId": "q", "query": query}))
    except InvalidQuery:
        assert not any(character.isprintable() and not character.isspace() for character in query)
    else:
        assert isinstance(message, ChatMessage)
        assert message.query == query


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"action":"nope","requestId":"q-1"}', "q-1"),
        ('{"action":"chat","requestId":"q-1","query":5}', "q-1"),
        ('{"requestId":"q-1"}', None),
        ('{"action":"chat","requestId":"<script>"}', None),
        ('{"action":"chat","requestId":5}', None),
        ('{"action":"chat","requestId":""}', None),
        ('{"action":"chat"}', None),
        (b"\xff", None),
        (None, None),
        (DEEP, None),
    ],
)
def test_the_request_id_of_a_refused_message(body: str | bytes | None, expected: str | None) -> None:
    assert ids_of(body)[0] == expected


# Frames --------------------------------------------------------------------------------------------

EXPENSIVE = ["q", "界", "👍", '"', "\\", "\x01", "\n", "<", "\u2028", "\x7f"]


def _run(query: str, content: PublicContent | None) -> StoredRun:
    return StoredRun(
        run_id=ID,
        session_id=ID,
        request_id=ID,
        gateway_request_id=ID,
        query=query,
        status=RunStatus.SUCCESS,
        intent=Intent.KNOWLEDGE_QUERY,
        outcome=ReleaseOutcome.FALLBACK,
        failure_code="KNOWLEDGE_ANSWER_REJECTED",
        content=content,
        created_at=NOW,
        finished_at=NOW,
    )


def _content_of_size(size: int, character: str = "q") -> SystemChatContent:
    empty = SystemChatContent(text="")
    each = encoded_size(SystemChatContent(text=character)) - encoded_size(empty)
    return SystemChatContent(text=character * ((size - encoded_size(empty)) // each))


@pytest.mark.spec("WIRE-4")
@pytest.mark.parametrize("character", EXPENSIVE)
def test_the_largest_content_fits_a_content_frame(character: str) -> None:
    content = _content_of_size(MAX_CONTENT_BYTES, character)
    frame = ContentFrame(
        session_id=ID,
        run_id=ID,
        request_id=ID,
        seq=10**9,
        replayed=True,
        content_type=content.type,
        content=content,
    )
    encoded = frame.encode()
    assert MAX_CONTENT_BYTES - 10 < len(encoded) <= MAX_FRAME_BYTES
    assert json.loads(encoded)["content"]["text"] == content.text


@pytest.mark.spec("WIRE-4", "WIRE-5")
@pytest.mark.parametrize("content_character", EXPENSIVE)
@pytest.mark.parametrize("query_character", EXPENSIVE)
def test_the_largest_turn_fits_a_frame_and_loses_no_answer(query_character: str, content_character: str) -> None:
    query = query_character * min(8000, 24 * 1024 // len(query_character.encode()))
    content = _content_of_size(MAX_CONTENT_BYTES, content_character)

    encoded = turn_frame(_run(query, content)).encode()

    assert len(encoded) <= MAX_FRAME_BYTES
    turn = json.loads(encoded)["turn"]
    assert turn["content"]["text"] == content.text
    if turn.get("queryTruncated"):
        # Cut no more than needed, and never inside a character.
        assert len(encoded) > MAX_FRAME_BYTES - 12
        assert turn["query"] == query[: len(turn["query"]) - 1] + "…"
    else:
        assert turn["query"] == query


@pytest.mark.spec("WIRE-4")
def test_a_turn_that_fits_is_not_cut() -> None:
    run = _run("why?", SystemChatContent(text="because"))
    turn = json.loads(turn_frame(run).encode())["turn"]
    assert turn["query"] == "why?"
    assert "queryTruncated" not in turn


@pytest.mark.spec("WIRE-4")
@pytest.mark.parametrize("size", [MAX_FRAME_BYTES - 600, MAX_FRAME_BYTES, 2 * MAX_FRAME_BYTES])
def test_content_stored_under_other_limits_never_breaks_the_bound(size: int) -> None:
    content = FallbackContent(reason=FallbackReason.BUDGET_REACHED, text="界" * (size // 3))
    encoded = turn_frame(_run("why?" * 1000, content)).encode()
    assert len(encoded) <= MAX_FRAME_BYTES
    assert json.loads(encoded)["turn"]["query"]


@pytest.mark.spec("WIRE-4")
@given(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=9000),
    st.integers(100, MAX_FRAME_BYTES + 500),
)
def test_any_turn_fits_a_frame(query: str, size: int) -> None:
    assert len(turn_frame(_run(query, _content_of_size(size, '"'))).encode()) <= MAX_FRAME_BYTES


@pytest.mark.spec("WIRE-5")
def test_a_running_turn_has_no_end() -> None:
    run = replace(
        _run("q", None),
        status=RunStatus.RUNNING,
        intent=None,
        outcome=None,
        failure_code=None,
        finished_at=None,
    )
    assert json.loads(turn_frame(run).encode())["turn"] == {
        "runId": ID,
        "requestId": ID,
        "query": "q",
        "status": "RUNNING",
        "createdAt": "2026-11-30T15:04:05.678901Z",
    }


@pytest.mark.spec("WIRE-4", "WIRE-5")
@pytest.mark.parametrize("character", EXPENSIVE)
def test_fifty_sessions_fit_one_frame(character: str) -> None:
    summary = SessionSummary(
        session_id=ID, title=character * 500, message_pairs=2**31 - 1, created_at=NOW, last_active_at=NOW
    )
    frame = HistoryFrame(kind="sessions", sessions=(session_entry(summary),) * MAX_HISTORY_LIMIT)
    assert len(frame.encode()) <= MAX_FRAME_BYTES


def test_frames_are_not_escaped_to_ascii() -> None:
    encoded = turn_frame(_run("支付网关超时", None)).encode()
    assert "支付网关超时".encode() in encoded
