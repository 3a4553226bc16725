"""TLS to the database: with a CA, the server has to prove who it is."""

from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest
from sqlalchemy import create_engine, text

from superbizagent.adapters.business_database import read_only_database
from superbizagent.adapters.business_database.encryption import Encryption
from superbizagent.adapters.store import Database
from superbizagent.domain.evidence import Evidence, QueryMysql
from superbizagent.errors import ConfigurationError, EvidenceUnavailable, StoreError
from tests.certificates import Authority, new_authority, server_options
from tests.database_server import DatabaseServer, private_server


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Authority]:
    folder = tmp_path_factory.mktemp("tls")
    return new_authority(folder / "ours.pem", "ours"), new_authority(folder / "strange.pem", "strange")


@pytest.fixture(scope="module")
def tls_server(authorities: tuple[Authority, Authority]) -> Iterator[DatabaseServer]:
    ours, _ = authorities
    with private_server(*server_options(ours.path.parent, ours)) as server:
        yield server


def _cipher(url: str, authority: Authority) -> str:
    database = Database(url, ca_file=str(authority.path))
    try:
        statement = text("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        return database.run(lambda connection: str(connection.execute(statement).one()[1]), writes=False)
    finally:
        database.close()


def test_a_server_with_a_certificate_of_our_authority_is_trusted(
    tls_server: DatabaseServer, authorities: tuple[Authority, Authority]
) -> None:
    assert _cipher(tls_server.url_of("mysql"), authorities[0])


def test_a_strange_authority_or_another_host_name_is_refused(
    tls_server: DatabaseServer, authorities: tuple[Authority, Authority]
) -> None:
    ours, strange = authorities
    url = tls_server.url_of("mysql")
    with pytest.raises(StoreError):
        _cipher(url, strange)
    with pytest.raises(StoreError):
        _cipher(url.replace("127.0.0.1", "localhost"), ours)


@pytest.mark.parametrize("option", ["ssl_disabled=true", "ssl_verify_cert=false", "ssl_check_hostname=false"])
def test_an_option_of_the_url_does_not_undo_it(
    tls_server: DatabaseServer, authorities: tuple[Authority, Authority], option: str
) -> None:
    url = f"{tls_server.url_of('mysql')}?{option}"
    assert _cipher(url, authorities[0])
    with pytest.raises(StoreError):
        _cipher(url, authorities[1])


def test_a_server_without_tls_is_refused(
    mysql_server: DatabaseServer, authorities: tuple[Authority, Authority]
) -> None:
    if not mysql_server.private:
        return
    with pytest.raises(StoreError):
        _cipher(mysql_server.url_of("mysql"), authorities[0])


async def _read(url: str, ca_file: Path | None = None) -> Evidence:
    database = read_only_database(f"{url}/business", {"orders": ""}, ca_file=ca_file)
    return await database.query(QueryMysql(statement="SELECT id FROM orders"))


@pytest.fixture(scope="module")
def business_url(tls_server: DatabaseServer) -> str:
    """Without a schema, so that its host can be changed."""
    engine = create_engine(tls_server.url_of("mysql"))
    with engine.begin() as connection:
        connection.execute(text("CREATE DATABASE business"))
        connection.execute(text("CREATE TABLE business.orders AS SELECT 7 AS id"))
    engine.dispose()
    return tls_server.url_of("mysql").rsplit("/", 1)[0]


async def test_the_business_database_proves_who_it_is_where_its_authority_is_set(
    business_url: str, authorities: tuple[Authority, Authority]
) -> None:
    ours, strange = authorities
    assert (await _read(business_url, ours.path)).lines == ('{"id": 7}',)
    with pytest.raises(EvidenceUnavailable):
        await _read(business_url, strange.path)
    with pytest.raises(EvidenceUnavailable):
        await _read(business_url.replace("127.0.0.1", "localhost"), ours.path)
    with pytest.raises(ConfigurationError, match="CA file"):
        await _read(business_url, ours.path.with_name("none.pem"))


async def test_a_business_database_without_tls_is_refused_where_its_authority_is_set(
    new_mysql_database: str, authorities: tuple[Authority, Authority]
) -> None:
    engine = create_engine(new_mysql_database)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders AS SELECT 7 AS id"))
    engine.dispose()
    query = QueryMysql(statement="SELECT id FROM orders")

    plain = read_only_database(new_mysql_database, {"orders": ""})
    assert (await plain.query(query)).lines == (await plain.query(query)).lines == ('{"id": 7}',)
    for url in (new_mysql_database, f"{new_mysql_database}?ssl_disabled=true"):
        with pytest.raises(EvidenceUnavailable):
            await read_only_database(url, {"orders": ""}, ca_file=authorities[0].path).query(query)


@pytest.mark.parametrize(
    ("host", "encrypted"),
    [("db.example", True), ("10.0.0.7", True), ("127.0.0.1.example", True), ("127.0.0.1", False), ("::1", False)],
)
def test_only_a_database_on_this_machine_may_do_without_tls(host: str, encrypted: bool) -> None:
    def connect(arguments: dict[str, object]) -> str:
        if "ssl" in arguments:
            raise pymysql.OperationalError(2026, "SSL is required but the server doesn't support it")
        return "plain"

    encryption = Encryption(host, None)
    if encrypted:
        with pytest.raises(pymysql.OperationalError):
            encryption.connected(connect)
    else:
        assert encryption.connected(connect) == "plain"


def test_all_connections_share_one_context(authorities: tuple[Authority, Authority]) -> None:
    encryption = Encryption("db.example", authorities[0].path)
    first, second = (encryption.connected(lambda arguments: arguments["ssl"]) for _ in range(2))

    assert first is second
    assert first.check_hostname
