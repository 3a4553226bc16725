"""Document references for a reader, out of the passages that a lookup returned (KNOW-5)."""

from collections.abc import Collection, Sequence

from superbizagent.domain.content import Reference
from superbizagent.domain.evidence import DocumentRef
from superbizagent.domain.text import bound_json

_FIELD_BYTES = 300
_HEADINGS = 4
_MAX_REFERENCES = 12


def references(document_ids: Collection[str], passages: Sequence[DocumentRef]) -> tuple[Reference, ...]:
    """The passages of these documents, each heading once, best first, bounded."""
    found = dict.fromkeys(_reference(passage) for passage in passages if passage.document_id in document_ids)
    return tuple(found)[:_MAX_REFERENCES]


def _reference(passage: DocumentRef) -> Reference:
    return Reference(
        document_id=passage.document_id,
        title=bound_json(passage.title, _FIELD_BYTES),
        heading_path=tuple(bound_json(heading, _FIELD_BYTES) for heading in passage.heading_path[-_HEADINGS:]),
        source=bound_json(passage.source, _FIELD_BYTES),
    )
