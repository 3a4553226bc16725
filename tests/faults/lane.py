"""One product for one case at a time: its own gateway, processes, model server, database and proxies.

Lanes share nothing but the database server, so that what a case leaves behind is that case's.
"""

import asyncio
import contextlib
import logging
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pymysql
from pymysql.cursors import DictCursor
from sqlalchemy.engine import make_url

from local.gateway import Gateway, GatewayConfig
from local.gateway.runtime import ChildInfo
from local.model_server import MODEL, ScriptedModelServer
from local.run import DEPLOYED_ONLY, ROOT
from migrations.run import upgrade
from superbizagent import ingest
from superbizagent.adapters.store import Database
from tests.database_server import DatabaseServer, private_server
from tests.faults.boundaries import Boundaries
from tests.faults.child.services import ADDRESS
from tests.faults.proxy import Proxy

PEER_IDLE = 1
"""Seconds after which database, model server and connection API drop a silent connection."""
WAIT = 90.0
"""Seconds; a bound for a machine under load, not an expectation."""

LIMITS = {
    "RUN_SECONDS": "8",
    "TERMINAL_RESERVE_SECONDS": "4",
    "MODEL_CALL_SECONDS": "4",
    "VERDICT_SECONDS": "3",
    "TOOL_CALL_SECONDS": "3",
    "CANCEL_POLL_SECONDS": "0.15",
}
_CHILD = Path(__file__).resolve().parent / "child"


@dataclass(frozen=True)
class Proxies:
    database: Proxy
    model: Proxy
    channel: Proxy

    def of(self, port: str) -> Proxy:
        """The peer behind a port's calls."""
        return {"model": self.model, "frame": self.channel}.get(port, self.database)


@dataclass
class Lane:
    gateway: Gateway
    model: ScriptedModelServer
    boundaries: Boundaries
    proxies: Proxies
    sql: "RawSql"
    user: str
    reader: str
    log: "Log"
    past_the_limit: float
    """Seconds after which a run is overdue, whatever it does."""

    @property
    def chat_children(self) -> list[ChildInfo]:
        return [child for child in self.gateway.children if child.function == "ChatFunction"]

    def said(self, run_id: str) -> tuple[str, ...]:
        """What functions logged of a run."""
        return tuple(line for line in self.log if run_id in line)

    async def quiet(self) -> None:
        """Until no function is at work any more."""
        await eventually(lambda: all(child.state == "idle" for child in self.gateway.children))

    async def sweep(self) -> None:
        await self.gateway.invoke("SweepFunction", b"{}")


async def eventually(condition: Callable[[], bool], within: float = WAIT) -> None:
    """Waits for what other processes do: there is no event of theirs to wait for."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class Log(logging.Handler):
    """The last lines that functions wrote; of all lanes, for they have one logger."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[str] = deque(maxlen=2_000)

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    @contextlib.contextmanager
    def listening(self) -> Iterator[Self]:
        logger = logging.getLogger("local.gateway.output")
        level, propagate = logger.level, logger.propagate
        # Heard here is not yet shown: that is for who asked for it.
        logger.propagate = propagate and logger.isEnabledFor(logging.INFO)
        logger.addHandler(self)
        logger.setLevel(logging.INFO)
        try:
            yield self
        finally:
            logger.removeHandler(self)
            logger.setLevel(level)
            logger.propagate = propagate


class RawSql:
    """The database as its administrator sees it; shares no code with the product."""

    def __init__(self, server: DatabaseServer, database: str) -> None:
        self._url = server.url
        self._database = database

    def connect(self) -> "pymysql.Connection[DictCursor]":
        return pymysql.connect(
            host=self._url.host or "",
            port=self._url.port or 0,
            user=self._url.username,
            password=self._url.password or "",
            database=self._database,
            autocommit=True,
            cursorclass=DictCursor,
        )

    async def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._rows, statement, values)

    def _rows(self, statement: str, values: tuple[Any, ...]) -> list[dict[str, Any]]:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())


@contextlib.contextmanager
def impatient_server() -> Iterator[DatabaseServer]:
    """A database server that drops connections which say nothing for a second."""
    idle = f"{PEER_IDLE}"
    with private_server(f"--wait-timeout={idle}", f"--interactive-timeout={idle}", "--max-connections=400") as server:
        yield server


