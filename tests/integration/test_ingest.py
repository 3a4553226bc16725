"""The ingest command as an operator runs it, on a real folder and both databases."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from superbizagent.adapters.knowledge import FullTextKnowledgeIndex
from superbizagent.adapters.knowledge.ingest import KnowledgeIngest
from superbizagent.adapters.store import Database
from superbizagent.domain.evidence import DocumentRef, LookupKnowledge
from superbizagent.ingest import main

Outcome = tuple[int, list[str], str]
Ingest = Callable[..., Outcome]


def child(*arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "superbizagent.ingest", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome(process: "subprocess.Popen[str]") -> Outcome:
    """Exit status, lines of standard output, standard error."""
    output, error = process.communicate(timeout=90)
    return process.returncode, output.splitlines(), error


@pytest.fixture
def ingest(capsys: pytest.CaptureFixture[str]) -> Ingest:
    """The command in this process; same answer as `outcome`."""

    def run(*arguments: str) -> Outcome:
        status = main(arguments)
        output, error = capsys.readouterr()
        return status, output.splitlines(), error

    return run


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def runbooks(tmp_path: Path) -> Path:
    folder = tmp_path / "runbooks"
    (folder / "disk").mkdir(parents=True)
    (folder / "disk" / "full.md").write_text("# Disk full\n\nRemove old logs.\n\n## Later\n\nAdd a volume.\n")
    (folder / "pods.markdown").write_text("# Pods restart\n\nRead the previous log.\n")
    (folder / "notes.txt").write_text("no Markdown")
    return folder


async def found(database: Database, query: str) -> list[DocumentRef]:
    return list((await FullTextKnowledgeIndex(database).lookup(LookupKnowledge(query=query))).documents)


def orphans(database: Database) -> int:
    statement = "SELECT count(*) FROM knowledge_chunk WHERE document_id NOT IN (SELECT id FROM knowledge_document)"
    with database.engine.connect() as connection:
        return int(connection.execute(text(statement)).scalar_one())


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_the_index_follows_the_folder(
    ingest: Ingest, database: Database, database_url: str, runbooks: Path
) -> None:
    assert outcome(child(str(runbooks), "--url", database_url)) == (
        0,
        [
            "added disk/full.md (2 passages)",
            "added pods.markdown (1 passage)",
            "Collection runbooks: 2 added, 0 updated, 0 removed, 0 unchanged; 3 passages.",
        ],
        "",
    )
    [later] = await found(database, "add a volume")
    assert (later.title, later.heading_path, later.source) == ("Disk full", ("Later",), "disk/full.md")

    assert ingest(str(runbooks), "--url", database_url) == (
        0,
        ["Collection runbooks: 0 added, 0 updated, 0 removed, 2 unchanged; 3 passages."],
        "",
    )

    (runbooks / "pods.markdown").unlink()
    (runbooks / "disk" / "full.md").write_text("# Disk is full\n\nCompress logs.\n\n## Later\n\nAdd a volume.\n")
    (runbooks / "new.md").write_text("Call the owner.\n")
    assert ingest(str(runbooks), "--url", database_url) == (
        0,
        [
            "updated disk/full.md (2 passages)",
            "added new.md (1 passage)",
            "removed pods.markdown",
            "Collection runbooks: 1 added, 1 updated, 1 removed, 0 unchanged; 3 passages.",
        ],
        "",
    )
    assert (await found(database, "add a volume"))[0].document_id == later.document_id
    assert await found(database, "remove old") == []
    assert await found(database, "previous restart") == []
    assert [document.title for document in await found(database, "call the owner")] == ["new"]
    assert orphans(database) == 0


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_collections_are_kept_apart(
    ingest: Ingest, database: Database, database_url: str, runbooks: Path
) -> None:
    ingest(str(runbooks), "--url", database_url)
    other = runbooks.parent / "other"
    other.mkdir()
    (other / "pods.markdown").write_text("# Pods restart\n\nRead the previous log.\n")
    ingest(str(other), "--url", database_url, "--collection", "second")

    documents = await found(database, "pods restart")
    assert len({document.document_id for document in documents}) == 2

    (other / "pods.markdown").unlink()
    status, lines, _ = ingest(str(other), "--url", database_url, "--collection", "second")
    assert (status, lines[0]) == (0, "removed pods.markdown")
    assert len(await found(database, "pods restart")) == 1


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_two_ingests_at_once_do_no_harm(database: Database, database_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()

    def write(word: str, numbers: range) -> None:
        for number in numbers:
            (folder / f"{number}.md").write_text(f"# Host {number}\n\n{word} reboot\n\n## More\n\ntext\n")

    write("earlier", range(40))
    assert len(list(KnowledgeIngest(database).run(folder, "many"))) == 40
    write("later", range(20, 60))
    for process in [child(str(folder), "--url", database_url) for _ in range(2)]:
        status, _, error = outcome(process)
        assert (status, error) == (0, "")

    for word, passages in (("earlier", 20), ("later", 40)):
        evidence = await FullTextKnowledgeIndex(database).lookup(LookupKnowledge(query=word))
        assert (evidence.coverage.scanned, evidence.coverage.matched) == (120, passages)
    assert orphans(database) == 0


@pytest.mark.parametrize(("folder", "says"), [("missing", "There is no folder"), ("file.md", "is no folder")])
def test_a_bad_folder_is_answered_with_one_sentence(ingest: Ingest, tmp_path: Path, folder: str, says: str) -> None:
    (tmp_path / "file.md").write_text("text")
    status, lines, error = ingest(str(tmp_path / folder), "--url", f"sqlite:///{tmp_path / 'x.db'}")
    assert (status, lines, len(error.splitlines())) == (2, [], 1)
    assert says in error
    assert not (tmp_path / "x.db").exists()


@pytest.mark.parametrize("name", ["", " ", "x" * 65])
def test_a_bad_collection_is_answered_with_one_sentence(ingest: Ingest, tmp_path: Path, name: str) -> None:
    status, _, error = ingest(str(tmp_path), "--url", "sqlite://", "--collection", name)
    assert (status, len(error.splitlines())) == (2, 1)


def test_a_database_without_tables_is_told_from_a_bad_folder(ingest: Ingest, tmp_path: Path, runbooks: Path) -> None:
    status, lines, error = ingest(str(runbooks), "--url", f"sqlite:///{tmp_path / 'new.db'}")
    assert (status, lines) == (1, [])
    assert "migrations" in error


def test_the_services_own_database_is_the_default(
    ingest: Ingest, sqlite_database: str, runbooks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    status, _, error = ingest(str(runbooks))
    assert (status, len(error.splitlines())) == (2, 1)
    assert "--url" in error
    monkeypatch.setenv("DATABASE_URL", sqlite_database)
    status, lines, _ = ingest(str(runbooks))
    assert (status, len(lines)) == (0, 3)
