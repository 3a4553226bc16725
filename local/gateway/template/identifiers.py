"""The names that the stack's own resources have, stable from run to run, as Ref and GetAtt give them."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

FUNCTION = "AWS::Serverless::Function"
LAYER = "AWS::Serverless::LayerVersion"
API = "AWS::ApiGatewayV2::Api"
SHORT_API = "AWS::Serverless::WebSocketApi"
# What another resource of the template names by its logical id.
NAMED_BY_LOGICAL_ID = {
    "AWS::ApiGatewayV2::Authorizer",
    "AWS::ApiGatewayV2::Integration",
    "AWS::ApiGatewayV2::Route",
}
FUNCTION_ARN = re.compile(r":function:([^:/]+)")


class Identifiers:
    def __init__(
        self,
        resources: Mapping[str, Mapping[str, Any]],
        pseudo: Mapping[str, str],
        resolve: Callable[[Any], Any],
    ) -> None:
        self._resources = resources
        self._pseudo = pseudo
        self._resolve = resolve

    def ref(self, name: str) -> str | None:
        match self._kind(name):
            case "AWS::Serverless::Function":
                return self.function_name(name)
            case "AWS::Serverless::LayerVersion":
                return self._arn("lambda", f"layer:{name}:1")
            case "AWS::ApiGatewayV2::Api" | "AWS::Serverless::WebSocketApi":
                return self.api_id(name)
            case "AWS::ApiGatewayV2::Stage":
                return str(self._resolve(self._resources[name]["Properties"]["StageName"]))
            case kind if kind in NAMED_BY_LOGICAL_ID:
                return name
        owner, _, generated = name.rpartition(".")
        if self._kind(owner) == FUNCTION and generated in ("Alias", "Version"):
            return self._alias_arn(owner)
        return None

    def attribute(self, name: str, attribute: str) -> str | None:
        match self._kind(name), attribute:
            case "AWS::Serverless::Function", "Arn":
                return self.function_arn(name)
            case "AWS::Serverless::Function", "Alias" | "Version":
                return self._alias_arn(name)
            case (("AWS::ApiGatewayV2::Api" | "AWS::Serverless::WebSocketApi"), "ApiId"):
                return self.api_id(name)
            case (("AWS::ApiGatewayV2::Api" | "AWS::Serverless::WebSocketApi"), "ApiEndpoint"):
                return f"wss://{self.api_host(name)}"
            case "AWS::ApiGatewayV2::Authorizer", "AuthorizerId":
                return name
        return None

    def function_name(self, logical_id: str) -> str:
        properties = self._resources[logical_id].get("Properties") or {}
        if "FunctionName" in properties:
            return str(self._resolve(properties["FunctionName"]))
        return f"{self._pseudo['AWS::StackName']}-{logical_id}"

    def function_arn(self, logical_id: str) -> str:
        return self._arn("lambda", f"function:{self.function_name(logical_id)}")

    def function_of(self, arn: str) -> str | None:
        """The logical id of the function whose ARN is in the text, such as an integration's URI."""
        match = FUNCTION_ARN.search(arn)
        name = match[1] if match else arn
        return next(
            (
                logical_id
                for logical_id in self._resources
                if self._kind(logical_id) == FUNCTION and self.function_name(logical_id) == name
            ),
            None,
        )

    def api_id(self, logical_id: str) -> str:
        stack = self._pseudo["AWS::StackName"]
        return "a" + hashlib.sha256(f"{stack}/{logical_id}".encode()).hexdigest()[:9]

    def api_host(self, logical_id: str) -> str:
        region, suffix = self._pseudo["AWS::Region"], self._pseudo["AWS::URLSuffix"]
        return f"{self.api_id(logical_id)}.execute-api.{region}.{suffix}"

    def _kind(self, name: str) -> str:
        return str(self._resources.get(name, {}).get("Type", ""))

    def _alias_arn(self, logical_id: str) -> str:
        properties = self._resources[logical_id].get("Properties") or {}
        return f"{self.function_arn(logical_id)}:{self._resolve(properties.get('AutoPublishAlias', 'live'))}"

    def _arn(self, service: str, rest: str) -> str:
        partition, region, account = (self._pseudo[f"AWS::{name}"] for name in ("Partition", "Region", "AccountId"))
        return f"arn:{partition}:{service}:{region}:{account}:{rest}"
