"""Policies by token."""

from typing import Any

from record import record


def handler(event: dict[str, Any], context: Any) -> Any:
    record(event)
    token = event["queryStringParameters"]["token"]
    if token == "unauthorized":
        raise Exception("Unauthorized")
    if token == "broken":
        return {"principalId": "nobody"}
    arn = event["methodArn"]
    statements = [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": arn.rsplit("/", 1)[0] + "/*"}]
    if token == "deny":
        statements.append({"Effect": "Deny", "Action": "*", "Resource": "*"})
    return {
        "principalId": token,
        "policyDocument": {"Version": "2012-10-17", "Statement": statements},
        "context": {"team": "sre", "level": 3, "root": True, "nothing": None},
    }
