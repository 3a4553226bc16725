"""Brings the index up to date with a folder of Markdown files."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select

from superbizagent.adapters.knowledge.embedding import embedded_opening, embedded_text, embedding_digest
from superbizagent.adapters.knowledge.folder import SourceFile, check_folder, markdown_files, read_text
from superbizagent.adapters.knowledge.markdown import parse_markdown
from superbizagent.adapters.knowledge.passages import Document
from superbizagent.adapters.knowledge.search import passage_terms
from superbizagent.adapters.knowledge.tables import (
    SOURCE_CHARACTERS,
    knowledge_chunk,
    knowledge_document,
)
from superbizagent.adapters.knowledge.units import UnitsOfWork


class ChangeKind(StrEnum):
    ADDED = "added"
    UPDATED = "updated"
    REMOVED = "removed"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Change:
    """What became of one file. `notices` say what was lost of it, and how to mend it."""

    kind: ChangeKind
    source: str
    passages: int = 0
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Loaded:
    document: Document
    opening: str
    """The digest of the document's beginning, as it is embedded."""
    chunks: Sequence[Mapping[str, object]]
    digest: str
    """Of all that is stored: a file is indexed anew when its text changes, and when its terms are made otherwise."""
    notices: tuple[str, ...]


class KnowledgeIngest:
    """Each document is replaced in a transaction of its own: a reader sees the old one or the new one."""

    def __init__(self, database: UnitsOfWork, redact: Callable[[str], str] = str) -> None:
        """`redact` takes secrets out of whole documents, before they are cut to passages and stored."""
        self._database = database
        self._redact = redact

    def run(self, folder: Path, collection: str) -> Iterator[Change]:
        """One change a file, as it happens; documents of files that are gone are removed at the end.

        `collection` names the folder's documents; those of other collections stay. Raises BadFolder,
        and StoreError.
        """
        check_folder(folder)
        known = self._known(collection)
        kept = set()
        for file in markdown_files(folder):
            kept.add(file.source)
            yield self._file(file, collection, known)
        for source in sorted(known.keys() - kept):
            self._remove(collection, source)
            yield Change(ChangeKind.REMOVED, source)

    def _known(self, collection: str) -> Mapping[str, str]:
        """The digest of each document that is indexed."""
        document = knowledge_document
        statement = select(document.c.source, document.c.digest).where(document.c.collection == collection)

        def unit(connection: Connection) -> Mapping[str, str]:
            return {row.source: row.digest for row in connection.execute(statement)}

        return self._database.run(unit, writes=False)

    def _file(self, file: SourceFile, collection: str, known: Mapping[str, str]) -> Change:
        if len(file.source) > SOURCE_CHARACTERS:
            notice = f"the path has more than {SOURCE_CHARACTERS} characters; shorten it"
            return Change(ChangeKind.SKIPPED, file.source, notices=(notice,))
        try:
            loaded = _load(file, collection, self._redact)
        except OSError as error:
            return Change(ChangeKind.SKIPPED, file.source, notices=(f"can't be read: {error.strerror}",))
        earlier = known.get(file.source)
        passages = len(loaded.document.passages)
        if earlier == loaded.digest:
            return Change(ChangeKind.UNCHANGED, file.source, passages, loaded.notices)
        # Two ingests of the same file wait for each other, or the loser's unit is repeated.
        self._database.run(lambda connection: _replace(connection, file.source, collection, loaded), writes=True)
        kind = ChangeKind.UPDATED if earlier else ChangeKind.ADDED
        return Change(kind, file.source, passages, loaded.notices)

    def _remove(self, collection: str, source: str) -> None:
        self._database.run(lambda connection: _remove(connection, collection, source), writes=True)


def _load(file: SourceFile, collection: str, redact: Callable[[str], str]) -> _Loaded:
    text, notices = read_text(file.path)
    document = _redacted(parse_markdown(redact(text), file.source, collection), redact)
    if not document.passages and not notices:
        notices = ("is empty; there is nothing to find in it",)
    opening = embedding_digest(embedded_opening(document.title, (passage.text for passage in document.passages)))
    chunks = _chunk_rows(document)
    stored = json.dumps([document.title, opening, chunks])
    return _Loaded(document, opening, chunks, hashlib.sha256(stored.encode()).hexdigest(), notices)


def _redacted(document: Document, redact: Callable[[str], str]) -> Document:
    """What was spelled in HTML, or over several marks, is plain text by now."""
    passages = (
        replace(passage, text=redact(passage.text), heading_path=tuple(map(redact, passage.heading_path)))
        for passage in document.passages
    )
    return replace(
        document,
        title=redact(document.title),
        other_names=redact(document.other_names),
        keywords=redact(document.keywords),
        passages=tuple(passages),
    )


def _replace(connection: Connection, source: str, collection: str, loaded: _Loaded) -> None:
    _remove(connection, collection, source)
    values = {
        "collection": collection,
        "source": source,
        "title": loaded.document.title,
        "digest": loaded.digest,
        "embedding_digest": loaded.opening,
    }
    [document_id] = connection.execute(insert(knowledge_document).values(values)).inserted_primary_key or [0]
    if loaded.chunks:
        rows = [{"document_id": document_id, **chunk} for chunk in loaded.chunks]
        connection.execute(insert(knowledge_chunk), rows)


def _chunk_rows(document: Document) -> Sequence[Mapping[str, object]]:
    rows = []
    for position, passage in enumerate(document.passages):
        terms = passage_terms(document, passage)
        fields = (terms.title, terms.headings, terms.text)
        rows.append(
            {
                "position": position,
                "passage_id": passage.passage_id,
                "heading_path": list(passage.heading_path),
                "text": passage.text,
                "terms": "\n".join(" ".join(field.elements()) for field in fields),
                "length": terms.length,
                "embedding_digest": embedding_digest(embedded_text(document.title, passage.heading_path, passage.text)),
            }
        )
    return rows


def _remove(connection: Connection, collection: str, source: str) -> None:
    document = knowledge_document
    of_source = (document.c.collection == collection) & (document.c.source == source)
    chunks = knowledge_chunk.c.document_id.in_(select(document.c.id).where(of_source))
    connection.execute(delete(knowledge_chunk).where(chunks))
    connection.execute(delete(document).where(of_source))