@contextlib.contextmanager
def shop(server: DatabaseServer, demo: Path) -> Iterator[str]:
    """The demo's business database on the server; its DSN."""
    with server.new_database() as url:
        name = make_url(url).database or ""
        with contextlib.closing(sqlite3.connect(demo / "business.db")) as source:
            tables = source.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
            with contextlib.closing(RawSql(server, name).connect()) as target, target.cursor() as cursor:
                cursor.execute("SET foreign_key_checks = 0")
                cursor.execute("START TRANSACTION")
                for table, definition in tables:
                    cursor.execute(f"{definition} CHARACTER SET utf8mb4")
                    rows = source.execute(f"SELECT * FROM {table}").fetchall()
                    places = ", ".join(["%s"] * len(rows[0]))
                    cursor.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
                target.commit()
        yield url


@contextlib.asynccontextmanager
async def lane(server: DatabaseServer, shop_url: str, demo: Path, limits: Mapping[str, str]) -> AsyncIterator[Lane]:
    """`limits`: variables of the run that are not to be as short as they are here."""
    limits = {**LIMITS, **limits}
    async with contextlib.AsyncExitStack() as stack:
        boundaries = Boundaries()
        log = stack.enter_context(Log().listening())
        await stack.enter_async_context(boundaries.serving())
        model = await stack.enter_async_context(ScriptedModelServer.start(latency=0.02))
        # The database cuts idle connections itself.
        proxies = Proxies(
            database=await stack.enter_async_context(Proxy.start()),
            model=await stack.enter_async_context(Proxy.start(PEER_IDLE)),
            channel=await stack.enter_async_context(Proxy.start(PEER_IDLE)),
        )
        proxies.database.target = (server.url.host or "", server.url.port or 0)
        proxies.model.target = _address(model.base_url)
        direct = stack.enter_context(server.new_database())
        await asyncio.to_thread(_prepare, direct, demo)
        url = _through(proxies.database, stack.enter_context(_owner(server, direct)))
        reader = _through(proxies.database, stack.enter_context(server.reader(shop_url)))
        name = make_url(direct).database or ""
        gateway = await stack.enter_async_context(
            Gateway.start(_config(limits, url, _evidence(demo, name, reader), proxies, boundaries))
        )
        proxies.channel.target = _address(gateway.http_url)
        sql = RawSql(server, name)
        users = (make_url(url).username or "", make_url(reader).username or "")
        yield Lane(gateway, model, boundaries, proxies, sql, *users, log=log, past_the_limit=_past(limits))


def _past(limits: Mapping[str, str]) -> float:
    return float(limits["RUN_SECONDS"]) + float(limits["TERMINAL_RESERVE_SECONDS"]) + 0.5


def _config(
    limits: Mapping[str, str], url: str, evidence: Path, proxies: Proxies, boundaries: Boundaries
) -> GatewayConfig:
    host, port = proxies.model.address
    return GatewayConfig(
        template=ROOT / "template.yaml",
        schedules=False,
        principal="local",
        environment={
            **DEPLOYED_ONLY,
            **limits,
            "DATABASE_URL": url,
            "EVIDENCE_FILE": str(evidence),
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": f"http://{host}:{port}/v1",
            "OPENAI_MODEL": MODEL,
        },
        function_environment={
            "ChatFunction": {
                "PYTHONPATH": f"{_CHILD}:{ROOT}",
                ADDRESS: boundaries.address,
                "CONNECTIONS_ENDPOINT": "http://{}:{}/live".format(*proxies.channel.address),
            }
        },
    )


def _prepare(url: str, demo: Path) -> None:
    with contextlib.closing(Database(url)) as database:
        upgrade(database.engine)
    assert ingest.main([str(demo / "runbooks"), "--url", url, "--collection", "runbooks"]) == 0


@contextlib.contextmanager
def _owner(server: DatabaseServer, url: str) -> Iterator[str]:
    """A user of one's own, by whom the server's process list tells lanes apart."""
    parsed = make_url(url)
    name = f"owner_{parsed.database}"
    server.execute(f"CREATE USER {name}@'%' IDENTIFIED BY 'p'", f"GRANT ALL ON {parsed.database}.* TO {name}@'%'")
    try:
        yield parsed.set(username=name, password="p").render_as_string(hide_password=False)
    finally:
        server.execute(f"DROP USER {name}@'%'")


def _through(proxy: Proxy, url: str) -> str:
    host, port = proxy.address
    return make_url(url).set(host=host, port=port).render_as_string(hide_password=False)


def _evidence(demo: Path, name: str, reader: str) -> Path:
    """Beside the demo's own file, for the paths in it are relative to it."""
    path = demo / f"evidence-{name}.toml"
    path.write_text((demo / "evidence.toml").read_text().replace("sqlite:///business.db", reader))
    return path


def _address(url: str) -> tuple[str, int]:
    parsed = make_url(url)
    return parsed.host or "", parsed.port or 0
