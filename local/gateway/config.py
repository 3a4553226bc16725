"""What a gateway is started with."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.gateway.errors import ConfigurationError

MESSAGE_LIMIT = 128 * 1024
FRAME_LIMIT = 32 * 1024


@dataclass(frozen=True, kw_only=True)
class StaticSite:
    """A folder served on the HTTP port at `/`."""

    folder: Path
    # Replaces the default security headers one by one; None leaves one out. `{websocket}` and `{http}`
    # stand for the addresses.
    headers: Mapping[str, str | None] = field(default_factory=dict)
    # Origins that the page may speak to beside its own and the WebSocket's.
    connect: tuple[str, ...] = ()
    # What /config.json says beside the WebSocket's address.
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GatewayConfig:
    template: Path = Path("template.yaml")
    host: str = "127.0.0.1"
    port: int = 0  # of the WebSocket; 0 takes a free one
    http_port: int = 0  # of @connections, the Lambda API and the static files
    api: str | None = None  # logical id, needed when the template has several WebSocket APIs
    stage: str | None = None
    region: str | None = None
    stack_name: str = "local"
    parameter_overrides: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)  # of all functions
    function_environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by logical id
    max_concurrency: int = 10  # processes a function
    freeze: bool = True
    schedules: bool = True
    python: str = sys.executable
    own_runtime: bool = False  # the loop in runtime/bootstrap.py even where awslambdaric is installed
    snapshots: bool = False  # fork processes from one that has imported the handler
    integration_timeout: float = 29.0
    idle_timeout: float = 600.0
    connection_life: float = 7_200.0
    principal: str | None = None  # connects everybody as this one; the template's authorizer is not asked
    shutdown_grace: float = 5.0  # for $disconnect handlers when the gateway closes
    static: StaticSite | None = None


def read_env_vars(path: Path) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """A file for `sam local --env-vars`: variables of all functions, and by function."""
    document = read_json_object(path, "--env-vars")
    if not all(isinstance(variables, dict) for variables in document.values()):
        raise ConfigurationError(
            f'{path} must have the form {{"Parameters": {{"NAME": "value"}}, "FunctionLogicalId": {{…}}}}.'
        )
    texts = {name: {key: _text(value) for key, value in group.items()} for name, group in document.items()}
    return texts.pop("Parameters", {}), texts


def read_static_headers(path: Path) -> dict[str, str | None]:
    document = read_json_object(path, "--static-headers")
    if not all(value is None or isinstance(value, str) for value in document.values()):
        raise ConfigurationError(f"Every header in {path} must be text, or null to leave it out.")
    return document


def read_json_object(path: Path, option: str) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{option} names {path}, which is no readable JSON: {error}") from error
    if not isinstance(document, dict):
        raise ConfigurationError(f"{option} names {path}, which is no JSON object.")
    return document


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
