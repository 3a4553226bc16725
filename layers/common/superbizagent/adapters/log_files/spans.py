"""Which files a source has now, and from when to when each one's lines run."""

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import chain
from pathlib import Path
from typing import Final

from superbizagent.adapters.log_files.reading import (
    LogStream,
    ReadProblems,
    ScanBudget,
    TextShape,
    UnreadableFile,
    line_blocks,
    shape_of,
)
from superbizagent.adapters.log_files.records import RecordReader
from superbizagent.adapters.log_files.timestamps import MICROSECONDS, Stamp, TimestampReader, instant_of

# Lines of concurrent writers stand out of order by moments; files are skipped and sought with this
# much room on both sides.
DISORDER: Final = 600 * MICROSECONDS

_WHOLE: Final = 256 * 1024
_END: Final = 64 * 1024
_UNPACK: Final = 16 * 1024 * 1024
_SEEK_STEP: Final = 1024 * 1024
_MAX_LANES: Final = 64


@dataclass(frozen=True)
class FileSpan:
    """A readable file. `first` and `last` are microseconds since 1970, None when not known.

    `year` is that of the first line, for lines that leave it out. `modified` is the file's own time
    in microseconds.
    """

    path: Path
    identity: tuple[int, int]
    size: int
    modified: int
    packed: bool
    dated: bool
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


class _Probe:
    """Reads the head and the tail of one file; small files whole."""

    def __init__(
        self, path: Path, stream: LogStream, zone: tzinfo, year: int | None, cancelled: Callable[[], bool]
    ) -> None:
        self._path = path
        self._stream = stream
        self._zone = zone
        self._year = year
        self._cancelled = cancelled
        self._shape = TextShape()

    def span(self) -> FileSpan:
        state = self._stream.state
        head, tail = self._ends()
        year = self._year or instant_of(state.st_mtime_ns // 1_000).astimezone(self._zone).year
        stamps, yearless = self._stamps(head, year)
        late = self._stamps(tail, year)[0] if tail else stamps
        first = min((stamp.micros for stamp in stamps), default=None)
        last = max((stamp.micros for stamp in late), default=None)
        if yearless and stamps:
            year = self._first_year(stamps, late, year, state.st_mtime_ns // 1_000)
            first = min(stamp.micros for stamp in self._stamps(head, year)[0])
            last = self._last_yearless(tail or head, first, year, late)
        return FileSpan(
            path=self._path,
            identity=(state.st_dev, state.st_ino),
            size=state.st_size,
            modified=state.st_mtime_ns // 1_000,
            packed=bool(self._stream.kind),
            dated=bool(stamps or late),
            yearless=yearless,
            year=year if yearless else None,
            shape=self._shape,
            first=first,
            last=last if tail is not None else None,
        )

    def _first_year(self, stamps: list[Stamp], late: list[Stamp], year: int, modified: int) -> int:
        """The first line's year: the file's last line is not younger than the file."""
        if self._year is not None:
            return self._year
        day = 86_400 * MICROSECONDS
        newest = late[-1].micros if late else stamps[-1].micros
        if newest > modified + day:
            year -= 1
        # The head begins later in the year than the tail ends: a new year lies between.
        return year - 1 if late and stamps[0].micros > late[-1].micros + day else year

    def _last_yearless(self, tail: list[str], first: int, year: int, late: list[Stamp]) -> int | None:
        if not late:
            return None
        again = [stamp.micros for stamp in self._stamps(tail, year)[0]]
        last = max(again, default=first)
        if last < first - 86_400 * MICROSECONDS:
            return max((stamp.micros for stamp in self._stamps(tail, year + 1)[0]), default=None)
        return last

    def _stamps(self, lines: list[str], year: int) -> tuple[list[Stamp], bool]:
        times = TimestampReader(self._zone, year)
        reader = RecordReader(times, dated=True)
        records = chain(reader.feed(lines), reader.finish())
        return [record.stamp for record in records if record.stamp], times.yearless

    def _ends(self) -> tuple[list[str], list[str] | None]:
        """The head's lines, and the tail's: [] when the head is all there is, None when it is too far."""
        budget = ScanBudget(_WHOLE, self._cancelled)
        problems = ReadProblems()
        first = self._stream.read(4096)
        self._shape = shape_of(first)
        self._stream.seek(0)
        head: list[str] = []
        for lines in line_blocks(self._stream, budget, problems, shape=self._shape):
            head += lines
            if not self._stream.kind and self._stream.size > _WHOLE:
                return head, self._tail()
        return head, (self._unpacked_tail() if problems.exhausted else [])

    def _tail(self) -> list[str] | None:
        for size in (_END, 16 * _END):
            self._stream.seek(max(self._stream.size - size, 0))
            if self._shape.encoding:
                return None
            lines = _text_lines(self._stream.read(size), self._shape)[1:]
            if self._stamps(lines, 2000)[0]:
                return lines
        return None

    def _unpacked_tail(self) -> list[str] | None:
        if self._shape.encoding:
            return None
        self._stream.seek(0)
        kept = b""
        budget = ScanBudget(_UNPACK, self._cancelled)
        while budget.left:
            budget.check()
            try:
                data = self._stream.read(_SEEK_STEP)
            except (OSError, EOFError):
                return None
            if not data:
                return _text_lines(kept, self._shape)[1:]
            budget.used += len(data)
            kept = (kept + data)[-_END:]
        return None


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
