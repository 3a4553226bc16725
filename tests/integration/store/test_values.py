"""What is stored comes back as it was; what is damaged does no harm."""

from typing import Any

import pytest
from sqlalchemy import JSON, Connection, String, insert, select, text

from superbizagent.adapters.store import Database, metadata
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.adapters.store.tables import UtcDateTime, diagnosis_run
from superbizagent.domain.run import Intent
from superbizagent.errors import StoreError
from superbizagent.ports import PriorContext
from tests.integration.store.conftest import Open
from tests.integration.store.moments import count
from tests.stored_values import NOW, TRICKY, chat_content, new_run, published, run_end


class TestText:
    @pytest.mark.spec("STORE-4")
    @pytest.mark.parametrize("suffix", ["", "?charset=latin1"])
    def test_every_text_column_keeps_every_byte(self, mysql_database: str, open_database: Open, suffix: str) -> None:
        database = open_database(mysql_database + suffix)

        def unit(connection: Connection) -> None:
            for table in metadata.sorted_tables:
                values = {column.name: _sample(column) for column in table.columns if column.name != "id"}
                connection.execute(insert(table).values(**values))
                row = connection.execute(select(table)).one()._asdict()
                assert {name: row[name] for name in values} == values
            stored = connection.scalar(text("SELECT hex(query) FROM diagnosis_run"))
            assert stored == TRICKY.encode().hex().upper()

        database.run(unit, writes=True)

    @pytest.mark.spec("STORE-4", "PREV-2")
    async def test_json_comes_back_as_a_dict(self, database_url: str, open_database: Open) -> None:
        database = open_database(database_url)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        content, result = chat_content(TRICKY), published(TRICKY)
        await runs.finish(run.run_id, run_end(content=content, published_result=result))
        row = database.run(
            lambda connection: connection.execute(
                select(diagnosis_run.c.content, diagnosis_run.c.published_result)
            ).one(),
            writes=False,
        )
        assert row.content == content.model_dump(mode="json")
        assert row.published_result == result.model_dump(mode="json")

    @pytest.mark.spec("LIFE-5", "WIRE-3")
    async def test_text_that_is_no_unicode_is_a_store_error(self, database_url: str, open_database: Open) -> None:
        database = open_database(database_url)
        for query in ("\ud83d oops", "\udc80 oops"):
            with pytest.raises(StoreError):
                await SqlRunStore(database).start(new_run(query=query))
        assert count(database, "diagnosis_run") == 0

    @pytest.mark.spec("SEC-4")
    async def test_an_error_does_not_repeat_what_was_to_be_stored(
        self, mysql_database: str, open_database: Open
    ) -> None:
        database = open_database(mysql_database)
        with pytest.raises(StoreError) as caught:
            await SqlRunStore(database).start(new_run(owner="x" * 300, query="the secret question"))
        assert "secret question" not in str(caught.value) + str(caught.value.__cause__)


def _sample(column: Any) -> Any:
    if isinstance(column.type, String):
        return TRICKY[: column.type.length] if column.type.length else TRICKY
    if isinstance(column.type, UtcDateTime):
        return NOW
    return {"text": TRICKY} if isinstance(column.type, JSON) else 7


class TestDamagedRows:
    @pytest.mark.spec("PREV-3")
    @pytest.mark.parametrize("damaged", ["{broken", "", "[" * 100_000, '{"user_query": 1'])
    async def test_text_that_is_no_json_is_nothing_stored(
        self, sqlite_database: str, open_database: Open, damaged: str
    ) -> None:
        database = open_database(sqlite_database)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        await runs.set_intent(run.run_id, Intent.DIAGNOSIS)
        await runs.finish(run.run_id, run_end(content=chat_content(), published_result=published()))
        _update(database, content=damaged, published_result=damaged)
        found = await runs.find(run.run_id)
        assert found is not None
        assert found.content is None
        prior = await runs.prior_context(run.session_id, "ada")
        assert prior == PriorContext(Intent.DIAGNOSIS, run.query, None)

    async def test_codes_of_a_later_release_are_left_out(self, database_url: str, open_database: Open) -> None:
        database = open_database(database_url)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        _update(database, intent="SMALL_TALK", release_outcome="PARTIAL")
        found = await runs.find(run.run_id)
        assert found is not None
        assert (found.intent, found.outcome) == (None, None)
        assert await runs.prior_context(run.session_id, "ada") == PriorContext()

    async def test_a_status_nobody_knows_is_a_store_error(self, database_url: str, open_database: Open) -> None:
        database = open_database(database_url)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        _update(database, status="PAUSED")
        with pytest.raises(StoreError):
            await runs.find(run.run_id)

    async def test_a_time_nobody_can_read_is_a_store_error(self, sqlite_database: str, open_database: Open) -> None:
        database = open_database(sqlite_database)
        runs, run = SqlRunStore(database), new_run()
        await runs.start(run)
        _update(database, created_at="yesterday")
        with pytest.raises(StoreError):
            await runs.find(run.run_id)


def _update(database: Database, **values: str) -> None:
    """Past every type of ours, as a repair by hand would."""
    columns = ", ".join(f"{name} = :{name}" for name in values)
    database.run(
        lambda connection: connection.execute(text(f"UPDATE diagnosis_run SET {columns}"), values),
        writes=True,
    )
