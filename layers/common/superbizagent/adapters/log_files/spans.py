"""Which files a source has now, and from when to when each one's lines run."""

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

from superbizagent.adapters.log_files.reading import (
    DAMAGED,
    LogStream,
    ReadProblems,
    ScanBudget,
    TextShape,
    UnreadableFile,
    line_blocks,
    shape_of,
)
from superbizagent.adapters.log_files.records import RecordReader
from superbizagent.adapters.log_files.timestamps import TimestampReader
from superbizagent.adapters.log_projection import MICROSECONDS, instant_of, micros_of

# Lines of concurrent writers stand out of order by moments; files are skipped and sought with this
# much room on both sides.
DISORDER: Final = 600 * MICROSECONDS

_WHOLE: Final = 4 * 1024 * 1024
_SAMPLES: Final = 32
_SAMPLE: Final = 16 * 1024
_DAY: Final = 86_400 * MICROSECONDS
_END: Final = 64 * 1024
_UNPACK: Final = 16 * 1024 * 1024
_SEEK_STEP: Final = 1024 * 1024
_MAX_LANES: Final = 64


@dataclass(frozen=True)
class FileSpan:
    """A readable file. `first` and `last` are microseconds since 1970, None when not known.

    `ordered` unless its lines were seen to jump back in time by more than concurrent writers do.
    `year` is that of the first line, for lines that leave it out. `modified` is the file's own time
    in microseconds.
    """

    path: Path
    identity: tuple[int, int]
    size: int
    modified: int
    packed: bool
    dated: bool
    ordered: bool
    yearless: bool
    year: int | None
    shape: TextShape
    first: int | None
    last: int | None

    @property
    def name(self) -> str:
        return printable_name(self.path)

    def outside(self, start: int | None, end: int | None) -> bool:
        """Whether no line can lie in the window."""
        if not self.ordered:
            return False
        if end is not None and self.first is not None and self.first >= end + DISORDER:
            return True
        return start is not None and self.last is not None and self.last < start - DISORDER


def printable_name(path: Path) -> str:
    """The file's name without its folder, in text that can always be encoded."""
    return path.name.encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class Listing:
    """A source's files in time order, and why others are missing from them."""

    spans: tuple[FileSpan, ...]
    notes: tuple[str, ...] = ()
    unread: int = 0

    @property
    def first(self) -> int | None:
        return min((span.first for span in self.spans if span.first is not None), default=None)

    @property
    def last(self) -> int | None:
        return max((span.last for span in self.spans if span.last is not None), default=None)


class FileSpans:
    """Lists a source's files; what it read of one is kept until the file changes."""

    def __init__(self, paths: Sequence[str], zone: tzinfo, year: int | None) -> None:
        self._paths = tuple(paths)
        self._zone = zone
        self._year = year
        self._known: dict[Path, tuple[tuple[int, ...], FileSpan]] = {}

    def listing(self, cancelled: Callable[[], bool]) -> Listing:
        """Raises Cancelled."""
        notes: list[str] = []
        spans: dict[tuple[int, int], FileSpan] = {}
        unread = 0
        for path in self._matching(notes):
            try:
                span = self._span(path, cancelled)
            except UnreadableFile as error:
                notes.append(f"{printable_name(path)} {error}")
                unread += 1
            else:
                spans.setdefault(span.identity, span)
        self._known = {span.path: self._known[span.path] for span in spans.values() if span.path in self._known}
        ordered = sorted(spans.values(), key=_order)
        return Listing(tuple(_without_copies(ordered, notes)), tuple(notes), unread)

    def _matching(self, notes: list[str]) -> list[Path]:
        found: dict[str, None] = {}
        for pattern in self._paths:
            names = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - patterns may be absolute
            # glob leaves out a dangling link, which is a file somebody meant to have read.
            if not names and not glob.has_magic(pattern):
                notes.append(f"{printable_name(Path(pattern))} does not exist")
            elif not names:
                notes.append(f"no file matches {printable_name(Path(pattern))}")
            found.update(dict.fromkeys(name for name in names if not os.path.isdir(name)))  # noqa: PTH112
        return [Path(name) for name in found]

    def _span(self, path: Path, cancelled: Callable[[], bool]) -> FileSpan:
        with LogStream(path) as stream:
            state = stream.state
            key = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
            known = self._known.get(path)
            if known and known[0] == key:
                return known[1]
            span = _Probe(path, stream, self._zone, self._year, cancelled).span()
        self._known[path] = (key, span)
        return span


