"""Ranked passages as evidence."""

from collections.abc import Sequence

from superbizagent.adapters.knowledge.ranking import Corpus
from superbizagent.adapters.knowledge.search import MAX_CANDIDATES, Hit
from superbizagent.adapters.knowledge.snippet import snippet
from superbizagent.domain.evidence import Coverage, DocumentRef, Evidence, Unit
from superbizagent.domain.text import fold_whitespace

TITLE = "documents"


def evidence_of(hits: Sequence[Hit], terms: Sequence[str], corpus: Corpus, limit: int) -> Evidence:
    """The best `limit` hits. Terms that occur nowhere find nothing, and no hit means no line."""
    shown = hits[:limit]
    coverage = Coverage(
        unit=Unit.PASSAGES,
        scanned=corpus.passages,
        matched=len(hits),
        shown=len(shown),
        truncated=len(shown) < len(hits),
        # Only passages in the words of the query were looked for.
        filtered=True,
        notes=_notes(hits),
    )
    if not shown:
        return Evidence(title=TITLE, coverage=coverage)
    return Evidence(
        title=TITLE,
        summary=(f"passages searched: {corpus.passages}; matched: {len(hits)}; shown: {len(shown)}",),
        lines=tuple(line for hit in shown for line in _lines(hit, terms, corpus)),
        coverage=coverage,
        documents=tuple(_reference(hit) for hit in shown),
    )


def _notes(hits: Sequence[Hit]) -> tuple[str, ...]:
    if len(hits) < MAX_CANDIDATES:
        return ()
    return (f"At least {len(hits)} passages match; a more specific query ranks them better.",)


def _lines(hit: Hit, terms: Sequence[str], corpus: Corpus) -> list[str]:
    reference = _reference(hit)
    place = " > ".join((reference.title, *reference.heading_path))
    heading = f"document {reference.document_id}: {place} ({reference.source})"
    weights = {term: corpus.rarity(term) for term in terms}
    return [heading, *snippet(hit.candidate.passage.text, weights)]


def _reference(hit: Hit) -> DocumentRef:
    candidate = hit.candidate
    return DocumentRef(
        document_id=candidate.passage.passage_id,
        title=fold_whitespace(candidate.title),
        heading_path=candidate.passage.heading_path,
        source=fold_whitespace(candidate.source),
    )
