"""The only reader of the environment. Each part of the product reads its own settings when it needs them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from superbizagent.errors import ConfigurationError

Seconds = Annotated[float, Field(ge=0.05, le=86_400)]
_ADDRESS = r"^https?://[^\s/?#]+"
# Keys of signatures travel verified, or not over a network at all.
_SECURE_ADDRESS = r"^(https://[^\s/?#]+|http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?)(/|$)"
_KNOWLEDGE_BASE = r"^([0-9A-Za-z]{10}|arn:aws[a-z-]*:bedrock:[a-z0-9-]+:[0-9]{12}:knowledge-base/[0-9A-Za-z]{10})$"


class _Settings(BaseModel):
    """Fields are named like their variables, in lower case."""

    # Values stay out of errors, for some of them are secrets, and out of `repr` by the same reasoning.
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True, str_strip_whitespace=True, allow_inf_nan=False)


class DatabaseSettings(_Settings):
    """`database_url` is a SQLAlchemy address; `database_ca_file` the authority that signed the server's key."""

    database_url: str = Field(min_length=1, repr=False)
    database_ca_file: Path | None = None
    database_pool_size: int = Field(default=4, ge=1, le=50)


class ChannelSettings(_Settings):
    """`connections_endpoint` is the stage's https address."""

    connections_endpoint: str = Field(pattern=_ADDRESS)


def _listed(value: object) -> object:
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


# Signatures that need no secret of ours: an HS256 key would have to be known here, and could be the public one.
_Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_Names = BeforeValidator(_listed)


class SignInSettings(_Settings):
    """Whose tokens let in. Lists are separated by commas or spaces.

    `auth_audience` is what a token has to be for: one of its `aud`, or the `client_id` of a Cognito access token.
    `auth_jwks_url` None: where the issuer's `.well-known/openid-configuration` says.
    """

    auth_issuer: str = Field(pattern=_SECURE_ADDRESS)
    auth_audience: Annotated[tuple[str, ...], _Names, Field(min_length=1)]
    auth_jwks_url: str | None = Field(default=None, pattern=_SECURE_ADDRESS)
    auth_algorithms: Annotated[tuple[_Algorithm, ...], _Names] = ("RS256",)
    auth_clock_skew_seconds: float = Field(default=60.0, ge=0, le=300)


class ModelSettings(_Settings):
    """`openai_base_url` None: the SDK's default."""

    # A key travels in an HTTP header, whose library quotes one that doesn't fit in its error.
    openai_api_key: str = Field(pattern=r"^[!-~]+$", repr=False)
    openai_base_url: str | None = Field(default=None, pattern=_ADDRESS)
    openai_model: str = Field(min_length=1)


class EvidenceSettings(_Settings):
    """`evidence_file` is the TOML file that names log sources and the business database.

    `business_database_ca_file` is the authority that signed that database's key. Without it another machine
    still has to encrypt, but not to prove who it is.
    """

    evidence_file: Path
    business_database_ca_file: Path | None = None


class KnowledgeSettings(_Settings):
    """`knowledge_base_id`: of a knowledge base of Amazon Bedrock, in the place of our own index.

    `embeddings_model` set: our index ranks by meaning too. `embeddings_query_model` where the server
    wants questions under another name than passages.
    """

    knowledge_base_id: str | None = Field(default=None, pattern=_KNOWLEDGE_BASE)
    embeddings_api_key: str = Field(default="none", pattern=r"^[!-~]+$", repr=False)
    embeddings_base_url: str | None = Field(default=None, pattern=_ADDRESS)
    embeddings_model: str | None = Field(default=None, max_length=200)
    embeddings_query_model: str | None = Field(default=None, max_length=200)
    embeddings_query_seconds: Seconds = 5.0


class RunSettings(_Settings):
    """Limits of one run; seconds, calls and tokens."""

    run_seconds: Seconds = 180.0
    run_model_calls: int = Field(default=14, ge=1)
    run_tool_calls: int = Field(default=16, ge=0)
    run_tokens: int = Field(default=200_000, ge=1)
    model_call_seconds: Seconds = 60.0
    verdict_seconds: Seconds = 30.0
    tool_call_seconds: Seconds = 30.0
    saturation_calls: int = Field(default=3, ge=1)
    projection_bytes: int = Field(default=8_000, ge=500)
    terminal_reserve_seconds: Seconds = 20.0
    cancel_poll_seconds: Seconds = 0.5


Settings = TypeVar("Settings", bound=_Settings)


def read(shape: type[Settings], environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of one part; raises ConfigurationError that names the variable and what is wrong with it.

    An empty or blank variable counts as not set: templates can't leave one out.
    """
    variables = os.environ if environment is None else environment
    given = {name: variables[name.upper()] for name in shape.model_fields if variables.get(name.upper(), "").strip()}
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        raise ConfigurationError("; ".join(_problem(problem) for problem in error.errors())) from error


def environment() -> Mapping[str, str]:
    """For what a settings file refers to by variable name."""
    return os.environ


def _problem(problem: Any) -> str:
    name = str(problem["loc"][0]).upper()
    match problem["type"]:
        case "missing":
            return f"{name} is not set"
        case "string_pattern_mismatch" if name.endswith("_API_KEY"):
            return f"{name} has characters that no key has"
        case "string_pattern_mismatch" if name == "KNOWLEDGE_BASE_ID":
            return f"{name} is not the id or ARN of a knowledge base"
        case "string_pattern_mismatch" if name in ("AUTH_ISSUER", "AUTH_JWKS_URL"):
            return f"{name} is not an https address"
        case "string_pattern_mismatch":
            return f"{name} is not an http or https address"
        case _:
            return f"{name}: {problem['msg']}"
