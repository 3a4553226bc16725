"""The environment of a function's process. The only reader of this machine's own environment."""

import os
from collections.abc import Mapping
from pathlib import Path

from local.gateway.model import Function

# Enough to start an interpreter and to trust the machine's certificates; a function sees nothing else
# of the machine it runs on, as on Lambda.
INHERITED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)
CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
DUMMY = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")


def machine_region(default: str = "us-east-1") -> str:
    return next((os.environ[name] for name in REGION if os.environ.get(name)), default)


def machine_credentials() -> dict[str, str]:
    given = {name: os.environ[name] for name in CREDENTIALS if name in os.environ}
    return given if "AWS_ACCESS_KEY_ID" in given else DUMMY


def child_environment(function: Function, runtime_api: str, region: str, extra: Mapping[str, str]) -> dict[str, str]:
    """`extra` is what the user or this tool adds to the template's own variables; it wins over them."""
    search_path = [function.code, *function.layers]
    reserved = {
        "_HANDLER": function.handler,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "local",
        "AWS_LAMBDA_RUNTIME_API": runtime_api,
        "LAMBDA_TASK_ROOT": str(function.code),
        "PYTHONUNBUFFERED": "1",
    }
    given = {**function.environment, **extra}
    return {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        **machine_credentials(),
        **dict.fromkeys(REGION, region),
        **given,
        **reserved,
        "PYTHONPATH": _join_paths(search_path, given.get("PYTHONPATH")),
    }


def _join_paths(paths: list[Path], more: str | None) -> str:
    return os.pathsep.join([*map(str, paths), *([more] if more else [])])
