"""How a deployed stack signs in to its database: with a secret that is rotated, or with tokens of IAM."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from moto import mock_aws
from sqlalchemy import make_url, text

from migrations.__main__ import main
from superbizagent.adapters.iam_login import IamLogin
from superbizagent.adapters.mysql_login import PAUSES
from superbizagent.adapters.secrets_manager import SecretLogin, SecretsManager
from superbizagent.adapters.store import Database
from superbizagent.bootstrap import Services
from superbizagent.errors import ConfigurationError, StoreError
from tests.certificates import Authority, new_authority, server_options
from tests.database_server import DatabaseServer, private_server

REGION = "eu-central-1"


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits before another try, which these tests don't sit out."""
    waited: list[float] = []
    monkeypatch.setattr("superbizagent.adapters.mysql_login.time.sleep", waited.append)
    return waited


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return new_authority(tmp_path_factory.mktemp("tls") / "ours.pem", "ours")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Iterator[DatabaseServer]:
    with private_server(*server_options(authority.path.parent, authority)) as server:
        yield server


@dataclass
class Account:
    """A user of the server, and the secret that says how to sign in as it."""

    server: DatabaseServer
    arn: str

    def set_password(self, password: str) -> None:
        self.server.execute("DROP USER IF EXISTS app@'%'", f"CREATE USER app@'%' IDENTIFIED BY '{password}'")

    def set_secret(self, password: str) -> None:
        _client().put_secret_value(SecretId=self.arn, SecretString=_login("app", password))

    def variables(self, authority: Authority) -> dict[str, str]:
        return {
            "DATABASE_HOST": "127.0.0.1",
            "DATABASE_PORT": str(self.server.url.port),
            "DATABASE_NAME": "information_schema",
            "DATABASE_SECRET_ARN": self.arn,
            "DATABASE_CA_FILE": str(authority.path),
        }


def _client() -> Any:
    return boto3.session.Session().client("secretsmanager")


def _login(user: str, password: str) -> str:
    return json.dumps({"username": user, "password": password})


def _secret(text_: str) -> str:
    arn: str = _client().create_secret(Name="database", SecretString=text_)["ARN"]
    return arn


@pytest.fixture
def account(server: DatabaseServer) -> Account:
    account = Account(server, _secret(_login("app", "first")))
    account.set_password("first")
    return account


def _user(database: Database) -> str:
    statement = text("SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)")
    return str(database.run(lambda connection: connection.scalar(statement), writes=False))


