"""Each migration forward and back with rows in place, on both engines."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, MetaData, inspect, text

from migrations.__main__ import main
from migrations.comparison import METADATA, compare_type, include_object
from migrations.run import config, current, downgrade, lock_name, upgrade
from superbizagent.adapters.store import Database, SqlCancelRequests
from superbizagent.adapters.store.history import SqlHistory
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.domain.run import Intent, RunStatus
from superbizagent.errors import ConfigurationError, RunNotFound, SessionBusy, StoreError
from superbizagent.ports import PriorContext
from tests.stored_values import NOW, TRICKY, at, chat_content, new_run, published, run_end, run_ids

ROOT = Path(__file__).parents[2]
REVISIONS = ["V011", "V012", "V013"]
WRITTEN = NOW.strftime("%Y-%m-%d %H:%M:%S.%f")
"""As a statement of one's own has it: from Python 3.12 on sqlite3 no longer likes to be given a datetime."""
NEWEST = ScriptDirectory.from_config(config()).get_current_head()


@pytest.fixture(params=["sqlite", "mysql"])
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database without any table."""
    mysql = request.param == "mysql"
    url = request.getfixturevalue("new_mysql_database") if mysql else f"sqlite:///{tmp_path / 'new.db'}"
    database = Database(url)
    yield database
    database.close()


def _execute(engine: Engine, statement: str, **values: Any) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement), values)


def _rows(engine: Engine, statement: str) -> list[tuple[Any, ...]]:
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def _write_as_before_v012(engine: Engine) -> None:
    """What the release before wrote: two runs, one of them still running."""
    session = "INSERT INTO chat_session VALUES ('s1', 'ada', 1, :at, :at)"
    _execute(engine, session, at=WRITTEN)
    _write_run(engine, "r1", "SUCCESS", chat_content(TRICKY).model_dump_json(exclude_none=True))
    _write_run(engine, "r2", "RUNNING", None)


def _write_run(engine: Engine, run_id: str, status: str, content: str | None) -> None:
    _execute(
        engine,
        "INSERT INTO diagnosis_run (run_id, session_id, query, status, content, created_at)"
        " VALUES (:run_id, 's1', :query, :status, :content, :at)",
        run_id=run_id,
        query=TRICKY,
        status=status,
        content=content,
        at=WRITTEN,
    )


def test_the_revisions_are_one_line_after_v011() -> None:
    scripts = list(ScriptDirectory.from_config(config()).walk_revisions())
    assert [script.revision for script in scripts][::-1][:3] == REVISIONS
    assert len(ScriptDirectory.from_config(config()).get_heads()) == 1


@pytest.mark.spec("STORE-1")
def test_v012_adds_three_nullable_columns_and_the_index(new_database: Database) -> None:
    engine = new_database.engine
    upgrade(engine, "V011")
    before = {column["name"] for column in inspect(engine).get_columns("diagnosis_run")}
    upgrade(engine, "V012")
    columns = {column["name"]: column for column in inspect(engine).get_columns("diagnosis_run")}
    added = {name: column for name, column in columns.items() if name not in before}
    assert {name: column["nullable"] for name, column in added.items()} == {
        "intent": True,
        "release_outcome": True,
        "published_result": True,
    }
    assert getattr(added["intent"]["type"], "length", None) == 32
    assert getattr(added["release_outcome"]["type"], "length", None) == 16
    indexes = {index["name"]: index for index in inspect(engine).get_indexes("diagnosis_run")}
    wanted = ["session_id", "intent", "release_outcome", "created_at", "id"]
    assert indexes["ix_diagnosis_run_previous_turn"]["column_names"] == wanted


@pytest.mark.spec("STORE-1")
async def test_rows_from_before_v012_stay_readable(new_database: Database) -> None:
    engine = new_database.engine
    upgrade(engine, "V011")
    _write_as_before_v012(engine)
    upgrade(engine)
    runs = SqlRunStore(new_database)
    found = await runs.find("r1")
    assert found is not None
    assert (found.query, found.content, found.created_at) == (TRICKY, chat_content(TRICKY), NOW)
    assert (found.status, found.intent, found.outcome) == (RunStatus.SUCCESS, None, None)
    assert found.request_id == "r1"
    assert await runs.prior_context("s1", "ada") == PriorContext()
    turns = await SqlHistory(new_database).turns("s1", "ada", None, 10)
    assert [turn.run_id for turn in turns] == ["r1", "r2"]
    (summary,) = await SqlHistory(new_database).sessions("ada", 10)
    assert (summary.message_pairs, summary.last_active_at) == (1, NOW)


@pytest.mark.spec("STORE-1", "LIFE-3", "LIFE-7", "CANCEL-3", "ISO-2")
async def test_a_run_from_before_v012_can_be_cancelled_ended_and_swept(new_database: Database) -> None:
    upgrade(new_database.engine, "V011")
    _write_as_before_v012(new_database.engine)
    upgrade(new_database.engine)
    runs, cancels = SqlRunStore(new_database), SqlCancelRequests(new_database)
    with pytest.raises(RunNotFound):
        await cancels.cancel_run("r2", "bob", NOW)
    await cancels.cancel_run("r2", "ada", NOW)
    assert await cancels.pending("r2", "c") is not None
    # It has no deadline; the longest a function can run stands in for one.
    longest = NOW + timedelta(minutes=15)
    with pytest.raises(SessionBusy):
        await runs.start(new_run(session_id="s1", created_at=longest))
    assert run_ids(await runs.abandon_overdue(longest, longest)) == []
    late = longest + timedelta(seconds=11)
    assert run_ids(await runs.abandon_overdue(late, late)) == ["r2"]
    assert not await runs.finish("r2", run_end())


@pytest.mark.spec("STORE-1")
async def test_each_step_goes_back_and_forward_with_rows_in_place(new_database: Database) -> None:
    engine = new_database.engine
    upgrade(engine)
    runs = SqlRunStore(new_database)
    run = new_run(query=TRICKY)
    await runs.start(run)
    await runs.set_intent(run.run_id, Intent.DIAGNOSIS)
    await runs.finish(run.run_id, run_end(content=chat_content(TRICKY), published_result=published()))
    await SqlCancelRequests(new_database).cancel_connection("c1", NOW)
    await runs.start(new_run(session_id=run.session_id, created_at=at(60)))
    for revision in ("V012", "V011"):
        downgrade(engine, revision)
        assert current(engine) == revision
        assert _rows(engine, "SELECT count(*), max(query) FROM diagnosis_run") == [
            (2, max(TRICKY, "Why do payments fail?"))
        ]
    # A writer of the release before goes on in the meantime.
    _execute(
        engine,
        "INSERT INTO chat_session (session_id, owner, created_at, last_active_at) VALUES ('s1', 'ada', :at, :at)",
        at=WRITTEN,
    )
    _write_run(engine, "meanwhile", "SUCCESS", None)
    for revision in ("V012", "V013"):
        upgrade(engine, revision)
        assert current(engine) == revision
    found = await runs.find(run.run_id)
    assert found is not None
    assert (found.query, found.content, found.intent) == (TRICKY, chat_content(TRICKY), None)
    assert await runs.find("meanwhile") is not None
    downgrade(engine, "base")
    assert set(inspect(engine).get_table_names()) == {"alembic_version"}


@pytest.mark.spec("STORE-1", "STORE-4")
def test_the_tables_of_the_code_are_those_of_the_migrations(new_database: Database) -> None:
    upgrade(new_database.engine)
    with new_database.engine.connect() as connection:
        options = {"compare_type": compare_type, "include_object": include_object, "target_metadata": METADATA}
        context = MigrationContext.configure(connection, opts=options)
        # The list is what Alembic's own command compares with; the signature only knows one.
        assert compare_metadata(context, cast("MetaData", METADATA)) == []


@pytest.mark.spec("STORE-1")
@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_migration_that_broke_off_is_simply_run_again(new_database: Database, missing: int) -> None:
    engine = new_database.engine
    upgrade(engine, "V011")
    for column in ("intent VARCHAR(32)", "release_outcome VARCHAR(16)", "published_result JSON")[missing:]:
        _execute(engine, f"ALTER TABLE diagnosis_run ADD COLUMN {column}")
    _execute(engine, "CREATE UNIQUE INDEX ux_half ON diagnosis_run (run_id)")
    upgrade(engine, "V012")
    # And back: the index is gone already, two of the columns too.
    _execute(engine, _drop_index(engine))
    _execute(engine, "ALTER TABLE diagnosis_run DROP COLUMN intent")
    downgrade(engine, "V011")
    upgrade(engine)
    assert current(engine) == NEWEST


def _drop_index(engine: Engine) -> str:
    on = " ON diagnosis_run" if engine.dialect.name == "mysql" else ""
    return f"DROP INDEX ix_diagnosis_run_previous_turn{on}"


@pytest.mark.spec("STORE-1")
def test_threads_that_migrate_at_once_take_turns(new_database: Database) -> None:
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda _: upgrade(new_database.engine), range(3)))
    assert current(new_database.engine) == NEWEST


@pytest.mark.spec("STORE-1")
def test_processes_that_migrate_at_once_take_turns(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    processes = [_migrations("upgrade", DATABASE_URL=url) for _ in range(2)]
    for process in processes:
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output) == (0, f"{NEWEST}\n"), errors


@pytest.mark.spec("STORE-1")
def test_a_migration_waits_for_the_one_before(new_mysql_database: str) -> None:
    database = Database(new_mysql_database)
    lock = {"name": lock_name(database.engine)}
    waiting = "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT GET_LOCK%'"
    with ThreadPoolExecutor(1) as threads, database.engine.connect() as other:
        other.execute(text("SELECT GET_LOCK(:name, 0)"), lock)
        migration = threads.submit(upgrade, database.engine)
        while not _rows(database.engine, waiting):
            assert not migration.done()
        assert current(database.engine) is None
        other.execute(text("DO RELEASE_LOCK(:name)"), lock)
        migration.result(timeout=30)
    assert current(database.engine) == NEWEST
    database.close()


@pytest.mark.spec("STORE-4")
def test_every_text_column_is_utf8mb4_and_compares_bytes(new_mysql_database: str) -> None:
    database = Database(new_mysql_database)
    upgrade(database.engine)
    names = {name for metadata in METADATA for name in metadata.tables}
    columns = _rows(
        database.engine,
        "SELECT table_name, character_set_name, collation_name FROM information_schema.columns"
        " WHERE table_schema = database() AND character_set_name IS NOT NULL",
    )
    ours = {(charset, collation) for table, charset, collation in columns if table in names}
    database.close()
    assert ours == {("utf8mb4", "utf8mb4_bin")}


def test_an_unknown_revision_is_named(new_database: Database) -> None:
    with pytest.raises(ConfigurationError, match="V999"):
        upgrade(new_database.engine, "V999")


def test_a_database_that_cannot_be_reached_is_a_store_error(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'no' / 'such' / 'folder.db'}")
    with pytest.raises(StoreError):
        upgrade(database.engine)
    with pytest.raises(StoreError):
        current(database.engine)
    database.close()


@pytest.mark.spec("STORE-1")
def test_the_command_line_migrates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'cli.db'}"
    assert main(["upgrade", "head", "--url", url]) == 0
    assert main(["downgrade", "V012", "--url", url]) == 0
    monkeypatch.setenv("DATABASE_URL", url)
    assert main(["current"]) == 0
    assert capsys.readouterr().out == f"{NEWEST}\nV012\nV012\n"
    assert main(["upgrade", "V999"]) == 1
    assert "V999" in capsys.readouterr().err
    monkeypatch.delenv("DATABASE_URL")
    assert main(["current"]) == 2


def _migrations(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}  # noqa: TID251
    return subprocess.Popen(
        [sys.executable, "-m", "migrations", *arguments],
        cwd=ROOT,
        env=inherited | {"PYTHONPATH": str(ROOT / "layers" / "common")} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
