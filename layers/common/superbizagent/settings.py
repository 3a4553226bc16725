"""The only reader of the environment. Each part of the product reads its own settings when it needs them."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from superbizagent.errors import ConfigurationError

Seconds = Annotated[float, Field(ge=0.05, le=86_400)]
_ADDRESS = r"^https?://[^\s/?#]+"
_KEY = r"^[!-~]+$"
# Keys of signatures travel verified, or not over a network at all.
_SECURE_ADDRESS = r"^(https://[^\s/?#]+|http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?)(/|$)"
_KNOWLEDGE_BASE = r"^([0-9A-Za-z]{10}|arn:aws[a-z-]*:bedrock:[a-z0-9-]+:[0-9]{12}:knowledge-base/[0-9A-Za-z]{10})$"


def _listed(value: object) -> object:
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


Secret = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:\S+$")]
"""ARN of a secret of AWS Secrets Manager."""
_Names = BeforeValidator(_listed)
Names = Annotated[tuple[str, ...], _Names]


class _Settings(BaseModel):
    """Fields are named like their variables, in lower case."""

    # Values stay out of errors, for some of them are secrets, and out of `repr` by the same reasoning.
    # Built when they are read: each function reads a few of them, and a cold start need not build the others.
    model_config = ConfigDict(
        frozen=True, hide_input_in_errors=True, str_strip_whitespace=True, allow_inf_nan=False, defer_build=True
    )


class DatabaseSettings(_Settings):
    """`database_url`, a SQLAlchemy address with its password, is for one machine. Where it isn't set, the server is
    `database_host`, and its user and password are in the secret `database_secret_arn` (JSON: username, password);
    with `database_iam_login` the user is `database_user` and the password a token of IAM.

    `database_ca_file`: the authorities of which one signed the server's key.
    """

    database_url: str | None = Field(default=None, repr=False)
    database_host: str | None = None
    database_port: int = Field(default=3306, ge=1, le=65_535)
    database_name: str = Field(default="superbizagent", pattern=r"^[A-Za-z0-9_]{1,64}$")
    database_secret_arn: Secret | None = None
    database_iam_login: bool = False
    database_user: str | None = Field(default=None, max_length=32)
    database_ca_file: Path | None = None
    database_pool_size: int = Field(default=4, ge=1, le=50)

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.database_url is not None:
            return self
        if self.database_host is None:
            raise ValueError("DATABASE_URL is not set, nor is DATABASE_HOST")
        if self.database_ca_file is None:
            raise ValueError("DATABASE_CA_FILE is not set, and DATABASE_HOST is reached over verified TLS only")
        if self.database_iam_login and self.database_user is None:
            raise ValueError("DATABASE_USER is not set, and DATABASE_IAM_LOGIN needs it")
        if not self.database_iam_login and self.database_secret_arn is None:
            raise ValueError("DATABASE_SECRET_ARN is not set, nor is DATABASE_IAM_LOGIN")
        return self


class AccountSettings(_Settings):
    """The account that a migration makes for the functions: `account_name`, or none at all.

    It signs in with the password in the secret `account_secret_arn`, else with tokens of IAM.
    """

    account_name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_]{1,32}$")
    account_secret_arn: Secret | None = None


class ChannelSettings(_Settings):
    """`connections_endpoint` is the stage's https address."""

    connections_endpoint: str = Field(pattern=_ADDRESS)


# Signatures that need no secret of ours: an HS256 key would have to be known here, and could be the public one.
_Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


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
    """`openai_base_url` None: the SDK's default. The key is given, or is the text of a secret."""

    # A key travels in an HTTP header, whose library quotes one that doesn't fit in its error.
    openai_api_key: str | None = Field(default=None, pattern=_KEY, repr=False)
    openai_api_key_secret_arn: Secret | None = None
    openai_base_url: str | None = Field(default=None, pattern=_ADDRESS)
    openai_model: str = Field(min_length=1)

    @model_validator(mode="after")
    def _has_a_key(self) -> Self:
        if self.openai_api_key is None and self.openai_api_key_secret_arn is None:
            raise ValueError("OPENAI_API_KEY is not set, nor is OPENAI_API_KEY_SECRET_ARN")
        return self


class EvidenceSettings(_Settings):
    """What questions may look at: all in the TOML file `evidence_file`, or, where there is none, the log groups
    `log_group_arns` and the tables `business_tables`.

    `business_database_secret_arn` (JSON: username, password, host, dbname, port) is the account that reads the
    business database, whichever names its tables. `business_database_ca_file` is the authority that signed that
    database's key; without it another machine still has to encrypt, but not to prove who it is.
    """

    evidence_file: Path | None = None
    log_group_arns: Names = ()
    business_database_secret_arn: Secret | None = None
    business_database_ca_file: Path | None = None
    business_tables: Names = ()


class RedactionSettings(_Settings):
    """`redaction_key_secret_arn`: a secret of any text. It keys the marks that stand for found secrets; without it
    the database's address does, whose password must then never change.
    """

    redaction_key_secret_arn: Secret | None = None


class KnowledgeSettings(_Settings):
    """`knowledge_base_id`: of a knowledge base of Amazon Bedrock, in the place of our own index.

    `embeddings_model` set: our index ranks by meaning too. `embeddings_query_model` where the server
    wants questions under another name than passages.
    """

    knowledge_base_id: str | None = Field(default=None, pattern=_KNOWLEDGE_BASE)
    embeddings_api_key: str = Field(default="none", pattern=_KEY, repr=False)
    embeddings_api_key_secret_arn: Secret | None = None
    embeddings_base_url: str | None = Field(default=None, pattern=_ADDRESS)
    embeddings_model: str | None = Field(default=None, max_length=200)
    embeddings_query_model: str | None = Field(default=None, max_length=200)
    embeddings_query_seconds: Seconds = 5.0


class PageSettings(_Settings):
    """`page_folder` holds the page as it is deployed."""

    page_folder: Path


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


def is_key(text: str) -> bool:
    """Whether a secret's text can be sent as an API key."""
    return re.fullmatch(_KEY, text) is not None


def _problem(problem: Any) -> str:
    if not problem["loc"]:
        # Of several variables together: the sentence is our own.
        return str(problem["msg"]).removeprefix("Value error, ")
    name = str(problem["loc"][0]).upper()
    match problem["type"]:
        case "missing":
            return f"{name} is not set"
        case "string_pattern_mismatch" if name.endswith("_API_KEY"):
            return f"{name} has characters that no key has"
        case "string_pattern_mismatch" if name == "KNOWLEDGE_BASE_ID":
            return f"{name} is not the id or ARN of a knowledge base"
        case "string_pattern_mismatch" if name.endswith("_SECRET_ARN"):
            return f"{name} is not the ARN of a secret"
        case "string_pattern_mismatch" if name == "DATABASE_NAME":
            return f"{name} is not the name of a schema"
        case "string_pattern_mismatch" if name in ("AUTH_ISSUER", "AUTH_JWKS_URL"):
            return f"{name} is not an https address"
        case "string_pattern_mismatch":
            return f"{name} is not an http or https address"
        case _:
            return f"{name}: {problem['msg']}"
