"""The knowledge index with a second stage."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from superbizagent.adapters.knowledge.embedding import Embeddings, Vector, embedded_query, unit_vector
from superbizagent.adapters.knowledge.evidence import evidence_of
from superbizagent.adapters.knowledge.index import Matches, matches
from superbizagent.adapters.knowledge.ranking import LEAST_SHARE
from superbizagent.adapters.knowledge.reranking import RERANKED, reranked
from superbizagent.adapters.knowledge.search import Hit, ranked
from superbizagent.adapters.knowledge.units import UnitsOfWork
from superbizagent.adapters.knowledge.vectors import vectors_of
from superbizagent.domain.evidence import Evidence, LookupKnowledge
from superbizagent.errors import EvidenceUnavailable, ModelError, StoreError

QUERY_SECONDS = 5.0

_NOT_ANSWERED = "Ranked by words only: the embeddings server gave nothing usable in time."
_NONE_STORED = "Ranked by words only: the passages found have no embeddings of the configured model yet."
_SOME_STORED = "Ranked by words alone where there is no embedding yet: {} of the {} best passages."


@dataclass(frozen=True)
class _Found:
    matches: Matches
    hits: Sequence[Hit]
    """By words, also those with little in common with the query: meaning may speak for them."""
    vectors: Mapping[str, Vector]


class RerankedKnowledgeIndex:
    """Port KnowledgeIndex: full text finds passages, embeddings have a say in their order.

    Without an answer of the embeddings server in `query_seconds` it is full text alone, and says so.
    """

    def __init__(self, database: UnitsOfWork, embeddings: Embeddings, query_seconds: float = QUERY_SECONDS) -> None:
        self._database = database
        self._embeddings = embeddings
        self._query_seconds = query_seconds

    async def lookup(self, query: LookupKnowledge) -> Evidence:
        """The passages that answer `query` best; raises EvidenceUnavailable. Cancelling it ends the wait."""
        model = self._embeddings.model
        try:
            found = await self._database.read(lambda connection: _find(connection, query.query, model))
        except StoreError as error:
            raise EvidenceUnavailable("The documents could not be searched.") from error
        hits, notes = await self._in_order(query.query, found)
        return evidence_of(hits, found.matches.terms, found.matches.corpus, query.limit, notes)

    async def _in_order(self, query: str, found: _Found) -> tuple[Sequence[Hit], Sequence[str]]:
        if not found.hits:
            return [], []
        if not found.vectors:
            return _by_words(found.matches, LEAST_SHARE), [_NONE_STORED]
        wanted = await self._vector(query)
        if wanted is None:
            return _by_words(found.matches, LEAST_SHARE), [_NOT_ANSWERED]
        # Another dimension: the server has another model under the same name now.
        vectors = {digest: vector for digest, vector in found.vectors.items() if len(vector) == len(wanted)}
        if not vectors:
            return _by_words(found.matches, LEAST_SHARE), [_NONE_STORED]
        best = found.hits[:RERANKED]
        without = sum(hit.candidate.embedding_digest not in vectors for hit in best)
        notes = [_SOME_STORED.format(without, len(best))] if without else []
        return reranked(found.hits, wanted, vectors), notes

    async def _vector(self, query: str) -> Vector | None:
        try:
            async with asyncio.timeout(self._query_seconds):
                return unit_vector(await self._embeddings.query(embedded_query(query)))
        except (ModelError, TimeoutError):
            return None


def _find(connection: Connection, query: str, model: str) -> _Found:
    found = matches(connection, query)
    hits = _by_words(found, 0.0)
    digests = {hit.candidate.embedding_digest for hit in hits[:RERANKED] if hit.candidate.embedding_digest}
    return _Found(found, hits, vectors_of(connection, model, digests) if digests else {})


def _by_words(found: Matches, least_share: float) -> Sequence[Hit]:
    return ranked(found.terms, found.candidates, found.corpus, least_share)
