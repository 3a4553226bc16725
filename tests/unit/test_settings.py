"""Settings name the variable that is wrong, and never say what is in it."""

import traceback
from typing import Any

import pytest

from superbizagent.errors import ConfigurationError
from superbizagent.settings import (
    ChannelSettings,
    DatabaseSettings,
    EvidenceSettings,
    KnowledgeSettings,
    ModelSettings,
    RunSettings,
    SignInSettings,
    read,
)

MODEL = {"OPENAI_API_KEY": "sk-canary", "OPENAI_MODEL": "m"}
SIGN_IN = {"AUTH_ISSUER": "https://issuer.example.com/pool", "AUTH_AUDIENCE": "ours"}
REQUIRED: list[tuple[type[Any], str, dict[str, str]]] = [
    (ChannelSettings, "CONNECTIONS_ENDPOINT", {}),
    (ModelSettings, "OPENAI_MODEL", {"OPENAI_API_KEY": "sk-canary"}),
    (SignInSettings, "AUTH_ISSUER", {"AUTH_AUDIENCE": "canary"}),
    (SignInSettings, "AUTH_AUDIENCE", {"AUTH_ISSUER": "https://canary"}),
]


def _everything_said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("value", [None, "", " ", "\n\t"])
@pytest.mark.parametrize(("shape", "name", "others"), REQUIRED)
def test_what_is_needed_and_not_set_is_named(
    shape: type[Any], name: str, others: dict[str, str], value: str | None
) -> None:
    given = others if value is None else {**others, name: value}
    with pytest.raises(ConfigurationError, match=rf"^{name} is not set$") as caught:
        read(shape, given)
    assert "canary" not in _everything_said(caught.value)


def test_everything_wrong_is_named_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(ModelSettings, {"OPENAI_API_KEY": "a\nb", "OPENAI_BASE_URL": "localhost:8000"})
    assert str(caught.value) == (
        "OPENAI_API_KEY has characters that no key has; OPENAI_BASE_URL is not an http or https address;"
        " OPENAI_MODEL is not set"
    )


HOST = {"DATABASE_HOST": "canary", "DATABASE_CA_FILE": "/canary"}
SECRET = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:canary-AbCdEf"


@pytest.mark.parametrize(
    ("shape", "given", "sentence"),
    [
        (DatabaseSettings, {"DATABASE_CA_FILE": "/canary"}, "DATABASE_URL is not set, nor is DATABASE_HOST"),
        (
            DatabaseSettings,
            {"DATABASE_HOST": "canary", "DATABASE_SECRET_ARN": SECRET},
            "DATABASE_CA_FILE is not set, and DATABASE_HOST is reached over verified TLS only",
        ),
        (DatabaseSettings, HOST, "DATABASE_SECRET_ARN is not set, nor is DATABASE_IAM_LOGIN"),
        (
            DatabaseSettings,
            HOST | {"DATABASE_IAM_LOGIN": "true"},
            "DATABASE_USER is not set, and DATABASE_IAM_LOGIN needs it",
        ),
        (ModelSettings, {"OPENAI_MODEL": "canary"}, "OPENAI_API_KEY is not set, nor is OPENAI_API_KEY_SECRET_ARN"),
    ],
)
def test_what_belongs_together_is_named_together(shape: type[Any], given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(shape, given)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "given",
    [
        {"DATABASE_URL": "sqlite:///x"},
        HOST | {"DATABASE_SECRET_ARN": SECRET, "DATABASE_IAM_LOGIN": "false"},
        HOST | {"DATABASE_IAM_LOGIN": "true", "DATABASE_USER": "u"},
    ],
)
def test_a_database_can_be_reached_in_three_ways(given: dict[str, str]) -> None:
    read(DatabaseSettings, given)


