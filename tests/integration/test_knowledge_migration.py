"""V014 to V016 forward and back with documents in place, and its full-text index in step with its table."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from migrations.run import downgrade, upgrade
from superbizagent.adapters.knowledge import FullTextKnowledgeIndex
from superbizagent.adapters.knowledge.embedding_ingest import EmbeddingIngest
from superbizagent.adapters.knowledge.ingest import KnowledgeIngest
from superbizagent.adapters.knowledge.reranked_index import RerankedKnowledgeIndex
from superbizagent.adapters.store import Database
from superbizagent.domain.evidence import LookupKnowledge
from superbizagent.errors import EvidenceUnavailable
from tests.fakes.embeddings import FakeEmbeddings


@pytest.fixture(params=["sqlite", "mysql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables."""
    mysql = request.param == "mysql"
    url = request.getfixturevalue("new_mysql_database") if mysql else f"sqlite:///{tmp_path / 'new.db'}"
    database = Database(url)
    yield database
    database.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "disk.md").write_text("# Disk full\n\nRemove old logs.\n")
    return folder


async def titles(database: Database, query: str) -> list[str]:
    evidence = await FullTextKnowledgeIndex(database).lookup(LookupKnowledge(query=query))
    return [document.title for document in evidence.documents]


def columns(database: Database, table: str) -> set[str]:
    return {column["name"] for column in inspect(database.engine).get_columns(table)}


@pytest.mark.spec("KNOW-5", "STORE-1", "STORE-4")
async def test_v014_goes_back_and_forward_with_documents_in_place(database: Database, folder: Path) -> None:
    upgrade(database.engine)
    # A run that broke off is run again.
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'V013'"))
    upgrade(database.engine)
    list(KnowledgeIngest(database).run(folder, "documents"))
    assert await titles(database, "disk") == ["Disk full"]

    downgrade(database.engine, "V013")
    left = inspect(database.engine).get_table_names()
    assert not [name for name in left if name.startswith("knowledge")]
    assert "diagnosis_run" in left
    with pytest.raises(EvidenceUnavailable):
        await titles(database, "disk")

    upgrade(database.engine)
    list(KnowledgeIngest(database).run(folder, "documents"))
    assert await titles(database, "disk") == ["Disk full"]


@pytest.mark.spec("KNOW-5", "STORE-1", "STORE-4")
async def test_v015_and_v016_go_back_and_forward_with_documents_in_place(database: Database, folder: Path) -> None:
    upgrade(database.engine)
    list(KnowledgeIngest(database).run(folder, "documents"))
    embeddings = FakeEmbeddings()
    assert (await EmbeddingIngest(database, embeddings).run()).stored == 1

    downgrade(database.engine, "V015")
    assert "embedding_digest" not in columns(database, "knowledge_document")
    assert "embedding_digest" in columns(database, "knowledge_chunk")
    downgrade(database.engine, "V014")
    assert "knowledge_embedding" not in inspect(database.engine).get_table_names()
    assert "embedding_digest" not in columns(database, "knowledge_chunk")
    with database.engine.begin() as connection:
        # As an ingest of that version writes it; the full-text index has to be alive.
        connection.execute(text("UPDATE knowledge_chunk SET terms = 'kwdzebra\n\nkwdzebra'"))

    upgrade(database.engine, "V016")
    # A run that broke off is run again.
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'V014'"))
    upgrade(database.engine, "V016")
    assert await titles(database, "zebra") == ["Disk full"]
    reranked = RerankedKnowledgeIndex(database, embeddings)
    assert len((await reranked.lookup(LookupKnowledge(query="zebra"))).documents) == 1
    assert (await EmbeddingIngest(database, embeddings).run()).stored == 0

    list(KnowledgeIngest(database).run(folder, "documents"))
    assert (await EmbeddingIngest(database, embeddings).run()).stored == 1
    assert (await reranked.lookup(LookupKnowledge(query="disk"))).coverage.notes == ()


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_the_full_text_index_follows_every_change_of_a_row(database: Database, folder: Path) -> None:
    upgrade(database.engine)
    list(KnowledgeIngest(database).run(folder, "documents"))
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE knowledge_chunk SET terms = 'kwdzebra\n\nkwdzebra'"))
    assert await titles(database, "zebra") == ["Disk full"]
    assert await titles(database, "disk") == []

    with database.engine.connect() as connection:
        connection.execute(text("DELETE FROM knowledge_chunk"))
        connection.rollback()
    assert await titles(database, "zebra") == ["Disk full"]
    with database.engine.begin() as connection:
        connection.execute(text("DELETE FROM knowledge_chunk"))
    assert await titles(database, "zebra") == []


@pytest.mark.spec("STORE-4")
async def test_a_database_that_does_not_answer_is_evidence_unavailable(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'no' / 'folder.db'}")
    with pytest.raises(EvidenceUnavailable) as caught:
        await titles(database, "disk")
    assert "folder.db" not in caught.value.hint
    database.close()
