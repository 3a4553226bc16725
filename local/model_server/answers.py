"""Which of the five kinds of calls a request is, and the scripted answer to it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from local.model_server import chat, knowledge
from local.model_server.draft import write_draft
from local.model_server.plan import Call, Case, next_calls
from local.model_server.prompt import briefing, first_fence, json_object, observations
from local.model_server.routing import route


class Kind(StrEnum):
    """The calls that the assistant makes."""

    ROUTER = "router"
    CHAT = "chat"
    KNOWLEDGE = "knowledge"
    AGENT = "agent"
    VERDICTS = "verdicts"


DRAFT_TOOL = "submit_draft"
_CONCLUDE = "Conclude now:"
_KIND_OF_SCHEMA = {
    "intent": Kind.ROUTER,
    "knowledge_answer": Kind.KNOWLEDGE,
    "claim_verdicts": Kind.VERDICTS,
}


@dataclass(frozen=True)
class Request:
    """A chat completion request as far as it matters here; `schema` is the schema's name, or empty."""

    messages: tuple[Mapping[str, Any], ...]
    tools: frozenset[str] = frozenset()
    forced_tool: str = ""
    schema: str = ""
    wants_json: bool = False

    def contents(self, role: str) -> list[str]:
        return [text_of(message) for message in self.messages if message.get("role") == role]


@dataclass(frozen=True)
class Answer:
    """An assistant message: text, or calls of tools."""

    text: str = ""
    calls: tuple[Call, ...] = field(default=())


def text_of(message: Mapping[str, Any]) -> str:
    """A message's content: a text, or the text parts of a list."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


def kind_of(request: Request) -> Kind:
    """By tools and schema name; by the shape of the user message where a client can't send schemas."""
    if request.tools:
        return Kind.AGENT
    if request.schema in _KIND_OF_SCHEMA:
        return _KIND_OF_SCHEMA[request.schema]
    if request.wants_json:
        return _kind_of_content((request.contents("user") or [""])[-1])
    return Kind.CHAT


def _kind_of_content(content: str) -> Kind:
    asked = json_object(content)
    if asked is not None and "query" in asked:
        return Kind.ROUTER
    fenced = first_fence(content)
    if fenced is None:
        return Kind.CHAT
    return Kind.KNOWLEDGE if "call_id" in (json_object("\n".join(fenced)) or {}) else Kind.VERDICTS


def answer(request: Request) -> Answer:
    """The scripted answer; raises ValueError when the messages don't have the form of their kind."""
    content = (request.contents("user") or [""])[-1]
    match kind_of(request):
        case Kind.ROUTER:
            return Answer(_json({"intent": _intent(content)}))
        case Kind.KNOWLEDGE:
            return Answer(_json(_knowledge(content)))
        case Kind.VERDICTS:
            return Answer(_json(_verdicts(content)))
        case Kind.AGENT:
            return _agent(request)
        case _:
            return Answer(chat.reply(content))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _intent(content: str) -> str:
    asked = json_object(content)
    if asked is None or not isinstance(asked.get("query"), str):
        raise ValueError("the user message has to be a JSON object with a query")
    return route(asked["query"], _text(asked.get("last_intent")) or None)


def _knowledge(content: str) -> dict[str, Any]:
    asked = json_object("\n".join(first_fence(content) or ()))
    if asked is None or not isinstance(asked.get("query"), str) or not isinstance(asked.get("call_id"), str):
        raise ValueError("the user message has to begin with a fenced JSON object with query and call_id")
    return knowledge.answer(asked["query"], asked["call_id"], observations(content))


def _verdicts(content: str) -> dict[str, Any]:
    asked = json_object("\n".join(first_fence(content) or ()))
    claims = asked.get("claims") if asked else None
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise ValueError("the user message has to begin with a fenced JSON object with claims")
    return knowledge.verdicts(claims, observations(content))


def _agent(request: Request) -> Answer:
    case = read_case(request)
    concluding = (
        request.forced_tool == DRAFT_TOOL
        or request.tools == {DRAFT_TOOL}
        or request.contents("user")[-1].startswith(_CONCLUDE)
    )
    calls = [] if concluding else next_calls(case)
    if not calls and DRAFT_TOOL in request.tools:
        calls = [Call(DRAFT_TOOL, write_draft(case, refused=_drafts_made(request.messages)))]
    return Answer(calls=tuple(calls)) if calls else Answer("There is nothing left to look at.")


def read_case(request: Request) -> Case:
    """What the messages of an agent turn tell."""
    asked = _question(request)
    previous = asked.get("previous_turn")
    results = [observation for text in request.contents("tool") for observation in observations(text)]
    return Case(
        question=_text(asked.get("query")),
        previous_question=_text(previous.get("query")) if isinstance(previous, dict) else "",
        briefing=briefing("\n".join(request.contents("system"))),
        tools=request.tools,
        made=tuple(_calls_made(request.messages)),
        observations=tuple({observation.evidence_id: observation for observation in results}.values()),
    )


def _question(request: Request) -> dict[str, Any]:
    texts = request.contents("user")
    if not texts:
        raise ValueError("there is no user message")
    fenced = first_fence(texts[0])
    return json_object("\n".join(fenced) if fenced is not None else texts[0]) or {"query": texts[0]}


def _tool_calls(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    called = [message.get("tool_calls") for message in messages if message.get("role") == "assistant"]
    calls = [call for calls in called if isinstance(calls, list) for call in calls if isinstance(call, dict)]
    return [call["function"] for call in calls if isinstance(call.get("function"), dict)]


def _calls_made(messages: Sequence[Mapping[str, Any]]) -> list[Call]:
    return [
        Call(_text(function.get("name")), json_object(_text(function.get("arguments"))) or {})
        for function in _tool_calls(messages)
        if function.get("name") != DRAFT_TOOL
    ]


def _drafts_made(messages: Sequence[Mapping[str, Any]]) -> int:
    return sum(function.get("name") == DRAFT_TOOL for function in _tool_calls(messages))
