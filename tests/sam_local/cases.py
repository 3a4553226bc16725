"""The events in the order of a client's life, with what each of them has to cause.

Every file under `events/` is sent as it is, but for what only a running world knows: a token, an address.
"""

import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from migrations.run import known_revisions
from superbizagent.adapters.sign_in.tokens import principal_name
from tests.invocations import CONNECTION, OK
from tests.sam_local.world import Json, World

NEWEST = known_revisions()[0]
SESSION = "0123456789abcdef0123456789abcdef"
RUN = "4f1d2c3b4a59687766554433221100ff"
UNAUTHORIZED = {"errorType": "RuntimeError", "errorMessage": "Unauthorized"}


async def _nothing(_: World) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Case:
    """`event` is a file under `events/`, sent to the function that the first part of its name says.

    `answer` is what the function has to return, or makes it of the world. `then` reads what is there afterwards, which
    has to be `found`.
    """

    event: str
    answer: Json | Callable[[World], Json] | None
    then: Callable[[World], Any]
    found: Any
    given: Callable[[World], Awaitable[None]] = _nothing
    edit: Callable[[World, Json], Json] = lambda _, event: event
    about: str = ""

    @property
    def function(self) -> str:
        return self.event.split("_")[0]

    def expected(self, world: World) -> Json | None:
        return self.answer(world) if callable(self.answer) else self.answer

    @property
    def name(self) -> str:
        return f"{self.event}, {self.about}" if self.about else self.event


def with_token(world: World, event: Json) -> Json:
    offered = f"superbizagent, bearer.{world.issuer.token(sub='alice')}"
    event["multiValueHeaders"]["Sec-WebSocket-Protocol"] = [offered]
    return event


def to_this_machine(world: World, event: Json) -> Json:
    return event | {"ResponseURL": f"{world.client.url}/answer"}


def asking(query: str, request: str) -> Callable[[World, Json], Json]:
    def edit(_: World, event: Json) -> Json:
        message = {"action": "chat", "requestId": request, "sessionId": SESSION, "query": query}
        event["requestContext"]["requestId"] = request
        return event | {"body": base64.b64encode(json.dumps(message).encode()).decode()}

    return edit


def lets_in(subject: str) -> Callable[[World], Json]:
    def answer(world: World) -> Json:
        statement = {"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": ARN}
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        return {"principalId": principal_name(world.issuer.url, subject), "policyDocument": policy}

    return answer


# What is there afterwards --------------------------------------------------------------------------


def revision(world: World) -> Any:
    return world.rows("SELECT version_num FROM alembic_version")[0]["version_num"]


def told_cloudformation(world: World) -> Any:
    return [(answer["Status"], answer["Data"]) for answer in world.frames()]


def asked_issuer(world: World) -> list[str]:
    return [received.path for received in world.issuer.stub.received]


def connections(world: World) -> list[tuple[str, str]]:
    rows = world.rows("SELECT connection_id, principal FROM ws_connection")
    return [(row["connection_id"], row["principal"]) for row in rows]


def told(world: World) -> list[str]:
    """Each frame in a word or two."""
    return [" ".join([frame["type"], *_more(frame)]) for frame in world.frames()]


def _more(frame: Json) -> list[str]:
    named = [str(frame[name]) for name in ("code", "contentType", "outcome", "kind") if name in frame]
    listed = [str(len(frame["sessions"]))] if "sessions" in frame else []
    return named + listed + ([frame["turn"]["query"]] if "turn" in frame else [])


def nothing_new(world: World) -> Json:
    return {"frames": told(world), "model": world.model_calls(), "runs": _count(world, "diagnosis_run")}


def _count(world: World, table: str) -> int:
    count: int = world.rows(f"SELECT COUNT(*) AS n FROM {table}")[0]["n"]
    return count


def last_run(world: World) -> Json:
    """The frames that tell its end, how it is stored, and which tools and kinds of model calls it needed."""
    row = world.rows("SELECT * FROM diagnosis_run ORDER BY id DESC LIMIT 1")[0]
    return {
        "end": told(world)[-2:],
        "stored": (row["owner"], row["status"], row["intent"], row["release_outcome"]),
        "tools": row["tool_calls"] > 0,
        "model": sorted(set(world.model_calls())),
        "calls counted": row["model_calls"] == len(world.model_calls()),
    }


