"""What is sent: messages that are almost right, and frames that are none, as bytes on the wire."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

FRAME_LIMIT = 32 * 1024
MESSAGE_LIMIT = 128 * 1024
TEXT, BINARY, CLOSE, PING, CONTINUATION = 0x1, 0x2, 0x8, 0x9, 0x0
FIN, RESERVED = 0x80, 0x40
PROTOCOL_ERROR, NO_BINARY, NOT_UTF8, TOO_BIG = 1002, 1003, 1007, 1009

Message = dict[str, Any]


@dataclass(frozen=True)
class Sending:
    """`text`: the message that the frames make, if the gateway takes it; else it closes with one of `closes`."""

    wire: bytes
    text: str | None = None
    closes: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        shown = self.wire if self.text is None else self.text
        return f"Sending({shown[:2_000]!r}, closes={sorted(self.closes)})"


def frame(first: int, payload: bytes = b"", *, masked: bool = True) -> bytes:
    """One frame with this first byte: the opcode, FIN and reserved bits, none of which have to make sense."""
    mask = 0x80 if masked else 0
    size = len(payload)
    if size < 126:
        head = bytes([first, mask | size])
    elif size < 65_536:
        head = bytes([first, mask | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([first, mask | 127]) + size.to_bytes(8, "big")
    # A key of zeros leaves the payload as it is.
    return head + (bytes(4) if masked else b"") + payload


def text_message(*pieces: bytes, between: bytes = b"") -> Sending:
    """A text message in these fragments, with `between` after each but the last."""
    last = len(pieces) - 1
    wire = b"".join(
        frame((TEXT if index == 0 else CONTINUATION) | (FIN if index == last else 0), piece)
        + (b"" if index == last else between)
        for index, piece in enumerate(pieces)
    )
    whole = b"".join(pieces)
    closes = {TOO_BIG} if max(map(len, pieces)) > FRAME_LIMIT or len(whole) > MESSAGE_LIMIT else set()
    try:
        text = whole.decode()
    except UnicodeDecodeError:
        return Sending(wire, closes=frozenset(closes | {NOT_UTF8}))
    return Sending(wire, None if closes else text, frozenset(closes))


# Messages ------------------------------------------------------------------------------------------

NASTY = (
    "\x00", "\ufeff", "\u202e\u2066", "\u200b", "\x85", "\x1f", "\xa0", "e\u0301", "🫠️", "\uffff", "\U0010ffff",
    "\r\n", "'; DROP TABLE diagnosis_run; --", "${jndi:ldap://x}", "#set($x=1)$x", "<svg onload=alert(1)>", "%s%n",
)  # fmt: skip
ids = st.text("abcXYZ019_-", min_size=1, max_size=64)
odd_text = st.one_of(st.text(max_size=40), st.sampled_from(NASTY), st.lists(st.sampled_from(NASTY)).map("".join))
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), odd_text, st.sampled_from([10**400, -0.0, 1e308, 2**63])
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_text, inner, max_size=3))
queries = st.one_of(
    st.sampled_from(
        ["why?", "What can you do?", "", " ", "\n\t", "x" * 8_000, "x" * 8_001, "支" * 8_000, "🫠" * 7_000]
    ),
    odd_text,
)


def _messages(**optional: SearchStrategy[Any]) -> SearchStrategy[Message]:
    required = {name: optional.pop(name) for name in ("action", "requestId", "query", "runId") if name in optional}
    return st.fixed_dictionaries(required, optional=optional)


refused_chats = _messages(action=st.just("chat"), requestId=ids, query=st.sampled_from(["", " ", "x" * 8_001]))
cancels = _messages(action=st.just("cancel"), runId=ids)
histories = _messages(
    action=st.just("history"), sessionId=ids | st.none(), before=ids | st.none(), limit=st.integers(1, 50)
)
# The one kind that starts a run, which takes far longer than a refusal.
chats = _messages(action=st.just("chat"), requestId=ids, query=st.just("What can you do?"))
unrouted = _messages(
    action=st.sampled_from(["$connect", "$disconnect", "$default", "Chat", "chat ", "", "__proto__"]) | odd_text,
    requestId=ids,
    sessionId=ids,
)
well_formed = st.one_of(cancels, histories, refused_chats, unrouted)


@st.composite
def _broken(draw: st.DrawFn) -> Message:
    """A message with one field broken: another value, another name, gone, or one too many."""
    message = dict(draw(st.one_of(refused_chats, cancels, histories)))
    name = draw(st.sampled_from([*message, "requestId", "sessionId", "runId", "limit", "before", "extra"]))
    match draw(st.integers(0, 3)):
        case 0:
            message.pop(name, None)
        case 1:
            message[draw(odd_text | st.just(name.upper()))] = message.pop(name, "x")
        case 2:
            message[name] = draw(odd_text)
        case _:
            message[name] = draw(values)
    return message


def _encoded(message: Any, *, ascii_only: bool = True) -> bytes:
    """Escaped, so that what has no encoding can be sent at all."""
    return json.dumps(message, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


@st.composite
def _twice(draw: st.DrawFn) -> bytes:
    """A field given twice."""
    message = draw(st.one_of(well_formed, _broken()))
    name, value = draw(st.sampled_from(["action", "requestId", "runId", "limit", "query"])), draw(scalars | ids)
    return b"{%s:%s,%s" % (_encoded(name), _encoded(value), _encoded(message)[1:] if message else b'"a":1}')


RAW_VALUES = (
    "1e999", "-1e999", "NaN", "Infinity", "-Infinity", "1E400", "01", "0x1", ".5", "1.", "9" * 5_000, "20.0", "2e1",
    r'"\ud83d"', r'"\udc00\ud83d"', r'"\u0000"', r'"\x41"', '"\t"', '"a', "'a'", "undefined", "tru", "[1,]", "{,}",
    *("[" * depth + "]" * depth for depth in (50, 190, 1_000, 15_000)), "[" * 20_000,
    '{"a":' * 1_000 + "1" + "}" * 1_000,
)  # fmt: skip
RAW_FIELDS = (
    '"action":"chat","requestId":"q","query":', '"action":"history","limit":', '"action":"nope","x":', '"action":',
    '"action":"cancel","runId":',
)  # fmt: skip


def _raw_json() -> SearchStrategy[bytes]:
    """Values that Python's own encoder would not write: numbers out of range, bad escapes, endless nesting."""
    parts = st.tuples(st.sampled_from(RAW_FIELDS), st.sampled_from(RAW_VALUES))
    return parts.map(lambda pair: f"{{{pair[0]}{pair[1]}}}".encode())


