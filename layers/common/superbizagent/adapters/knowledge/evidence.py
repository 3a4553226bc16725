"""Ranked passages as evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from superbizagent.adapters.knowledge.ranking import Corpus
from superbizagent.adapters.knowledge.search import MAX_CANDIDATES, Hit
from superbizagent.adapters.knowledge.snippet import snippet
from superbizagent.domain.codes import Unit
from superbizagent.domain.evidence import Coverage, DocumentRef, Evidence
from superbizagent.domain.text import bound_characters, fold_whitespace

TITLE = "documents"

EVIDENCE_BYTES = 7_000
"""UTF-8 bytes of all passages together: what is cut later, to fit a model's window, is cut blindly."""

_PLACE_CHARACTERS = 300


@dataclass(frozen=True)
class Shown:
    """One passage of the evidence."""

    reference: DocumentRef
    text: str


def evidence_of(
    hits: Sequence[Hit], terms: Sequence[str], corpus: Corpus, limit: int, notes: Sequence[str] = ()
) -> Evidence:
    """The best `limit` hits. Terms that occur nowhere find nothing, and no hit means no line."""
    shown = hits[:limit]
    coverage = Coverage(
        unit=Unit.PASSAGES,
        scanned=corpus.passages,
        matched=len(hits),
        shown=len(shown),
        truncated=len(shown) < len(hits),
        # Only passages that have something to do with the query were looked for.
        filtered=True,
        notes=(*_notes(hits), *notes),
    )
    if not shown:
        return Evidence(title=TITLE, coverage=coverage)
    return Evidence(
        title=TITLE,
        summary=(f"passages searched: {corpus.passages}; matched: {len(hits)}; shown: {len(shown)}",),
        lines=passage_lines(
            [Shown(_reference(hit), hit.candidate.passage.text) for hit in shown],
            {term: corpus.rarity(term) for term in terms},
        ),
        coverage=coverage,
        documents=tuple(_reference(hit) for hit in shown),
    )


def passage_lines(passages: Sequence[Shown], weights: Mapping[str, float]) -> tuple[str, ...]:
    """Each passage under a line that names it, cut to what is around the terms of most weight."""
    room = EVIDENCE_BYTES // max(len(passages), 1)
    lines: list[str] = []
    for passage in passages:
        heading = _heading(passage.reference)
        lines += [heading, *snippet(passage.text, weights, room - len(heading.encode()) - 1)]
    return tuple(lines)


def _notes(hits: Sequence[Hit]) -> tuple[str, ...]:
    if len(hits) < MAX_CANDIDATES:
        return ()
    return (f"At least {len(hits)} passages match; a more specific query ranks them better.",)


def _heading(reference: DocumentRef) -> str:
    place = bound_characters(" > ".join((reference.title, *reference.heading_path)), _PLACE_CHARACTERS)
    source = bound_characters(reference.source, _PLACE_CHARACTERS)
    return f"document {reference.document_id}: {place} ({source})"


def _reference(hit: Hit) -> DocumentRef:
    candidate = hit.candidate
    return DocumentRef(
        document_id=candidate.passage.passage_id,
        title=fold_whitespace(candidate.title),
        heading_path=candidate.passage.heading_path,
        source=fold_whitespace(candidate.source),
    )
