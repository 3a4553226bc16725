"""An observation's text in the terms in which the guards compare."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from decimal import Decimal
from functools import cached_property, lru_cache

from superbizagent.domain.codes import ToolName
from superbizagent.domain.evidence import Coverage, Observation
from superbizagent.domain.identifiers import misspells, names_in, occurs
from superbizagent.domain.pattern import Pattern
from superbizagent.domain.quantities import DAYS, SECONDS
from superbizagent.domain.quotations import holds
from superbizagent.domain.values import Moment, Number, Values, moments_in, normalise, numbers_in

_STATUS = (
    r"(?<![A-Za-z0-9]){first}xx(?![A-Za-z0-9])"
    r"|(?:status|code|http(?:/[0-9.]+)?|answered|returned|response|返回|响应|状态码?)[\"'=:\s]{{0,4}}{first}[0-9]{{2}}(?![0-9])"
)
_RECORDS = "records:"
_LOCAL_ZONE = Pattern(r"^zone: the lines' own times are at UTC([+-])([0-9]{2}):([0-9]{2}) \(", re.MULTILINE)
# Where a line's end is more than wrapping: after a sentence, and before a list's item or a heading.
_PARAGRAPH = Pattern(r"(?<=[.。!?！？:：;；|])\s*\n|\n(?=\s*(?:[-*+#>|]|[0-9]{1,2}[.)]\s))")
_DOCUMENT = Pattern(r"^(document \S+: .*)$", re.MULTILINE)


@dataclass(frozen=True)
class EvidenceText:
    """`records` are the pieces that a quotation has to lie in whole: log lines and rows, or a passage.

    `all_records` are the lines that matched, where all of them are shown.
    """

    folded: str
    records: tuple[str, ...]
    moments: tuple[Moment, ...]
    numbers: frozenset[Number]
    all_records: tuple[str, ...] = ()

    def shows(self, values: Values) -> bool:
        """Whether every one of `values` occurs here."""
        return (
            all(self.holds(quotation) for quotation in values.quotations)
            and all(any(moment.agrees_with(other) for other in self.moments) for moment in values.moments)
            and all(occurs(name, self.folded) for name in values.identifiers)
            and all(self._shows_number(number) for number in values.numbers)
            and all(self._shows_class(first) for first in values.status_classes)
        )

    def holds(self, quotation: str) -> bool:
        """Whether `quotation` occurs verbatim, after white-space folding.

        Two records joined into one quotation are no quotation, unless it shows the line break itself.
        """
        if "\n" in quotation.strip():
            return holds(self.folded, quotation)
        return any(holds(record, quotation) for record in self.records)

    def misspells(self, word: str) -> bool:
        """Whether a word looks like a name of this text that was not copied letter by letter."""
        return misspells(word, self._names)

    @cached_property
    def _names(self) -> frozenset[str]:
        return names_in(self.folded)

    def _shows_number(self, number: Number) -> bool:
        if any(number.agrees_with(other) for other in self.numbers):
            return True
        return bool(number.parts) and all(self._shows_number(part) for part in number.parts)

    def _shows_class(self, first: int) -> bool:
        return bool(re.search(_STATUS.format(first=first), self.folded, re.IGNORECASE))


@lru_cache(maxsize=64)
def evidence_text(observation: Observation) -> EvidenceText:
    """What an observation says: its records and counts, its window, and the names of its documents."""
    parts = [observation.title, observation.projection]
    if observation.coverage is not None:
        window = (observation.coverage.start, observation.coverage.end)
        parts += [instant.isoformat() for instant in window if instant is not None]
    parts += [f"{document.title} {document.document_id}" for document in observation.documents]
    text = text_of("\n".join(parts), prose=observation.tool == ToolName.LOOKUP_KNOWLEDGE)
    moments = (*_zoned(observation), *text.moments[len(moments_in(f"{observation.title}\n{observation.projection}")) :])
    dated = (*moments, *_dated(moments, observation.coverage))
    numbers = text.numbers | frozenset(_lengths(dated, observation.coverage))
    return replace(text, moments=dated, numbers=numbers, all_records=_all_records(observation))


def _lengths(moments: Sequence[Moment], coverage: Coverage | None) -> Iterator[Number]:
    """How long the window is that was searched, and how many days are told of."""
    if coverage is not None and coverage.start is not None and coverage.end is not None:
        length = coverage.end - coverage.start
        yield Number(Decimal(length // timedelta(microseconds=1)).scaleb(-6), SECONDS, labelling=True)
    days = len({moment.day for moment in moments if moment.day is not None})
    if days > 1:
        yield Number(Decimal(days), DAYS, labelling=True)


def _all_records(observation: Observation) -> tuple[str, ...]:
    if (
        observation.tool == ToolName.LOOKUP_KNOWLEDGE
        or observation.coverage is None
        or not observation.coverage.complete
    ):
        return ()
    _, mark, records = observation.projection.partition(f"\n{_RECORDS}\n")
    lines = (records if mark else observation.projection).splitlines()
    return tuple(line for line in lines if mark or line.startswith("{"))


def asked_text(observation: Observation) -> EvidenceText:
    """What was searched for: that, too, may be named where it is said to be absent."""
    arguments = observation.asked() or {}
    asked = [arguments.get("source"), *(arguments.get("contains") or ()), *(arguments.get("levels") or ())]
    asked += [arguments.get("statement"), arguments.get("query")]
    return text_of("\n".join(text for text in asked if isinstance(text, str)))


def _zoned(observation: Observation) -> Iterator[Moment]:
    """The projection's times, each in the zone that it is written in; a source's own counts are in UTC."""
    head, _, records = observation.projection.partition(f"\n{_RECORDS}\n")
    yield from _in_zone(moments_in(f"{observation.title}\n{head}"), timedelta())
    local = _LOCAL_ZONE.search(head)
    offset = timedelta()
    if local is not None:
        offset = timedelta(hours=int(local[2]), minutes=int(local[3])) * (-1 if local[1] == "-" else 1)
    yield from _in_zone(moments_in(records), offset)


def _in_zone(moments: Iterable[Moment], offset: timedelta) -> Iterator[Moment]:
    for moment in moments:
        zoned = moment.hour is not None and moment.offset is None
        yield replace(moment, offset=offset) if zoned else moment


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
    """`prose`: line breaks are only wrapping, so that a quotation may run over them, but not over passages."""
    pieces = _passages(text) if prose else text.splitlines()
    records = tuple(normalise(piece) for piece in pieces)
    return EvidenceText(normalise(text), records, moments_in(text), numbers_in(text))


def _passages(text: str) -> list[str]:
    """The passages of several documents, each with its heading line apart."""
    return [part for piece in _DOCUMENT.split(text) for part in _PARAGRAPH.split(piece)]
