"""Loading evidence.toml: paths, and a sentence for each mistake."""

import re
from pathlib import Path

import pytest

from superbizagent.adapters.evidence_file import evidence_of, load_evidence_file
from superbizagent.errors import ConfigurationError

WHOLE = """
[logs.checkout]
description = "Checkout service"
paths = ["logs/checkout*.log*", "/var/log/other.log"]
utc_offset = "+08:00"

[database]
url = "sqlite:///business.db"
description = "Orders and payments"
[database.tables.orders]
description = "One row an order"
[database.tables.payments]
"""


SETTINGS = '[cloudwatch_settings]\nregion = "eu-west-1"\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "evidence.toml"
    path.write_text(text)
    return path


def test_paths_are_taken_from_the_file_s_folder(tmp_path: Path) -> None:
    loaded = load_evidence_file(write(tmp_path, WHOLE))

    assert loaded.logs["checkout"].paths == (f"{tmp_path}/logs/checkout*.log*", "/var/log/other.log")
    assert loaded.logs["checkout"].utc_offset == "+08:00"
    assert loaded.database
    assert loaded.database.url == f"sqlite:///{tmp_path}/business.db"
    assert {name: table.description for name, table in loaded.database.tables.items()} == {
        "orders": "One row an order",
        "payments": "",
    }


def test_the_url_may_come_from_the_environment(tmp_path: Path) -> None:
    path = write(tmp_path, '[database]\nurl_env = "BUSINESS_DATABASE_URL"\n[database.tables.orders]\n')

    loaded = load_evidence_file(path, {"BUSINESS_DATABASE_URL": "mysql+pymysql://u:p%40w@h/shop"})

    assert loaded.database
    assert loaded.database.url == "mysql+pymysql://u:p%40w@h/shop"
    assert "p%40w" not in repr(loaded)
    with pytest.raises(ConfigurationError, match="BUSINESS_DATABASE_URL"):
        load_evidence_file(path, {})


def test_both_parts_may_be_missing(tmp_path: Path) -> None:
    loaded = load_evidence_file(write(tmp_path, ""))

    assert loaded.logs == {}
    assert loaded.database is None