def _order(span: FileSpan) -> tuple[int, int, str]:
    return (span.first if span.first is not None else span.modified, span.modified, span.path.name)


def _without_copies(spans: Iterable[FileSpan], notes: list[str]) -> Iterable[FileSpan]:
    """Leaves out `app.log.1.gz` beside the `app.log.1` that it is being made of."""
    spans = list(spans)
    plain = {(span.path, span.first) for span in spans if not span.packed}
    for span in spans:
        if span.packed and (span.path.with_suffix(""), span.first) in plain:
            notes.append(f"{span.name} is a copy of {printable_name(span.path.with_suffix(''))} and was left out")
        else:
            yield span


@dataclass
class _Extent:
    """The times of some lines, in microseconds: of the first and last line, and the least and greatest."""

    begin: int = 0
    end: int = 0
    low: int = 0
    high: int = 0
    dated: bool = False
    yearless: bool = False
    jumped: bool = False

    def add(self, micros: int) -> None:
        if not self.dated:
            self.begin = self.low = self.high = micros
            self.dated = True
        self.jumped = self.jumped or micros < self.high - DISORDER
        self.end = micros
        self.low = min(self.low, micros)
        self.high = max(self.high, micros)


class _Probe:
    """Reads one file's head, tail and some places between; small files whole."""

    def __init__(
        self, path: Path, stream: LogStream, zone: tzinfo, year: int | None, cancelled: Callable[[], bool]
    ) -> None:
        self._path = path
        self._stream = stream
        self._zone = zone
        self._year = year
        self._cancelled = cancelled
        self._shape = shape_of(stream.read(4096))
        self._whole = bool(stream.kind) or stream.size <= _WHOLE
        self._read_all = False

    def span(self) -> FileSpan:
        state = self._stream.state
        modified = state.st_mtime_ns // 1_000
        year = self._year or instant_of(modified).astimezone(self._zone).year
        head, tail = self._ends(year)
        if head.yearless:
            year = self._first_year(head, tail or head, year, modified)
            head, tail = self._ends(year)
            if tail and tail.high < head.low - _DAY:
                tail = self._tail(year + 1)
        between = [] if self._read_all or head.yearless else self._samples()
        known = [extent for extent in (head, *between, tail) if extent and extent.dated]
        ordered = not any(extent.jumped for extent in known) and all(
            later.low >= earlier.high - DISORDER for earlier, later in pairwise(known)
        )
        return FileSpan(
            path=self._path,
            identity=(state.st_dev, state.st_ino),
            size=state.st_size,
            modified=modified,
            packed=bool(self._stream.kind),
            dated=bool(known),
            ordered=ordered,
            yearless=head.yearless,
            year=year if head.yearless else None,
            shape=self._shape,
            first=min((extent.low for extent in known), default=None),
            last=max((extent.high for extent in known), default=None) if self._read_all or tail else None,
        )

    def _first_year(self, head: _Extent, tail: _Extent, year: int, modified: int) -> int:
        """The first line's year: the file's last line is not younger than the file."""
        if self._year is not None:
            return self._year
        # Read forward, the tail may already have passed into the year after `year`.
        newest = _in_year(tail.end, year) if self._whole else tail.end
        if newest > modified + _DAY:
            year -= 1
        # The head begins later in the year than the tail ends: a new year lies between.
        return year - 1 if head.begin > newest + _DAY else year

    def _ends(self, year: int) -> tuple[_Extent, _Extent | None]:
        """The head's times, and the tail's: None when the head is all there is or the tail is too far."""
        self._stream.seek(0)
        budget = ScanBudget(_WHOLE, self._cancelled)
        problems = ReadProblems()
        blocks = line_blocks(self._stream, budget, problems, shape=self._shape)
        head = self._extent(blocks if self._whole else islice(blocks, 1), year)
        self._read_all = self._whole and not problems.exhausted
        if self._read_all:
            return head, None
        return head, self._unpacked_tail(year) if self._stream.kind else self._tail(year)

    def _extent(self, blocks: Iterable[list[str]], year: int | None) -> _Extent:
        times = TimestampReader(self._zone, year)
        reader = RecordReader(times, dated=True)
        extent = _Extent()
        for lines in blocks:
            for record in reader.feed(lines):
                if record.stamp:
                    extent.add(record.stamp.micros)
        for record in reader.finish():
            if record.stamp:
                extent.add(record.stamp.micros)
        extent.yearless = times.yearless
        return extent

    def _lines_at(self, offset: int, size: int) -> list[str]:
        self._stream.seek(max(offset, 0))
        return _text_lines(self._stream.read(size), self._shape)[1:]

    def _tail(self, year: int) -> _Extent | None:
        if self._shape.encoding:
            return None
        for size in (_END, 16 * _END):
            extent = self._extent([self._lines_at(self._stream.size - size, size)], year)
            if extent.dated:
                return extent
        return None

    def _samples(self) -> list[_Extent]:
        """Places between: files put together of several are out of order, and then nothing is skipped."""
        if self._stream.kind or self._shape.encoding:
            return []
        step = self._stream.size // (_SAMPLES + 1)
        offsets = [step * number for number in range(1, _SAMPLES + 1)]
        # The last line of a piece is cut off.
        return [self._extent([self._lines_at(offset, _SAMPLE)[:-1]], None) for offset in offsets]

    def _unpacked_tail(self, year: int) -> _Extent | None:
        if self._shape.encoding:
            return None
        self._stream.seek(0)
        kept = b""
        budget = ScanBudget(_UNPACK, self._cancelled)
        while budget.left:
            budget.check()
            try:
                data = self._stream.read(_SEEK_STEP)
            except (*DAMAGED, OSError):
                return None
            if not data:
                extent = self._extent([_text_lines(kept, self._shape)[1:]], year)
                return extent if extent.dated else None
            budget.used += len(data)
            kept = (kept + data)[-_END:]
        return None


