"""The knowledge index without a database."""

from superbizagent.adapters.knowledge.evidence import evidence_of
from superbizagent.adapters.knowledge.markdown import parse_markdown
from superbizagent.adapters.knowledge.ranking import Corpus
from superbizagent.adapters.knowledge.search import Candidate, Query, passage_terms, ranked
from superbizagent.domain.evidence import Evidence, LookupKnowledge
from superbizagent.errors import EvidenceError


class FakeKnowledgeIndex:
    """KnowledgeIndex over documents in memory; every passage is a candidate. `error` is raised if set."""

    def __init__(self, collection: str = "documents") -> None:
        self.error: EvidenceError | None = None
        self.lookups: list[LookupKnowledge] = []
        self._collection = collection
        self._passages: list[Candidate] = []

    def add(self, source: str, markdown: str) -> None:
        document = parse_markdown(markdown, source, self._collection)
        number = len({passage.document for passage in self._passages})
        self._passages += [
            Candidate(passage, number, document.title, source, position, passage_terms(document, passage))
            for position, passage in enumerate(document.passages)
        ]

    async def lookup(self, query: LookupKnowledge) -> Evidence:
        self.lookups.append(query)
        if self.error:
            raise self.error
        wanted = Query.of(query.query)
        frequencies = {
            term: sum(1 for passage in self._passages if passage.terms.having([term]))
            for term in (*wanted.words, *wanted.guesses)
        }
        length = sum(passage.terms.length for passage in self._passages)
        corpus = Corpus(len(self._passages), length, frequencies)
        terms = wanted.terms(frequencies)
        found = [passage for passage in self._passages if passage.terms.having(terms)]
        return evidence_of(ranked(terms, found, corpus), terms, corpus, query.limit)