def cancels(world: World) -> list[tuple[str, str]]:
    rows = world.rows("SELECT connection_id, run_id, reason FROM run_cancel ORDER BY id")
    return [(row["run_id"] or row["connection_id"], row["reason"]) for row in rows]


def abandoned(world: World) -> list[tuple[str, str, str]]:
    rows = world.rows("SELECT run_id, status, failure_code FROM diagnosis_run WHERE status <> 'SUCCESS'")
    return [(row["run_id"], row["status"], row["failure_code"]) for row in rows]


def ended(intent: str, *model: str, tools: bool, content: str | None = None) -> Json:
    return {
        "end": [f"content {content or intent}", "done SUCCESS"],
        "stored": ("alice", "SUCCESS", intent, "SUCCESS"),
        "tools": tools,
        "model": sorted(model),
        "calls counted": True,
    }


HOW_TO = "What does the runbook say about an exhausted connection pool?"
WHY = "Why are checkouts failing since 14:00 on 2026-11-30?"
ARN = "arn:aws:execute-api:eu-central-1:123456789012:a1b2c3d4e5/live/$connect"

CASES = (
    Case(
        event="migrate",
        answer={"outcome": "MIGRATED", "before": None, "after": NEWEST},
        then=revision,
        found=NEWEST,
    ),
    Case(
        event="migrate_deploy",
        edit=to_this_machine,
        answer=None,
        then=told_cloudformation,
        found=[("SUCCESS", {"Outcome": "UP_TO_DATE", "Revision": NEWEST})],
    ),
    Case(event="authorizer", about="no token in it", answer=UNAUTHORIZED, then=asked_issuer, found=[]),
    Case(
        event="authorizer",
        about="a genuine token",
        edit=with_token,
        answer=lets_in("alice"),
        then=asked_issuer,
        found=["/.well-known/openid-configuration", "/keys"],
    ),
    Case(event="connect_unauthenticated", answer={"statusCode": 401}, then=connections, found=[]),
    Case(event="connect", answer=OK, then=connections, found=[(CONNECTION, "alice")]),
    Case(event="default", answer=OK, then=told, found=["error MALFORMED_REQUEST"]),
    Case(
        event="chat",
        answer=OK,
        then=last_run,
        found=ended("SYSTEM_CHAT", "router", "chat", tools=False),
    ),
    Case(
        event="chat_proxy",
        about="the same message again",
        answer=OK,
        then=nothing_new,
        found={"frames": [], "model": [], "runs": 1},
    ),
    Case(
        event="chat",
        about="for a runbook",
        given=World.ingest_runbooks,
        edit=asking(HOW_TO, "question-2"),
        answer=OK,
        then=last_run,
        found=ended("KNOWLEDGE_QUERY", "router", "knowledge", tools=True, content="KNOWLEDGE_ANSWER"),
    ),
    Case(
        event="chat",
        about="for a diagnosis",
        edit=asking(WHY, "question-3"),
        answer=OK,
        then=last_run,
        found=ended("DIAGNOSIS", "router", "agent", "verdicts", tools=True),
    ),
    Case(event="history_sessions", answer=OK, then=told, found=["history sessions 2", "history end"]),
    Case(
        event="history_turns",
        answer=OK,
        then=told,
        found=[f"history turn {HOW_TO}", f"history turn {WHY}", "history end"],
    ),
    Case(
        event="cancel",
        given=lambda world: world.begin_overdue_run(RUN, "alice"),
        answer=OK,
        then=cancels,
        found=[(RUN, "CLIENT_REQUEST")],
    ),
    Case(
        event="sweep",
        answer={"runs": 1, "connections": 0},
        then=abandoned,
        found=[(RUN, "FAILED", "RUN_ABANDONED")],
    ),
    Case(
        event="disconnect",
        answer=OK,
        then=lambda world: (connections(world), cancels(world)[-1]),
        found=([], (CONNECTION, "CLIENT_DISCONNECT")),
    ),
)
