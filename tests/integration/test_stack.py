"""The stack as CloudFormation gets it, whichever of its parts are chosen: nothing missing, and no right too many."""

import itertools
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient

from local.gateway.template.intrinsics import Resolver
from migrations.run import known_revisions
from superbizagent import settings
from superbizagent.adapters.cloudwatch_logs.calls import Calls, Request, new_api
from superbizagent.adapters.connection_api import ConnectionApi
from superbizagent.adapters.iam_login import IamLogin
from superbizagent.adapters.knowledge.bedrock import BedrockKnowledgeIndex
from superbizagent.adapters.page_bucket import PageBucket
from superbizagent.adapters.secrets_manager import SecretsManager
from superbizagent.adapters.store import Timeouts
from superbizagent.domain.evidence import LookupKnowledge
from tests.integration.test_template import ENVIRONMENTS
from tests.translated_template import PSEUDO, TEMPLATE, translate

Document = dict[str, Any]

SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:mine-AbCdEf"
NETWORK = {"VpcId": "vpc-0123456789abcdef0", "SubnetIds": "subnet-0123456789abcdef0,subnet-0123456789abcdef1"}
CHOICES: Mapping[str, Mapping[str, str]] = {
    "network": NETWORK,
    "database": {**NETWORK, "ExistingDatabaseHost": "db.example.com", "ExistingDatabaseSecretArn": SECRET},
    "endpoints": {"VpcEndpoints": "true"},
    "tokens": {"DatabaseLogin": "iam"},
    "proxy": {"RdsProxy": "true"},
    "snapshots": {"ChatSnapStart": "true"},
    "knowledge base": {"KnowledgeBaseId": "ABCDEFGHIJ"},
    "page": {
        "Page": "true",
        "AuthIssuer": "https://id.example.com/",
        "AuthAudience": "superbizagent",
        "PageClientId": "page",
        "PageAuthorizationEndpoint": "https://id.example.com/authorize",
        "PageTokenEndpoint": "https://id.example.com/token",
    },
}
"""What changes which resources there are. All of them are tried with each other."""
REST = {
    "BusinessDatabaseSecretArn": SECRET,
    "LogGroupArns": "arn:aws:logs:us-east-1:111122223333:log-group:/aws/lambda/checkout:*",
    "EmbeddingsApiKeySecretArn": SECRET,
    "OpenAiApiKeySecretArn": SECRET,
    "ChatConcurrency": "10",
    "ApiGatewayLogging": "false",
    "AlarmEmail": "oncall@example.com",
}


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def translated() -> Document:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        return translate()


def _combinations() -> Iterator[dict[str, str]]:
    for count in range(len(CHOICES) + 1):
        for chosen in itertools.combinations(CHOICES.values(), count):
            for rest in ({}, REST):
                yield {name: value for choice in (*chosen, rest) for name, value in choice.items()}


class Chosen:
    """The stack with these parameters: what is made, and what that refers to."""

    def __init__(self, document: Document, parameters: Mapping[str, str]) -> None:
        self._resolver = Resolver(document, parameters, PSEUDO)
        self._names = {*document["Parameters"], *PSEUDO, "AWS::NoValue"}
        self.resources = self._resolver.resources
        self.outputs = [
            output
            for output in document["Outputs"].values()
            if "Condition" not in output or self._resolver.condition(output["Condition"])
        ]

    def dangling(self) -> set[str]:
        known = self._names | set(self.resources)
        return {name for name in self._references([*self.resources.values(), self.outputs]) if name not in known}

    def needed_by(self, resource: str) -> set[str]:
        """What is made before that resource, and deleted after it."""
        needed: set[str] = set()
        found = {resource}
        while found:
            needed |= found
            found = {name for one in found for name in self._references(self.resources[one])}
            found = (found & set(self.resources)) - needed
        return needed - {resource}

    def value(self, resource: str, path: str) -> Any:
        found = self.resources[resource]["Properties"]
        for step in path.split("."):
            found = self._resolver.choose(found[step])
        return found

    def _references(self, value: Any) -> Iterator[str]:
        value = self._resolver.choose(value) if isinstance(value, dict) else value
        if isinstance(value, list):
            for item in value:
                yield from self._references(item)
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from self._referenced(key, item)

    def _referenced(self, key: str, item: Any) -> Iterator[str]:
        match key, item:
            case "Ref", str():
                yield item
            case "Fn::GetAtt", str() | list():
                yield (item.split(".") if isinstance(item, str) else item)[0]
            case "Fn::Sub", _:
                text, own = (item, {}) if isinstance(item, str) else item
                found = {name.split(".")[0] for name in re.findall(r"\$\{([^!}]+)\}", text)}
                yield from found - own.keys()
                yield from self._references(own)
            case "DependsOn", _:
                yield from [item] if isinstance(item, str) else item
            case "Condition", str():
                pass
            case _:
                yield from self._references(item)


