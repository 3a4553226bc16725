"""$connect, told by the query what to do."""

import os
from typing import Any

from record import record


def post(connection_id: str) -> str:
    import boto3

    client = boto3.client("apigatewaymanagementapi", endpoint_url=os.environ["ENDPOINT"])
    try:
        client.post_to_connection(ConnectionId=connection_id, Data=b"too early")
    except client.exceptions.GoneException:
        return "gone"
    return "sent"


def handler(event: dict[str, Any], context: Any) -> Any:
    query = event.get("queryStringParameters") or {}
    posted = post(event["requestContext"]["connectionId"]) if "post" in query else None
    record(event, posted=posted)
    if "raise" in query:
        raise RuntimeError("refused by accident")
    if "malformed" in query:
        return {"connected": True}
    headers = {"Sec-WebSocket-Protocol": query["protocol"]} if "protocol" in query else {}
    return {"statusCode": int(query.get("status", 200)), "headers": headers}
