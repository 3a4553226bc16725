"""The migrate function: CloudFormation's events, a real database, and a real HTTP server that takes the answers."""

import asyncio
import importlib
import logging
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import text

from migrations.run import current, known_revisions, lock_name, upgrade
from superbizagent import bootstrap
from superbizagent.adapters import cloudformation
from superbizagent.adapters.store import Database
from superbizagent.custom_resource import ANSWER_SECONDS
from tests.http_stub import HttpStub, Reply, http_stub, tcp_stub

ROOT = Path(__file__).parents[2]
NEWEST = known_revisions()[0]
RESOURCE = "arn:aws:cloudformation:eu-central-1:123456789012:stack/superbizagent/51af3dc0/Migration"
pytestmark = pytest.mark.spec("STORE-1")

Json = dict[str, Any]


@dataclass(frozen=True)
class Context:
    """`remaining` counts down, as Lambda's does."""

    remaining: float = 300.0
    function_name: str = "migrate"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:eu-central-1:123456789012:function:migrate"
    aws_request_id: str = "88888888-4444-4444-4444-121212121212"
    log_stream_name: str = "2026/11/30/[$LATEST]5d3a"
    began: float = field(default_factory=time.monotonic)

    def get_remaining_time_in_millis(self) -> int:
        return round((self.began + self.remaining - time.monotonic()) * 1000)


@dataclass
class Deployment:
    """CloudFormation as the function sees it: its events, and where they are answered."""

    module: ModuleType
    stub: HttpStub
    database: Database

    @property
    def answers(self) -> list[Json]:
        return [received.json for received in self.stub.received]

    async def invoke(self, event: Json, remaining: float = 300.0) -> Any:
        return await asyncio.to_thread(self.module.handler, event, Context(remaining))

    async def deploy(self, kind: str = "Create", remaining: float = 300.0) -> Json:
        """The one answer to an event."""
        known = len(self.stub.received)
        event = {
            "RequestType": kind,
            "ResponseURL": f"{self.stub.url}/bucket?X-Amz-Signature=canary",
            "StackId": RESOURCE.rpartition("/")[0],
            "RequestId": f"request-{known}",
            "LogicalResourceId": "Migration",
            "ResourceType": "Custom::Migration",
            "ServiceToken": "arn:aws:lambda:eu-central-1:123456789012:function:migrate",
            "ResourceProperties": {"Revision": "V016"},
            **({} if kind == "Create" else {"PhysicalResourceId": RESOURCE}),
        }
        assert await self.invoke(event, remaining) is None
        (answer,) = self.answers[known:]
        received = self.stub.received[-1]
        assert received.headers.get("Content-Type", "") == ""
        assert len(received.body) < 4_096
        assert answer["RequestId"] == f"request-{known}"
        assert answer["PhysicalResourceId"] == RESOURCE
        assert (answer["StackId"], answer["LogicalResourceId"]) == (RESOURCE.rpartition("/")[0], "Migration")
        return answer

    def execute(self, statement: str) -> list[Any]:
        with self.database.engine.begin() as connection:
            result = connection.execute(text(statement))
            return list(result) if result.returns_rows else []

    def revision(self) -> str | None:
        return current(self.database.engine)


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POWERTOOLS_LOG_DEDUPLICATION_DISABLED", "true")
        patch.setenv("POWERTOOLS_LOGGER_LOG_EVENT", "true")
        yield importlib.import_module("functions.migrate.app")


@pytest.fixture
async def deployment(
    module: ModuleType, new_mysql_database: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Deployment]:
    monkeypatch.setenv("DATABASE_URL", new_mysql_database)
    monkeypatch.setattr(cloudformation, "FIRST_PAUSE", 0.001)
    bootstrap.services.cache_clear()
    database = Database(new_mysql_database)
    async with http_stub() as stub:
        yield Deployment(module, stub, database)
    database.close()
    bootstrap.services.cache_clear()


async def until_waiting(deployment: Deployment, statement: str) -> int:
    """The server's id of the connection that waits in such a statement."""
    return (await all_waiting(deployment, statement, 1))[0]


async def all_waiting(deployment: Deployment, statement: str, count: int) -> list[int]:
    found: list[Any] = []
    look = f"SELECT id FROM information_schema.processlist WHERE info LIKE '{statement}%'"
    async with asyncio.timeout(60):
        while len(found) < count:
            found = await asyncio.to_thread(deployment.execute, look)
    return [int(row[0]) for row in found]


