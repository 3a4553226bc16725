"""Processes that stand still between events, longer than anybody keeps a connection for them."""

import contextlib
import json
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests.database_server import DatabaseServer
from tests.integration.product.conftest import Start
from tests.integration.store.proxy import Proxy
from tests.product.client import TERMINAL
from tests.product.running import Product, running

pytestmark = pytest.mark.timeout(300)
QUESTION = "Why are checkouts failing since 14:00 on 2026-11-30?"
ESTABLISHED = "01"
EVIDENCE = """
[logs.app]
description = "One line"
paths = ["app.log"]

[database]
url_env = "BUSINESS_DATABASE_URL"

[database.tables.chat_session]
description = "Conversations"
"""


@pytest.fixture
def short_idle_times(mysql_server: DatabaseServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A second at the database, half of one at the model server and at the connection API."""
    monkeypatch.setattr(web, "AppRunner", partial(web.AppRunner, keepalive_timeout=0.5))
    before = _scalar(mysql_server, "SELECT @@global.wait_timeout")
    mysql_server.execute("SET GLOBAL wait_timeout = 1")
    yield
    mysql_server.execute(f"SET GLOBAL wait_timeout = {before}")


def _scalar(server: DatabaseServer, statement: str) -> Any:
    with create_engine(server.url, poolclass=NullPool).connect() as connection:
        return connection.scalar(text(statement))


def _children(product: Product) -> dict[str, int]:
    return {child.function: child.pid for child in product.gateway.children}


def _connections(pid: int) -> int:
    """Established TCP connections of a process; those that its peers have closed are none any more."""
    own = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            own.add(str(entry.readlink()))
    table = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    return sum(f"socket:[{fields[9]}]" in own and fields[3] == ESTABLISHED for fields in map(str.split, table))


@pytest.mark.spec("CANCEL-4", "LIFE-3", "WIRE-2")
async def test_a_run_after_a_long_freeze_succeeds_at_the_first_try(
    start: Start, short_idle_times: None, caplog: pytest.LogCaptureFixture
) -> None:
    async with start() as product:
        browser = await product.connect()
        first = await browser.run(QUESTION)
        assert first[-1]["outcome"] == "SUCCESS"
        pid = _children(product)["ChatFunction"]
        asked = len(product.model.requests)
        # All but the one on which the frozen process waits for its next event.
        await product.eventually(lambda: _connections(pid) <= 1)
        caplog.set_level(logging.INFO, "local.gateway.output")
        caplog.clear()

        second = await browser.run(QUESTION, first[0]["sessionId"])

        assert second[-1]["outcome"] == "SUCCESS"
        assert _children(product)["ChatFunction"] == pid
        assert [frame["seq"] for frame in second] == list(range(1, len(second) + 1))
        rows = {row["run_id"]: row for row in await product.rows()}
        of_second = product.model.requests[asked:]
        assert len(of_second) == rows[second[0]["runId"]]["model_calls"]
        assert all((request.status, request.dropped) == (200, False) for request in product.model.requests)
        logged = [
            json.loads(line.partition("] ")[2]) for line in caplog.messages if line.startswith("[ChatFunction] {")
        ]
        assert "FINISHED" in {entry.get("step") for entry in logged}
        assert {entry["level"] for entry in logged if "level" in entry} == {"INFO"}


@pytest.mark.spec("CANCEL-2", "CANCEL-4", "LIFE-3")
async def test_a_call_that_cannot_be_ended_never_moves_in_another_run(
    database_url: str, mysql_server: DatabaseServer, tmp_path: Path
) -> None:
    """A business database that falls silent: the thread that reads from it hears nobody."""
    (tmp_path / "evidence.toml").write_text(EVIDENCE)
    (tmp_path / "app.log").write_text("2026-11-30T14:00:00Z ERROR app It failed.\n")
    (tmp_path / "runbooks").mkdir()
    async with (
        Proxy.before(database_url) as (proxy, silent),
        running(database_url, tmp_path, BUSINESS_DATABASE_URL=silent, TERMINAL_RESERVE_SECONDS="1") as product,
    ):
        statement = {"statement": "SELECT session_id FROM chat_session"}
        product.model.enqueue_calls([("query_mysql", statement)], kind="agent")
        proxy.lose("silence", "SELECT session_id")
        browser = await product.connect()
        await browser.ask(QUESTION)
        frames = await browser.until("TOOL_STARTED")
        await product.eventually(lambda: proxy.lost == 1)
        pid = _children(product)["ChatFunction"]
        await browser.send(action="cancel", runId=frames[0]["runId"])
        assert (await browser.until(*TERMINAL))[-1]["type"] == "cancelled"
        # Its thread is still reading; the process ends rather than be thawed with it.
        await product.eventually(lambda: _children(product).get("ChatFunction") != pid)
        asked = len(product.model.requests)

        again = await browser.run("What can you do?", frames[0]["sessionId"])

        assert again[-1]["outcome"] == "SUCCESS"
        assert len(product.model.requests) - asked == 2
        outcomes = [row["release_outcome"] for row in await product.rows()]
        assert outcomes == ["CANCELLED", "SUCCESS"]
