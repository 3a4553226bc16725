"""What the gateway takes from a template: plain values, everything resolved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

CONNECT, DISCONNECT, DEFAULT = "$connect", "$disconnect", "$default"


@dataclass(frozen=True, kw_only=True)
class Schedule:
    name: str
    period: float  # seconds
    source: Literal["aws.events", "aws.scheduler"]
    input: Any = None  # replaces the event


@dataclass(frozen=True, kw_only=True)
class Function:
    logical_id: str
    name: str
    arn: str
    handler: str
    runtime: str
    code: Path
    layers: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 3.0
    memory: int = 128
    concurrency: int | None = None
    retries: int = 0
    max_event_age: float = 21_600.0
    schedules: tuple[Schedule, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Integration:
    kind: Literal["AWS_PROXY", "AWS", "MOCK"]
    function: str | None = None  # logical id; None for MOCK
    asynchronous: bool = False
    templates: Mapping[str, str] = field(default_factory=dict)
    selection: str = DEFAULT  # which template
    passthrough: str = "WHEN_NO_MATCH"
    timeout: float | None = None
    response_templates: Mapping[str, str] = field(default_factory=dict)
    response_selection: str = DEFAULT


@dataclass(frozen=True, kw_only=True)
class Authorizer:
    function: str
    identity_sources: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Route:
    key: str
    integration: Integration | None
    authorizer: Authorizer | None = None
    responds: bool = False  # the integration's answer is sent to the client


@dataclass(frozen=True, kw_only=True)
class Api:
    logical_id: str
    api_id: str
    host: str  # the name it would have on AWS
    selection: tuple[str, ...]  # the path inside the body: ("action",)
    stage: str
    routes: Mapping[str, Route]
    stage_variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Stack:
    api: Api
    functions: Mapping[str, Function]
    region: str
    account: str
    notices: tuple[str, ...] = ()
