"""Hands events to the integrations of routes and reads their answers."""

import base64
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from local.gateway.clock import Clock, Tasks, done_within
from local.gateway.errors import GatewayError
from local.gateway.events import Event
from local.gateway.mapping import MappingError, render
from local.gateway.model import DEFAULT, Api, Integration, Route
from local.gateway.routing import NOT_JSON, parse
from local.gateway.runtime import Functions, Invocation

log = logging.getLogger("local.gateway")
ASYNC_LIMIT = 1024 * 1024


class IntegrationFailed(GatewayError):
    """What the client is told; the log has the reason."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _broken(reason: str) -> IntegrationFailed:
    log.warning("%s", reason)
    return IntegrationFailed("Internal server error", 502)


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None


class Integrations:
    def __init__(self, api: Api, functions: Functions, clock: Clock, timeout: float) -> None:
        self._api = api
        self._functions = functions
        self._clock = clock
        self._timeout = timeout
        self._tasks = Tasks()

    async def close(self) -> None:
        await self._tasks.cancel()

    async def call(self, route: Route, event: Event) -> Answer:
        """Raises IntegrationFailed, and nothing else, whatever the function answers."""
        if route.integration is None:
            return Answer()
        try:
            return await self._call(route.integration, event)
        except IntegrationFailed:
            raise
        except Exception as error:
            log.exception("Route %s failed in the gateway itself", route.key)
            raise IntegrationFailed("Internal server error", 500) from error

    async def _call(self, integration: Integration, event: Event) -> Answer:
        match integration.kind:
            case "AWS_PROXY":
                return _proxy_answer(await self._invoke(integration, json.dumps(event).encode()))
            case "AWS":
                return await self._custom(integration, event)
            case "MOCK":
                return self._mock(integration, event)

    async def _custom(self, integration: Integration, event: Event) -> Answer:
        payload = _sendable(self._request(integration, event)).encode()
        if parse(payload.decode()) is NOT_JSON:
            raise _broken("A mapping template did not make JSON, which Lambda refuses.")
        if integration.asynchronous:
            if len(payload) > ASYNC_LIMIT:
                raise _broken(f"An asynchronous event of {len(payload)} bytes is more than Lambda takes.")
            self._functions.submit(integration.function or "", Invocation(payload=payload))
            return Answer()
        content = (await self._invoke(integration, payload)).decode()
        return Answer(body=self._respond(integration, content, event))

    def _mock(self, integration: Integration, event: Event) -> Answer:
        content = self._request(integration, event)
        answer = parse(content)
        status = answer.get("statusCode", 200) if isinstance(answer, dict) else 200
        return Answer(status=int(status), body=self._respond(integration, content, event))

    def _request(self, integration: Integration, event: Event) -> str:
        body = str(event.get("body") or "")
        templates = integration.templates
        template = templates.get(integration.selection, templates.get(DEFAULT))
        if template is not None:
            return self._render(template, body, event)
        never = integration.passthrough == "NEVER"
        if never or (integration.passthrough == "WHEN_NO_TEMPLATES" and integration.templates):
            raise _broken(f"The integration has no template {integration.selection} and passes nothing through.")
        return body or "{}"

    def _respond(self, integration: Integration, content: str, event: Event) -> str:
        template = integration.response_templates.get(integration.response_selection)
        return content if template is None else self._render(template, content, event)

    def _render(self, template: str, body: str, event: Event) -> str:
        context = event["requestContext"]
        try:
            return render(template, body=body, context=context, stage_variables=self._api.stage_variables)
        except MappingError as error:
            raise _broken(str(error)) from error

    async def _invoke(self, integration: Integration, payload: bytes) -> bytes:
        """The function goes on when the gateway stops waiting, as it does on Lambda."""
        call = self._functions.invoke(integration.function or "", Invocation(payload=payload))
        task = self._tasks.start(call)
        timeout = min(self._timeout, integration.timeout or self._timeout)
        if not await done_within(self._clock, timeout, task):
            log.warning("%s did not answer within %g s", integration.function, timeout)
            raise IntegrationFailed("Endpoint request timed out", 504)
        if task.cancelled():  # the gateway is closing
            raise IntegrationFailed("Service unavailable", 503)
        result = task.result()
        if result.error is not None:
            raise IntegrationFailed("Internal server error", 502)
        return bytes(result.payload)


def _proxy_answer(payload: bytes) -> Answer:
    answer = parse(payload.decode(errors="replace"))
    if not isinstance(answer, dict) or not _is_status(answer.get("statusCode")):
        raise _broken("A function answered without a statusCode, which a proxy integration must have.")
    headers: dict[str, Any] = answer.get("headers") or {}
    body = answer.get("body")
    if body is not None and answer.get("isBase64Encoded"):
        body = _decoded(body)
    if body is not None and not isinstance(body, str):
        raise _broken("A function answered with a body that is not text.")
    return Answer(
        status=int(answer["statusCode"]),
        headers={name: str(value) for name, value in headers.items()},
        body=_sendable(body) if body is not None else None,
    )


def _decoded(body: Any) -> str:
    try:
        return base64.b64decode(body, validate=True).decode(errors="replace")
    except (TypeError, ValueError) as error:
        raise _broken("A function said isBase64Encoded of a body that is not.") from error


def _sendable(text: str) -> str:
    """JSON may escape half a surrogate pair, which has no UTF-8."""
    return text.encode(errors="replace").decode()


def _is_status(value: Any) -> bool:
    return not isinstance(value, bool) and str(value).isdecimal() and 100 <= int(value) < 600
