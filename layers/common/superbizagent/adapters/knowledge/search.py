"""From a query to ranked passages, whatever holds them."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from superbizagent.adapters.knowledge.passages import Document, Passage
from superbizagent.adapters.knowledge.ranking import LEAST_SHARE, Corpus, PassageTerms, scores
from superbizagent.adapters.knowledge.tokens import compound_terms, document_terms, query_terms, translated_terms

MAX_CANDIDATES = 400
"""How many passages are ranked for one query; those with its rarest terms."""

MAX_QUERY_TERMS = 240
"""Of a longer query, its beginning and its end count: a question stands before or after what is pasted."""


@dataclass(frozen=True)
class Candidate:
    """A passage that holds some of the query's terms."""

    passage: Passage
    document: int
    title: str
    source: str
    position: int
    terms: PassageTerms = field(repr=False)
    embedding_digest: str | None = None
    opening_digest: str | None = None
    """Of the document's beginning, as it is embedded."""


@dataclass(frozen=True)
class Hit:
    candidate: Candidate
    score: float


@dataclass(frozen=True)
class Query:
    """The terms to look for. `guesses`, as compounds and translations, count only where they occur."""

    words: Sequence[str]
    guesses: Sequence[str]

    @classmethod
    def of(cls, text: str) -> Self:
        words = _ends(query_terms(text))
        guesses = dict.fromkeys(_ends([*compound_terms(text), *translated_terms(text)])) if words else {}
        return cls(words, [term for term in guesses if term not in words])

    def terms(self, frequencies: Mapping[str, int]) -> Sequence[str]:
        return [*self.words, *(term for term in self.guesses if frequencies[term])]


def _ends(terms: Sequence[str]) -> Sequence[str]:
    if len(terms) <= MAX_QUERY_TERMS:
        return terms
    half = MAX_QUERY_TERMS // 2
    return [*terms[:half], *terms[-half:]]


def passage_terms(document: Document, passage: Passage) -> PassageTerms:
    return PassageTerms(
        title=Counter(document_terms(f"{document.title} {document.other_names}")),
        headings=Counter(document_terms(" ".join((*passage.heading_path, document.keywords)))),
        text=Counter(document_terms(passage.text)),
    )


def selective_terms(frequencies: Mapping[str, int]) -> Sequence[str]:
    """The rarest terms, as many as together can't occur in more than MAX_CANDIDATES passages.

    All of them where even the rarest occurs in more: the engine has to choose then.
    """
    found = sorted((count, term) for term, count in frequencies.items() if count)
    chosen: list[str] = []
    passages = 0
    for count, term in found:
        passages += count
        if passages > MAX_CANDIDATES:
            break
        chosen.append(term)
    return chosen or [term for _, term in found]


def ranked(
    terms: Sequence[str], candidates: Sequence[Candidate], corpus: Corpus, least_share: float = LEAST_SHARE
) -> Sequence[Hit]:
    """The passages that answer the query, best first; equal ones in the order of their documents."""
    return [hit for hit in rated(terms, candidates, corpus, least_share) if hit.score > 0]


def rated(terms: Sequence[str], candidates: Sequence[Candidate], corpus: Corpus, least_share: float) -> Sequence[Hit]:
    """All of `candidates`, best first; those that have nothing to do with the query score 0."""
    documents: defaultdict[int, list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda candidate: candidate.position):
        documents[candidate.document].append(candidate)
    hits = [hit for document in documents.values() for hit in _hits(terms, document, corpus, least_share)]
    return sorted(hits, key=in_order)


def _hits(terms: Sequence[str], document: Sequence[Candidate], corpus: Corpus, least_share: float) -> Sequence[Hit]:
    points = scores(terms, [candidate.terms for candidate in document], corpus, least_share)
    return [Hit(candidate, score) for candidate, score in zip(document, points, strict=True)]


def in_order(hit: Hit) -> tuple[float, str, int, str]:
    candidate = hit.candidate
    return (-hit.score, candidate.source, candidate.position, candidate.passage.passage_id)