def _database(account: Account, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Database:
    """As the functions have it: from nothing but their variables."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    for name, value in account.variables(authority).items():
        monkeypatch.setenv(name, value)
    return Services().database


@pytest.mark.spec("SEC-5")
def test_a_function_signs_in_with_its_secret(
    account: Account, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(_database(account, authority, monkeypatch)) as database:
        assert _user(database) == "app"


def test_a_rotated_password_is_read_again_when_the_old_one_is_refused(
    account: Account, authority: Authority, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    with closing(_database(account, authority, monkeypatch)) as database:
        assert _user(database) == "app"
        account.set_password("second")
        account.set_secret("second")
        database.engine.dispose()  # the next connection is a new one
        assert _user(database) == "app"
    assert pauses == [0.0]


def test_a_rotation_half_done_is_waited_for(
    account: Account, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has the new password, the secret still the old one."""
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            account.set_secret("second")

    monkeypatch.setattr("superbizagent.adapters.mysql_login.time.sleep", wait)
    account.set_password("second")
    with closing(_database(account, authority, monkeypatch)) as database:
        assert _user(database) == "app"
    assert waited == list(PAUSES[:2])


def test_a_wrong_password_ends_in_a_store_error(
    account: Account, authority: Authority, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    account.set_password("another")
    with closing(_database(account, authority, monkeypatch)) as database, pytest.raises(StoreError) as caught:
        _user(database)
    assert "first" not in str(caught.value)
    assert pauses == list(PAUSES)


def test_the_command_of_the_migrations_signs_in_as_a_function_does(
    server: DatabaseServer, authority: Authority, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """RDS takes nobody without TLS, and the owner's password is in a secret that is rotated every week."""
    with server.new_database() as url:
        name = make_url(url).database or ""
        server.execute("CREATE USER owner@'%' IDENTIFIED BY 'first' REQUIRE SSL", f"GRANT ALL ON {name}.* TO owner@'%'")
        monkeypatch.delenv("DATABASE_URL", raising=False)
        owner = Account(server, _secret(_login("owner", "first")))
        for variable, value in {**owner.variables(authority), "DATABASE_NAME": name}.items():
            monkeypatch.setenv(variable, value)
        for command in (["upgrade"], ["downgrade", "V012"], ["current"]):
            assert main(command) == 0
        assert capsys.readouterr().out.splitlines()[1:] == ["V012", "V012"]
        server.execute("DROP USER owner@'%'")


@dataclass
class Tokens:
    """A login whose password is another one each time, as tokens are."""

    server: DatabaseServer
    made: list[str] = field(default_factory=list)

    def credentials(self) -> tuple[str, str]:
        self.made.append(f"token-{len(self.made) + 1}")
        account = Account(self.server, "")
        account.set_password(self.made[-1])
        return "app", self.made[-1]

    def forget(self) -> None:
        raise AssertionError("no token was refused")


def test_every_physical_connection_gets_a_token_of_its_own(server: DatabaseServer, authority: Authority) -> None:
    """P039: a token is good for 15 minutes; connections that were made with an old one go on."""
    tokens = Tokens(server)
    url = f"mysql://127.0.0.1:{server.url.port}/information_schema"
    with closing(Database(url, ca_file=str(authority.path), login=tokens)) as database:
        assert [_user(database), _user(database)] == ["app", "app"]
        assert tokens.made == ["token-1"]
        with database.engine.connect(), database.engine.connect() as second:
            assert second.scalar(text("SELECT 1")) == 1
        assert tokens.made == ["token-1", "token-2"]


def test_a_token_is_signed_for_its_server_and_user() -> None:
    user, token = IamLogin("db.example.com", 3306, "app").credentials()

    assert user == "app"
    assert token.startswith("db.example.com:3306/?")
    query = {name: values[0] for name, values in parse_qs(urlsplit(f"https://{token}").query).items()}
    assert (query["Action"], query["DBUser"], query["X-Amz-Expires"]) == ("connect", "app", "900")
    assert query["X-Amz-Credential"].endswith(f"/{REGION}/rds-db/aws4_request")


def test_no_token_can_be_signed_without_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(ConfigurationError, match="NoRegionError"):
        IamLogin("db.example.com", 3306, "app").credentials()


def test_a_login_travels_over_verified_tls_only() -> None:
    with pytest.raises(ConfigurationError):
        Database("mysql://h/d", login=IamLogin("h", 3306, "u"))


class NoLogin:
    def credentials(self) -> tuple[str, str]:
        raise OSError("vendor text")

    def forget(self) -> None:
        """Nothing was had."""


def test_a_login_that_cannot_be_had_is_a_store_error(server: DatabaseServer, authority: Authority) -> None:
    url = f"mysql://127.0.0.1:{server.url.port}/information_schema"
    with (
        closing(Database(url, ca_file=str(authority.path), login=NoLogin())) as database,
        pytest.raises(StoreError) as caught,
    ):
        _user(database)
    assert "vendor text" not in str(caught.value)


def test_a_secret_is_read_once_a_process_until_it_is_forgotten() -> None:
    arn = _secret("first")
    secrets = SecretsManager()
    assert secrets.text(arn) == "first"
    _client().put_secret_value(SecretId=arn, SecretString="second")
    assert secrets.text(arn) == "first"
    secrets.forget(arn)
    assert secrets.text(arn) == "second"


@pytest.mark.spec("SEC-4")
@pytest.mark.parametrize(
    "text_", ["canary", '["canary"]', '{"username": "canary"}', '{"username": 1, "password": "canary"}']
)
def test_a_secret_of_another_form_is_named_and_not_quoted(text_: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        SecretLogin(SecretsManager(), _secret(text_)).credentials()
    assert "the secret database-" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert "123456789012" not in str(caught.value)


def test_a_secret_that_cannot_be_read_is_named_with_awss_code() -> None:
    arn = f"arn:aws:secretsmanager:{REGION}:123456789012:secret:nothing-AbCdEf"
    with pytest.raises(ConfigurationError, match=r"nothing-AbCdEf can't be read: ResourceNotFoundException"):
        SecretsManager().text(arn)


def test_the_model_key_may_be_a_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {
        "OPENAI_API_KEY": "",
        "OPENAI_API_KEY_SECRET_ARN": _secret("sk-from-secret\n"),
        "OPENAI_MODEL": "m",
        "DATABASE_URL": f"sqlite:///{tmp_path / 'x.db'}",
    }.items():
        monkeypatch.setenv(name, value)
    assert Services().chat is not None


def test_a_model_key_that_is_no_key_is_named_and_not_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, value in {
        "OPENAI_API_KEY_SECRET_ARN": _secret("canary\nkey"),
        "OPENAI_MODEL": "m",
        "DATABASE_URL": f"sqlite:///{tmp_path / 'x.db'}",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match="characters that no key has") as caught:
        _ = Services().chat
    assert "canary" not in str(caught.value)


@pytest.fixture
def owner(server: DatabaseServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """The database of the stack, as the function sees it that migrates it."""
    monkeypatch.setenv("ACCOUNT_NAME", "app")
    server.execute("DROP USER IF EXISTS app@'%'")
    with server.new_database() as url, closing(Database(url)) as database:
        server_wide = "CREATE TABLE things (id INT PRIMARY KEY)"
        database.run(lambda connection: connection.exec_driver_sql(server_wide), writes=True)
        yield database


@pytest.mark.spec("SEC-5")
def test_the_functions_account_reads_and_writes_rows_and_nothing_else(
    owner: Database, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = SecretsManager()
    arn = _secret(_login("app", "first:1%"))
    monkeypatch.setenv("ACCOUNT_SECRET_ARN", arn)
    for password in ("first:1%", "second"):
        _client().put_secret_value(SecretId=arn, SecretString=_login("app", password))
        Services().provide_account(owner)
        Services().provide_account(owner)  # a deployment may be tried again
        secrets.forget(arn)
        url = owner.engine.url.set(username=None, password=None).render_as_string()
        with closing(Database(url, ca_file=str(authority.path), login=SecretLogin(secrets, arn))) as database:
            for statement in ("INSERT INTO things VALUES (1)", "UPDATE things SET id = 2", "DELETE FROM things"):
                database.run(lambda connection, said=statement: connection.exec_driver_sql(said), writes=True)  # type: ignore[misc]
            for statement in ("DROP TABLE things", "CREATE TABLE more (id INT)", "SELECT * FROM mysql.user"):
                with pytest.raises(StoreError, match="1142"):
                    database.run(lambda connection, said=statement: connection.exec_driver_sql(said), writes=True)  # type: ignore[misc]


def test_the_account_may_not_come_without_tls(owner: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCOUNT_SECRET_ARN", _secret(_login("app", "first")))
    Services().provide_account(owner)
    url = owner.engine.url.set(username="app", password="first").render_as_string(hide_password=False)
    with closing(Database(f"{url}?ssl_disabled=true")) as plain, pytest.raises(StoreError, match="1045"):
        plain.run(lambda connection: connection.exec_driver_sql("SELECT 1"), writes=False)


def test_an_account_of_iam_is_made_by_rdss_own_plugin(owner: Database) -> None:
    """No other server has it: that it is asked for is all that can be seen here."""
    with pytest.raises(StoreError, match="1524"):
        Services().provide_account(owner)


@pytest.mark.parametrize("password", ["it's", 'a"b', "a\\b", "a\nb", "密"])
def test_a_password_that_would_need_escaping_is_refused(
    owner: Database, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCOUNT_SECRET_ARN", _secret(_login("app", password)))
    with pytest.raises(ConfigurationError, match="quotes, backslashes"):
        Services().provide_account(owner)
