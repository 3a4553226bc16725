"""What the published contract says of a text message: read from docs/asyncapi.yaml, with none of the product's code."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

DOCUMENT = Path(__file__).parents[3] / "docs" / "asyncapi.yaml"
ACTIONS = ("chat", "cancel", "history")
FRAMES = {
    "started": "started",
    "status": "status",
    "content": "content",
    "done": "done",
    "error": "error",
    "cancelled": "cancelled",
    "history": "historyPage",
}
MOST_QUERY_BYTES = 24_576
"""Of `query`, as its description says: a schema counts no bytes."""
SAFE_DEPTH = 100
SAFE_DIGITS = 1_000
"""What every JSON parser in use takes; RFC 8259 lets each set its own limits to nesting and numbers."""

MALFORMED = "MALFORMED_REQUEST"
UNKNOWN = "UNKNOWN_ACTION"
Schema = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """`codes`: the refusals that fit the message, none for a valid one. `message`: the object that it holds, if any."""

    codes: frozenset[str]
    message: Mapping[str, Any] | None = None

    @property
    def valid(self) -> bool:
        return not self.codes


def judge(text: str) -> Verdict:
    message = _parsed(text)
    if not isinstance(message, dict):
        return _refused(MALFORMED)
    action = message.get("action")
    if not isinstance(action, str):
        return _refused(MALFORMED, message=message)
    if action not in ACTIONS:
        return _refused(*_codes_of_an_unknown_action(message), message=message)
    return _refused(*_codes(action, message), message=message)


def frame_errors(frame: Mapping[str, Any]) -> list[str]:
    """What the schema of a server's frame says against this one."""
    name = FRAMES.get(str(frame.get("type")), "gatewayError")
    return [error.message for error in _validator(name).iter_errors(dict(frame))]


def _refused(*codes: str, message: Mapping[str, Any] | None = None) -> Verdict:
    return Verdict(frozenset(codes), message)


def _codes_of_an_unknown_action(message: Mapping[str, Any]) -> Iterator[str]:
    yield UNKNOWN
    # What else is wrong with a message that nobody takes is not specified.
    if _extreme(message) or not all(isinstance(message.get(name), str | None) for name in ("requestId", "sessionId")):
        yield MALFORMED


def _codes(action: str, message: Mapping[str, Any]) -> Iterator[str]:
    """A field that fits its type but not its meaning has a code of its own; anything else is malformed."""
    found: set[str] = set()
    for error in _validator(action).iter_errors(message):
        field = error.absolute_path[0] if error.absolute_path else None
        if field == "query" and isinstance(message["query"], str):
            found.add("INVALID_QUERY")
        elif field == "sessionId" and isinstance(message["sessionId"], str):
            found.add("INVALID_SESSION_ID")
        else:
            found.add(MALFORMED)
    if action == "chat" and isinstance(query := message.get("query"), str) and len(query.encode()) > MOST_QUERY_BYTES:
        found.add("INVALID_QUERY")
    yield from {MALFORMED} if MALFORMED in found else found


def _parsed(text: str) -> Any:
    """JSON as RFC 8259 has it, of text that has an encoding: Python's parser takes NaN and half surrogate pairs too."""
    try:
        return json.loads(text, parse_constant=_no_constant, parse_int=_number, object_pairs_hook=_whole)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _number(digits: str) -> int | float:
    """Python itself refuses to read an integer of more than 4,300 digits."""
    return int(digits) if len(digits) < SAFE_DIGITS else math.inf


def _whole(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Before a field that is given twice is taken from its last place. What is an object by now has been here."""
    pending: list[Any] = [part for pair in pairs for part in pair]
    while pending:
        part = pending.pop()
        if isinstance(part, list):
            pending.extend(part)
        elif isinstance(part, str):
            part.encode()  # raises UnicodeEncodeError, a ValueError
    return dict(pairs)


def _extreme(value: Any) -> bool:
    """Whether a parser may refuse it for its nesting or for a number; without recursion, which is limited too."""
    pending = [(value, 1)]
    while pending:
        item, depth = pending.pop()
        if depth > SAFE_DEPTH or item in (math.inf, -math.inf):
            return True
        children = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        pending.extend((child, depth + 1) for child in children)
    return False


@cache
def _document() -> Schema:
    document: Schema = yaml.safe_load(DOCUMENT.read_text(encoding="utf-8"))
    return document


@cache
def _validator(message: str) -> Any:
    document = _document()
    schema = document["components"]["messages"][message]["payload"]
    return _Validator({"components": document["components"], **schema})


def _pattern(_: Any, pattern: str, instance: Any, __: Schema) -> Iterator[jsonschema.ValidationError]:
    """JSON Schema's regular expressions are JavaScript's: `$` is the end, and not before a last newline as well."""
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield jsonschema.ValidationError(f"{pattern} does not match")


_Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": _pattern})