# What CloudFormation asks --------------------------------------------------------------------------


async def test_a_stack_is_created_updated_and_deleted(deployment: Deployment) -> None:
    created = await deployment.deploy("Create")
    assert (created["Status"], created["Data"]) == ("SUCCESS", {"Outcome": "MIGRATED", "Revision": NEWEST})
    updated = await deployment.deploy("Update")
    assert (updated["Status"], updated["Data"]) == ("SUCCESS", {"Outcome": "UP_TO_DATE", "Revision": NEWEST})
    deleted = await deployment.deploy("Delete")
    assert (deleted["Status"], deleted["Data"]) == ("SUCCESS", {})
    assert deployment.revision() == NEWEST


async def test_an_update_rolls_an_older_schema_forward(deployment: Deployment) -> None:
    upgrade(deployment.database.engine, "V012")
    assert (await deployment.deploy("Update"))["Data"] == {"Outcome": "MIGRATED", "Revision": NEWEST}


async def test_a_delete_needs_no_database(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL")
    assert (await deployment.deploy("Delete"))["Status"] == "SUCCESS"


async def test_a_database_newer_than_the_code_is_left_alone(deployment: Deployment) -> None:
    await deployment.deploy()
    deployment.execute("UPDATE alembic_version SET version_num = 'V999'")
    answer = await deployment.deploy("Update")
    assert (answer["Status"], answer["Data"]) == ("SUCCESS", {"Outcome": "NEWER_THAN_CODE", "Revision": "V999"})
    assert deployment.revision() == "V999"


# What goes wrong -----------------------------------------------------------------------------------


@pytest.mark.spec("SEC-4")
async def test_a_failure_in_the_middle_is_told_and_made_good_by_the_next_deployment(
    deployment: Deployment, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    # In the way of a step after the first two: a table of that name without the columns it needs.
    deployment.execute("CREATE TABLE run_cancel (canary_column INT)")
    answer = await deployment.deploy()
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].startswith("STORE_UNAVAILABLE: ")
    assert "[$LATEST]5d3a" in answer["Reason"]
    host = deployment.database.engine.url.host
    assert host is not None
    told = answer["Reason"] + "".join(capfd.readouterr()) + caplog.text
    assert [word for word in ("INDEX", "run_cancel", "canary", host) if word in told] == []
    assert deployment.revision() == "V012"
    deployment.execute("DROP TABLE run_cancel")
    assert (await deployment.deploy("Update"))["Data"] == {"Outcome": "MIGRATED", "Revision": NEWEST}


@pytest.mark.parametrize("url", ["mysql://root@127.0.0.1:1/nothing", "oracle://canary@host/x", ""])
async def test_a_database_that_cannot_be_reached_is_a_failed_deployment(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    answer = await deployment.deploy()
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].partition(":")[0] in ("STORE_UNAVAILABLE", "CONFIGURATION_ERROR")
    assert "127.0.0.1" not in answer["Reason"]
    assert "canary" not in answer["Reason"]


async def test_two_processes_at_once_migrate_once(deployment: Deployment) -> None:
    """The second waits for the first, and finds nothing to do."""
    lock = {"name": lock_name(deployment.database.engine)}
    url = deployment.database.engine.url.render_as_string(hide_password=False)
    with deployment.database.engine.connect() as holder:
        holder.execute(text("SELECT GET_LOCK(:name, 0)"), lock)
        here = asyncio.create_task(deployment.deploy())
        command = (sys.executable, "-m", "migrations", "upgrade", "--url", url)
        other = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
        await all_waiting(deployment, "SELECT GET_LOCK", 2)
        assert deployment.revision() is None
        holder.execute(text("DO RELEASE_LOCK(:name)"), lock)
        output, _ = await asyncio.wait_for(other.communicate(), 60)
    assert (other.returncode, output.decode()) == (0, f"{NEWEST}\n")
    answer = await here
    assert (answer["Status"], answer["Data"]["Revision"]) == ("SUCCESS", NEWEST)
    assert (await deployment.deploy("Update"))["Data"] == {"Outcome": "UP_TO_DATE", "Revision": NEWEST}


async def test_a_lock_that_another_holds_too_long_is_told(deployment: Deployment) -> None:
    with deployment.database.engine.connect() as other:
        other.execute(text("SELECT GET_LOCK(:name, 0)"), {"name": lock_name(deployment.database.engine)})
        answer = await deployment.deploy(remaining=ANSWER_SECONDS + 3)
        assert answer["Status"] == "FAILED"
        assert answer["Reason"].startswith("MIGRATION_LOCKED: ")
    assert deployment.revision() is None


async def test_a_connection_lost_in_the_middle_loses_the_lock_too(deployment: Deployment) -> None:
    engine = deployment.database.engine
    upgrade(engine, "V011")
    with engine.begin() as reader:
        # The step waits for whoever uses its table.
        reader.execute(text("SELECT count(*) FROM diagnosis_run"))
        deploying = asyncio.create_task(deployment.deploy())
        connection_id = await until_waiting(deployment, "ALTER TABLE diagnosis_run")
        await asyncio.to_thread(deployment.execute, f"KILL {connection_id}")
        answer = await deploying
        assert (answer["Status"], answer["Reason"].partition(":")[0]) == ("FAILED", "STORE_UNAVAILABLE")
    assert deployment.revision() == "V011"
    assert (await deployment.deploy("Update"))["Data"] == {"Outcome": "MIGRATED", "Revision": NEWEST}


async def test_a_function_whose_time_runs_out_says_so_before_it_does(deployment: Deployment) -> None:
    engine = deployment.database.engine
    upgrade(engine, "V011")
    answered = asyncio.Event()
    loop = asyncio.get_running_loop()
    deployment.stub.answer = lambda _: (loop.call_soon(answered.set), Reply())[1]
    with engine.begin() as reader:
        reader.execute(text("SELECT count(*) FROM diagnosis_run"))
        # The work still goes on when the answer is out: only the platform ends it.
        deploying = asyncio.create_task(deployment.deploy(remaining=ANSWER_SECONDS + 2))
        async with asyncio.timeout(60):
            await answered.wait()
        assert not deploying.done()
        (answer,) = deployment.answers
        assert (answer["Status"], answer["Reason"].partition(":")[0]) == ("FAILED", "TIMEOUT")
    # Here nobody ends it. It comes to its end, and doesn't answer again.
    assert await deploying == answer
    assert (await deployment.deploy("Update"))["Data"] == {"Outcome": "UP_TO_DATE", "Revision": NEWEST}


async def test_no_thread_is_left_behind(deployment: Deployment) -> None:
    before = set(threading.enumerate())
    await deployment.deploy()
    left = [thread for thread in set(threading.enumerate()) - before if "asyncio" not in thread.name]
    assert left == []


# The answer ----------------------------------------------------------------------------------------


async def test_an_answer_that_is_not_taken_is_given_again(deployment: Deployment) -> None:
    deployment.stub.script(Reply(status=500), Reply(status=503), Reply())
    with pytest.raises(ValueError, match="too many values"):
        await deployment.deploy("Delete")
    assert len(deployment.stub.received) == 3
    assert deployment.answers[0] == deployment.answers[1] == deployment.answers[2]


@pytest.mark.spec("SEC-4")
@pytest.mark.parametrize(
    ("status", "tries"), [(500, cloudformation.ATTEMPTS), (403, 1), (307, cloudformation.ATTEMPTS)]
)
async def test_an_answer_that_is_never_taken_fails_the_function(
    deployment: Deployment, status: int, tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    deployment.stub.script(Reply(status=status))
    with pytest.raises(Exception, match=rf"^CloudFormation took no answer: HTTP {status}$") as caught:
        await deployment.deploy("Delete")
    assert len(deployment.stub.received) == tries
    # Its address lets in whoever knows it.
    assert "canary" not in str(caught.value)
    assert "canary" not in "".join(
        map(str, (vars(record) for record in caplog.records if record.name != "aiohttp.access"))
    )


async def test_an_answer_that_hangs_is_given_up(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloudformation, "ATTEMPT_SECONDS", 0.05)

    async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with tcp_stub(hang) as url:
        deployment.stub.url = url
        with pytest.raises(Exception, match=r"^CloudFormation took no answer: TimeoutError$"):
            await deployment.deploy("Delete")


async def test_a_long_reason_is_cut(deployment: Deployment) -> None:
    event = {
        "RequestType": "Create",
        "ResponseURL": deployment.stub.url,
        "StackId": "s" * 300,
        "RequestId": "r",
        "LogicalResourceId": "l" * 255,
    }
    resource = bootstrap.services().custom_resource(event, lambda: 60.0)
    await asyncio.to_thread(resource.fail, "支付" * 10_000)
    assert len(deployment.stub.received[0].body) < 4_096


# By hand -------------------------------------------------------------------------------------------


async def test_by_hand(deployment: Deployment) -> None:
    assert await deployment.invoke({"action": "current"}) == {"revision": None, "newest": NEWEST}
    assert await deployment.invoke({"action": "upgrade"}) == {"outcome": "MIGRATED", "before": None, "after": NEWEST}
    assert await deployment.invoke({"action": "upgrade"}) == {
        "outcome": "UP_TO_DATE",
        "before": NEWEST,
        "after": NEWEST,
    }
    assert await deployment.invoke({"action": "current"}) == {"revision": NEWEST, "newest": NEWEST}
    for asked in ({"action": "downgrade"}, {}):
        with pytest.raises(ValueError, match="action"):
            await deployment.invoke(asked)
    assert deployment.stub.received == []


async def test_by_hand_a_failure_is_a_code(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://root@127.0.0.1:1/nothing")
    with pytest.raises(RuntimeError, match=r"^STORE_UNAVAILABLE: ") as caught:
        await deployment.invoke({"action": "current"})
    assert caught.value.__cause__ is None
    assert "127.0.0.1" not in str(caught.value)


# The version before, and what is shipped -----------------------------------------------------------

# What the release before V012 runs, by its own columns.
OLD_STATEMENTS = (
    "INSERT INTO chat_session (session_id, owner, created_at, last_active_at) VALUES ('{id}', '{id}', NOW(6), NOW(6))",
    """INSERT INTO diagnosis_run (run_id, session_id, query, status, created_at)
       VALUES ('{id}', '{id}', 'why?', 'RUNNING', NOW(6))""",
    """UPDATE diagnosis_run SET status = 'SUCCESS', content = '[]', tokens = 7, model_calls = 2, tool_calls = 1,
       duration_ms = 12, finished_at = NOW(6) WHERE run_id = '{id}' AND status = 'RUNNING'""",
    "UPDATE chat_session SET message_pairs = message_pairs + 1, last_active_at = NOW(6) WHERE session_id = '{id}'",
)
OLD_HISTORY = """SELECT r.run_id, r.status, r.failure_code, r.content, s.message_pairs FROM diagnosis_run r
    JOIN chat_session s ON s.session_id = r.session_id WHERE s.owner = '{id}' ORDER BY r.created_at, r.id"""


async def test_the_version_before_works_on_after_each_step(deployment: Deployment) -> None:
    steps = known_revisions()[::-1]
    for step in steps:
        upgrade(deployment.database.engine, step)
        for statement in OLD_STATEMENTS:
            deployment.execute(statement.format(id=step))
        (row,) = deployment.execute(OLD_HISTORY.format(id=step))
        assert tuple(row) == (step, "SUCCESS", None, "[]", 1)
    assert len(deployment.execute("SELECT * FROM diagnosis_run")) == len(steps)


def test_the_layer_has_the_steps_and_finds_them(tmp_path: Path) -> None:
    """What `sam build` makes: in the layer's folder, without this checkout beside it."""
    source, built = tmp_path / "source", tmp_path / "built"
    shutil.copytree(ROOT / "migrations", source)
    subprocess.run(["make", "-s", "build-MigrationsLayer", f"ARTIFACTS_DIR={built}"], cwd=source, check=True)
    look = "import migrations.run as run; print(run.__file__, run.known_revisions()[0])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {[str(built / 'python'), *_packages()]!r}; {look}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(built / "python" / "migrations" / "run.py"), NEWEST]
    assert sum(path.stat().st_size for path in built.rglob("*")) < 200_000
    assert sum(path.stat().st_size for path in (ROOT / "functions" / "migrate").glob("*.py")) < 50_000


def _packages() -> list[str]:
    return [str(ROOT / "layers" / "common"), *(path for path in sys.path if path.endswith("site-packages"))]
