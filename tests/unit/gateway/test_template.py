"""Reading templates."""

from pathlib import Path
from typing import Any

import pytest

from local.gateway import TemplateError, Unsupported
from local.gateway.model import Stack
from local.gateway.template import load_stack
from local.gateway.template.functions import merge
from local.gateway.template.intrinsics import Resolver
from local.gateway.template.reader import read_document

PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::StackName": "local",
    "AWS::URLSuffix": "amazonaws.com",
}
API = """
  Api:
    Type: AWS::ApiGatewayV2::Api
    Properties: {ProtocolType: WEBSOCKET, RouteSelectionExpression: $request.body.action}
"""
FUNCTION = """
  F: {Type: AWS::Serverless::Function, Properties: {Runtime: python3.13, Handler: app.handler, CodeUri: .}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def load(folder: Path, resources: str, more: str = "", **options: Any) -> Stack:
    path = folder / "template.yaml"
    path.write_text(f"{more}\nResources:\n{resources}\n")
    return load_stack(path, **options)


def resolve(folder: Path, value: str, more: str = "", **overrides: str) -> Any:
    path = folder / "value.yaml"
    path.write_text(f"{more}\nResources:\n{API}{FUNCTION}\nOutputs:\n  Value: {value}\n")
    document = read_document(path)
    return Resolver(document, overrides, PSEUDO).resolve(document["Outputs"]["Value"])


DECLARED = """
Parameters:
  Name: {Type: String, Default: world}
  Count: {Type: Number, Default: 3}
  Names: {Type: CommaDelimitedList, Default: "a, b,c"}
  Needed: {Type: String}
  Stored: {Type: "AWS::SSM::Parameter::Value<String>", Default: /a/name}
Mappings:
  Sizes: {eu-west-1: {small: 1, large: 2}}
Conditions:
  IsWorld: !Equals [!Ref Name, world]
  IsThree: !Equals [!Ref Count, 3]
  Both: !And [!Condition IsWorld, Condition: IsThree]
  Neither: !Not [!Or [!Condition IsWorld, !Condition IsThree]]
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("!Ref Name", "world"),
        ("{Ref: Name}", "world"),
        ("!Ref Count", "3"),
        ("!Ref Names", ["a", "b", "c"]),
        ("!Ref AWS::Region", "eu-west-1"),
        ("!Ref F", "local-F"),
        ("!Sub 'Hello ${Name} in ${AWS::Region} ${!Literal}'", "Hello world in eu-west-1 ${Literal}"),
        ("!Sub ['${a}-${Name}', {a: !Ref Count}]", "3-world"),
        ("!Sub '${F.Arn}'", "arn:aws:lambda:eu-west-1:123456789012:function:local-F"),
        ("!GetAtt F.Arn", "arn:aws:lambda:eu-west-1:123456789012:function:local-F"),
        ("{'Fn::GetAtt': [F, Arn]}", "arn:aws:lambda:eu-west-1:123456789012:function:local-F"),
        ("!Join ['-', [a, !Ref Name, !Ref AWS::NoValue]]", "a-world"),
        ("!If [IsWorld, yes-it-is, no]", "yes-it-is"),
        ("!If [Neither, 1, !If [Both, both, one]]", "both"),
        ("[1, !If [Neither, 1, !Ref AWS::NoValue]]", [1]),
        ("{a: !Ref AWS::NoValue, b: 2}", {"b": 2}),
        ("!FindInMap [Sizes, !Ref AWS::Region, large]", 2),
        ("!FindInMap [Sizes, nowhere, large, {DefaultValue: 9}]", 9),
        ("!Select [1, !Ref Names]", "b"),
        ("!Select ['0', !Split [':', 'x:y']]", "x"),
        ("!Base64 abc", "YWJj"),
        ("{'Fn::Length': !Ref Names}", 3),
        ("!ToJsonString {a: !Ref Name}", '{"a": "world"}'),
        ("2012-10-17", "2012-10-17"),
    ],
)
def test_intrinsic_functions(folder: Path, value: str, expected: Any) -> None:
    assert resolve(folder, value, DECLARED) == expected


