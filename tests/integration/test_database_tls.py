"""TLS to the database: with a CA, the server has to prove who it is."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from superbizagent.adapters.store import Database
from superbizagent.errors import StoreError
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


def test_a_server_without_tls_is_refused(
    mysql_server: DatabaseServer, authorities: tuple[Authority, Authority]
) -> None:
    if not mysql_server.private:
        return
    with pytest.raises(StoreError):
        _cipher(mysql_server.url_of("mysql"), authorities[0])
