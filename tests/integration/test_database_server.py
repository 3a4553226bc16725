"""The server the other tests stand on."""

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests.database_server import (
    GIVEN_URL,
    DatabaseServer,
    DatabaseServerMissing,
    database_server,
    private_server,
)


@pytest.mark.spec("STORE-4")
def test_a_new_database_is_empty_and_reached_over_tcp(new_mysql_database: str) -> None:
    engine = create_engine(new_mysql_database, poolclass=NullPool)
    with engine.connect() as connection:
        assert list(connection.execute(text("SHOW TABLES"))) == []
        assert engine.url.host is not None


def test_a_private_server_lives_beside_the_first_and_ends(mysql_server: DatabaseServer) -> None:
    with private_server() as second:
        assert second.url.port != mysql_server.url.port
        second.execute("CREATE DATABASE only_here")
    with pytest.raises(Exception, match="Can't connect"):
        second.execute("SELECT 1")


def test_a_given_server_is_used_as_it_is(mysql_server: DatabaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    url = mysql_server.url.set(drivername="mysql", database="some_application")
    monkeypatch.setenv(GIVEN_URL, url.render_as_string(hide_password=False))
    with database_server() as given, given.new_database() as fresh:
        assert not given.private
        assert "some_application" not in fresh
        given.execute("SELECT 1")


def test_without_any_server_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(GIVEN_URL, raising=False)
    monkeypatch.setattr("shutil.which", lambda *_arguments, **_options: None)
    with pytest.raises(DatabaseServerMissing, match="install MariaDB"), database_server():
        pass
