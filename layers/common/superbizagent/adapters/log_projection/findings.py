"""What a search found, in bounded memory: counts, shapes of messages, and which records to show."""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from superbizagent.adapters.log_projection.instants import MICROSECONDS, instant_of
from superbizagent.adapters.log_projection.shapes import (
    CUT_MARK,
    MAX_MESSAGE,
    ContinuationLines,
    FieldValues,
    Miner,
    Shape,
    masked,
)
from superbizagent.domain.evidence import LogLevel

_MAX_EXCERPT: Final = 8 * 1024
_MAX_TAIL: Final = 1024 * 1024
_MAX_WAITING: Final = 4 * 1024 * 1024
_MAX_REDACTED: Final = 8 * 1024 * 1024
_EXAMPLE: Final = 1_000
_REORDERED: Final = 512
_MAX_BUCKETS: Final = 12
_KEPT_BUCKETS: Final = 4_000

_MINUTE: Final = 60 * MICROSECONDS
_WIDTHS: Final = (
    (_MINUTE, "1 min"),
    (10 * _MINUTE, "10 min"),
    (60 * _MINUTE, "1 h"),
    (1_440 * _MINUTE, "1 d"),
    (7 * 1_440 * _MINUTE, "7 d"),
    (30 * 1_440 * _MINUTE, "30 d"),
    (365 * 1_440 * _MINUTE, "365 d"),
    (3_650 * 1_440 * _MINUTE, "3650 d"),
)


class LogRecord(NamedTuple):
    """One matching record of any source. `micros` is None for one without a time.

    `text` is the whole of it, `message` its first line without time and level where they stand apart,
    `continuation` its further lines, `fields` those of a JSON record.
    """

    micros: int | None
    level: LogLevel | None
    message: str
    text: str
    continuation: Sequence[str] | None = None
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Unread:
    """Matching records that were not read, `count` of them, None where nobody knows.

    They lie behind the first `begin` of those read and before the one of rank `end`.
    """

    count: int | None
    begin: int
    end: int


Shown = tuple[int, str]
"""Where a matching record stands among all that match, and its text."""