def _in_year(micros: int, year: int) -> int:
    moment = instant_of(micros)
    if moment.year == year:
        return micros
    # 29 February has no place in most years; the day before is near enough.
    day = min(moment.day, 28) if moment.month == 2 else moment.day
    return micros_of(moment.replace(year=year, day=day))


def _text_lines(data: bytes, shape: TextShape) -> list[str]:
    text = data.replace(b"\0", b"").decode("utf-8", "replace")
    if shape.carriage_returns:
        text = text.replace("\r", "\n")
    return [line.rstrip("\r") for line in text.split("\n")]


def offset_near(stream: LogStream, span: FileSpan, zone: tzinfo, start: int) -> int:
    """A byte where a line begins and before which no line is as late as `start` less the disorder."""
    low, high = 0, stream.size
    while high - low > _SEEK_STEP:
        middle = (low + high) // 2
        instant = _instant_after(stream, middle, span.shape, zone)
        if instant is not None and instant < start - DISORDER:
            low = middle
        else:
            high = middle
    if not low:
        return 0
    stream.seek(low)
    newline = stream.read(_END).find(b"\n")
    return low + newline + 1 if newline >= 0 else 0


def _instant_after(stream: LogStream, offset: int, shape: TextShape, zone: tzinfo) -> int | None:
    stream.seek(offset)
    reader = RecordReader(TimestampReader(zone), dated=True)
    lines = _text_lines(stream.read(_END), shape)[1:-1]
    return next((record.stamp.micros for record in reader.feed(lines) if record.stamp), None)


def lanes(spans: Sequence[FileSpan]) -> list[list[FileSpan]]:
    """The files in as few rows as possible in each of which one file begins after the one before ends."""
    rows: list[list[FileSpan]] = []
    for span in spans:
        begin = span.first if span.first is not None else span.modified
        fitting = (row for row in rows if _end(row[-1]) <= begin)
        row = next(fitting, None)
        if row is None and len(rows) >= _MAX_LANES:
            row = min(rows, key=lambda row: _end(row[-1]))
        if row is None:
            rows.append([span])
        else:
            row.append(span)
    return rows


def _end(span: FileSpan) -> int:
    return span.last if span.last is not None else span.modified


def parse_offset(text: str) -> timedelta:
    """`+08:00` as a distance; raises ValueError."""
    moment = datetime.strptime(f"2000-01-01 {text.strip()}", "%Y-%m-%d %z")
    return moment.utcoffset() or datetime(2000, 1, 1, tzinfo=UTC).utcoffset() or timedelta()
