"""A small runtime interface client, for machines that AWS's own has no build for: bootstrap.py HANDLER

Runs by its path under any Python from 3.11 and imports nothing but the standard library.
"""

import http.client
import importlib
import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

API = "/2018-06-01/runtime"


@dataclass(frozen=True)
class ClientContext:
    client: Any
    custom: Any
    env: Any


@dataclass(frozen=True)
class Context:
    """What a handler gets as its second argument."""

    aws_request_id: str
    invoked_function_arn: str
    deadline_ms: int
    function_name: str
    function_version: str
    memory_limit_in_mb: str
    log_group_name: str
    log_stream_name: str
    client_context: ClientContext | None
    identity: None = None

    def get_remaining_time_in_millis(self) -> int:
        return max(0, self.deadline_ms - int(time.time() * 1000))

    def log(self, message: object) -> None:
        sys.stdout.write(str(message))


class Runtime:
    def __init__(self, address: str) -> None:
        self._address = address

    def next(self) -> tuple[Mapping[str, str], bytes]:
        return self._call("GET", f"{API}/invocation/next")

    def respond(self, request_id: str, body: bytes) -> None:
        self._call("POST", f"{API}/invocation/{request_id}/response", body)

    def fail(self, request_id: str, error: Mapping[str, Any]) -> None:
        self._post_error(f"{API}/invocation/{request_id}/error", error)

    def fail_init(self, error: Mapping[str, Any]) -> None:
        self._post_error(f"{API}/init/error", error)

    def _post_error(self, path: str, error: Mapping[str, Any]) -> None:
        headers = {"Lambda-Runtime-Function-Error-Type": str(error["errorType"])}
        self._call("POST", path, json.dumps(error).encode(), headers)

    def _call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[Mapping[str, str], bytes]:
        connection = http.client.HTTPConnection(self._address)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            raise ConnectionError(f"{method} {path} answered {response.status}: {content!r}")
        return dict(response.headers.items()), content


def load(name: str) -> Callable[[Any, Context], Any]:
    module, _, function = name.rpartition(".")
    found = getattr(importlib.import_module(module.replace("/", ".")), function)
    if not callable(found):
        raise TypeError(f"{name} is not a function")
    return found  # type: ignore[no-any-return]


def describe(error: BaseException) -> dict[str, Any]:
    lines = traceback.format_tb(error.__traceback__)
    return {"errorMessage": str(error), "errorType": type(error).__name__, "stackTrace": lines}


def context_of(headers: Mapping[str, str]) -> Context:
    environment = os.environ
    client = json.loads(headers.get("Lambda-Runtime-Client-Context") or "null")
    return Context(
        aws_request_id=headers["Lambda-Runtime-Aws-Request-Id"],
        invoked_function_arn=headers["Lambda-Runtime-Invoked-Function-Arn"],
        deadline_ms=int(headers["Lambda-Runtime-Deadline-Ms"]),
        function_name=environment.get("AWS_LAMBDA_FUNCTION_NAME", ""),
        function_version=environment.get("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        memory_limit_in_mb=environment.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
        log_group_name=environment.get("AWS_LAMBDA_LOG_GROUP_NAME", ""),
        log_stream_name=environment.get("AWS_LAMBDA_LOG_STREAM_NAME", ""),
        client_context=ClientContext(client.get("client"), client.get("custom"), client.get("env"))
        if isinstance(client, dict)
        else None,
    )


def handle_one(runtime: Runtime, handler: Callable[[Any, Context], Any]) -> None:
    headers, body = runtime.next()
    request_id = headers["Lambda-Runtime-Aws-Request-Id"]
    os.environ["_X_AMZN_TRACE_ID"] = headers.get("Lambda-Runtime-Trace-Id") or ""
    try:
        answer = json.dumps(handler(json.loads(body), context_of(headers)), ensure_ascii=False)
        content = answer.encode()
    except Exception as error:  # whatever the handler raises is its answer
        described = describe(error)
        sys.stderr.write(f"[ERROR] {described['errorType']}: {described['errorMessage']}\n")
        sys.stderr.write("".join(described["stackTrace"]))
        runtime.fail(request_id, described)
    else:
        runtime.respond(request_id, content)


def main(name: str) -> None:
    logging.basicConfig(format="[%(levelname)s]\t%(message)s")
    runtime = Runtime(os.environ["AWS_LAMBDA_RUNTIME_API"])
    try:
        handler = load(name)
    except Exception as error:  # importing the handler runs its code: anything may come out
        described = describe(error)
        sys.stderr.write(f"[ERROR] cannot load {name}: {described['errorType']}: {error}\n")
        runtime.fail_init(described)
        raise SystemExit(1) from error
    try:
        while True:
            handle_one(runtime, handler)
    except ConnectionError as error:  # the gateway has gone, or has ended this process's event
        raise SystemExit(1) from error


if __name__ == "__main__":
    main(sys.argv[1])
