"""A MySQL-compatible server for the tests: the given one, or a private one on this machine.

The private server lives in a temporary folder, listens on 127.0.0.1 only, and ends with the process
that started it, however that one ends. Each pytest-xdist worker starts its own.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from tests import system_packages

GIVEN_URL = "TEST_DATABASE_URL"
START_TIMEOUT = 60.0
ATTEMPTS = 3
INSTALL_HINT = (
    "These tests need a MySQL-compatible server: install MariaDB (package mariadb-server) or MySQL so that "
    f"mariadbd or mysqld is on PATH, or name a running server in {GIVEN_URL}."
)

# The server is started by a shell that ends it when its standard input closes. That happens in the
# fixture's teardown, and also when the test process is killed: no server is ever left behind.
_WATCHDOG = 'exec 3<&0; "$@" 3<&- </dev/null & server=$!; (cat <&3 >/dev/null; kill "$server") & wait "$server"'


class DatabaseServerMissing(Exception):
    """No server was given, none is installed, and none can be installed here."""

    def __init__(self) -> None:
        super().__init__(INSTALL_HINT)


@dataclass(frozen=True)
class DatabaseServer:
    """A running server. `url` has no database; `private` ones may be reconfigured by a test."""

    url: URL
    private: bool

    def url_of(self, database: str) -> str:
        """The DSN of one database, without a charset: the code under test has to force its own."""
        return self.url.set(database=database).render_as_string(hide_password=False)

    def execute(self, *statements: str) -> None:
        """Runs statements as the server's administrator, each on its own."""
        engine = create_engine(self.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def empty(self, url: str) -> None:
        """Deletes every row of a migrated database but its revision: far faster than a new one."""
        engine = create_engine(url, poolclass=NullPool)
        with engine.begin() as connection:
            # Tables come in the order of their names, not of their foreign keys.
            connection.exec_driver_sql("SET foreign_key_checks = 0")
            for table in connection.execute(text("SHOW TABLES")).scalars().all():
                if table != "alembic_version":
                    connection.exec_driver_sql(f"DELETE FROM `{table}`")

    @contextmanager
    def new_database(self) -> Iterator[str]:
        """The DSN of a fresh, empty database, which is dropped at the end.

        Its default character set is not ours on purpose: migrations have to name their own.
        """
        name = f"test_{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {name} CHARACTER SET latin1")
        try:
            yield self.url_of(name)
        finally:
            self.execute(f"DROP DATABASE IF EXISTS {name}")

    @contextmanager
    def account(self, url: str, rights: str = "ALL") -> Iterator[str]:
        """The DSN of that database for a new user with these rights there, and none of an administrator's."""
        parsed = make_url(url)
        name, password = f"user_{uuid.uuid4().hex[:12]}", uuid.uuid4().hex
        self.execute(
            f"CREATE USER {name}@'%' IDENTIFIED BY '{password}'",
            f"GRANT {rights} ON {parsed.database}.* TO {name}@'%'",
        )
        try:
            yield parsed.set(username=name, password=password).render_as_string(hide_password=False)
        finally:
            self.execute(f"DROP USER {name}@'%'")

    @contextmanager
    def reader(self, url: str) -> Iterator[str]:
        """The DSN of that database for a new user who may SELECT there and nothing else."""
        with self.account(url, "SELECT") as reader:
            yield reader


@dataclass
class Restarts:
    """The power switch of a private server, which keeps its address."""

    program: Path
    folder: Path
    port: int
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        self.process = _launch(self.program, self.folder / "data", self.port, self.folder / "server.log", ())
        if not _answers(self.process, self.port):
            raise RuntimeError(f"The database server did not start:\n{_tail(self.folder / 'server.log')}")

    def stop(self) -> None:
        if self.process is not None:
            _end(self.process)


@contextmanager
def restartable_server() -> Iterator[tuple[DatabaseServer, Restarts]]:
    """A running server of one's own, and its switch."""
    with _fresh_folder() as (program, folder):
        switch = Restarts(program, folder, _free_port())
        try:
            switch.start()
            yield DatabaseServer(_root(switch.port), private=True), switch
        finally:
            switch.stop()


