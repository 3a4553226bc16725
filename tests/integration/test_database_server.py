"""The server the other tests stand on."""

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests.database_server import DatabaseServer, database_server


@pytest.mark.spec("STORE-4")
def test_a_new_database_is_empty_and_reached_over_tcp(new_mysql_database: str) -> None:
    engine = create_engine(new_mysql_database, poolclass=NullPool)
    with engine.connect() as connection:
        assert list(connection.execute(text("SHOW TABLES"))) == []
        assert engine.url.host is not None


def test_a_second_server_lives_beside_the_first_and_ends(mysql_server: DatabaseServer) -> None:
    if not mysql_server.private:
        return
    with database_server() as second:
        assert second.url.port != mysql_server.url.port
        second.execute("CREATE DATABASE only_here")
    with pytest.raises(Exception, match="Can't connect"):
        second.execute("SELECT 1")
