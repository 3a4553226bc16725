"""The file `evidence.toml`: which logs and which database an installation's questions are answered from."""

import re
import tomllib
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from superbizagent.errors import ConfigurationError

_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"

_LOG_GROUP: Final = r"^[.\-_/#A-Za-z0-9]{1,512}$"
_LEVEL_FIELD: Final = r"^(@?[A-Za-z_][A-Za-z0-9_-]{0,63}(\.[A-Za-z0-9_-]{1,64}){0,5})?$"

Name = Annotated[str, Field(pattern=_NAME)]
Description = Annotated[str, Field(max_length=500)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class LogEntry(_Section):
    """`[logs.NAME]`. `paths` are globs, absolute once loaded.

    Lines without a zone are read in `zone` (an IANA name) or at `utc_offset`; `year` is that of the
    first line of files whose lines leave it out.
    """

    description: Description = ""
    paths: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=1)
    utc_offset: str = "+00:00"
    zone: str | None = None
    year: Annotated[int, Field(ge=1970, le=9000)] | None = None

    @field_validator("paths", mode="before")
    @classmethod
    def _array(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("utc_offset")
    @classmethod
    def _offset(cls, value: str) -> str:
        try:
            datetime.strptime(f"2000-01-01 {value}", "%Y-%m-%d %z")
        except ValueError:
            raise ValueError("must be a distance from UTC such as +08:00") from None
        return value

    @field_validator("zone")
    @classmethod
    def _zone(cls, value: str | None) -> str | None:
        try:
            if value is not None:
                ZoneInfo(value)
        except (ValueError, OSError, KeyError):
            raise ValueError("must be a time zone's name such as Asia/Shanghai") from None
        return value


class CloudWatchEntry(_Section):
    """`[cloudwatch.NAME]`. `log_groups` are names, not ARNs: account and region are `[cloudwatch_settings]`.

    `level_field` is the field, as Logs Insights discovers it, that holds an event's level; "" for none.
    """

    description: Description = ""
    log_groups: tuple[Annotated[str, Field(pattern=_LOG_GROUP)], ...] = Field(min_length=1, max_length=50)
    level_field: Annotated[str, Field(pattern=_LEVEL_FIELD)] = "level"

    @field_validator("log_groups", mode="before")
    @classmethod
    def _array(cls, value: Any) -> Any:
        return tuple(dict.fromkeys(value)) if isinstance(value, list) and all(map(_is_text, value)) else value


class CloudWatchSettings(_Section):
    """`[cloudwatch_settings]`. With `account` no credentials of another one find anything.

    `lookback_days` is how far back searches may reach. `endpoint_url` is for private endpoints.
    """

    region: Annotated[str, Field(pattern=r"^[a-z]{2,4}(-[a-z]{1,12}){1,3}-[0-9]{1,2}$")]
    account: Annotated[str, Field(pattern=r"^[0-9]{12}$")] | None = None
    lookback_days: Annotated[int, Field(ge=1, le=3_660)] = 7
    endpoint_url: Annotated[str, Field(pattern=r"^https?://[^\s/?#]+")] | None = None


class TableEntry(_Section):
    """`[database.tables.NAME]`."""

    description: Description = ""


class DatabaseEntry(_Section):
    """`[database]`. `url` is a database URL once loaded, with an absolute path for SQLite."""

    url: str = Field(default="", repr=False)
    url_env: str | None = None
    description: Description = ""
    tables: dict[Name, TableEntry] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_url(self) -> Self:
        if bool(self.url) == bool(self.url_env):
            raise ValueError("needs either url or url_env")
        return self


class EvidenceFile(_Section):
    """The loaded file; every part may be missing."""

    logs: dict[Name, LogEntry] = Field(default_factory=dict)
    cloudwatch: dict[Name, CloudWatchEntry] = Field(default_factory=dict)
    cloudwatch_settings: CloudWatchSettings | None = None
    database: DatabaseEntry | None = None

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if self.cloudwatch and self.cloudwatch_settings is None:
            raise ValueError("cloudwatch needs a section cloudwatch_settings with the region")
        if twice := sorted(self.logs.keys() & self.cloudwatch.keys()):
            raise ValueError(f"{twice[0]} is a name both of logs and of cloudwatch")
        return self


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def evidence_of(
    log_group_arns: Sequence[str], business_database: Mapping[str, Any] | None, tables: Sequence[str]
) -> EvidenceFile:
    """What an evidence file would say, of names alone: each log group becomes a source under its own name.

    `business_database` has host, dbname and perhaps port; who signs in is not said here. Raises ConfigurationError.
    """
    groups = [_group_of(arn) for arn in log_group_arns]
    sources: dict[str, Any] = {}
    for _, name in groups:
        sources.setdefault(_source_name(name, sources), {"log_groups": [name]})
    regions = {region for region, _ in groups}
    if len(regions) > 1:
        raise ConfigurationError("LOG_GROUP_ARNS names several regions; one evidence file searches one")
    data: dict[str, Any] = {"cloudwatch": sources}
    if regions:
        data["cloudwatch_settings"] = {"region": regions.pop()}
    if business_database is not None:
        data["database"] = {"url": _url_of(business_database), "tables": {name: {} for name in tables}}
    try:
        return EvidenceFile.model_validate(data)
    except ValidationError as error:
        raise ConfigurationError(_sentence("LOG_GROUP_ARNS or BUSINESS_TABLES", error)) from None


def _group_of(arn: str) -> tuple[str, str]:
    """Region and name of a log group, by its ARN with or without the `:*` that AWS puts after it."""
    match = re.fullmatch(r"arn:[a-z-]+:logs:([a-z0-9-]+):[0-9]{12}:log-group:([^:*]+)(:\*)?", arn)
    if match is None:
        raise ConfigurationError("LOG_GROUP_ARNS has something that is not the ARN of a log group")
    return match[1], match[2]


def _source_name(group: str, taken: Container[str]) -> str:
    """The last part of a log group's name, or the whole one where two end alike."""
    short = re.sub(r"[^A-Za-z0-9_.-]", "-", group.rpartition("/")[2])
    return short if short not in taken else re.sub(r"[^A-Za-z0-9_.-]", "-", group.strip("/"))[-64:]


def _url_of(database: Mapping[str, Any]) -> str:
    try:
        host, name, port = str(database["host"]), str(database["dbname"]), int(database.get("port", 3306))
    except (KeyError, ValueError):
        raise ConfigurationError("the secret of the business database needs host, dbname and a port") from None
    return URL.create("mysql+pymysql", host=host, port=port, database=name).render_as_string()


def load_evidence_file(path: Path, environment: Mapping[str, str] | None = None) -> EvidenceFile:
    """Reads and checks the file; relative paths in it are taken from its folder.

    `environment` has the variables that `url_env` may name. Whether log files exist is not checked.
    Raises ConfigurationError with a sentence that names the key.
    """
    data = _parsed(path)
    try:
        loaded = EvidenceFile.model_validate(data)
    except ValidationError as error:
        # Not chained: pydantic's text quotes the values, among them a URL with its password.
        raise ConfigurationError(_sentence(path, error)) from None
    folder = path.absolute().parent
    logs = {name: _resolved_logs(entry, folder) for name, entry in loaded.logs.items()}
    database = loaded.database and _resolved_database(loaded.database, path, folder, environment or {})
    return loaded.model_copy(update={"logs": logs, "database": database})


def _parsed(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigurationError(f"{path} could not be read: there must be an evidence file there") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        where = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "its text is broken"
        raise ConfigurationError(f"{path} is not valid TOML: {where}") from error


def _sentence(path: Path | str, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    key = ".".join(str(part) for part in first["loc"] if part != "[key]") or "the file"
    if first["type"] == "extra_forbidden":
        return f"{path}: {key} is not a known key"
    if first["type"] == "missing":
        return f"{path}: {key} is missing"
    problem = first["msg"].removeprefix("Value error, ")
    return f"{path}: {key}: {problem[:1].lower()}{problem[1:]}"


def _resolved_logs(entry: LogEntry, folder: Path) -> LogEntry:
    return entry.model_copy(update={"paths": tuple(str(folder / Path(p).expanduser()) for p in entry.paths)})


def _resolved_database(entry: DatabaseEntry, path: Path, folder: Path, environment: Mapping[str, str]) -> DatabaseEntry:
    key = f"database.url_env ({entry.url_env})" if entry.url_env else "database.url"
    text = environment.get(entry.url_env, "") if entry.url_env else entry.url
    if not text:
        raise ConfigurationError(f"{path}: {key}: the environment variable is not set")
    try:
        url = make_url(text)
    except ArgumentError:
        raise ConfigurationError(f"{path}: {key}: is not a database URL") from None
    backend = url.get_backend_name()
    if backend not in ("sqlite", "mysql", "mariadb"):
        raise ConfigurationError(f"{path}: {key}: must begin with sqlite:/// or mysql+pymysql://")
    if not url.database or url.database == ":memory:":
        raise ConfigurationError(f"{path}: {key}: must name a {'file' if backend == 'sqlite' else 'schema'}")
    if backend == "sqlite":
        url = url.set(database=str(folder / Path(url.database).expanduser()))
    return entry.model_copy(update={"url": url.render_as_string(hide_password=False)})
