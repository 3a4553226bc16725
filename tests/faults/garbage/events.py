"""Events that the platform would hardly send: a real one with parts of it changed, and anything else."""

import base64
import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.faults.garbage.frames import NASTY, payloads, values

EVENTS = Path(__file__).parents[3] / "events"
FILES = {
    "connect": ("connect", "connect_unauthenticated"),
    "disconnect": ("disconnect",),
    "chat": ("chat", "chat_proxy"),
    "cancel": ("cancel",),
    "history": ("history_sessions", "history_turns"),
    "default": ("default",),
    "sweep": ("sweep",),
}
Event = dict[str, Any]


def _nested(depth: int) -> Any:
    """Lists in lists: a recursive strategy never gets that far."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


HALF_A_PAIR = "\ud83d"
odd = st.one_of(
    values,
    st.sampled_from([*NASTY, HALF_A_PAIR, "a ", "x" * 129, "x" * 300, "x" * 200_000, {HALF_A_PAIR: 1}, [], {}]),
    st.sampled_from([100, 10_000]).map(_nested),
)


def _paths(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Of every field, at any depth."""
    if not isinstance(value, dict):
        return []
    found = [(*path, name) for name in value]
    return found + [inner for name in value for inner in _paths(value[name], (*path, name))]


@st.composite
def _changed(draw: st.DrawFn, event: Event) -> Event:
    """With up to three of its fields gone or of another value."""
    changed = copy.deepcopy(event)
    for _ in range(draw(st.integers(1, 3))):
        *above, name = draw(st.sampled_from(_paths(event)))
        parent: Any = changed
        for step in above:
            parent = parent.get(step) if isinstance(parent, dict) else None
        if not isinstance(parent, dict):
            continue
        if draw(st.booleans()):
            parent[name] = draw(odd)
        else:
            parent.pop(name, None)
    return changed


@st.composite
def _with_body(draw: st.DrawFn, event: Event) -> Event:
    """With a client's doing in its body, which is all that a client can do."""
    body = draw(payloads()).decode("utf-8", "replace")
    if event["isBase64Encoded"]:
        return event | {"body": base64.b64encode(body.encode()).decode()}
    return event | {"body": body}


@st.composite
def _from_a_client(draw: st.DrawFn, event: Event) -> Event:
    """With headers and a query string of the client's choice."""
    # What arrives over HTTP: no characters but Latin ones, and no line ends.
    header = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\x00"), max_size=50)
    headers = draw(st.dictionaries(header, header, max_size=4))
    query = draw(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=3))
    identity = event["requestContext"]["identity"] | {"userAgent": draw(header | st.none())}
    return event | {
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": query,
        "multiValueQueryStringParameters": {name: [value] for name, value in query.items()},
        "requestContext": event["requestContext"] | {"identity": identity},
    }


def _real(function: str) -> SearchStrategy[Event]:
    files = [json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8")) for name in FILES[function]]
    return st.sampled_from(files)


def events_of_a_client(function: str) -> SearchStrategy[Event]:
    """What a client can bring about, whatever it sends: to be served or refused, never to fail."""
    bring = _from_a_client if function == "connect" else _with_body
    return _real(function).flatmap(bring)


def odd_events(function: str) -> SearchStrategy[Any]:
    """What only the platform, or who set it up, can bring about."""
    return st.one_of(_real(function).flatmap(_changed), odd)