def test_nothing_that_is_made_refers_to_something_that_is_not(translated: Document) -> None:
    """In each of the combinations, of which CloudFormation would tell us one at a time, half an hour into it."""
    tried = 0
    for parameters in _combinations():
        chosen = Chosen(translated, parameters)
        # Waiting for what isn't made is no fault: CloudFormation leaves that out.
        assert chosen.dangling() == set(), parameters
        tried += 1
    assert tried == 2 * 2 ** len(CHOICES)


LINTED = {
    "small": {},
    "own": {**REST, **CHOICES["database"]},
    "large": {
        **REST,
        "DatabaseLogin": "iam",
        "RdsProxy": "true",
        "VpcEndpoints": "true",
        "KnowledgeBaseId": "ABCDEFGHIJ",
        **CHOICES["page"],
        "PageAudience": "superbizagent",
        "ChatSnapStart": "true",
    },
}
"""cfn-lint itself tries every combination of conditions; what it can't know is what parameters are."""


@pytest.mark.timeout(300)
def test_the_translated_template_is_clean(tmp_path: Path) -> None:
    for name, parameters in LINTED.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(translate(parameters)))
    done = subprocess.run(
        [Path(sys.executable).parent / "cfn-lint", "--regions", "us-east-1", "--", *sorted(tmp_path.glob("*.json"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_small_stack_is_small(translated: Document) -> None:
    kinds = {resource["Type"] for resource in Chosen(translated, {}).resources.values()}
    assert not kinds & {"AWS::RDS::DBProxy", "AWS::EC2::VPCEndpoint", "AWS::SNS::Subscription", "AWS::S3::Bucket"}
    assert not [kind for kind in kinds if kind.startswith(("AWS::AppConfig::", "AWS::CloudFront::"))]
    own = {resource["Type"] for resource in Chosen(translated, CHOICES["database"]).resources.values()}
    assert not own & {
        "AWS::RDS::DBInstance",
        "AWS::EC2::VPC",
        "AWS::EC2::NatGateway",
        "AWS::SecretsManager::RotationSchedule",
    }


def test_the_migration_runs_when_the_schema_has_a_new_revision(translated: Document) -> None:
    assert translated["Resources"]["Migration"]["Properties"]["Revision"] == known_revisions()[0]


WAY_OUT = {
    "AWS::EC2::NatGateway",
    "AWS::EC2::Route",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPCGatewayAttachment",
}


def test_the_way_out_is_deleted_after_the_migration_has_answered(translated: Document) -> None:
    """CloudFormation deletes first what nobody needs, and would wait for an answer that can't be sent any more."""
    made = Chosen(translated, {})
    way_out = {name for name, resource in made.resources.items() if resource["Type"] in WAY_OUT}
    assert len(way_out) == 7
    assert way_out <= made.needed_by("Migration")


def test_functions_wait_for_the_migration_and_the_rotation_for_the_account(translated: Document) -> None:
    resources = translated["Resources"]
    for name, environment in ENVIRONMENTS.items():
        if settings.DatabaseSettings in environment.shapes and name != "MigrateFunction":
            assert resources[name]["DependsOn"] == "Migration", name
    assert "Migration" in resources["DatabaseSecretRotation"]["DependsOn"]
    assert resources["DatabaseSecretRotation"]["Properties"]["RotateImmediatelyOnUpdate"] is False


@pytest.mark.spec("SEC-5")
def test_the_database_is_reached_from_its_network_over_tls_only(translated: Document) -> None:
    resources = translated["Resources"]
    for name, environment in ENVIRONMENTS.items():
        assert ("VpcConfig" in resources[name]["Properties"]) == (settings.DatabaseSettings in environment.shapes), name
    database = resources["Database"]["Properties"]
    assert (database["StorageEncrypted"], database["PubliclyAccessible"]) == (True, False)
    assert resources["DatabaseParameters"]["Properties"]["Parameters"]["require_secure_transport"] == "1"
    assert resources["DatabaseProxy"]["Properties"]["RequireTLS"] is True
    assert resources["Database"]["DeletionPolicy"] == "Snapshot"


def test_the_database_forgets_connections_of_dead_processes_and_keeps_those_in_use(translated: Document) -> None:
    limit = int(translated["Resources"]["DatabaseParameters"]["Properties"]["Parameters"]["wait_timeout"])
    assert 2 * Timeouts().recycle < limit < 3600


@pytest.mark.spec("SEC-4")
def test_the_access_log_has_no_query_no_header_and_no_message(translated: Document) -> None:
    stage = translated["Resources"]["Stage"]["Properties"]
    written = stage["AccessLogSettings"]["Format"]
    assert set(json.loads(written)) >= {"requestId", "connectionId", "routeKey", "status"}
    assert not re.search(r"querystring|header|input|body|path|\$context\.error|claims", written, re.IGNORECASE)
    assert stage["DefaultRouteSettings"]["LoggingLevel"] == "OFF"
    assert stage["DefaultRouteSettings"]["DataTraceEnabled"] is False


def test_every_function_has_its_log_group_its_role_and_its_trace(translated: Document) -> None:
    resources = translated["Resources"]
    functions = {name: one["Properties"] for name, one in resources.items() if one["Type"] == "AWS::Lambda::Function"}
    assert set(functions) == set(ENVIRONMENTS)
    assert len({json.dumps(one["Role"]) for one in functions.values()}) == len(functions)
    groups = {one["LoggingConfig"]["LogGroup"]["Ref"] for one in functions.values()}
    assert len(groups) == len(functions)
    assert all(resources[name]["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"} for name in groups)
    for one in functions.values():
        assert (one["Runtime"], one["Architectures"]) == ("python3.13", ["arm64"])
        assert one["TracingConfig"] == {"Mode": "Active"}


@pytest.mark.spec("LIFE-6")
def test_a_question_that_was_not_taken_is_kept_in_an_encrypted_queue(translated: Document) -> None:
    resources = translated["Resources"]
    [invocation] = [
        one["Properties"]
        for one in resources.values()
        if one["Type"] == "AWS::Lambda::EventInvokeConfig"
        and one["Properties"]["FunctionName"] == {"Ref": "ChatFunction"}
    ]
    [sending] = [one for one in _statements(translated, "ChatFunction") if one["Action"] == "sqs:SendMessage"]
    assert sending["Resource"] == {"Fn::GetAtt": ["FailedChats", "Arn"]}
    assert invocation["DestinationConfig"]["OnFailure"]["Destination"] == {"Fn::GetAtt": ["FailedChats", "Arn"]}
    assert resources["FailedChats"]["Properties"]["SqsManagedSseEnabled"] is True


# Rights --------------------------------------------------------------------------------------------

ACTIONS = {
    "apigatewaymanagementapi.PostToConnection": "execute-api:ManageConnections",
    "s3.DeleteObjects": "s3:DeleteObject",
    "s3.ListObjectsV2": "s3:ListBucket",
}
ANSWERS: dict[str, dict[str, Any]] = {
    "StartQuery": {"queryId": "q"},
    "GetSecretValue": {"SecretString": "s"},
    "Retrieve": {"retrievalResults": []},
    "ListObjectsV2": {"Contents": [{"Key": "old.js"}]},
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The actions of IAM behind the calls that are made from here on; AWS itself answers none of them."""
    found: set[str] = set()

    def call(client: BaseClient, operation: str, _arguments: Mapping[str, Any]) -> dict[str, Any]:
        name = f"{client.meta.service_model.service_name}.{operation}"
        signed = client.meta.service_model.signing_name
        found.add(ACTIONS.get(name, f"{signed}:{operation}"))
        return ANSWERS.get(operation, {})

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return found


async def _post() -> None:
    await ConnectionApi("https://api.example.com/live").post("c", b"{}")


async def _sign_in() -> None:
    SecretsManager().text(SECRET)
    # A token is signed without a call: the right is the server's to ask for.
    assert "Action=connect" in IamLogin("h", 3306, "u").credentials()[1]


async def _look_up() -> None:
    await BedrockKnowledgeIndex("ABCDEFGHIJ", lambda text: text).lookup(LookupKnowledge(query="pool"))


async def _search_logs() -> None:
    """Every call of the adapter there is."""
    calls = Calls(lambda: new_api("us-east-1"))
    query = calls.start(Request(groups=("g",), start=0, end=1, text="fields @message", limit=1))
    calls.results(query)
    calls.stop(query)
    calls.whole_message("p")
    calls.streams("g")


async def _read_secret() -> None:
    SecretsManager().text(SECRET)


def _page(folder: str) -> Path:
    Path(folder, "index.html").touch()
    return Path(folder)


async def _publish() -> None:
    with tempfile.TemporaryDirectory() as folder:
        bucket = PageBucket("b", _page(folder))
        bucket.publish({})
        bucket.empty()


CALLS: dict[type[Any], Callable[[], Awaitable[None]]] = {
    settings.ChannelSettings: _post,
    settings.DatabaseSettings: _sign_in,
    settings.KnowledgeSettings: _look_up,
    settings.EvidenceSettings: _search_logs,
    settings.ModelSettings: _read_secret,
    settings.RedactionSettings: _read_secret,
    settings.AccountSettings: _read_secret,
    settings.PageSettings: _publish,
}
"""Which vendor's calls a part of the settings leads to."""
# Functions sign in with tokens where the stack says so; the owner, who migrates, never does.
BY_TOKEN = {"rds-db:connect"}
FOR_THE_PLATFORM = {"FailedChats"}


def _statements(document: Document, function: str) -> list[dict[str, Any]]:
    """Of the function's own policies, as if every right that depends on a choice were given."""
    role = document["Resources"][f"{function}Role"]["Properties"]
    found: list[dict[str, Any]] = []
    for policy in role.get("Policies", []):
        for statement in policy["PolicyDocument"]["Statement"]:
            branches = statement["Fn::If"][1:] if "Fn::If" in statement else [statement]
            found += [branch for branch in branches if branch != {"Ref": "AWS::NoValue"}]
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.spec("SEC-5")
@pytest.mark.parametrize("function", sorted(ENVIRONMENTS))
async def test_each_function_may_do_just_what_it_does(translated: Document, asked: set[str], function: str) -> None:
    shapes = ENVIRONMENTS[function].shapes
    for shape in shapes:
        if shape in CALLS:
            await CALLS[shape]()
    signs_in = settings.DatabaseSettings in shapes and function != "MigrateFunction"
    statements = [
        statement
        for statement in _statements(translated, function)
        if not any(name in json.dumps(statement["Resource"]) for name in FOR_THE_PLATFORM)
    ]
    assert {statement["Effect"] for statement in statements} <= {"Allow"}
    given = {action for statement in statements for action in _listed(statement["Action"])}
    assert given == asked | (BY_TOKEN if signs_in else set())


OF_AWS: dict[str, set[str]] = {
    "AWSLambdaBasicExecutionRole": {"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"},
    "AWSLambdaVPCAccessExecutionRole": {
        *("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"),
        *("ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DeleteNetworkInterface"),
        *("ec2:DescribeSubnets", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"),
    },
    "AWSXrayWriteOnlyAccess": {
        *("xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules", "xray:GetSamplingTargets"),
        "xray:GetSamplingStatisticSummaries",
    },
}
"""What AWS's policies that SAM adds to a role allow, each of any resource:
https://docs.aws.amazon.com/aws-managed-policy/latest/reference/policy-list.html"""
NETWORK_RIGHTS = {action for actions in OF_AWS.values() for action in actions if action.startswith("ec2:")}
ANOTHERS_LOGS = "arn:aws:logs:us-east-1:111122223333:log-group:/aws/lambda/another/chat:log-stream:x"


@dataclass(frozen=True)
class Bounded:
    """A boundary's statements, resolved. Denying wins, and what is not allowed is denied."""

    statements: list[dict[str, Any]]

    def lets(self, action: str, resource: str = "*", *, by_code: bool = False) -> bool:
        applying = [one["Effect"] for one in self.statements if _applies(one, action, resource, by_code)]
        return "Allow" in applying and "Deny" not in applying


def _applies(statement: Mapping[str, Any], action: str, resource: str, by_code: bool) -> bool:
    named = any(fnmatchcase(action, one) for one in _listed(statement.get("Action", statement.get("NotAction"))))
    meets = statement.get("Condition", {"Null": {"lambda:SourceFunctionArn": "false"}})
    assert meets == {"Null": {"lambda:SourceFunctionArn": "false"}}, "of no other condition this knows the meaning"
    return (
        named == ("Action" in statement)
        and any(fnmatchcase(resource, one) for one in _listed(statement["Resource"]))
        and (by_code or "Condition" not in statement)
    )


@pytest.mark.spec("SEC-5")
@pytest.mark.parametrize("function", sorted(ENVIRONMENTS))
def test_of_what_sam_allows_a_function_it_keeps_what_it_needs(translated: Document, function: str) -> None:
    """No more of logs than to write its own, and of the network what Lambda does for it: its code can't."""
    resources = translated["Resources"]
    role = resources[f"{function}Role"]["Properties"]
    assert role["PermissionsBoundary"] == {"Ref": "FunctionBoundary"}
    boundary = resources["FunctionBoundary"]["Properties"]["PolicyDocument"]["Statement"]
    bounded = Bounded(Resolver(translated, {}, PSEUDO).resolve(boundary))
    allowed = {action for arn in role["ManagedPolicyArns"] for action in OF_AWS[arn.rpartition("/")[2]]}
    group = resources[resources[function]["Properties"]["LoggingConfig"]["LogGroup"]["Ref"]]["Properties"]
    name = group["LogGroupName"]["Fn::Sub"].replace("${AWS::StackName}", PSEUDO["AWS::StackName"])
    own_logs = f"arn:aws:logs:us-east-1:111122223333:log-group:{name}:log-stream:x"

    by_lambda = {action for action in allowed if bounded.lets(action, own_logs if "logs:" in action else "*")}
    network = NETWORK_RIGHTS if "VpcConfig" in resources[function]["Properties"] else set()
    assert by_lambda == {"logs:CreateLogStream", "logs:PutLogEvents"} | OF_AWS["AWSXrayWriteOnlyAccess"] | network
    assert not [action for action in allowed if "logs:" in action and bounded.lets(action, ANOTHERS_LOGS)]
    assert not [action for action in network if bounded.lets(action, by_code=True)]


@pytest.mark.spec("SEC-5")
def test_the_boundary_leaves_functions_what_their_own_policies_allow(translated: Document) -> None:
    boundary = translated["Resources"]["FunctionBoundary"]["Properties"]["PolicyDocument"]["Statement"]
    bounded = Bounded(Resolver(translated, {}, PSEUDO).resolve(boundary))
    own = {
        action
        for function in ENVIRONMENTS
        for statement in _statements(translated, function)
        for action in _listed(statement["Action"])
    }
    assert len(own) > 5
    assert not [action for action in own if not bounded.lets(action, by_code=True)]


BY_ID = {"logs:GetQueryResults", "logs:StopQuery", "logs:GetLogRecord"}
"""Take the id of a query or of a record, and no resource."""


@pytest.mark.spec("SEC-5")
def test_rights_are_of_named_resources(translated: Document) -> None:
    for function in ENVIRONMENTS:
        for statement in _statements(translated, function):
            resources = [json.dumps(resource) for resource in _listed(statement["Resource"])]
            if set(_listed(statement["Action"])) <= BY_ID:
                continue
            assert not [resource for resource in resources if resource.strip('"') == "*"], (function, statement)
            for resource in resources:
                # A wildcard is the last part of a path: any connection of this one stage, any file of this one bucket.
                path = resource.rstrip('"}')
                assert "*" not in resource or path.endswith(("/POST/@connections/*", "${PageBucket.Arn}/*")), resource


def test_the_services_that_are_called_are_known_to_boto3() -> None:
    known = boto3.session.Session().get_available_services()
    assert {"apigatewaymanagementapi", "bedrock-agent-runtime", "logs", "rds", "secretsmanager"} <= set(known)
    assert TEMPLATE.is_file()
