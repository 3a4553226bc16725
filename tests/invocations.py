"""Functions as the platform calls them, by an event, in this process: for tests that look at what is around them."""

import asyncio
import base64
import contextlib
import importlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest
from sqlalchemy import text

from superbizagent import bootstrap
from superbizagent.adapters.store import Database
from superbizagent.errors import ConfigurationError
from tests.http_stub import HttpStub, Received, Reply, completion, http_stub

EVENTS = Path(__file__).parents[1] / "events"
FUNCTIONS = ("connect", "disconnect", "chat", "cancel", "history", "default", "sweep")
CONNECTION = "UlQ6ccZ_FiACJXQ="
KEY = "sk-canary-key"
CONTENT = {"type": "SYSTEM_CHAT", "text": "I look at logs and runbooks."}
OK = {"statusCode": 200}

Json = dict[str, Any]


def _handlers() -> dict[str, ModuleType]:
    """The functions' modules; they are imported where the environment is like Lambda's."""
    return {name: importlib.import_module(f"functions.{name}.app") for name in FUNCTIONS}


@dataclass(frozen=True)
class Context:
    """What Lambda tells a function of its invocation."""

    remaining: float = 300.0
    function_name: str = "f"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:eu-central-1:123456789012:function:f"
    aws_request_id: str = "88888888-4444-4444-4444-121212121212"

    def get_remaining_time_in_millis(self) -> int:
        return round(self.remaining * 1000)


@dataclass
class World:
    """The parts around the functions, and what has reached them."""

    handlers: dict[str, ModuleType]
    database: Database
    client: HttpStub
    model: HttpStub
    intent: str = "SYSTEM_CHAT"
    gone: set[str] = field(default_factory=set)

    async def invoke(self, function: str, event: Json, remaining: float = 300.0) -> Any:
        """In a thread, like the process that it would be; this one serves its HTTP calls."""
        return await asyncio.to_thread(self.handlers[function].handler, event, Context(remaining))

    async def connect(self, connection: str = CONNECTION, principal: str = "alice") -> None:
        assert await self.invoke("connect", event("connect", connection, principal=principal)) == OK

    async def chat(self, connection: str = CONNECTION, request: str = "g1", **message: Any) -> Any:
        asked = {"action": "chat", "requestId": "question-1", "query": "What can you do?", **message}
        return await self.invoke("chat", event("chat", connection, request=request, body=asked))

    def frames(self, connection: str = CONNECTION) -> list[Json]:
        posted = f"/live/@connections/{connection}"
        return [call.json for call in self.client.received if unquote(call.path) == posted]

    def rows(self, statement: str) -> list[Json]:
        with self.database.engine.begin() as open_connection:
            return [dict(row._mapping) for row in open_connection.execute(text(statement))]

    def answer_as_api(self, call: Received) -> Reply:
        gone = unquote(call.path).rpartition("/")[2] in self.gone
        return Reply({"message": None}, 410) if gone else Reply()

    def answer_as_model(self, call: Received) -> Reply:
        shaped = "response_format" in call.json
        return Reply(completion(json.dumps({"intent": self.intent}) if shaped else CONTENT["text"]))


def event(
    name: str,
    connection: str = CONNECTION,
    *,
    principal: str | None = None,
    request: str | None = None,
    body: object = None,
) -> Json:
    """The event of that file, with these parts changed; `body` in the file's own encoding."""
    loaded: Json = json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))
    context = loaded["requestContext"]
    context["connectionId"] = connection
    if principal is not None:
        context["authorizer"] = {"principalId": principal}
    if request is not None:
        context["requestId"] = request
    if body is not None:
        message = body if isinstance(body, str) else json.dumps(body)
        loaded["body"] = base64.b64encode(message.encode()).decode() if loaded["isBase64Encoded"] else message
    return loaded


@contextlib.asynccontextmanager
async def world_on(database_url: str, folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """The functions on this database; the process is left as Lambda starts it. `patch` undoes the environment."""
    evidence = folder / "evidence.toml"
    evidence.write_text('[logs.app]\npaths = ["app.log"]\n')
    async with http_stub() as client, http_stub() as model:
        for name, value in {
            "DATABASE_URL": database_url,
            "CONNECTIONS_ENDPOINT": f"{client.url}/live",
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_MODEL": "m",
            "EVIDENCE_FILE": str(evidence),
            "CANCEL_POLL_SECONDS": "0.05",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "canary-secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "POWERTOOLS_SERVICE_NAME": "superbizagent",
            "POWERTOOLS_METRICS_NAMESPACE": "SuperBizAgent",
            # Else a filter on pytest's own handlers hides what is logged.
            "POWERTOOLS_LOG_DEDUPLICATION_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        with contextlib.closing(Database(database_url)) as database:
            world = World(_handlers(), database, client, model)
            client.answer, model.answer = world.answer_as_api, world.answer_as_model
            yield world
            await asyncio.to_thread(fresh_process)


def fresh_process() -> None:
    """Leaves nothing of what bootstrap keeps for the next event."""
    with contextlib.suppress(ConfigurationError):  # a test may have left it without a URL
        bootstrap.services().database.close()
    if bootstrap._runner.cache_info().currsize:
        bootstrap._runner().close()
    for cached in (bootstrap.services, bootstrap._runner):
        cached.cache_clear()
