"""The only reader of the environment. Each part of the product reads its own settings when it needs them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from superbizagent.errors import ConfigurationError


class _Settings(BaseModel):
    """Fields are named like their variables, in lower case."""

    model_config = ConfigDict(frozen=True)


class DatabaseSettings(_Settings):
    """`database_url` is a SQLAlchemy address; `database_ca_file` the authority that signed the server's key."""

    database_url: str = Field(min_length=1)
    database_ca_file: Path | None = None
    database_pool_size: int = Field(default=4, ge=1, le=50)


class ChannelSettings(_Settings):
    connections_endpoint: str = Field(min_length=1)


class PrincipalSettings(_Settings):
    """`development_principal`: who everybody is, where there is no authorizer. Only for one machine."""

    development_principal: str | None = None


class ModelSettings(_Settings):
    """`openai_base_url` None: the SDK's default."""

    openai_api_key: str = Field(min_length=1)
    openai_base_url: str | None = None
    openai_model: str = Field(min_length=1)


class EvidenceSettings(_Settings):
    """`evidence_file` is the TOML file that names log sources and the business database."""

    evidence_file: Path


class RunSettings(_Settings):
    """Limits of one run; seconds, calls and tokens."""

    run_seconds: float = Field(default=180.0, gt=0)
    run_model_calls: int = Field(default=14, ge=1)
    run_tool_calls: int = Field(default=16, ge=0)
    run_tokens: int = Field(default=200_000, ge=1)
    model_call_seconds: float = Field(default=60.0, gt=0)
    verdict_seconds: float = Field(default=30.0, gt=0)
    tool_call_seconds: float = Field(default=30.0, gt=0)
    saturation_calls: int = Field(default=3, ge=1)
    projection_bytes: int = Field(default=8_000, ge=500)
    terminal_reserve_seconds: float = Field(default=10.0, gt=0)
    cancel_poll_seconds: float = Field(default=0.5, gt=0)


Settings = TypeVar("Settings", bound=_Settings)


def read(shape: type[Settings], environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of one part; raises ConfigurationError that names the variable and what is wrong with it.

    An empty variable counts as not set: templates can't leave one out.
    """
    variables = os.environ if environment is None else environment
    given = {name: variables[name.upper()] for name in shape.model_fields if variables.get(name.upper())}
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        raise ConfigurationError("; ".join(_problem(problem) for problem in error.errors())) from error


def environment() -> Mapping[str, str]:
    """For what a settings file refers to by variable name."""
    return os.environ


def _problem(problem: Any) -> str:
    name = str(problem["loc"][0]).upper()
    return f"{name} is not set" if problem["type"] == "missing" else f"{name}: {problem['msg']}"
