"""One call of a function and what came of it."""

import json
import secrets
import uuid
from dataclasses import dataclass, field


def _trace_id() -> str:
    token = secrets.token_hex(16)
    return f"Root=1-{token[:8]}-{token[8:]};Parent={secrets.token_hex(8)};Sampled=0"


@dataclass(frozen=True, kw_only=True)
class Invocation:
    payload: bytes
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    trace_id: str = field(default_factory=_trace_id)
    client_context: str | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    request_id: str
    payload: bytes
    error: str | None = None  # the kind of error, such as Runtime.ExitError or ValueError

    @property
    def message(self) -> str:
        """What the function, or this tool for it, says of the error."""
        try:
            answer = json.loads(self.payload)
        except ValueError:
            return ""
        return str(answer.get("errorMessage", "")) if isinstance(answer, dict) else ""

    @classmethod
    def failed(cls, request_id: str, kind: str, message: str) -> "Result":
        body = {"errorType": kind, "errorMessage": f"RequestId: {request_id} Error: {message}"}
        return cls(request_id=request_id, payload=json.dumps(body).encode(), error=kind)
