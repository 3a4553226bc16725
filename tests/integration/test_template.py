"""template.yaml: what the tools say of it, and what no tool checks."""

import ast
import base64
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from local.gateway.mapping import render
from local.gateway.template.reader import read_document
from superbizagent import settings
from superbizagent.events import MessageEvent
from superbizagent.settings import RunSettings
from tests.settings_read import Read, environment_of, environments

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "template.yaml"
LAYER = ROOT / "layers" / "common"
ROUTES = {"$connect", "$disconnect", "$default", "chat", "cancel", "history"}
# Which function has which folder, and so what it reads of its environment.
FOLDERS = {
    name: Path(resource["Properties"]["CodeUri"]).name
    for name, resource in read_document(TEMPLATE)["Resources"].items()
    if resource["Type"] == "AWS::Serverless::Function"
}
ENVIRONMENTS = {name: environments()[folder] for name, folder in FOLDERS.items()}


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return read_document(TEMPLATE)


def _of_type(template: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    resources = template["Resources"].items()
    return {name: resource["Properties"] for name, resource in resources if resource["Type"] == kind}


def _functions(template: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return _of_type(template, "AWS::Serverless::Function")


def _environment(template: Mapping[str, Any], function: str) -> dict[str, Any]:
    shared = template["Globals"]["Function"]["Environment"]["Variables"]
    own = _functions(template)[function].get("Environment", {}).get("Variables", {})
    return {**shared, **own}


def _routed(template: Mapping[str, Any], route: str) -> tuple[dict[str, Any], str]:
    """The integration of that route, and its function."""
    [target] = [
        found["Target"]["Fn::Sub"]
        for found in _of_type(template, "AWS::ApiGatewayV2::Route").values()
        if found["RouteKey"] == route
    ]
    integration = _of_type(template, "AWS::ApiGatewayV2::Integration")[target.removeprefix("integrations/${")[:-1]]
    # Of chat, what it is without its alias.
    function = re.search(r"(\w+Function)(?:\.Arn\}|\", \"Arn\"|\.Arn\")", json.dumps(integration["IntegrationUri"]))
    assert function is not None
    return integration, function[1]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("options", [[], ["--lint"]], ids=["plain", "lint"])
def test_sam_finds_nothing_wrong(options: list[str], tmp_path: Path) -> None:
    """Each of the two finds what the other doesn't."""
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
        "HOME": str(tmp_path),
        "AWS_DEFAULT_REGION": "us-east-1",
        "SAM_CLI_TELEMETRY": "0",
        "LANG": "C.UTF-8",
    }
    sam = Path(sys.executable).parent / "sam"
    done = subprocess.run(
        [sam, "validate", "--template", TEMPLATE, *options],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_route_has_an_integration_a_function_and_its_permission(template: dict[str, Any]) -> None:
    routes = [found["RouteKey"] for found in _of_type(template, "AWS::ApiGatewayV2::Route").values()]
    assert sorted(routes) == sorted(ROUTES)
    # Chat's is of its alias, where that is what is called.
    permitted = {
        found["FunctionName"].get("Ref", "ChatFunction"): found
        for found in _of_type(template, "AWS::Lambda::Permission").values()
    }
    for route in ROUTES:
        _, function = _routed(template, route)
        assert permitted[function]["Principal"] == "apigateway.amazonaws.com"
        assert "${WebSocketApi}/" in permitted[function]["SourceArn"]["Fn::Sub"]


def test_every_function_has_its_code_and_every_code_its_function(template: dict[str, Any]) -> None:
    assert template["Globals"]["Function"]["Handler"] == "app.handler"
    folders = {properties["CodeUri"] for properties in _functions(template).values()}
    assert folders == {f"functions/{path.parent.name}" for path in (ROOT / "functions").glob("*/app.py")}


@pytest.mark.spec("LIFE-6")
def test_chat_is_asynchronous_and_never_retried(template: dict[str, Any]) -> None:
    integration, function = _routed(template, "chat")
    assert integration["IntegrationType"] == "AWS"
    assert integration["RequestParameters"] == {"integration.request.header.X-Amz-Invocation-Type": "'Event'"}
    [asynchronous] = _of_type(template, "AWS::Lambda::EventInvokeConfig").values()
    assert asynchronous["FunctionName"] == {"Ref": function}
    assert asynchronous["MaximumRetryAttempts"] == 0
    assert asynchronous["MaximumEventAgeInSeconds"] <= 60


@pytest.mark.parametrize("route", sorted(ROUTES - {"chat"}))
def test_the_other_routes_wait_for_their_function(template: dict[str, Any], route: str) -> None:
    integration, function = _routed(template, route)
    assert integration["IntegrationType"] == "AWS_PROXY"
    shared = template["Globals"]["Function"]["Timeout"]
    # The gateway ends a WebSocket integration at 29 seconds.
    assert _functions(template)[function].get("Timeout", shared) < 29


@pytest.mark.spec("BUDGET-4")
def test_a_run_fits_its_functions_time(template: dict[str, Any]) -> None:
    limits = RunSettings()
    timeout = _functions(template)["ChatFunction"]["Timeout"]
    assert limits.run_seconds + 2 * limits.terminal_reserve_seconds < timeout


# The event of a chat message -----------------------------------------------------------------------

CONTEXT = {
    "routeKey": "chat",
    "eventType": "MESSAGE",
    "requestId": "UlQ7dE5FliACDxw=",
    "connectionId": "UlQ6ccZ_FiACJXQ=",
    "messageId": "UlQ7dcN_FiACDGU=",
    "extendedRequestId": "UlQ7dE5FliACDxw=",
    "requestTime": "30/Nov/2026:15:04:05 +0000",
    "requestTimeEpoch": 1796051045678,
    "stage": "live",
    "domainName": "a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com",
    "apiId": "a1b2c3d4e5",
    "connectedAt": 1796051040123,
    "identity": {"sourceIp": "203.0.113.7", "userAgent": 'a "quoted" agent'},
}
HOSTILE = [
    '{"action":"chat","requestId":"q1","query":"why?"}',
    '{"query":"\\"quoted\\" \\\\ and \'single\'"}',
    "line\nfeeds\r\nand\ttabs",
    "$foo ${bar} $context.connectionId $input.body $util.base64Encode('x')",
    "#set($x = 1) #if(true) #foreach($a in [1..9])$a#end #end ## comment #* block *# \\#set \\$x",
    '","isBase64Encoded":false,"body":"forged',
    "</script><script>alert(1)</script>",
    "支付网关超时 🫠️ 𠮷 👨‍👩‍👧 \u202e\u0000\u2028",
    "not json {",
    "",
    " ",
    "x" * 131_072,
    "👍" * 32_768,
]


@pytest.mark.spec("WIRE-3", "LIFE-1")
@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_the_mapping_template_hands_any_body_over_unchanged(template: dict[str, Any], body: str) -> None:
    integration, _ = _routed(template, "chat")
    assert integration["PassthroughBehavior"] == "NEVER"
    assert integration["TemplateSelectionExpression"] == "\\$default"
    mapping = integration["RequestTemplates"]["$default"]

    rendered = render(mapping, body=body, context=CONTEXT, stage_variables={})

    event = MessageEvent.model_validate(json.loads(rendered))
    assert event.message == body.encode()
    assert event.connection_id == CONTEXT["connectionId"]
    assert event.gateway_request_id == CONTEXT["requestId"]
    # Lambda's limit for an event of an asynchronous invocation.
    assert len(rendered.encode()) < 1024 * 1024


def test_the_mapping_template_makes_the_event_that_is_tried_with_sam(template: dict[str, Any]) -> None:
    tried = json.loads((ROOT / "events" / "chat.json").read_text(encoding="utf-8"))
    body = base64.b64decode(tried["body"]).decode()
    integration, _ = _routed(template, "chat")
    mapping = integration["RequestTemplates"]["$default"]
    assert json.loads(render(mapping, body=body, context=CONTEXT, stage_variables={})) == tried


def test_the_mapping_template_is_json_whatever_variable_is_empty(template: dict[str, Any]) -> None:
    integration, _ = _routed(template, "chat")
    json.loads(render(integration["RequestTemplates"]["$default"], body="x", context={}, stage_variables={}))


# Settings and rights -------------------------------------------------------------------------------


@pytest.mark.parametrize("function", sorted(FOLDERS))
def test_every_variable_that_a_function_reads_can_be_set(template: dict[str, Any], function: str) -> None:
    assert ENVIRONMENTS[function].variables <= set(_environment(template, function))


@pytest.mark.parametrize("function", sorted(FOLDERS))
def test_no_function_is_given_a_variable_of_its_own_that_it_does_not_read(
    template: dict[str, Any], function: str
) -> None:
    own = _functions(template)[function].get("Environment", {}).get("Variables", {})
    assert set(own) <= ENVIRONMENTS[function].variables


def test_what_all_functions_are_given_is_read_by_most(template: dict[str, Any]) -> None:
    shared = template["Globals"]["Function"]["Environment"]["Variables"]
    for name in shared:
        readers = [function for function, environment in ENVIRONMENTS.items() if name in environment.variables]
        assert name.startswith(("POWERTOOLS_", "PYDANTIC_")) or len(readers) > len(FOLDERS) / 2, name


def test_no_settings_are_read_by_no_function() -> None:
    shapes = {shape for shape in vars(settings).values() if isinstance(shape, type) and issubclass(shape, BaseModel)}
    read = {read.shape for environment in ENVIRONMENTS.values() for read in environment.reads}
    assert {shape for shape in shapes if shape.model_fields} == read


def test_what_a_handler_reads_is_found_in_its_code() -> None:
    """However far from the handler it is read, and no more of it than is looked at."""
    connect = environment_of("bootstrap.run(bootstrap.services().connections.connect('c', 'p'))")
    assert connect.variables == {*Read(settings.DatabaseSettings).variables, "TERMINAL_RESERVE_SECONDS"}
    asking = environment_of("chat = bootstrap.services().chat")
    assert {"OPENAI_MODEL", "EMBEDDINGS_MODEL", "RUN_SECONDS", "DATABASE_HOST"} <= asking.variables
    assert environment_of("bootstrap.import_for('runs')").variables == set()


def test_the_sweep_waits_as_long_as_a_run_may_write(template: dict[str, Any]) -> None:
    reserves = [_environment(template, name)["TERMINAL_RESERVE_SECONDS"] for name in ("ChatFunction", "SweepFunction")]
    assert reserves[0] == reserves[1]


@pytest.mark.spec("SEC-5")
def test_every_connection_of_the_deployed_stack_passes_the_authorizer(template: dict[str, Any]) -> None:
    [connect] = [
        found for found in _of_type(template, "AWS::ApiGatewayV2::Route").values() if found["RouteKey"] == "$connect"
    ]
    [(name, authorizer)] = _of_type(template, "AWS::ApiGatewayV2::Authorizer").items()
    assert (connect["AuthorizationType"], connect["AuthorizerId"]) == ("CUSTOM", {"Ref": name})
    assert authorizer["AuthorizerType"] == "REQUEST"
    assert "functions/${AuthorizerFunction.Arn}/invocations" in authorizer["AuthorizerUri"]["Fn::Sub"]
    # With identity sources the gateway would want all of them; a token comes in a header or in the query.
    assert "IdentitySource" not in authorizer
    [permission] = [
        found
        for found in _of_type(template, "AWS::Lambda::Permission").values()
        if found["FunctionName"] == {"Ref": "AuthorizerFunction"}
    ]
    assert permission["Principal"] == "apigateway.amazonaws.com"


@pytest.mark.spec("SEC-5")
def test_no_setting_of_the_product_names_a_principal() -> None:
    """Who connects is the authorizer's word alone: no variable of any function can stand in for it."""
    shapes = [shape for shape in vars(settings).values() if isinstance(shape, type) and issubclass(shape, BaseModel)]
    names = {name for shape in shapes for name in shape.model_fields}
    assert {"database_url", "auth_issuer"} <= names
    assert not [name for name in names if "principal" in name or "development" in name]


def test_every_default_in_the_template_is_a_setting_that_can_be_read(template: dict[str, Any]) -> None:
    """Texts, for that is what an environment has; empty ones are left to the settings."""
    variables = {
        name: str(value)
        for name, value in _environment(template, "ChatFunction").items()
        if not isinstance(value, dict)
    }
    settings.read(RunSettings, variables)


@pytest.mark.spec("SEC-4")
def test_secrets_given_to_the_stack_are_not_shown_by_it(template: dict[str, Any]) -> None:
    parameters = template["Parameters"]
    assert [name for name in parameters if re.search(r"Key$|Password|Secret$|Token$", name)] == ["OpenAiApiKey"]
    assert parameters["OpenAiApiKey"]["NoEcho"] is True
    # It goes into a secret, and to nobody else.
    rest = json.dumps({name: found for name, found in template["Resources"].items() if name != "ModelSecret"})
    assert 'OpenAiApiKey"' not in rest


# What is imported is deployed ----------------------------------------------------------------------

IN_THE_RUNTIME = {"boto3", "botocore"}
"""In Lambda's Python runtime; the layer leaves them out."""


def _imported(tree: ast.AST) -> Iterator[str]:
    """Packages that are imported when the code runs, not only when its types are checked."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield node.module.split(".")[0]
        else:
            yield from _imported(node)


def _deployed() -> set[str]:
    """Packages in the layers and in the runtime."""
    layers = [path.read_text() for path in (ROOT / "layers").glob("*/requirements.txt")]
    pinned = re.findall(r"^([A-Za-z0-9_.-]+)==", "\n".join(layers), re.MULTILINE)
    normal = {name.lower().replace("_", "-") for name in pinned}
    packages = {
        package
        for package, distributions in importlib.metadata.packages_distributions().items()
        if any(name.lower().replace("_", "-") in normal for name in distributions)
    }
    return packages | IN_THE_RUNTIME | {"migrations", "superbizagent"} | set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    "path",
    sorted([*(ROOT / "functions").glob("*/app.py"), *(LAYER / "superbizagent").rglob("*.py")]),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_nothing_is_imported_that_is_not_deployed(path: Path) -> None:
    assert set(_imported(ast.parse(path.read_text(encoding="utf-8")))) <= _deployed()
