"""The second stage: what full text found, put in order by meaning as well as by words."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from superbizagent.adapters.knowledge.embedding import Vector, cosine
from superbizagent.adapters.knowledge.ranking import in_turn
from superbizagent.adapters.knowledge.search import Hit, in_order

RERANKED = 50
"""How many of full text's best passages are put in order anew."""

_MEANING_SHARE = 0.5


def reranked(hits: Sequence[Hit], query: Vector, vectors: Mapping[str, Vector]) -> Sequence[Hit]:
    """The first RERANKED of `hits` in their new order, then the rest.

    Cosines of one model lie close together, of another far apart, so that only their order and relative
    distance among these passages mean something. A passage without a vector counts as an average one.
    """
    hits, rest = hits[:RERANKED], hits[RERANKED:]
    words = _shares([hit.score for hit in hits], lowest=0.0)
    meaning = _by_document(hits, _shares(_cosines(hits, query, vectors)))
    fused = [
        replace(hit, score=(1 - _MEANING_SHARE) * word + _MEANING_SHARE * near)
        for hit, word, near in zip(hits, words, meaning, strict=True)
    ]
    return [*sorted(fused, key=in_order), *rest]


def _cosines(hits: Sequence[Hit], query: Vector, vectors: Mapping[str, Vector]) -> Sequence[float]:
    found = [vectors.get(hit.candidate.embedding_digest or "") for hit in hits]
    known = [cosine(query, vector) for vector in found if vector is not None]
    average = sum(known) / len(known) if known else 0.0
    cosines = iter(known)
    return [average if vector is None else next(cosines) for vector in found]


def _shares(points: Sequence[float], lowest: float | None = None) -> Sequence[float]:
    """From 0 for the lowest to 1 for the highest."""
    low = min(points) if lowest is None else lowest
    span = max(points) - low
    return [(point - low) / span if span > 0 else 1.0 for point in points]


def _by_document(hits: Sequence[Hit], points: Sequence[float]) -> Sequence[float]:
    """Each further passage of a document makes way for those of others, as full text has it."""
    documents: defaultdict[int, list[int]] = defaultdict(list)
    for at, hit in enumerate(hits):
        documents[hit.candidate.document].append(at)
    result = [0.0] * len(points)
    for places in documents.values():
        for at, point in zip(places, in_turn([points[at] for at in places]), strict=True):
            result[at] = point
    return result