@pytest.mark.parametrize(
    ("shape", "variables", "name"),
    [
        (RunSettings, {"RUN_SECONDS": "canary"}, "RUN_SECONDS"),
        (RunSettings, {"RUN_SECONDS": "nan"}, "RUN_SECONDS"),
        (RunSettings, {"RUN_SECONDS": "inf"}, "RUN_SECONDS"),
        (RunSettings, {"RUN_SECONDS": "1e300"}, "RUN_SECONDS"),
        (RunSettings, {"RUN_SECONDS": "0"}, "RUN_SECONDS"),
        (RunSettings, {"RUN_SECONDS": "-5"}, "RUN_SECONDS"),
        (RunSettings, {"CANCEL_POLL_SECONDS": "1e-9"}, "CANCEL_POLL_SECONDS"),
        (RunSettings, {"RUN_MODEL_CALLS": "0"}, "RUN_MODEL_CALLS"),
        (RunSettings, {"RUN_MODEL_CALLS": "2.5"}, "RUN_MODEL_CALLS"),
        (RunSettings, {"RUN_TOKENS": "9" * 5000}, "RUN_TOKENS"),
        (RunSettings, {"PROJECTION_BYTES": "10"}, "PROJECTION_BYTES"),
        (DatabaseSettings, {"DATABASE_URL": "x", "DATABASE_POOL_SIZE": "canary"}, "DATABASE_POOL_SIZE"),
        (ModelSettings, {**MODEL, "OPENAI_BASE_URL": "canary"}, "OPENAI_BASE_URL"),
        (ModelSettings, {**MODEL, "OPENAI_BASE_URL": "ftp://canary"}, "OPENAI_BASE_URL"),
        (ModelSettings, {**MODEL, "OPENAI_API_KEY": "sk-canary\nx"}, "OPENAI_API_KEY"),
        (ModelSettings, {**MODEL, "OPENAI_API_KEY": "密钥canary"}, "OPENAI_API_KEY"),
        (KnowledgeSettings, {"EMBEDDINGS_BASE_URL": "canary"}, "EMBEDDINGS_BASE_URL"),
        (KnowledgeSettings, {"EMBEDDINGS_API_KEY": "sk canary"}, "EMBEDDINGS_API_KEY"),
        (KnowledgeSettings, {"EMBEDDINGS_MODEL": "canary" * 50}, "EMBEDDINGS_MODEL"),
        (KnowledgeSettings, {"EMBEDDINGS_QUERY_SECONDS": "canary"}, "EMBEDDINGS_QUERY_SECONDS"),
        (KnowledgeSettings, {"KNOWLEDGE_BASE_ID": "canary base"}, "KNOWLEDGE_BASE_ID"),
        (KnowledgeSettings, {"KNOWLEDGE_BASE_ID": "arn:aws:bedrock:eu-west-1:1:canary/A"}, "KNOWLEDGE_BASE_ID"),
        (ChannelSettings, {"CONNECTIONS_ENDPOINT": "wss://canary/live"}, "CONNECTIONS_ENDPOINT"),
        (ChannelSettings, {"CONNECTIONS_ENDPOINT": "https://"}, "CONNECTIONS_ENDPOINT"),
        (DatabaseSettings, HOST | {"DATABASE_SECRET_ARN": "canary"}, "DATABASE_SECRET_ARN"),
        (DatabaseSettings, HOST | {"DATABASE_NAME": "canary-x"}, "DATABASE_NAME"),
        (SignInSettings, {**SIGN_IN, "AUTH_ISSUER": "http://canary.example.com"}, "AUTH_ISSUER"),
        (SignInSettings, {**SIGN_IN, "AUTH_ISSUER": "http://localhost.canary.example.com"}, "AUTH_ISSUER"),
        (SignInSettings, {**SIGN_IN, "AUTH_JWKS_URL": "file:///canary"}, "AUTH_JWKS_URL"),
        (SignInSettings, {**SIGN_IN, "AUTH_AUDIENCE": ","}, "AUTH_AUDIENCE"),
        (SignInSettings, {**SIGN_IN, "AUTH_ALGORITHMS": "none"}, "AUTH_ALGORITHMS"),
        (SignInSettings, {**SIGN_IN, "AUTH_ALGORITHMS": "RS256, HS256"}, "AUTH_ALGORITHMS"),
        (SignInSettings, {**SIGN_IN, "AUTH_CLOCK_SKEW_SECONDS": "86400"}, "AUTH_CLOCK_SKEW_SECONDS"),
    ],
)
def test_what_is_wrong_is_named_and_not_quoted(shape: type[Any], variables: dict[str, str], name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{name}\b[^;]+$") as caught:
        read(shape, variables)
    assert "canary" not in _everything_said(caught.value)
    assert len(str(caught.value)) < 200


def test_secrets_stay_out_of_representations() -> None:
    assert "sk-canary" not in repr(read(ModelSettings, MODEL))
    assert "sk-canary" not in repr(read(KnowledgeSettings, {"EMBEDDINGS_API_KEY": "sk-canary"}))
    assert "hunter2" not in repr(read(DatabaseSettings, {"DATABASE_URL": "mysql://u:hunter2@h/d"}))


def test_a_knowledge_base_is_named_by_id_or_arn() -> None:
    for name in ("KB12345678", "arn:aws-us-gov:bedrock:us-gov-west-1:123456789012:knowledge-base/KB12345678"):
        assert read(KnowledgeSettings, {"KNOWLEDGE_BASE_ID": name}).knowledge_base_id == name


def test_empty_variables_are_as_good_as_none() -> None:
    assert read(RunSettings, {"RUN_SECONDS": "", "RUN_TOKENS": " "}) == RunSettings()
    assert read(ModelSettings, {**MODEL, "OPENAI_BASE_URL": ""}).openai_base_url is None
    assert read(SignInSettings, {**SIGN_IN, "AUTH_JWKS_URL": "", "AUTH_ALGORITHMS": " "}).auth_jwks_url is None
    assert read(DatabaseSettings, {"DATABASE_URL": "x", "DATABASE_CA_FILE": ""}).database_ca_file is None


def test_lists_are_separated_by_commas_or_spaces() -> None:
    settings = read(SignInSettings, SIGN_IN | {"AUTH_AUDIENCE": "one,two three", "AUTH_ALGORITHMS": "RS256, ES256"})
    assert settings.auth_audience == ("one", "two", "three")
    assert settings.auth_algorithms == ("RS256", "ES256")


def test_white_space_around_a_value_is_none_of_it() -> None:
    settings = read(ModelSettings, {"OPENAI_API_KEY": "sk-x\n", "OPENAI_MODEL": " m "})
    assert (settings.openai_api_key, settings.openai_model) == ("sk-x", "m")


def test_values_and_limits_are_taken() -> None:
    settings = read(RunSettings, {"RUN_SECONDS": "12.5", "RUN_TOOL_CALLS": "0", "OTHER": "x"})
    assert (settings.run_seconds, settings.run_tool_calls) == (12.5, 0)
    assert settings.run_model_calls == RunSettings().run_model_calls


def test_the_environment_is_where_settings_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTIONS_ENDPOINT", "http://127.0.0.1:1/live")
    assert read(ChannelSettings).connections_endpoint == "http://127.0.0.1:1/live"


def test_lists_of_names_may_be_empty() -> None:
    settings = read(EvidenceSettings, {"LOG_GROUP_ARNS": "a, b,,c", "BUSINESS_TABLES": " "})
    assert settings.log_group_arns == ("a", "b", "c")
    assert settings.business_tables == ()
