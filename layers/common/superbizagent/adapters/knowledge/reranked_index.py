"""The knowledge index with a second stage."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection

from superbizagent.adapters.knowledge.embedding import Embeddings, Vector, embedded_query, unit_vector
from superbizagent.adapters.knowledge.evidence import evidence_of
from superbizagent.adapters.knowledge.index import Matches, matches, passages_of
from superbizagent.adapters.knowledge.reranking import RERANKED, nearest, reranked
from superbizagent.adapters.knowledge.search import Hit, ranked, rated
from superbizagent.adapters.knowledge.tokens import has_unspaced
from superbizagent.adapters.knowledge.units import UnitsOfWork
from superbizagent.adapters.knowledge.vectors import any_stored, opening_vectors, vectors_of
from superbizagent.domain.evidence import Evidence, LookupKnowledge
from superbizagent.errors import EvidenceUnavailable, ModelError, StoreError

QUERY_SECONDS = 5.0

OPENINGS = 2_000
"""How many documents are compared with a question: about 25 microseconds each, and the reading of 1.5 kB."""

_NOT_ANSWERED = "Ranked by words only: the embeddings server gave nothing usable in time."
_NONE_STORED = "Ranked by words only: the passages found have no embeddings of the configured model yet."
_SOME_STORED = "Ranked by words alone where there is no embedding yet: {} of the {} best passages."

K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True)
class _Pool:
    """Passages to put in order, those that are left behind them, and the vectors there are."""

    hits: Sequence[Hit]
    rest: Sequence[Hit]
    vectors: Mapping[str, Vector]


class RerankedKnowledgeIndex:
    """Port KnowledgeIndex: full text finds passages, embeddings find more and have a say in their order.

    Full text's best RERANKED passages and all those of the NEAREST documents by meaning (of the first OPENINGS)
    are ranked by both. A question in no word of any document finds nothing, as in full text; one in Chinese,
    Japanese or the like may be about documents in another language, and is looked up by meaning alone.

    Without an answer of the embeddings server in `query_seconds` it is full text alone, and says so.
    """

    def __init__(self, database: UnitsOfWork, embeddings: Embeddings, query_seconds: float = QUERY_SECONDS) -> None:
        self._database = database
        self._embeddings = embeddings
        self._query_seconds = query_seconds

    async def lookup(self, query: LookupKnowledge) -> Evidence:
        """The passages that answer `query` best; raises EvidenceUnavailable. Cancelling it ends the wait."""
        model = self._embeddings.model
        found, embedded = await self._read(
            lambda connection: (matches(connection, query.query), any_stored(connection, model))
        )
        hits, notes = await self._in_order(query.query, found, embedded)
        return evidence_of(hits, found.terms, found.corpus, query.limit, notes)

    async def _in_order(self, query: str, found: Matches, embedded: bool) -> tuple[Sequence[Hit], Sequence[str]]:
        if not found.candidates and not has_unspaced(query):
            return [], []
        if not embedded:
            return _by_words(found), [_NONE_STORED]
        wanted = await self._vector(query)
        if wanted is None:
            return _by_words(found), [_NOT_ANSWERED]
        model = self._embeddings.model
        pool = await self._read(lambda connection: _pool(connection, found, wanted, model))
        if not pool.vectors:
            return _by_words(found), [_NONE_STORED]
        without = sum(hit.candidate.embedding_digest not in pool.vectors for hit in pool.hits)
        notes = [_SOME_STORED.format(without, len(pool.hits))] if without else []
        return [*reranked(pool.hits, wanted, pool.vectors), *pool.rest], notes

    async def _vector(self, query: str) -> Vector | None:
        try:
            async with asyncio.timeout(self._query_seconds):
                return unit_vector(await self._embeddings.query(embedded_query(query)))
        except (ModelError, TimeoutError):
            return None

    async def _read(self, unit: Callable[[Connection], T]) -> T:
        try:
            return await self._database.read(unit)
        except StoreError as error:
            raise EvidenceUnavailable("The documents could not be searched.") from error


def _by_words(found: Matches) -> Sequence[Hit]:
    return ranked(found.terms, found.candidates, found.corpus)


def _pool(connection: Connection, found: Matches, wanted: Vector, model: str) -> _Pool:
    near = set(nearest(wanted, _comparable(opening_vectors(connection, model, OPENINGS), wanted)))
    candidates = {candidate.passage.passage_id: candidate for candidate in passages_of(connection, near)}
    candidates |= {candidate.passage.passage_id: candidate for candidate in found.candidates}
    # Also those with little in common with the query: meaning may speak for them.
    hits = rated(found.terms, list(candidates.values()), found.corpus, least_share=0.0)
    best, others = hits[:RERANKED], hits[RERANKED:]
    pool = [*best, *(hit for hit in others if hit.candidate.document in near)]
    rest = [hit for hit in others if hit.candidate.document not in near]
    both = ((hit.candidate.embedding_digest, hit.candidate.opening_digest) for hit in pool)
    digests = {digest for pair in both for digest in pair if digest}
    return _Pool(pool, rest, _comparable(vectors_of(connection, model, digests), wanted))


def _comparable(vectors: Mapping[K, Vector], wanted: Vector) -> Mapping[K, Vector]:
    """Those of the question's dimension: a server may have another model under the same name now."""
    return {key: vector for key, vector in vectors.items() if len(vector) == len(wanted)}
