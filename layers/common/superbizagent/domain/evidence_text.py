"""An observation's text in the terms in which the guards compare."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from functools import lru_cache

from superbizagent.domain.evidence import Coverage, Observation, ToolName
from superbizagent.domain.values import (
    Moment,
    Number,
    Values,
    identifier_pattern,
    moments_in,
    normalise,
    numbers_in,
)


@dataclass(frozen=True)
class EvidenceText:
    """`records` are the pieces that a quotation has to lie in whole: log lines and rows, or a document."""

    folded: str
    records: tuple[str, ...]
    moments: tuple[Moment, ...]
    numbers: frozenset[Number]

    def shows(self, values: Values) -> bool:
        """Whether every one of `values` occurs here."""
        return (
            all(self.holds(quotation) for quotation in values.quotations)
            and all(any(moment.agrees_with(other) for other in self.moments) for moment in values.moments)
            and all(identifier_pattern(name).search(self.folded) for name in values.identifiers)
            and all(any(number.agrees_with(other) for other in self.numbers) for number in values.numbers)
        )

    def holds(self, quotation: str) -> bool:
        """Whether `quotation` occurs verbatim, after white-space folding.

        Two records joined into one quotation are no quotation, unless it shows the line break itself.
        """
        quote = normalise(quotation)
        if not quote:
            return False
        if "\n" in quotation.strip():
            return quote in self.folded
        return any(quote in record for record in self.records)


def evidence_text(observation: Observation) -> EvidenceText:
    """What an observation says: its records and counts, its window, and the names of its documents."""
    parts = [observation.title, observation.projection]
    if observation.coverage is not None:
        window = (observation.coverage.start, observation.coverage.end)
        parts += [instant.isoformat() for instant in window if instant is not None]
    parts += [f"{document.title} {document.document_id}" for document in observation.documents]
    text = text_of("\n".join(parts), prose=observation.tool == ToolName.LOOKUP_KNOWLEDGE)
    return replace(text, moments=(*text.moments, *_dated(text.moments, observation.coverage)))


def _dated(moments: Sequence[Moment], coverage: Coverage | None) -> Iterator[Moment]:
    """Times of day, as counts are labelled with, on the day of a window that lies within one day."""
    if coverage is None or coverage.start is None or coverage.end is None:
        return
    first, last = coverage.start.astimezone(UTC), coverage.end.astimezone(UTC) - timedelta(microseconds=1)
    if first.date() != last.date():
        return
    for moment in moments:
        if moment.day is None and moment.month_day is None and moment.offset in (None, timedelta()):
            yield replace(moment, day=first.date())


@lru_cache(maxsize=256)
def text_of(text: str, prose: bool = False) -> EvidenceText:
    """`prose`: line breaks are only wrapping, so that a quotation may run over them."""
    folded = normalise(text)
    records = (folded,) if prose else tuple(normalise(line) for line in text.splitlines())
    return EvidenceText(folded, records, moments_in(text), numbers_in(text))
