"""Lets a test see what handlers got: one file per function, one line per event."""

import json
import os
from pathlib import Path
from typing import Any


def record(event: dict[str, Any], **more: Any) -> None:
    path = Path(os.environ["RECORDS"]) / os.environ["AWS_LAMBDA_FUNCTION_NAME"].removeprefix("local-")
    line = json.dumps({"event": event, "pid": os.getpid(), **more}) + "\n"
    # One write, so that functions side by side don't mix their lines.
    with path.open("ab", buffering=0) as file:
        file.write(line.encode())
