"""Folders and files as they are found in the wild, into a real index."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from superbizagent.adapters.knowledge import FullTextKnowledgeIndex, search
from superbizagent.adapters.knowledge.folder import MAX_FILE_BYTES, BadFolder
from superbizagent.adapters.knowledge.ingest import Change, ChangeKind, KnowledgeIngest
from superbizagent.adapters.store import Database
from superbizagent.domain.evidence import LookupKnowledge


@pytest.fixture
def database(sqlite_database: str) -> Iterator[Database]:
    database = Database(sqlite_database)
    yield database
    database.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    return folder


def ingest(database: Database, folder: Path) -> dict[str, Change]:
    return {change.source: change for change in KnowledgeIngest(database).run(folder, "documents")}


async def sources(database: Database, query: str) -> list[str]:
    evidence = await FullTextKnowledgeIndex(database).lookup(LookupKnowledge(query=query))
    return [document.source for document in evidence.documents]


async def test_every_encoding_is_read_or_complained_about(database: Database, folder: Path) -> None:
    (folder / "bom.md").write_bytes("\ufeff# Überlauf\r\n\r\nalpha\r\n".encode())
    (folder / "utf16.md").write_bytes("# Zweite\n\nbeta\n".encode("utf-16"))
    (folder / "latin.md").write_bytes("# Größe\n\ngamma\n".encode("latin-1"))
    (folder / "binary.md").write_bytes(b"\x7fELF\0\0delta")
    (folder / "empty.md").write_bytes(b"")

    changes = ingest(database, folder)
    assert changes["bom.md"].notices == changes["utf16.md"].notices == ()
    assert "not valid UTF-8" in changes["latin.md"].notices[0]
    assert "not a text file" in changes["binary.md"].notices[0]
    assert "empty" in changes["empty.md"].notices[0]
    assert await sources(database, "überlauf") == ["bom.md"]
    assert await sources(database, "beta zweite") == ["utf16.md"]
    assert await sources(database, "gamma") == ["latin.md"]
    assert await sources(database, "delta") == []


async def test_a_huge_file_is_indexed_in_part_and_says_so(database: Database, folder: Path) -> None:
    text = "# Huge\n\nbeginning\n\n" + "```\n" + "filler line\n" * (MAX_FILE_BYTES // 12) + "```\n\nending\n"
    (folder / "huge.md").write_text(text)
    change = ingest(database, folder)["huge.md"]
    assert "only the first 1,048,576 bytes" in change.notices[0]
    assert await sources(database, "beginning") == ["huge.md"]
    assert await sources(database, "ending") == []


async def test_links_hidden_files_and_pipes(database: Database, folder: Path) -> None:
    (folder / "b" / "c").mkdir(parents=True)
    (folder / "b" / "real.md").write_text("inside")
    (folder / "a-link").symlink_to(folder / "b")
    (folder / "b" / "c" / "loop").symlink_to(folder)
    (folder / "broken.md").symlink_to(folder / "nowhere")
    (folder / ".git").mkdir()
    (folder / ".git" / "hidden.md").write_text("hidden")
    (folder / ".hidden.md").write_text("hidden")
    (folder / "upper.MD").write_text("upper")
    (folder / "folder.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "linked.md").write_text("linked")
    (folder / "z-link").symlink_to(elsewhere)

    assert list(ingest(database, folder)) == ["b/real.md", "upper.MD", "z-link/linked.md"]


async def test_names_that_are_no_text(database: Database, folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9 (1).md")
    (folder / name).write_text("accent")
    (folder / "支付 网关.md").write_text("zeichen")
    assert list(ingest(database, folder)) == ["caf\\udce9 (1).md", "支付 网关.md"]
    assert await sources(database, "accent") == ["caf\\udce9 (1).md"]
    assert ingest(database, folder)["支付 网关.md"].kind is ChangeKind.UNCHANGED


async def test_a_file_that_cannot_be_read_keeps_what_was_indexed(
    database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.md").write_text("alpha")
    ingest(database, folder)

    def refuse(self: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    change = ingest(database, folder)["a.md"]
    assert (change.kind, change.notices) == (ChangeKind.SKIPPED, ("can't be read: Permission denied",))
    assert await sources(database, "alpha") == ["a.md"]


def test_a_folder_that_cannot_be_read_removes_nothing(
    database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "a.md").write_text("alpha")
    ingest(database, folder)
    scandir = os.scandir

    def refuse(path: str) -> Any:
        # Taking the right away would not stop root, as whom CI runs.
        if Path(path) == inner:
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        with pytest.raises(BadFolder):
            ingest(database, folder)
    assert ingest(database, folder)["inner/a.md"].kind is ChangeKind.UNCHANGED


def test_a_path_that_is_too_long_is_skipped(database: Database, folder: Path) -> None:
    deep = folder.joinpath(*["x" * 100] * 5)
    deep.mkdir(parents=True)
    (deep / "a.md").write_text("alpha")
    [change] = ingest(database, folder).values()
    assert change.kind is ChangeKind.SKIPPED
    assert "shorten" in change.notices[0]


async def test_files_are_indexed_anew_when_terms_are_made_otherwise(
    database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.md").write_text("# KubePodCrashLooping\n\nText.\n")
    with monkeypatch.context() as earlier_release:
        earlier_release.setattr(search, "document_terms", str.split)
        ingest(database, folder)
    assert await sources(database, "crash loop") == []

    assert ingest(database, folder)["a.md"].kind is ChangeKind.UPDATED
    assert await sources(database, "crash loop") == ["a.md"]
    assert ingest(database, folder)["a.md"].kind is ChangeKind.UNCHANGED
