"""SnapStart: no change of chat's configuration that goes on with the old version, and no state in a snapshot that
processes must not share."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.gateway.template.intrinsics import Resolver, Unresolved
from local.gateway.template.reader import read_document
from tests.translated_template import PSEUDO, TEMPLATE, translate

ROOT = Path(__file__).parents[2]
PARAMETERS = read_document(TEMPLATE)["Parameters"]
ON = {"ChatSnapStart": "true"}
NOT_OF_A_VERSION = {"ReservedConcurrentExecutions", "Tags"}
"""Of the function as a whole: no version has them."""

Document = dict[str, Any]


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


class Named(Resolver):
    """The deployed stack's values, with a name for each that only AWS knows: two are one if their names are."""

    def _ref(self, name: str) -> Any:
        try:
            return super()._ref(name)
        except Unresolved:
            return f"<{name}>"

    def _get_att(self, argument: Any) -> Any:
        try:
            return super()._get_att(argument)
        except Unresolved:
            return f"<{argument if isinstance(argument, str) else '.'.join(argument)}>"


class Deployed:
    """The stack as CloudFormation makes it of this template and these parameters."""

    def __init__(self, parameters: dict[str, str], edit: Callable[[Document], None] = lambda _: None) -> None:
        self._document = translate(parameters, edit)
        self._resolver = Named(self._document, parameters, PSEUDO)

    def properties(self, name: str) -> Any:
        return self._resolver.resolve(self._resolver.resources[name]["Properties"])

    def named(self, kind: str) -> str:
        [name] = [name for name, one in self._resolver.resources.items() if one["Type"] == kind]
        return name

    @property
    def configuration(self) -> Any:
        """What makes one version another one."""
        chat = self.properties("ChatFunction")
        return {name: value for name, value in chat.items() if name not in NOT_OF_A_VERSION}

    @property
    def version(self) -> tuple[str, str]:
        """CloudFormation publishes another version if either of the two is another one: the name in the template, or
        the content whose number is in the description, which it can't change in place.
        """
        name = self.named("AWS::Lambda::Version")
        assert self.properties(name)["Description"] == "Configuration <ChatConfiguration.VersionNumber>"
        return name, self.properties("ChatConfiguration")["Content"]


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployed]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield Deployed(ON)


OTHER_VALUES = {
    "DatabaseLogin": "iam",
    "SubnetIds": "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
}
TOGETHER = {
    "SubnetIds": {"VpcId": "vpc-0123456789abcdef0"},
    "VpcId": {"SubnetIds": "subnet-0123456789abcdef0,subnet-0123456789abcdef1"},
    "ExistingDatabaseName": {"ExistingDatabaseHost": "db.example.com"},
    "ExistingDatabaseSecretArn": {"ExistingDatabaseHost": "db.example.com"},
}
"""What another value of a parameter has an effect with."""
OF_CHAT = {
    "BusinessDatabaseCaFile",
    "BusinessDatabaseSecretArn",
    "BusinessTables",
    "DatabaseCaFile",
    "DatabaseLogin",
    "EmbeddingsApiKeySecretArn",
    "EmbeddingsBaseUrl",
    "EmbeddingsModel",
    "EvidenceFile",
    "ExistingDatabaseHost",
    "ExistingDatabaseName",
    "ExistingDatabaseSecretArn",
    "KnowledgeBaseId",
    "LogGroupArns",
    "OpenAiApiKeySecretArn",
    "OpenAiBaseUrl",
    "OpenAiModel",
    "RdsProxy",
    "StageName",
    "SubnetIds",
    "VpcId",
}


def _another(parameter: str) -> str:
    declared = PARAMETERS[parameter]
    if parameter in OTHER_VALUES:
        return OTHER_VALUES[parameter]
    if "AllowedValues" in declared:
        return str(next(value for value in declared["AllowedValues"] if value != declared["Default"]))
    return "7" if declared["Type"] == "Number" else "another"


@pytest.mark.parametrize("parameter", sorted(PARAMETERS.keys() - ON.keys()))
def test_a_parameter_that_changes_chat_makes_a_new_version(deployed: Deployed, parameter: str) -> None:
    rest = {**ON, **TOGETHER.get(parameter, {})}
    before = Deployed(rest) if parameter in TOGETHER else deployed
    after = Deployed({**rest, parameter: _another(parameter)})
    assert (before.configuration != after.configuration) == (parameter in OF_CHAT)
    if parameter in OF_CHAT:
        assert before.version != after.version


def _in_chat(**changes: Any) -> Callable[[Document], None]:
    return lambda document: document["Resources"]["ChatFunction"]["Properties"].update(changes)


def _variable(document: Document) -> None:
    document["Resources"]["ChatFunction"]["Properties"]["Environment"]["Variables"]["RUN_SECONDS"] = "60"


def _variable_of_all(document: Document) -> None:
    document["Globals"]["Function"]["Environment"]["Variables"]["DATABASE_POOL_SIZE"] = "2"


def _product(document: Document) -> None:
    document["Resources"]["CommonLayer"]["Properties"]["ContentUri"] = "s3://packages/newer"


@pytest.mark.parametrize(
    "edit",
    [
        _in_chat(CodeUri="s3://packages/newer"),
        _in_chat(Timeout=200),
        _in_chat(MemorySize=2048),
        _in_chat(Handler="other.handler"),
        _in_chat(Runtime="python3.14"),
        _in_chat(LoggingConfig={"LogGroup": "other"}),
        _variable,
        _variable_of_all,
        _product,
    ],
    ids=["code", "time", "memory", "handler", "runtime", "log", "variable", "variable of all", "product"],
)
def test_an_edited_template_makes_a_new_version(deployed: Deployed, edit: Callable[[Document], None]) -> None:
    after = Deployed(ON, edit)
    assert after.configuration != deployed.configuration
    assert after.version != deployed.version