@contextmanager
def database_server() -> Iterator[DatabaseServer]:
    """The given server, or a private one for as long as the context lasts."""
    given = os.environ.get(GIVEN_URL)  # noqa: TID251 - the suite's own switch, no setting of the product
    if given:
        yield DatabaseServer(make_url(given).set(drivername="mysql+pymysql", database=""), private=False)
        return
    with private_server() as server:
        yield server


@contextmanager
def private_server(*options: str) -> Iterator[DatabaseServer]:
    """A server of one's own, with further command-line options."""
    with (
        _fresh_folder() as (program, folder),
        _running(program, folder / "data", folder / "server.log", options) as port,
    ):
        yield DatabaseServer(_root(port), private=True)


@contextmanager
def _fresh_folder() -> Iterator[tuple[Path, Path]]:
    """The server's program, and a temporary folder with an initialised data folder in it."""
    program = find_program() or install()
    if program is None:
        raise DatabaseServerMissing
    with tempfile.TemporaryDirectory(prefix="db-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _initialise(program, folder / "data", folder / "initialise.log")
        yield program, folder


def _root(port: int) -> URL:
    return URL.create("mysql+pymysql", username="root", host="127.0.0.1", port=port)


def find_program() -> Path | None:
    """The server program; Debian keeps it out of an ordinary user's PATH."""
    path = os.pathsep.join([os.defpath, os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])  # noqa: TID251
    found = shutil.which("mariadbd", path=path) or shutil.which("mysqld", path=path)
    return Path(found) if found else None


def install() -> Path | None:
    """Installs MariaDB where that is ours to do and no server is named."""
    if os.environ.get(GIVEN_URL):  # noqa: TID251
        return None
    return system_packages.install("mariadb-server", find_program)


def ensure_program() -> None:
    """Raises DatabaseServerMissing where the tests would."""
    if not os.environ.get(GIVEN_URL) and find_program() is None and install() is None:  # noqa: TID251
        raise DatabaseServerMissing


def _initialise(program: Path, data: Path, log: Path) -> None:
    if _is_mariadb(program):
        # The installer finds its own server only by PATH or next to itself.
        installer = shutil.which("mariadb-install-db") or shutil.which("mysql_install_db")
        if installer is None:
            raise DatabaseServerMissing
        command = [installer, "--no-defaults", f"--datadir={data}", "--skip-test-db"]
        command += ["--auth-root-authentication-method=normal"]
    else:
        command = [str(program), "--no-defaults", "--initialize-insecure", f"--datadir={data}"]
    with log.open("w") as output:
        done = subprocess.run([*command, *_as_root()], stdout=output, stderr=output, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"The database server could not be initialised:\n{_tail(log)}")


def _is_mariadb(program: Path) -> bool:
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return "mariadb" in version.stdout.lower()


def _as_root() -> list[str]:
    """Both servers refuse to run as root unless told to."""
    return ["--user=root"] if os.geteuid() == 0 else []


@contextmanager
def _running(program: Path, data: Path, log: Path, options: tuple[str, ...]) -> Iterator[int]:
    for attempt in range(1, ATTEMPTS + 1):
        port = _free_port()
        process = _launch(program, data, port, log, options)
        try:
            if _answers(process, port):
                yield port
                return
        finally:
            _end(process)
        # Somebody else may have taken the port in between.
        if attempt == ATTEMPTS:
            raise RuntimeError(f"The database server did not start:\n{_tail(log)}")


def _launch(program: Path, data: Path, port: int, log: Path, options: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    command = [
        str(program),
        "--no-defaults",
        *_as_root(),
        f"--datadir={data}",
        # Relative to the data folder: the absolute path may be longer than a socket's name can be.
        "--socket=s",
        f"--port={port}",
        "--bind-address=127.0.0.1",
        f"--pid-file={data / 'server.pid'}",
        # What a crash would lose is nobody's loss here.
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-doublewrite=0",
        "--innodb-buffer-pool-size=64M",
        *options,
    ]
    with log.open("a") as output:
        return subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, "sh", *command], stdin=subprocess.PIPE, stdout=output, stderr=output
        )


def _answers(process: "subprocess.Popen[bytes]", port: int) -> bool:
    engine = create_engine(_root(port), poolclass=NullPool)
    deadline = time.monotonic() + START_TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with engine.connect():
                return True
        except OperationalError:
            time.sleep(0.05)
    return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]