def _not_objects() -> SearchStrategy[bytes]:
    texts = ["", " ", "hi", "[]", "null", "123", '"chat"', "\ufeff{}", "{}", "[[", "]", "\x00", "{" * 30_000]
    return st.one_of(
        st.sampled_from(texts).map(str.encode), values.map(_encoded), st.text(max_size=100).map(str.encode)
    )


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    """A message with some of its bytes changed, lost, repeated or new."""
    data = bytearray(_encoded(draw(well_formed), ascii_only=draw(st.booleans())))
    for _ in range(draw(st.integers(1, 4))):
        at, byte = draw(st.integers(0, max(len(data) - 1, 0))), draw(st.integers(0, 255))
        match draw(st.integers(0, 3)):
            case 0:
                data[at : at + 1] = bytes([byte])
            case 1:
                data[at:at] = bytes([byte])
            case 2:
                del data[at : at + 1 + byte % 8]
            case _:
                data[at:at] = data[max(at - 8, 0) : at]
    return bytes(data)


def payloads() -> SearchStrategy[bytes]:
    """The bytes of a text message, which may be no UTF-8."""
    objects = st.one_of(well_formed, _broken())
    return st.one_of(
        objects.map(_encoded),
        objects.map(lambda message: _encoded(message, ascii_only=False)),
        _mutated(),
        _twice(),
        _raw_json(),
        _not_objects(),
    )


# Frames --------------------------------------------------------------------------------------------


@st.composite
def _fragmented(draw: st.DrawFn) -> Sending:
    """Cut anywhere, in the middle of a character too, with control frames in between."""
    data = draw(payloads())
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), min_size=1, max_size=4)))
    pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    return text_message(*pieces, between=draw(st.sampled_from([b"", frame(FIN | PING, b"p")])))


def _large(size: int, pieces: int) -> Sending:
    head, tail = b'{"action":"nope","requestId":"large","x":"', b'"}'
    data = head + b"x" * (size - len(head) - len(tail)) + tail
    step = -(-size // pieces)
    return text_message(*(data[start : start + step] for start in range(0, size, step)))


LARGE = tuple(
    _large(size, pieces)
    for size, pieces in (
        (FRAME_LIMIT, 1), (FRAME_LIMIT + 1, 1), (FRAME_LIMIT + 1, 2), (MESSAGE_LIMIT, 4), (MESSAGE_LIMIT, 1),
        (MESSAGE_LIMIT + 1, 5), (2 * MESSAGE_LIMIT, 16),
    )
)  # fmt: skip
BAD_ENCODINGS = (b"\xff", b"\xc0\xaf", b"\xed\xa0\xbd", b"\xf4\x90\x80\x80", b"\xe6\x94", b'{"action":"chat\xfe"}')
VIOLATIONS: Sequence[bytes] = (
    *(frame(FIN | opcode) for opcode in (0x3, 0x7, 0xB, 0xF)),
    frame(FIN | RESERVED | TEXT, b"{}"),
    frame(FIN | TEXT, b"{}", masked=False),
    frame(FIN | CONTINUATION, b"{}"),
    frame(TEXT, b"{") + frame(FIN | TEXT, b"}"),
    frame(PING, b"p"),
    frame(FIN | PING, b"p" * 126),
    frame(FIN | CLOSE, b"\x03"),
    frame(FIN | CLOSE, (1005).to_bytes(2, "big")),
    frame(FIN | CLOSE, (99).to_bytes(2, "big")),
)


def _closing() -> SearchStrategy[Sending]:
    binary = st.binary(max_size=50) | st.just(b'{"action":"history"}')
    return st.one_of(
        binary.map(lambda data: Sending(frame(FIN | BINARY, data), closes=frozenset({NO_BINARY}))),
        st.sampled_from(BAD_ENCODINGS).map(text_message),
        st.sampled_from(VIOLATIONS).map(lambda wire: Sending(wire, closes=frozenset({PROTOCOL_ERROR}))),
        st.sampled_from(LARGE),
    )


def _sendings() -> SearchStrategy[Sending]:
    """Mostly messages: a frame that ends its connection costs a new one, and a question a run."""
    rare = {99: chats.map(_encoded).map(text_message), 98: _closing(), 97: _closing()}
    return st.integers(0, 99).flatmap(
        lambda kind: rare.get(kind, _fragmented() if kind > 75 else payloads().map(text_message))
    )


def garbage(count: int, number: int) -> list[Sending]:
    """That many sendings, always the same for a number.

    Made before they are sent: Hypothesis works alone in its process. It is none the worse for it, as each
    sending stands for itself and there is nothing to shrink but the one.
    """
    made: list[Sending] = []

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(_sendings())
    def collect(sending: Sending) -> None:
        made.append(sending)

    collect()
    return made[:count]
