"""An asynchronous route: answers through the connection API, as a long-running handler must."""

import base64
import json
import os
from typing import Any

import boto3
from record import record

client = boto3.client("apigatewaymanagementapi", endpoint_url=os.environ["ENDPOINT"])


def handler(event: dict[str, Any], context: Any) -> Any:
    record(event)
    body = base64.b64decode(event["body"]).decode()
    try:
        asked = json.loads(body)
    except ValueError:
        asked = {}
    if asked.get("do") == "fail":
        raise RuntimeError("after the work was done")
    connection_id = event["requestContext"]["connectionId"]
    for part in ("started", "done"):
        frame = json.dumps({"part": part, "id": asked.get("id"), "length": len(body)})
        client.post_to_connection(ConnectionId=connection_id, Data=frame.encode())
    return None
