"""Does what the message asks for."""

import base64
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import from_layer
from record import record

IMPORTED_BY = os.getpid()


def wait_for(name: str) -> None:
    """Until the test makes a file of that name."""
    gate = Path(os.environ["RECORDS"]) / name
    for _ in range(3000):
        if gate.exists():
            return
        time.sleep(0.01)
    raise TimeoutError(name)


def handler(event: dict[str, Any], context: Any) -> Any:
    record(event, context={"id": context.aws_request_id, "left": context.get_remaining_time_in_millis()})
    try:
        asked = json.loads(event.get("body") or "{}")
    except (ValueError, RecursionError):
        asked = {}
    if not isinstance(asked, dict):
        asked = {}
    answer: dict[str, Any] = {"pid": os.getpid(), "id": asked.get("id"), "layer": from_layer.VALUE}
    match asked.get("do"):
        case "fail":
            raise ValueError("asked to fail")
        case "malformed":
            return {"no": "status"}
        case "exit":
            os._exit(3)
        case "wait":
            wait_for(asked["gate"])
        case "print":
            print("line one\nline two é")
        case "environment":
            answer["environment"] = dict(os.environ)
        case "imported":
            answer["imported_by"] = IMPORTED_BY
        case "child":
            answer["child"] = subprocess.Popen(["sleep", "1000"]).pid
        case "surrogate":
            answer["half"] = "\ud83d"
            return {"statusCode": 200, "body": json.dumps(answer, ensure_ascii=False)}
        case "base64":
            return {
                "statusCode": 200,
                "body": base64.b64encode(b'"\xc3\xa9"').decode(),
                "isBase64Encoded": True,
            }
        case "no base64":
            return {"statusCode": 200, "body": "é", "isBase64Encoded": True}
        case "large":
            answer["large"] = "x" * 200_000
    if "mapped" in event:
        return event
    return {"statusCode": 200, "body": json.dumps(answer)}
