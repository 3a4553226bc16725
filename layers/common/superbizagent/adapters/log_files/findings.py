"""What a search found, in bounded memory: counts, shapes of messages, and which records to show."""

import heapq
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from superbizagent.adapters.log_files.records import Record
from superbizagent.adapters.log_files.timestamps import MICROSECONDS, instant_of
from superbizagent.domain.evidence import LogLevel

MAX_SHAPES: Final = 1_000
_TOTAL_SHOWN: Final = 256 * 1024
_MAX_EXCERPT: Final = 8 * 1024
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

# One boundary test a word: this runs once for every matching record.
_VARIABLE: Final = re.compile(
    r"\b(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
    r"|[A-Za-z_]*(?:(?<=_)-\d+\b|\d(?:[A-Za-z_]*\d)+\w*)|\d(?=[A-Za-z]{0,3}\b))"
)
_JOINED: Final = re.compile(r"<\*>(?:[.:/_,-]{1,2}<\*>)+")
_PRELUDE: Final = re.compile(
    r"[^A-Za-z]{0,40}(?:(?i:level|severity|lvl)=)?[\[(<]?(?:\w{1,20}:)?(?:(?i:trace|debug|info|notice|warn|warning|error|err|severe"
    r"|fatal|critical|crit|emerg|panic|alert))\b[\])>]?[\s:|-]*"
)
# Records without a level that somebody would still want to see an example of.
_ALARMING: Final = re.compile(
    r"(?i)\b(?:error|fail(?:ed|ure|ing)?|exception|timed?[ -]?out|timeout|refused|denied|panic|killed"
    r"|abort\w*|crash\w*|fatal|unreachable|out of memory|segfault|traceback)\b"
)
_SEVERE: Final = ("FATAL", "ERROR", "WARN")


class Found(NamedTuple):
    """One matching record. `micros` is None for one without a time; `order` is where it stands."""

    order: int
    micros: int | None
    level: LogLevel | None
    message: str
    text: str


@dataclass
class Shape:
    """Messages that are equal but for numbers and identifiers."""

    level: LogLevel | None
    template: str
    count: int
    first: int | None
    last: int | None
    severity: int
    rank: int
    example: str


def template_of(message: str) -> str:
    """The message with `<*>` for each number and identifier, bounded."""
    head = message[:300]
    prelude = _PRELUDE.match(head)
    if prelude and prelude.end() < len(head):
        head = head[prelude.end() :]
    head = _JOINED.sub("<*>", _VARIABLE.sub("<*>", head))
    return " ".join(head.split())[:200]


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

    def __init__(self, limit: int, contains: Sequence[str] = ()) -> None:
        self.matched = 0
        self.levels: Counter[str] = Counter()
        self.histogram = Histogram()
        self.first: int | None = None
        self.last: int | None = None
        self.more_shapes = False
        self.shapes: dict[tuple[LogLevel | None, str], Shape] = {}
        self._limit = limit
        self._contains = tuple(contains)
        self._excerpt = max(min(_MAX_EXCERPT, _TOTAL_SHOWN // limit), 512)
        self._waiting: list[tuple[int, int, Found]] = []
        self._arrived = 0
        self._head: list[tuple[int, str]] = []
        self._tail: deque[tuple[int, str]] = deque(maxlen=limit)

    def add(self, order: int, record: Record, level: LogLevel | None) -> None:
        micros = record.stamp.micros if record.stamp else None
        found = Found(order, micros, level, record.message[:400], self._bounded(record.text))
        self._arrived += 1
        heapq.heappush(self._waiting, (order, self._arrived, found))
        if len(self._waiting) > _REORDERED:
            self._settle(heapq.heappop(self._waiting)[2])

    def finish(self) -> None:
        """Once, after the last record."""
        while self._waiting:
            self._settle(heapq.heappop(self._waiting)[2])

    def _settle(self, found: Found) -> None:
        rank = self.matched
        self.matched += 1
        self.levels[found.level or "none"] += 1
        if found.micros is not None:
            self.histogram.add(found.micros)
            self.first = found.micros if self.first is None else min(self.first, found.micros)
            self.last = found.micros if self.last is None else max(self.last, found.micros)
        if len(self._head) < self._limit:
            self._head.append((rank, found.text))
        self._tail.append((rank, found.text))
        self._shape(found, rank)

    def _shape(self, found: Found, rank: int) -> None:
        template = template_of(found.message)
        shape = self.shapes.get((found.level, template))
        if shape is not None:
            shape.count += 1
            if found.micros is not None:
                shape.last = max(shape.last or found.micros, found.micros)
            return
        severity = self._severity(found)
        # Chatter with a new wording in each line must not crowd out the shapes of errors.
        room = MAX_SHAPES if severity else MAX_SHAPES // 2
        if len(self.shapes) >= room:
            self.more_shapes = True
            return
        self.shapes[found.level, template] = Shape(
            found.level, template, 1, found.micros, found.micros, severity, rank, found.text
        )

    def _severity(self, found: Found) -> int:
        if found.level in _SEVERE:
            return 3 - _SEVERE.index(found.level)
        return 1 if found.level is None and _ALARMING.search(found.text) else 0

    def _bounded(self, text: str) -> str:
        if len(text) <= self._excerpt:
            return text
        return excerpt(text, self._excerpt, self._contains)

    def top_shapes(self, limit: int = 8) -> list[Shape]:
        """The most frequent, the rarest severe ones among them, most frequent first."""
        shapes = sorted(self.shapes.values(), key=lambda shape: (-shape.count, shape.rank))
        if len(shapes) <= limit:
            return shapes
        rare = sorted(
            (shape for shape in shapes if shape.severity),
            key=lambda shape: (-(shape.severity >= 2), shape.count, shape.rank),
        )[: limit // 2]
        chosen = {id(shape) for shape in rare}
        for shape in shapes:
            if len(chosen) >= limit:
                break
            chosen.add(id(shape))
        return [shape for shape in shapes if id(shape) in chosen]

    def shown(self) -> dict[int, str]:
        """Rank to text of at most `limit` records: all, or first, last and examples of severe shapes."""
        if self.matched <= self._limit:
            return dict(self._head)
        examples = self._examples(self._limit - min(max(self._limit // 4, 2), self._limit))
        chosen = dict(examples)
        for rank, text in _alternately(self._head, list(self._tail)):
            if len(chosen) >= self._limit:
                break
            chosen.setdefault(rank, text)
        return dict(sorted(chosen.items()))

    def _examples(self, room: int) -> list[tuple[int, str]]:
        severe = sorted(
            (shape for shape in self.shapes.values() if shape.severity),
            key=lambda shape: (-(shape.severity >= 2), shape.count, shape.rank),
        )
        return [(shape.rank, shape.example) for shape in severe[:room]]


def _alternately(head: Sequence[tuple[int, str]], tail: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for early, late in zip(head, reversed(tail), strict=False):
        yield early
        yield late


def excerpt(text: str, room: int, contains: Sequence[str]) -> str:
    """The head of `text`, its surroundings of each text looked for, and its tail; cuts are marked."""
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
