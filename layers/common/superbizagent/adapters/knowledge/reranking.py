"""The second stage: what was found by words and by meaning, put in order by both."""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from superbizagent.adapters.knowledge.embedding import Vector, cosine
from superbizagent.adapters.knowledge.ranking import in_turn
from superbizagent.adapters.knowledge.search import Hit, in_order

RERANKED = 50
"""How many of full text's best passages are put in order anew."""

NEAREST = 20
"""How many documents join them for their meaning, whatever words they have."""

# The rest is the words' share. On the questions of bench/evidence, anything from 0.5 to 0.65 does as well.
_MEANING_SHARE = 0.55


def nearest(query: Vector, openings: Mapping[int, Vector]) -> Sequence[int]:
    """The NEAREST documents, by the vectors of their beginnings."""
    return heapq.nlargest(NEAREST, openings, key=lambda document: (cosine(query, openings[document]), -document))


def reranked(hits: Sequence[Hit], query: Vector, vectors: Mapping[str, Vector]) -> Sequence[Hit]:
    """All of `hits` in their new order.

    Documents come in the order of their best passage by words and of their best by meaning, which need not be
    the same one: a runbook tells the symptom in one place and its cause in another.
    """
    words = _shares([hit.score for hit in hits], lowest=0.0)
    meaning = _meaning(hits, query, vectors)
    documents: defaultdict[int, list[int]] = defaultdict(list)
    for at, hit in enumerate(hits):
        documents[hit.candidate.document].append(at)
    points = [0.0] * len(hits)
    for places in documents.values():
        own = [_fused(words[at], meaning[at]) for at in places]
        best = _fused(max(words[at] for at in places), max(meaning[at] for at in places))
        # The best passage stands for its document, the others follow it as their own points say.
        raised = [best if point == max(own) else point for point in own]
        for at, point in zip(places, in_turn(raised), strict=True):
            points[at] = point
    return sorted((replace(hit, score=point) for hit, point in zip(hits, points, strict=True)), key=in_order)


def _fused(words: float, meaning: float) -> float:
    return (1 - _MEANING_SHARE) * words + _MEANING_SHARE * meaning


def _meaning(hits: Sequence[Hit], query: Vector, vectors: Mapping[str, Vector]) -> Sequence[float]:
    """From 0 for average passages, and those without a vector, to 1 for the nearest.

    Cosines of one model lie close together, of another far apart, so that only their distances among these
    passages mean something.
    """
    found = [_nearness(hit, query, vectors) for hit in hits]
    known = [near for near in found if near is not None]
    average = sum(known) / len(known) if known else 0.0
    return _shares([average if near is None else max(near, average) for near in found], lowest=average)


def _nearness(hit: Hit, query: Vector, vectors: Mapping[str, Vector]) -> float | None:
    """Of a passage and of its document: one tells of the detail that was asked for, the other of the subject."""
    passage = vectors.get(hit.candidate.embedding_digest or "")
    if passage is None:
        return None
    opening = vectors.get(hit.candidate.opening_digest or "", passage)
    return cosine(query, passage) + cosine(query, opening)


def _shares(points: Sequence[float], lowest: float) -> Sequence[float]:
    """From 0 for `lowest` to 1 for the highest; 0 for all where none is higher."""
    span = max(points, default=lowest) - lowest
    return [(point - lowest) / span if span > 0 else 0.0 for point in points]
