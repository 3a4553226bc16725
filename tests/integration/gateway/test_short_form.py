"""AWS::Serverless::WebSocketApi."""

from pathlib import Path

import pytest

from tests.integration.gateway.support import STACK, Start, ask, hear
from tests.integration.gateway.test_connections import refused

TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Globals:
  Function: {{Runtime: python3.13, CodeUri: {handlers}, Layers: [!Ref Layer]}}
  WebSocketApi: {{StageVariables: {{colour: red}}}}
Resources:
  Layer: {{Type: AWS::Serverless::LayerVersion, Properties: {{ContentUri: {layer}}}}}
  Connect: {{Type: AWS::Serverless::Function, Properties: {{Handler: connect.handler}}}}
  Work: {{Type: AWS::Serverless::Function, Properties: {{Handler: worker.handler, FunctionName: named}}}}
  Authorizer: {{Type: AWS::Serverless::Function, Properties: {{Handler: authorizer.handler}}}}
  Api:
    Type: AWS::Serverless::WebSocketApi
    Properties:
      RouteSelectionExpression: $request.body.action
      StageName: !Sub "${{AWS::StackName}}-stage"
      Auth:
        AuthType: CUSTOM
        AuthArn: !GetAtt Authorizer.Arn
        IdentitySource: [route.request.querystring.token]
      Routes:
        $connect: {{FunctionArn: !GetAtt Connect.Arn}}
        $disconnect: {{FunctionArn: !GetAtt Work.Arn}}
        $default:
          FunctionArn: !Sub "${{Work.Arn}}"
          RouteResponseSelectionExpression: $default
        silent: {{FunctionArn: !GetAtt Work.Arn, IntegrationTimeout: 5000}}
"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "short.yaml"
    path.write_text(TEMPLATE.format(handlers=STACK / "handlers", layer=STACK / "layer"))
    return path


async def test_the_short_form_has_routes_a_stage_and_an_authorizer(start: Start, template: Path) -> None:
    async with start(template=template) as running:
        assert running.gateway.websocket_url.endswith("/local-stage")
        assert await refused(running) == 401
        async with running.socket("?token=ada") as socket:
            assert (await ask(socket, "hello", id=1))["id"] == 1
            await socket.send('{"action": "silent"}')
            await running.wait_for_events("named", 2)
            await socket.send("last")
            assert (await hear(socket))["id"] is None
        routes = [event["requestContext"]["routeKey"] for event in await running.wait_for_events("named", 4)]
        assert sorted(routes) == ["$default", "$default", "$disconnect", "silent"]
        assert running.events("named")[0]["stageVariables"] == {"colour": "red"}
        assert running.events("named")[0]["requestContext"]["authorizer"]["principalId"] == "ada"
