"""What a search found, in bounded memory: counts, shapes of messages, and which records to show."""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from superbizagent.adapters.log_files.records import Record
from superbizagent.adapters.log_files.shapes import MAX_MESSAGE, ContinuationLines, Miner, Shape, masked
from superbizagent.adapters.log_files.timestamps import MICROSECONDS, instant_of
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


class Found(NamedTuple):
    """One matching record. `micros` is None for one without a time; `order` is where it stands."""

    order: int
    micros: int | None
    level: LogLevel | None
    message: str
    text: str
    continuation: list[str] | None


Shown = tuple[int, str]
"""Where a matching record stands among all that match, and its text."""


class Histogram:
    """Counts by time; what it keeps grows coarser instead of larger."""

    def __init__(self) -> None:
        self._step = 0
        self._counts: Counter[int] = Counter()

    def add(self, micros: int) -> None:
        self._counts[micros // _WIDTHS[self._step][0]] += 1
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
        self._waiting: list[tuple[int, int, Found]] = []
        self._waiting_size = 0
        self._arrived = 0
        self._miners: dict[LogLevel | None, Miner] = {}
        self._continuations = ContinuationLines()

    @property
    def ungrouped(self) -> int:
        """Lines of wordings that came when no more could be kept."""
        return sum(miner.ungrouped for miner in self._miners.values())

    def add(self, order: int, record: Record, level: LogLevel | None) -> None:
        micros = record.stamp.micros if record.stamp else None
        found = Found(order, micros, level, record.message[:MAX_MESSAGE], record.text, record.continuation)
        self._arrived += 1
        self._waiting_size += len(found.text)
        heapq.heappush(self._waiting, (order, self._arrived, found))
        if len(self._waiting) > _REORDERED or self._waiting_size > _MAX_WAITING:
            self._settle()

    def finish(self) -> None:
        """Once, after the last record."""
        while self._waiting:
            self._settle()

    def shapes(self) -> list[Shape]:
        """Once, after `finish`; each line that could be grouped is of exactly one."""
        return [shape for miner in self._miners.values() for shape in miner.shapes()]

    def odd_continuations(self) -> list[Shape]:
        """Rare lines within records, such as one line of a stack trace."""
        return list(self._continuations.shapes())

    def _settle(self) -> None:
        found = heapq.heappop(self._waiting)[2]
        self._waiting_size -= len(found.text)
        rank = self.matched
        self.matched += 1
        self.levels[found.level or "none"] += 1
        micros = found.micros
        if micros is not None:
            self.histogram.add(micros)
            self.first = micros if self.first is None else min(self.first, micros)
            self.last = micros if self.last is None else max(self.last, micros)
        self._keep_ends(found, rank)
        self._shape(found, rank)
        if found.continuation:
            self._continued(found, rank)

    def _keep_ends(self, found: Found, rank: int) -> None:
        if len(self.head) < self.limit:
            self.head.append((rank, self._excerpt(found, rank, _MAX_EXCERPT)))
        if len(self.tail) == self.limit:
            self._tail_size -= len(self.tail.popleft()[1])
        # Cutting each record in passing would be slow; only those that are the last in the end are cut.
        self.tail.append((rank, found.text))
        self._tail_size += len(found.text)
        while self._tail_size > _MAX_TAIL and len(self.tail) > 1:
            self._tail_size -= len(self.tail.popleft()[1])

    def _shape(self, found: Found, rank: int) -> None:
        miner = self._miners.get(found.level)
        if miner is None:
            miner = self._miners[found.level] = Miner(found.level)
        wording = masked(found.message)
        shape = miner.known(wording)
        if shape is not None:
            shape.seen(found.micros)
            return
        shape = miner.add(wording, found.micros, rank, found.text)
        if shape is not None:
            shape.message, shape.example = found.message, self._example(found, rank)

    def _continued(self, found: Found, rank: int) -> None:
        for line in found.continuation or ():
            shape = self._continuations.add(line, rank)
            if shape is not None:
                shape.example = self._example(found, rank, line[:100])

    def _example(self, found: Found, rank: int, *wanted: str) -> str:
        """Empty once so much was cut for examples that more would take too long."""
        if self._redacted_size > _MAX_REDACTED and len(found.text) > _EXAMPLE:
            return ""
        return self._excerpt(found, rank, _EXAMPLE, *wanted)

    def _excerpt(self, found: Found, rank: int, room: int, *wanted: str) -> str:
        """Cut after redaction: half a secret is not recognised as one."""
        if len(found.text) <= room:
            return found.text
        if self._redacted[0] != rank:
            self._redacted = (rank, self._redact(found.text))
            self._redacted_size += len(found.text)
        return excerpt(self._redacted[1], room, (*self.contains, *wanted))


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
            parts.append(f"…[{begin - done} characters cut]…")
        if end > done:
            parts.append(text[max(begin, done) : end])
            done = end
    return "".join(parts)


def clock_text(micros: int, *, dated: bool) -> str:
    """A UTC time of day, with its date where one is needed."""
    return f"{instant_of(micros):{'%Y-%m-%d %H:%M:%S' if dated else '%H:%M:%S'}}"