class Histogram:
    """Counts by time; what it keeps grows coarser instead of larger."""

    def __init__(self) -> None:
        self._step = 0
        self._counts: Counter[int] = Counter()

    def add(self, micros: int, count: int = 1) -> None:
        self._counts[micros // _WIDTHS[self._step][0]] += count
        if len(self._counts) > _KEPT_BUCKETS and self._step < len(_WIDTHS) - 1:
            self._counts = self._at(self._step + 1)
            self._step += 1

    def buckets(self) -> tuple[str, list[tuple[int, int]]]:
        """The width's name and at most twelve (begin in microseconds, count), empty ones between included."""
        for step in range(self._step, len(_WIDTHS)):
            counts = self._at(step)
            begin, end = min(counts, default=0), max(counts, default=0)
            if end - begin < _MAX_BUCKETS or step == len(_WIDTHS) - 1:
                width, name = _WIDTHS[step]
                last = min(end, begin + _MAX_BUCKETS - 1)
                return name, [(slot * width, counts[slot]) for slot in range(begin, last + 1)] if counts else []
        raise AssertionError("unreachable: the last width always fits")

    def _at(self, step: int) -> Counter[int]:
        if step == self._step:
            return self._counts
        old, new = _WIDTHS[self._step][0], _WIDTHS[step][0]
        counts: Counter[int] = Counter()
        for slot, count in self._counts.items():
            counts[slot * old // new] += count
        return counts


@dataclass(frozen=True)
class Totals:
    """Counts over all matching records, whether they were read or not. None: nobody knows.

    `matched` is how many there are at least when it is not `exact`. Instants are microseconds since 1970.
    """

    matched: int
    exact: bool = True
    levels: Mapping[str, int] | None = None
    histogram: Histogram | None = None
    last: int | None = None


class Findings:
    """Takes matching records nearly in time order; keeps what the report needs of them."""

    def __init__(self, limit: int, contains: Sequence[str] = (), redact: Callable[[str], str] = str) -> None:
        self.matched = 0
        self.levels: Counter[str] = Counter()
        self.histogram = Histogram()
        self.first: int | None = None
        self.last: int | None = None
        self.limit = limit
        self.contains = tuple(contains)
        self.head: list[Shown] = []
        self.tail: deque[Shown] = deque(maxlen=limit)
        self._tail_size = 0
        self._redact = redact
        self._redacted: tuple[int, str] = (-1, "")
        self._redacted_size = 0
        self._waiting: list[tuple[int, int, LogRecord]] = []
        self._waiting_size = 0
        self._arrived = 0
        self._miners: dict[LogLevel | None, Miner] = {}
        self._continuations = ContinuationLines()
        self._values = FieldValues()

    @property
    def ungrouped(self) -> int:
        """Lines of wordings that came when no more could be kept."""
        return sum(miner.ungrouped for miner in self._miners.values())

    def add(self, order: int, record: LogRecord) -> None:
        """`order` is where the record stands among all; it grows but for what is out of order by a few hundred."""
        self._arrived += 1
        self._waiting_size += len(record.text)
        heapq.heappush(self._waiting, (order, self._arrived, record))
        if len(self._waiting) > _REORDERED or self._waiting_size > _MAX_WAITING:
            self._settle()

    def finish(self) -> None:
        """Once, after the last record."""
        while self._waiting:
            self._settle()

    def totals(self) -> Totals:
        """Of a search that read all that matched."""
        return Totals(self.matched, True, self.levels, self.histogram if self.first is not None else None, self.last)

    def shapes(self) -> list[Shape]:
        """Once, after `finish`; each line that could be grouped is of exactly one."""
        return [shape for miner in self._miners.values() for shape in miner.shapes()]

    def parts(self) -> list[Shape]:
        """Of what stands within records: the lines of stack traces and the like, and the fields of JSON."""
        return [*self._continuations.shapes(), *self._values.shapes()]

    def _settle(self) -> None:
        record = heapq.heappop(self._waiting)[2]
        self._waiting_size -= len(record.text)
        rank = self.matched
        self.matched += 1
        self.levels[record.level or "none"] += 1
        micros = record.micros
        if micros is not None:
            self.histogram.add(micros)
            self.first = micros if self.first is None else min(self.first, micros)
            self.last = micros if self.last is None else max(self.last, micros)
        self._keep_ends(record, rank)
        self._shape(record, rank)
        if record.continuation:
            self._continued(record, rank)
        if record.fields:
            for shape in self._values.add(record.fields, rank):
                shape.example = self._example(record, rank, shape.template)

    def _keep_ends(self, record: LogRecord, rank: int) -> None:
        if len(self.head) < self.limit:
            self.head.append((rank, self._excerpt(record, rank, _MAX_EXCERPT)))
        if len(self.tail) == self.limit:
            self._tail_size -= len(self.tail.popleft()[1])
        # Cutting each record in passing would be slow; only those that are the last in the end are cut.
        self.tail.append((rank, record.text))
        self._tail_size += len(record.text)
        while self._tail_size > _MAX_TAIL and len(self.tail) > 1:
            self._tail_size -= len(self.tail.popleft()[1])

    def _shape(self, record: LogRecord, rank: int) -> None:
        miner = self._miners.get(record.level)
        if miner is None:
            miner = self._miners[record.level] = Miner(record.level)
        wording = masked(record.message)
        shape = miner.known(wording)
        if shape is not None:
            shape.seen(record.micros)
            return
        shape = miner.add(wording, record.micros, rank, record.text)
        if shape is not None:
            shape.message, shape.example = record.message[:MAX_MESSAGE], self._example(record, rank)

    def _continued(self, record: LogRecord, rank: int) -> None:
        for line in record.continuation or ():
            shape = self._continuations.add(line, rank)
            if shape is not None:
                shape.example = self._example(record, rank, line[:100])

    def _example(self, record: LogRecord, rank: int, *wanted: str) -> str:
        """Empty once so much was cut for examples that more would take too long."""
        if self._redacted_size > _MAX_REDACTED and len(record.text) > _EXAMPLE:
            return ""
        return self._excerpt(record, rank, _EXAMPLE, *wanted)

    def _excerpt(self, record: LogRecord, rank: int, room: int, *wanted: str) -> str:
        """Cut after redaction: half a secret is not recognised as one."""
        if len(record.text) <= room:
            return record.text
        if self._redacted[0] != rank:
            self._redacted = (rank, self._redact(record.text))
            self._redacted_size += len(record.text)
        return excerpt(self._redacted[1], room, (*self.contains, *wanted))


def shortened(text: str) -> bool:
    """Whether it is an excerpt; a record that says so itself counts as one."""
    return CUT_MARK in text


def excerpt(text: str, room: int, contains: Sequence[str]) -> str:
    """`text`, or in about `room` characters its head, the surroundings of each text looked for, and its tail.

    What is kept is verbatim; cuts are marked.
    """
    if len(text) <= room:
        return text
    piece = room // (len(contains) + 3)
    keep = [(0, 2 * piece), (len(text) - piece, len(text))]
    folded = text.casefold()
    # Casefolding may lengthen text (ß): positions are then near enough.
    for wanted in contains:
        at = folded.find(wanted.casefold())
        if at >= 0:
            keep.append((max(at - piece // 2, 0), min(at + piece // 2, len(text))))
    parts: list[str] = []
    done = 0
    for begin, end in sorted(keep):
        if begin > done:
            parts.append(f"…[{begin - done} {CUT_MARK}")
        if end > done:
            parts.append(text[max(begin, done) : end])
            done = end
    return "".join(parts)


def clock_text(micros: int, *, dated: bool) -> str:
    """A UTC time of day, with its date where one is needed."""
    return f"{instant_of(micros):{'%Y-%m-%d %H:%M:%S' if dated else '%H:%M:%S'}}"
