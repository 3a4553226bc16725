"""Route selection and policies, without sockets."""

import pytest

from local.gateway.authorizer import allows
from local.gateway.model import Api, Route
from local.gateway.routing import select_route

ARN = "arn:aws:execute-api:us-east-1:1:api/v1/$connect"


def api(*keys: str, selection: tuple[str, ...] = ("action",)) -> Api:
    routes = {key: Route(key=key, integration=None) for key in keys}
    return Api(logical_id="A", api_id="a", host="h", selection=selection, stage="v1", routes=routes)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"action": "chat"}', "chat"),
        ('{"action": "$connect"}', "$default"),
        ('{"action": "$disconnect"}', "$default"),
        ('{"action": "$default"}', "$default"),
        ('{"action": 1}', "$default"),
        ('["action"]', "$default"),
        ("[" * 100_000, "$default"),
        ("", "$default"),
    ],
)
def test_route_selection(body: str, expected: str) -> None:
    route = select_route(api("$connect", "$disconnect", "$default", "chat"), body)
    assert route is not None
    assert route.key == expected


def test_without_default_there_may_be_no_route() -> None:
    assert select_route(api("$connect", "chat"), '{"action": "$connect"}') is None


def test_nested_selection() -> None:
    nested = api("chat", selection=("a", "b"))
    assert select_route(nested, '{"a": {"b": "chat"}}') is not None
    assert select_route(nested, '{"a": "b"}') is None


def statement(effect: str, resource: object, action: object = "execute-api:Invoke") -> dict[str, object]:
    return {"Effect": effect, "Action": action, "Resource": resource}


@pytest.mark.parametrize(
    ("statements", "allowed"),
    [
        ([statement("Allow", "*")], True),
        ([statement("Allow", ARN)], True),
        ([statement("Allow", ["other", "arn:aws:execute-api:*:*:api/v1/*"])], True),
        (statement("Allow", ARN, ["s3:*", "execute-api:*"]), True),
        ([statement("Allow", ARN.replace("connec", "co??ec"))], True),
        ([statement("Allow", ARN.replace("/v1/", "/v2/"))], False),
        ([statement("Allow", ARN, "s3:GetObject")], False),
        ([statement("Allow", "*"), statement("Deny", ARN)], False),
        ([], False),
    ],
)
def test_policies(statements: object, allowed: bool) -> None:
    assert allows({"Statement": statements}, ARN) is allowed