@pytest.mark.spec("SEC-2")
def test_log_groups_live_beside_files(tmp_path: Path) -> None:
    text = (
        WHOLE
        + SETTINGS
        + 'account = "111122223333"\n[cloudwatch.payments]\nlog_groups = ["/aws/lambda/payments", "/x", "/x"]\n'
    )

    loaded = load_evidence_file(write(tmp_path, text))

    assert list(loaded.logs) == ["checkout"]
    payments = loaded.cloudwatch["payments"]
    assert (payments.log_groups, payments.level_field) == (("/aws/lambda/payments", "/x"), "level")
    assert loaded.cloudwatch_settings
    assert (loaded.cloudwatch_settings.region, loaded.cloudwatch_settings.lookback_days) == ("eu-west-1", 7)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[log.a]\npaths = ["x"]', "log is not a known key"),
        ('[logs.a]\npaths = ["x"]\npath = "y"', r"logs\.a\.path is not a known key"),
        ("[logs.a]\n", r"logs\.a\.paths is missing"),
        ("[logs.a]\npaths = []", r"logs\.a\.paths: "),
        ('[logs.a]\npaths = "x"', r"logs\.a\.paths: "),
        ('[logs.a]\npaths = ["x"]\nutc_offset = "8"', r"logs\.a\.utc_offset: must be a distance"),
        ('[logs.a]\npaths = ["x"]\nutc_offset = 8', r"logs\.a\.utc_offset: "),
        ('[logs.a]\npaths = ["x"]\nzone = "Mars"', r"logs\.a\.zone: must be a time zone"),
        ('[logs.a]\npaths = ["x"]\nyear = 99999', r"logs\.a\.year: "),
        ('[logs."a b"]\npaths = ["x"]', r"logs\.a b"),
        ('[database]\nurl = "sqlite:///x"', r"database\.tables is missing"),
        ("[database.tables.a]\n", "database: needs either url or url_env"),
        ('[database]\nurl = "x"\nurl_env = "Y"\n[database.tables.a]', "needs either"),
        ('[database]\nurl = "postgresql://u:hunter2@h/d"\n[database.tables.a]', r"database\.url: must begin"),
        ('[database]\nurl = "hunter2"\n[database.tables.a]', r"database\.url: is not a database URL"),
        (
            '[database]\nurl = "mysql://u:hunter2@h"\n[database.tables.a]',
            r"database\.url: must name a schema",
        ),
        ("[logs", "is not valid TOML"),
        ('[cloudwatch.a]\nlog_groups = ["/a"]', "needs a section cloudwatch_settings"),
        ('[cloudwatch_settings]\naccount = "111122223333"', r"cloudwatch_settings\.region is missing"),
        ('[cloudwatch_settings]\nregion = "here"', r"cloudwatch_settings\.region: "),
        ('[cloudwatch_settings]\nregion = "eu-west-1"\naccount = "1"', r"cloudwatch_settings\.account: "),
        (SETTINGS + "[cloudwatch.a]\nlog_groups = []", r"cloudwatch\.a\.log_groups: "),
        (SETTINGS + '[cloudwatch.a]\nlog_groups = "/a"', r"cloudwatch\.a\.log_groups: "),
        (SETTINGS + '[cloudwatch.a]\nlog_groups = ["/a*"]', r"cloudwatch\.a\.log_groups\.0: "),
        (
            SETTINGS + '[cloudwatch.a]\nlog_groups = ["arn:aws:logs:eu-west-1:111122223333:log-group:/a"]',
            r"cloudwatch\.a\.log_groups\.0: ",
        ),
        (SETTINGS + '[cloudwatch.a]\nlog_groups = ["/a"]\nlevel_field = "x | limit"', r"cloudwatch\.a\.level_field: "),
        (SETTINGS + '[cloudwatch.a]\nlog_groups = ["/a"]\nlevel_field = "a`b"', r"cloudwatch\.a\.level_field: "),
        (SETTINGS + '[logs.a]\npaths = ["x"]\n[cloudwatch.a]\nlog_groups = ["/a"]', "a is a name both of logs and"),
    ],
)
def test_each_mistake_is_told_by_its_key(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as raised:
        load_evidence_file(write(tmp_path, text))

    assert "hunter2" not in str(raised.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"evidence\.toml could not be read"):
        load_evidence_file(tmp_path / "evidence.toml")


GROUP = "arn:aws:logs:eu-west-1:111122223333:log-group:"


def test_log_groups_by_their_arns_alone_become_sources() -> None:
    loaded = evidence_of([f"{GROUP}/aws/lambda/checkout:*", f"{GROUP}plain"], None, ())

    assert {name: entry.log_groups for name, entry in loaded.cloudwatch.items()} == {
        "checkout": ("/aws/lambda/checkout",),
        "plain": ("plain",),
    }
    assert loaded.cloudwatch_settings is not None
    assert loaded.cloudwatch_settings.region == "eu-west-1"
    assert loaded.database is None


def test_groups_that_end_alike_keep_their_whole_names() -> None:
    loaded = evidence_of([f"{GROUP}/aws/lambda/checkout", f"{GROUP}/ecs/checkout"], None, ())

    assert set(loaded.cloudwatch) == {"checkout", "ecs-checkout"}


def test_a_business_database_is_where_its_secret_says() -> None:
    secret = {"username": "reader", "password": "hunter2", "host": "db.example.com", "port": 3307, "dbname": "shop"}
    loaded = evidence_of([], secret, ["orders"])

    assert loaded.database is not None
    assert loaded.database.url == "mysql+pymysql://db.example.com:3307/shop"
    assert set(loaded.database.tables) == {"orders"}
    assert loaded.cloudwatch_settings is None


@pytest.mark.parametrize(
    ("groups", "secret", "tables", "sentence"),
    [
        (["/aws/lambda/checkout"], None, [], "LOG_GROUP_ARNS has something that is not the ARN of a log group"),
        ([f"{GROUP}*"], None, [], "LOG_GROUP_ARNS has something that is not the ARN of a log group"),
        ([GROUP.replace("west", "north") + "a", GROUP + "b"], None, [], "LOG_GROUP_ARNS names several regions"),
        ([], {"dbname": "shop"}, ["orders"], "the secret of the business database needs host, dbname and a port"),
        ([], {"host": "h", "dbname": "shop"}, [], "LOG_GROUP_ARNS or BUSINESS_TABLES: database.tables"),
        ([], {"host": "h", "dbname": "shop"}, ["a b"], "LOG_GROUP_ARNS or BUSINESS_TABLES: database.tables"),
    ],
)
def test_what_is_wrong_with_names_is_said(
    groups: list[str], secret: dict[str, str] | None, tables: list[str], sentence: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(sentence)):
        evidence_of(groups, secret, tables)
