"""The knowledge index in the application's database, SQLite or MySQL."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, select

from superbizagent.adapters.knowledge.evidence import evidence_of
from superbizagent.adapters.knowledge.full_text import chunks_with_any, passages_with
from superbizagent.adapters.knowledge.passages import Passage
from superbizagent.adapters.knowledge.ranking import Corpus, PassageTerms
from superbizagent.adapters.knowledge.search import (
    MAX_CANDIDATES,
    Candidate,
    Query,
    ranked,
    selective_terms,
)
from superbizagent.adapters.knowledge.tables import knowledge_chunk, knowledge_document
from superbizagent.adapters.knowledge.units import UnitsOfWork
from superbizagent.domain.evidence import Evidence, LookupKnowledge
from superbizagent.errors import EvidenceUnavailable, StoreError


class FullTextKnowledgeIndex:
    """Port KnowledgeIndex. The engine finds passages, our own formula ranks them (see `ranking`)."""

    def __init__(self, database: UnitsOfWork) -> None:
        self._database = database

    async def lookup(self, query: LookupKnowledge) -> Evidence:
        """The passages that answer `query` best; raises EvidenceUnavailable. Cancelling it ends the wait."""
        try:
            return await self._database.read(lambda connection: _search(connection, query))
        except StoreError as error:
            raise EvidenceUnavailable("The documents could not be searched.") from error


@dataclass(frozen=True)
class Matches:
    """What the engine found for a query, and what it takes to rank it."""

    terms: Sequence[str]
    candidates: Sequence[Candidate]
    corpus: Corpus


def matches(connection: Connection, query: str) -> Matches:
    wanted = Query.of(query)
    corpus = _corpus(connection, [*wanted.words, *wanted.guesses])
    return Matches(wanted.terms(corpus.frequencies), _candidates(connection, corpus), corpus)


def _search(connection: Connection, query: LookupKnowledge) -> Evidence:
    found = matches(connection, query.query)
    hits = ranked(found.terms, found.candidates, found.corpus)
    return evidence_of(hits, found.terms, found.corpus, query.limit)


def _corpus(connection: Connection, terms: Sequence[str]) -> Corpus:
    totals = select(func.count(), func.coalesce(func.sum(knowledge_chunk.c.length), 0))
    passages, length = connection.execute(totals.select_from(knowledge_chunk)).one()
    return Corpus(int(passages), int(length), passages_with(connection, terms))


def _candidates(connection: Connection, corpus: Corpus) -> Sequence[Candidate]:
    terms = selective_terms(corpus.frequencies)
    if not terms:
        return []
    return _loaded(connection, knowledge_chunk.c.id.in_(chunks_with_any(connection, terms, MAX_CANDIDATES)))


def passages_of(connection: Connection, documents: Collection[int]) -> Sequence[Candidate]:
    """Every passage of these documents, whatever words it has."""
    return _loaded(connection, knowledge_chunk.c.document_id.in_(documents)) if documents else []


def _loaded(connection: Connection, which: ColumnElement[bool]) -> Sequence[Candidate]:
    chunk, document = knowledge_chunk, knowledge_document
    statement = (
        select(
            chunk.c.passage_id,
            chunk.c.heading_path,
            chunk.c.text,
            chunk.c.terms,
            chunk.c.position,
            chunk.c.document_id,
            chunk.c.embedding_digest,
            document.c.title,
            document.c.source,
            document.c.embedding_digest.label("opening_digest"),
        )
        .join(document, chunk.c.document_id == document.c.id)
        .where(which)
    )
    return [_candidate(row) for row in connection.execute(statement)]


def _candidate(row: Row[*tuple[Any, ...]]) -> Candidate:
    # Three lines, as `tables` says.
    fields = [Counter(line.split()) for line in row.terms.split("\n")]
    return Candidate(
        passage=Passage(row.passage_id, tuple(row.heading_path), row.text),
        document=row.document_id,
        title=row.title,
        source=row.source,
        position=row.position,
        terms=PassageTerms(*fields),
        embedding_digest=row.embedding_digest,
        opening_digest=row.opening_digest,
    )
