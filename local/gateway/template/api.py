"""The WebSocket API: written out as AWS::ApiGatewayV2::* resources, or AWS::Serverless::WebSocketApi."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from local.gateway.errors import TemplateError, Unsupported
from local.gateway.model import CONNECT, DEFAULT, Api, Authorizer, Integration, Route
from local.gateway.template.functions import merge
from local.gateway.template.identifiers import API, SHORT_API
from local.gateway.template.intrinsics import NO_VALUE, Resolver, Unresolved

Notice = Callable[[str], None]
SELECTION = re.compile(r"\$\{?request\.body\.([A-Za-z0-9_.-]+)\}?")
V2 = "AWS::ApiGatewayV2::"
INVOCATION_TYPE = "integration.request.header.x-amz-invocation-type"


def read_api(
    document: Mapping[str, Any], resolver: Resolver, notice: Notice, *, wanted: str | None, stage: str | None
) -> Api:
    logical_id = _choose(resolver, wanted)
    reader = _Reader(logical_id, resolver, notice)
    if resolver.resources[logical_id]["Type"] == SHORT_API:
        defaults = (document.get("Globals") or {}).get("WebSocketApi") or {}
        return reader.read_short(defaults, stage)
    return reader.read_long(stage)


def _choose(resolver: Resolver, wanted: str | None) -> str:
    found = [name for name, resource in resolver.resources.items() if _is_websocket(resource)]
    if wanted is not None:
        if wanted not in found:
            raise TemplateError(f"The template has no WebSocket API {wanted}; it has {', '.join(found) or 'none'}.")
        return wanted
    if len(found) != 1:
        raise TemplateError(
            f"The template has {len(found)} WebSocket APIs; name one of {', '.join(found)} with --api."
            if found
            else "The template has no WebSocket API (AWS::ApiGatewayV2::Api with ProtocolType WEBSOCKET, "
            "or AWS::Serverless::WebSocketApi)."
        )
    return found[0]


def _is_websocket(resource: Mapping[str, Any]) -> bool:
    properties = resource.get("Properties") or {}
    return resource.get("Type") == SHORT_API or (
        resource.get("Type") == API and properties.get("ProtocolType") == "WEBSOCKET"
    )


class _Reader:
    def __init__(self, logical_id: str, resolver: Resolver, notice: Notice) -> None:
        self._id = logical_id
        self._resolver = resolver
        self._identifiers = resolver.identifiers
        self._notice = notice

    def read_long(self, stage: str | None) -> Api:
        properties = self._properties(self._id, ("RouteSelectionExpression",))
        stages = [found for _, found in self._of_api("Stage", ("StageName", "StageVariables"))]
        integrations = {name: self._integration(name, found) for name, found in self._integrations()}
        authorizers = {name: self._authorizer(name, found) for name, found in self._of_api("Authorizer")}
        answered = {found["RouteId"] for _, found in self._of_api("RouteResponse", ("RouteId",))}
        routes = [
            self._route(name, found, integrations, authorizers, responds=name in answered)
            for name, found in self._of_api("Route")
        ]
        return self._api(properties, routes, _stage(stages, stage))

    def read_short(self, defaults: Mapping[str, Any], stage: str | None) -> Api:
        own = merge(defaults, self._resolver.resources[self._id].get("Properties") or {})
        properties = self._resolve(self._id, own)
        routes = [
            self._short_route(key, found or {}, properties.get("Auth") or {})
            for key, found in (properties.get("Routes") or {}).items()
        ]
        name = stage or properties.get("StageName", "default")
        return self._api(properties, routes, {"StageName": name, "StageVariables": properties.get("StageVariables")})

    def _api(self, properties: Mapping[str, Any], routes: list[Route], stage: Mapping[str, Any]) -> Api:
        expression = str(properties.get("RouteSelectionExpression", ""))
        selection = SELECTION.fullmatch(expression)
        if selection is None:
            raise Unsupported(
                f"RouteSelectionExpression of {self._id} is {expression!r}; "
                "this tool follows $request.body.NAME, also nested."
            )
        return Api(
            logical_id=self._id,
            api_id=self._identifiers.api_id(self._id),
            host=self._identifiers.api_host(self._id),
            selection=tuple(selection[1].split(".")),
            stage=str(stage["StageName"]),
            routes={route.key: route for route in routes},
            stage_variables={name: str(value) for name, value in (stage.get("StageVariables") or {}).items()},
        )

    # The parts of the long form

    def _of_api(self, kind: str, names: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
        """Resources of a kind that belong to the API, with the named properties or all resolved."""
        for name, resource in self._resolver.resources.items():
            if resource.get("Type") == V2 + kind and self._belongs(resource):
                yield name, self._properties(name, names)

    def _belongs(self, resource: Mapping[str, Any]) -> bool:
        try:
            api = self._resolver.resolve((resource.get("Properties") or {}).get("ApiId"))
        except Unresolved:  # of another kind of API
            return False
        return bool(api == self._identifiers.api_id(self._id))

    def _integrations(self) -> Iterator[tuple[str, dict[str, Any]]]:
        answers = {
            found["IntegrationId"]: found
            for _, found in self._of_api("IntegrationResponse")
            if found.get("IntegrationResponseKey", DEFAULT) == DEFAULT
        }
        needed = (
            "IntegrationType",
            "IntegrationUri",
            "RequestTemplates",
            "RequestParameters",
            "TemplateSelectionExpression",
            "PassthroughBehavior",
            "TimeoutInMillis",
        )
        for name, found in self._of_api("Integration", needed):
            yield name, {**found, "Response": answers.get(name, {})}

    def _integration(self, name: str, found: Mapping[str, Any]) -> Integration:
        kind = found.get("IntegrationType")
        if kind not in ("AWS_PROXY", "AWS", "MOCK"):
            raise Unsupported(f"Integration {name} has the type {kind}; this tool follows AWS_PROXY, AWS and MOCK.")
        parameters = {key.lower(): value for key, value in (found.get("RequestParameters") or {}).items()}
        answer = found["Response"]
        return Integration(
            kind=kind,
            function=None if kind == "MOCK" else self._function(name, found.get("IntegrationUri")),
            asynchronous=kind == "AWS" and parameters.get(INVOCATION_TYPE) == "'Event'",
            templates=_templates(found.get("RequestTemplates")),
            selection=_template_key(found.get("TemplateSelectionExpression")),
            passthrough=str(found.get("PassthroughBehavior", "WHEN_NO_MATCH")),
            timeout=_seconds(found.get("TimeoutInMillis")),
            response_templates=_templates(answer.get("ResponseTemplates")),
            response_selection=_template_key(answer.get("TemplateSelectionExpression")),
        )

    def _authorizer(self, name: str, found: Mapping[str, Any]) -> Authorizer:
        if found.get("AuthorizerType") != "REQUEST":
            raise Unsupported(f"Authorizer {name} is not of type REQUEST, the only type for WebSocket APIs.")
        return Authorizer(
            function=self._function(name, found.get("AuthorizerUri")),
            identity_sources=tuple(_sources(found.get("IdentitySource"))),
        )

    def _route(
        self,
        name: str,
        found: Mapping[str, Any],
        integrations: Mapping[str, Integration],
        authorizers: Mapping[str, Authorizer],
        *,
        responds: bool,
    ) -> Route:
        target = found.get("Target")
        integration = str(target).removeprefix("integrations/")
        if target is not None and integration not in integrations:
            raise TemplateError(f"Target of route {name} is {target}; it must be integrations/ and an Integration.")
        authorizer = None
        if found.get("AuthorizationType") == "CUSTOM":
            authorizer = authorizers.get(str(found.get("AuthorizerId")))
            if authorizer is None:
                raise TemplateError(f"AuthorizerId of route {name} names no Authorizer of this API.")
        self._warn_of_ignored(name, found)
        return Route(
            key=str(found["RouteKey"]),
            integration=integrations[integration] if target is not None else None,
            authorizer=authorizer,
            responds=responds or bool(found.get("RouteResponseSelectionExpression")),
        )

    def _warn_of_ignored(self, name: str, found: Mapping[str, Any]) -> None:
        if found.get("AuthorizationType") == "AWS_IAM":
            self._notice(f"Route {name} asks for AWS_IAM; signatures are not checked locally.")
        if found.get("ApiKeyRequired"):
            self._notice(f"Route {name} asks for an API key; keys are not checked locally.")

    # The short form

    def _short_route(self, key: str, found: Mapping[str, Any], auth: Mapping[str, Any]) -> Route:
        authorizer = None
        if key == CONNECT and auth.get("AuthType") == "CUSTOM":
            authorizer = Authorizer(
                function=self._function(self._id, auth.get("AuthArn")),
                identity_sources=tuple(_sources(auth.get("IdentitySource"))),
            )
        self._warn_of_ignored(key, {**found, "AuthorizationType": auth.get("AuthType") if key == CONNECT else None})
        return Route(
            key=key,
            integration=Integration(
                kind="AWS_PROXY",
                function=self._function(f"{self._id}.{key}", found.get("FunctionArn")),
                timeout=_seconds(found.get("IntegrationTimeout")),
            ),
            authorizer=authorizer,
            responds=bool(found.get("RouteResponseSelectionExpression")),
        )

    # Values

    def _properties(self, name: str, names: tuple[str, ...] = ()) -> dict[str, Any]:
        properties = self._resolver.resources[name].get("Properties") or {}
        return self._resolve(name, {key: properties[key] for key in names or properties if key in properties})

    def _resolve(self, name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        resolved = {}
        for key, value in properties.items():
            try:
                resolved[key] = self._resolver.resolve(value)
            except Unresolved as error:
                if key in (
                    "AccessLogSettings",
                    "AuthorizerCredentialsArn",
                    "Domain",
                    "RouteSettings",
                    "Tags",
                ):
                    continue  # nothing that is followed here
                raise TemplateError(f"{key} of {name} is needed, but {error}.") from error
        return {key: value for key, value in resolved.items() if value is not NO_VALUE}

    def _function(self, name: str, arn: Any) -> str:
        if arn is not None and (function := self._identifiers.function_of(str(arn))) is not None:
            return function
        raise Unsupported(f"{name} calls {arn}; this tool calls functions of the same template only.")


def _stage(stages: list[dict[str, Any]], wanted: str | None) -> dict[str, Any]:
    if wanted is None:
        return stages[0] if stages else {"StageName": "local"}
    return next((stage for stage in stages if stage["StageName"] == wanted), {"StageName": wanted})


def _template_key(expression: Any) -> str:
    """The literal key that a selection expression names: `\\$default` is how one writes $default."""
    if expression is None:
        return DEFAULT
    if SELECTION.fullmatch(str(expression)):
        raise Unsupported(f"TemplateSelectionExpression {expression} is not followed; name one template.")
    return str(expression).replace("\\$", "$")


def _templates(found: Mapping[str, Any] | None) -> dict[str, str]:
    return {_template_key(key): str(template) for key, template in (found or {}).items()}


def _sources(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(item).strip() for item in (value if isinstance(value, list) else str(value).split(","))]


def _seconds(milliseconds: Any) -> float | None:
    return None if milliseconds is None else float(milliseconds) / 1000
