"""Asks the authorizer of $connect and reads its policy."""

import json
import re
from collections.abc import Mapping
from typing import Any

from local.gateway.errors import GatewayError
from local.gateway.events import Event
from local.gateway.model import Api, Authorizer
from local.gateway.runtime import Functions, Invocation, Result

INVOKE = "execute-api:Invoke"


class Refused(GatewayError):
    """The handshake ends with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


async def authorize(authorizer: Authorizer, functions: Functions, api: Api, event: Event, arn: str) -> dict[str, Any]:
    """What later events carry as requestContext.authorizer; raises Refused."""
    for source in authorizer.identity_sources:
        if not _identity(source, event, api):
            raise Refused(401, "Unauthorized")
    result = await functions.invoke(authorizer.function, Invocation(payload=json.dumps(event).encode()))
    if result.error is not None:
        # The one thing that a failing authorizer can say on purpose.
        unauthorized = result.message == "Unauthorized"
        raise Refused(401 if unauthorized else 500, "Unauthorized" if unauthorized else "Internal server error")
    answer = _answer(result)
    if not allows(answer["policyDocument"], arn):
        raise Refused(403, "User is not authorized to access this resource")
    return {"principalId": answer["principalId"], **_context(answer.get("context") or {})}


def allows(policy: Mapping[str, Any], arn: str) -> bool:
    statements = policy.get("Statement") or []
    if isinstance(statements, dict):
        statements = [statements]
    effects = {statement.get("Effect") for statement in statements if _matches(statement, arn)}
    return "Allow" in effects and "Deny" not in effects


def _matches(statement: Mapping[str, Any], arn: str) -> bool:
    actions, resources = _listed(statement.get("Action")), _listed(statement.get("Resource"))
    return any(_like(action.lower(), INVOKE.lower()) for action in actions) and any(
        _like(resource, arn) for resource in resources
    )


def _listed(value: Any) -> list[str]:
    return [str(item) for item in (value if isinstance(value, list) else [value])]


def _like(pattern: str, text: str) -> bool:
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _answer(result: Result) -> dict[str, Any]:
    try:
        answer = json.loads(result.payload)
    except ValueError:
        answer = None
    if (
        not isinstance(answer, dict)
        or not isinstance(answer.get("policyDocument"), dict)
        or not isinstance(answer.get("principalId"), str)
        or not isinstance(answer.get("context") or {}, dict)
    ):
        raise Refused(500, "Internal server error")
    return answer


def _context(context: Mapping[str, Any]) -> dict[str, Any]:
    """Only plain values may be passed on; they arrive as text."""
    if not all(isinstance(value, str | int | float | bool | None) for value in context.values()):
        raise Refused(500, "Internal server error")
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in context.items()
        if value is not None
    }


def _identity(source: str, event: Event, api: Api) -> str:
    kind, _, name = source.rpartition(".")
    match kind:
        case "route.request.querystring":
            found = (event.get("queryStringParameters") or {}).get(name)
        case "route.request.header":
            headers = {key.lower(): value for key, value in event["headers"].items()}
            found = headers.get(name.lower())
        case "stageVariables":
            found = api.stage_variables.get(name)
        case _:
            found = event["requestContext"].get(name)
    return str(found or "")
