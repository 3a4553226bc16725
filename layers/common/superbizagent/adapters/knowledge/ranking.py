"""Which passages answer a query best: one formula of our own, so that every engine gives one order.

BM25F: a term counts for more in a title than in a heading, and there for more than in the text;
rare terms count for more than common ones; long passages get no advantage from their length.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

TITLE_WEIGHT = 4.0
HEADING_WEIGHT = 2.5
TEXT_WEIGHT = 1.0

_SATURATION = 1.2
_LENGTH_SHARE = 0.6

# Below this share of the query's weight, what a document has in common with the query is chance,
# unless its title names it.
LEAST_SHARE = 0.2
_TERMS_EXPECTED = 6
# In a longer query, such as a pasted log, terms that no document has mean nothing.
_SHORT_QUERY = 12
# How much a term counts that the document has elsewhere.
_ELSEWHERE = 0.25
# Each further passage of a document makes way for those of others.
_REPEATED = 0.7


@dataclass(frozen=True)
class PassageTerms:
    """The terms of one passage, each as often as it occurs there."""

    title: Counter[str]
    headings: Counter[str]
    text: Counter[str]

    @property
    def length(self) -> int:
        """Terms in the text: what is compared with `Corpus.text_length`."""
        return self.text.total()

    def frequency(self, term: str) -> float:
        # A title names its subject once: repeating it there means nothing.
        return (
            TITLE_WEIGHT * min(self.title[term], 1)
            + HEADING_WEIGHT * min(self.headings[term], 1)
            + TEXT_WEIGHT * self.text[term]
        )

    def having(self, terms: Iterable[str]) -> frozenset[str]:
        return frozenset(term for term in terms if self.frequency(term))


@dataclass(frozen=True)
class Corpus:
    """What the formula needs to know of the whole index."""

    passages: int
    text_length: int
    """Terms in the texts of all passages."""
    frequencies: Mapping[str, int]
    """In how many passages each term of the query occurs."""

    def rarity(self, term: str) -> float:
        count = self.frequencies.get(term, 0)
        return math.log1p((self.passages - count + 0.5) / (count + 0.5))

    def weight(self, terms: Iterable[str]) -> float:
        # Added up in one order: the sum of floats depends on it.
        return sum(sorted(self.rarity(term) for term in terms))

    @property
    def average_length(self) -> float:
        return max(self.text_length / self.passages, 1.0)


def scores(
    terms: Sequence[str], document: Sequence[PassageTerms], corpus: Corpus, least_share: float = LEAST_SHARE
) -> Sequence[float]:
    """How well each passage of a document answers a query of these distinct terms; 0.0: not at all.

    `document` has all its passages in which any of the terms occurs. `least_share` of the query's
    weight has to be in the document, unless its title names it.
    """
    found = [passage.having(terms) for passage in document]
    anywhere = frozenset[str]().union(*found)
    named = any(passage.title[term] for passage in document for term in anywhere)
    if not named and corpus.weight(anywhere) < least_share * _expected(terms, corpus):
        return [0.0] * len(document)
    own = [
        _bm25(sorted(having), passage, corpus) + _ELSEWHERE * corpus.weight(anywhere - having)
        for having, passage in zip(found, document, strict=True)
    ]
    return in_turn(own)


def in_turn(points: Sequence[float]) -> Sequence[float]:
    """The points of a document's passages, each further one's lessened."""
    best_first = sorted(range(len(points)), key=lambda at: -points[at])
    rank = {at: number for number, at in enumerate(best_first)}
    return [points[at] * _REPEATED ** rank[at] for at in range(len(points))]


def _bm25(terms: Sequence[str], passage: PassageTerms, corpus: Corpus) -> float:
    length = 1 - _LENGTH_SHARE + _LENGTH_SHARE * passage.length / corpus.average_length
    total = 0.0
    for term in terms:
        frequency = passage.frequency(term)
        total += corpus.rarity(term) * frequency * (_SATURATION + 1) / (frequency + _SATURATION * length)
    return total


def _expected(terms: Sequence[str], corpus: Corpus) -> float:
    """The weight of the query's rarest terms; of a short query also of those that occur nowhere."""
    counted = [term for term in terms if len(terms) <= _SHORT_QUERY or corpus.frequencies.get(term)]
    return sum(sorted((corpus.rarity(term) for term in counted), reverse=True)[:_TERMS_EXPECTED])