def test_overrides_replace_defaults_and_decide_conditions(folder: Path) -> None:
    assert resolve(folder, "!Ref Needed", DECLARED, Needed="x") == "x"
    assert resolve(folder, "!If [Both, 1, 2]", DECLARED, Count="4") == 2
    assert resolve(folder, "!If [Neither, 1, 2]", DECLARED, Count="4", Name="x") == 1
    assert resolve(folder, "!Ref Stored", DECLARED, Stored="v") == "v"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("!Ref Needed", "--parameter-overrides Needed="),
        ("!Ref Stored", "looked up on AWS"),
        ("!Ref Unknown", "only in a deployed stack"),
        ("!GetAtt Api.Nothing", "only in a deployed stack"),
        ("!ImportValue other", "Fn::ImportValue"),
        ("'{{resolve:secretsmanager:x}}'", "looked up on AWS"),
        ("!If [Undeclared, 1, 2]", "not declared"),
        ("!FindInMap [Sizes, nowhere, large]", "Sizes.nowhere.large"),
    ],
)
def test_what_cannot_be_resolved_says_why(folder: Path, value: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        resolve(folder, value, DECLARED)


def test_a_condition_that_depends_on_itself_is_told(folder: Path) -> None:
    more = "Conditions: {A: !Condition B, B: !Not [!Condition A]}"
    with pytest.raises(TemplateError, match="depends on itself"):
        resolve(folder, "!If [A, 1, 2]", more)


def test_the_api_s_own_names(folder: Path) -> None:
    api_id = resolve(folder, "!Ref Api")
    assert len(api_id) == 10
    assert resolve(folder, "!GetAtt Api.ApiEndpoint") == f"wss://{api_id}.execute-api.eu-west-1.amazonaws.com"


def test_globals_are_merged_as_sam_does() -> None:
    defaults = {"Timeout": 3, "Layers": ["a"], "Environment": {"Variables": {"A": 1, "B": 1}}}
    own = {"Timeout": 9, "Layers": ["b"], "Environment": {"Variables": {"B": 2}}}
    assert merge(defaults, own) == {
        "Timeout": 9,
        "Layers": ["a", "b"],
        "Environment": {"Variables": {"A": 1, "B": 2}},
    }
    assert merge({"CodeUri": {"Ref": "A"}}, {"CodeUri": {"Ref": "B"}}) == {"CodeUri": {"Ref": "B"}}


def test_functions_take_defaults_layers_and_settings(folder: Path) -> None:
    (folder / "code").mkdir()
    (folder / "layer" / "python").mkdir(parents=True)
    (folder / "plain").mkdir()
    stack = load(
        folder,
        API
        + """
  Built: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layer/}}
  Plain: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: plain}}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Layers: [!Ref Plain, "arn:aws:lambda:eu-west-1:1:layer:Other:7"]
      Timeout: 30
      ReservedConcurrentExecutions: 2
      Environment: {Variables: {A: own, TRUTH: true, GONE: !GetAtt Db.Address}}
      EventInvokeConfig: {MaximumRetryAttempts: 1}
  Gone: {Type: AWS::Serverless::Function, Condition: Never, Properties: {Runtime: nodejs22.x}}
""",
        """
Conditions: {Never: !Equals [a, b]}
Globals:
  Function:
    Runtime: python3.12
    Handler: app.handler
    CodeUri: code
    MemorySize: 256
    Layers: [!Ref Built]
    Environment: {Variables: {A: global, B: global}}
""",
    )
    (function,) = stack.functions.values()
    assert (function.runtime, function.timeout, function.memory) == ("python3.12", 30, 256)
    assert (function.concurrency, function.retries) == (2, 1)
    assert function.code == folder / "code"
    assert function.layers == (folder / "layer" / "python", folder / "layer", folder / "plain")
    assert function.environment == {"A": "own", "B": "global", "TRUTH": "true"}
    assert len(stack.notices) == 2
    assert "layer:Other:7" in stack.notices[0]
    assert "GONE is left out" in stack.notices[1]


def test_what_is_not_needed_is_not_resolved(folder: Path) -> None:
    stack = load(
        folder,
        API
        + """
  Http: {Type: AWS::Serverless::HttpApi}
  OtherRoute: {Type: AWS::ApiGatewayV2::Route, Properties: {ApiId: !Ref Http, RouteKey: GET /, Target: x}}
  Queue: {Type: AWS::SQS::Queue}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: python3.13
      Handler: app.handler
      CodeUri: .
      Layers: !If [Here, [], [!Ref Nowhere]]
      Environment: {Variables: !If [Here, {A: x, B: !GetAtt Queue.Arn}, !Ref AWS::NoValue]}
      VpcConfig: {SubnetIds: !GetAtt Queue.Arn}
      EventInvokeConfig:
        MaximumRetryAttempts: 0
        DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Queue.Arn}}
      Events:
        Off: {Type: Schedule, Properties: {Schedule: rate(1 minute), Enabled: false}}
        Sweep:
          Type: ScheduleV2
          Properties:
            ScheduleExpression: rate(1 minute)
            DeadLetterConfig: {Arn: !GetAtt Queue.Arn}
            RoleArn: !GetAtt Queue.Arn
""",
        "Conditions: {Here: !Equals [a, a]}",
    )
    (function,) = stack.functions.values()
    assert function.environment == {"A": "x"}
    assert [schedule.period for schedule in function.schedules] == [60]


@pytest.mark.parametrize(
    ("resources", "error", "message"),
    [
        (API + FUNCTION.replace("python3.13", "nodejs22.x"), Unsupported, "Python functions only"),
        (API + FUNCTION.replace("CodeUri: .", "CodeUri: nowhere"), TemplateError, "no folder"),
        (API + FUNCTION.replace("CodeUri: .", "CodeUri: s3://b/k"), Unsupported, "not a local folder"),
        (API + FUNCTION.replace(", Handler: app.handler", ""), TemplateError, "no Handler"),
        (API + FUNCTION.replace("CodeUri: .", "InlineCode: x"), Unsupported, "inline code"),
        (FUNCTION, TemplateError, "no WebSocket API"),
        (API + API.replace("Api:", "Second:"), TemplateError, "--api"),
        (API.replace("$request.body.action", "$request.header.x"), Unsupported, "RouteSelectionExpression"),
        (
            API + "  I: {Type: AWS::ApiGatewayV2::Integration, Properties: {ApiId: !Ref Api, "
            "IntegrationType: HTTP_PROXY, IntegrationUri: x}}",
            Unsupported,
            "AWS_PROXY, AWS and MOCK",
        ),
        (
            API + "  I: {Type: AWS::ApiGatewayV2::Integration, Properties: {ApiId: !Ref Api, "
            "IntegrationType: AWS_PROXY, IntegrationUri: 'arn:aws:lambda:x:1:function:other'}}",
            Unsupported,
            "functions of the same template",
        ),
        (
            API + "  R: {Type: AWS::ApiGatewayV2::Route, Properties: {ApiId: !Ref Api, RouteKey: a, Target: b}}",
            TemplateError,
            "Target of route R",
        ),
    ],
)
def test_mistakes_and_limits_are_told(folder: Path, resources: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load(folder, resources)


def test_broken_yaml_and_a_missing_file_are_told(folder: Path) -> None:
    with pytest.raises(TemplateError, match="name it with --template"):
        load_stack(folder / "none.yaml")
    (folder / "bad.yaml").write_text("Resources: [")
    with pytest.raises(TemplateError, match="not valid YAML"):
        load_stack(folder / "bad.yaml")
    (folder / "empty.yaml").write_text("")
    with pytest.raises(TemplateError, match="no Resources"):
        load_stack(folder / "empty.yaml")


def test_one_of_several_apis_is_chosen_and_the_stage_can_be_named(folder: Path) -> None:
    two = API + API.replace("Api:", "Second:")
    stage = "  S: {Type: AWS::ApiGatewayV2::Stage, Properties: {ApiId: !Ref Second, StageName: prod}}\n"
    assert load(folder, two + stage, api="Second").api.stage == "prod"
    assert load(folder, two + stage, api="Api").api.stage == "local"
    assert load(folder, two + stage, api="Second", stage="dev").api.stage == "dev"