def test_the_same_again_makes_no_new_version(deployed: Deployed) -> None:
    assert Deployed(ON).version == deployed.version


def _referred_to(value: Any) -> set[str]:
    """Resources and their attributes, and parameters, by the names that the template has for them."""
    text = json.dumps(value)
    found = set(re.findall(r'"Ref": "([\w:]+)"', text))
    found |= {".".join(pair) for pair in re.findall(r'"Fn::GetAtt": \["(\w+)", "([\w.]+)"\]', text)}
    for subbed in re.findall(r'"Fn::Sub": "([^"]*)"', text):
        found |= set(re.findall(r"\$\{([\w.:]+)\}", subbed))
    return found - set(PSEUDO) - {"AWS::NoValue"}


def test_whatever_chat_refers_to_is_in_the_configuration_that_numbers_its_versions() -> None:
    """Also what AWS gives another value without a parameter: an endpoint of a database that was replaced."""
    resources = translate(ON)["Resources"]
    chat = {name: value for name, value in resources["ChatFunction"]["Properties"].items() if name != "Description"}
    for name in NOT_OF_A_VERSION:
        chat.pop(name, None)
    assert _referred_to(chat) <= _referred_to(resources["ChatConfiguration"]["Properties"]["Content"])


def test_the_function_is_another_one_whenever_its_version_is() -> None:
    """Lambda publishes no version of a function that has not changed, which would fail a deployment."""
    chat = Deployed(ON).properties("ChatFunction")
    assert "<ChatConfiguration.VersionNumber>" in chat["Description"]


def test_with_snapshots_everything_that_calls_chat_calls_its_alias(deployed: Deployed) -> None:
    alias = deployed.named("AWS::Lambda::Alias")
    version = deployed.named("AWS::Lambda::Version")
    assert deployed.properties(alias)["FunctionVersion"] == f"<{version}.Version>"
    assert deployed.properties("ChatFunction")["SnapStart"] == {"ApplyOn": "PublishedVersions"}
    assert deployed.properties("ChatIntegration")["IntegrationUri"].endswith(f"/functions/<{alias}>/invocations")
    assert deployed.properties("ChatPermission")["FunctionName"] == f"<{alias}>"


@pytest.mark.spec("LIFE-6")
@pytest.mark.parametrize("chosen", [{}, ON], ids=["without", "with"])
def test_what_is_called_is_what_is_never_retried(chosen: dict[str, str]) -> None:
    stack = translate(chosen)
    qualifier = stack["Resources"]["ChatFunctionEventInvokeConfig"]["Properties"]["Qualifier"]
    condition, called, latest = qualifier["Fn::If"]
    assert stack["Conditions"][condition] == {"Fn::Equals": [{"Ref": "ChatSnapStart"}, "true"]}
    name = next(name for name, one in stack["Resources"].items() if one["Type"] == "AWS::Lambda::Alias")
    assert (called, latest) == ({"Fn::Select": [7, {"Fn::Split": [":", {"Ref": name}]}]}, "$LATEST")
    arn = "arn:aws:lambda:us-east-1:111122223333:function:s-ChatFunction:published"
    assert arn.split(":")[7] == stack["Resources"][name]["Properties"]["Name"]


def test_without_snapshots_chat_is_called_as_it_is() -> None:
    stack = Deployed({})
    assert stack.properties("ChatFunction")["SnapStart"] == {"ApplyOn": "None"}
    assert stack.properties("ChatIntegration")["IntegrationUri"].endswith("/functions/<ChatFunction.Arn>/invocations")
    assert stack.properties("ChatPermission")["FunctionName"] == "<ChatFunction>"


# What a snapshot holds -----------------------------------------------------------------------------

IMPORTED = """
import json, sys, threading
connected = []
sys.addaudithook(lambda event, _: connected.append(event) if event.endswith((".connect", ".getaddrinfo")) else None)
import functions.chat.app
import boto3, psutil
from superbizagent import bootstrap
print(json.dumps({
    "connected": connected,
    "sockets": len(psutil.Process().net_connections()),
    "threads": threading.active_count(),
    "services": bootstrap.services.cache_info().currsize,
    "loops": bootstrap._runner.cache_info().currsize,
    "session": boto3.DEFAULT_SESSION is not None,
}))
"""
IDS = """
import random
random.seed(0)
from superbizagent.domain import run
from superbizagent.adapters import connection_api
random.seed(0)
print(run.new_id(), connection_api._chance.random())
"""


def _run(code: str) -> str:
    """In a process without a single setting, whose dictionaries are ordered as in any other such process."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONHASHSEED": "0", "PYTHONPATH": "layers/common"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_snapshot_of_chat_holds_no_connection_no_client_no_setting_and_no_loop() -> None:
    """All of them are made after the restore, by the first run that needs them."""
    assert json.loads(_run(IMPORTED)) == {
        "connected": [],
        "sockets": 0,
        "threads": 1,
        "services": 0,
        "loops": 0,
        "session": False,
    }


@pytest.mark.spec("LIFE-1")
def test_processes_of_one_snapshot_share_no_id_and_no_chance() -> None:
    """Restored, they are alike in all that is in memory: what must differ comes from the system."""
    first, second = _run(IDS).split(), _run(IDS).split()
    assert not set(first) & set(second)
