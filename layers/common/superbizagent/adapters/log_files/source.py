"""The log sources of one machine: configured aliases of files."""

import asyncio
import heapq
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timezone, tzinfo
from typing import Final, TypeVar
from zoneinfo import ZoneInfo

from superbizagent.adapters.log_files.reading import (
    LogStream,
    ReadProblems,
    ScanBudget,
    UnreadableFile,
    line_blocks,
)
from superbizagent.adapters.log_files.records import Record, RecordReader
from superbizagent.adapters.log_files.report import Report, evidence_of
from superbizagent.adapters.log_files.spans import (
    DISORDER,
    FileSpan,
    FileSpans,
    Listing,
    lanes,
    offset_near,
    parse_offset,
)
from superbizagent.adapters.log_files.timestamps import TimestampReader
from superbizagent.adapters.log_projection import Findings, LogRecord, Room, TextFilter, instant_of, iso, micros_of
from superbizagent.adapters.worker_thread import in_thread
from superbizagent.domain.evidence import Evidence, LogLevel, QueryLogs
from superbizagent.errors import (
    ConfigurationError,
    EvidenceUnavailable,
    InvalidToolArguments,
    UnknownSource,
)
from superbizagent.ports import Clock

GIB: Final = 1024**3
_SOUGHT_FROM: Final = 64 * 1024 * 1024
_CANCEL_WAIT: Final = 1.0

T = TypeVar("T")


@dataclass(frozen=True)
class LogFileSource:
    """One alias. `paths` are globs; rotated and compressed files belong in them.

    Lines that carry no zone are read in `zone` (an IANA name) or else at `utc_offset` (`+08:00`).
    `year` is that of the first line of a file whose lines leave it out; without it the file's own
    time of modification tells. Raises ConfigurationError.
    """

    description: str
    paths: tuple[str, ...]
    utc_offset: str = "+00:00"
    zone: str | None = None
    year: int | None = None
    _zone: tzinfo = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", tuple(self.paths))
        object.__setattr__(self, "_zone", self._parsed_zone())
        if not self.paths:
            raise ConfigurationError("a log source needs at least one path")
        if self.year is not None and not 1970 <= self.year <= 9000:
            raise ConfigurationError(f"a log source's year must be between 1970 and 9000, not {self.year}")

    @property
    def assumed_zone(self) -> tzinfo:
        """The zone of lines that carry none."""
        return self._zone

    def _parsed_zone(self) -> tzinfo:
        try:
            return ZoneInfo(self.zone) if self.zone else timezone(parse_offset(self.utc_offset))
        except (ValueError, OSError) as error:
            text = self.zone or self.utc_offset
            raise ConfigurationError(f"a log source's zone is not known: {text!r}") from error
        except KeyError as error:
            raise ConfigurationError(f"a log source's zone is not known: {self.zone!r}") from error


@dataclass(frozen=True)
class SearchTime:
    """How long one search may read, in seconds of the clock; the caller's own limit should leave a margin."""

    seconds: float
    clock: Clock

    def started(self) -> Callable[[], bool]:
        """Tells from now on whether the time is over."""
        end = self.clock.monotonic() + self.seconds
        return lambda: self.clock.monotonic() >= end


def _never() -> bool:
    return False


class LogFiles:
    """Implements the port LogSource over files on this machine.

    `max_bytes` bounds the text that one call reads; `seek_from` is the size from which an
    uncompressed file is sought by time instead of being read from its front. `room` is what a model may
    see of one call: what is returned fits it. A search that reaches its `time` returns what it found so far.
    """

    def __init__(
        self,
        sources: Mapping[str, LogFileSource],
        *,
        max_bytes: int = GIB,
        seek_from: int = _SOUGHT_FROM,
        room: Room | None = None,
        time: SearchTime | None = None,
    ) -> None:
        self._sources = dict(sources)
        self._max_bytes = max_bytes
        self._seek_from = seek_from
        self._room = room or Room()
        self._time = time
        self._spans = {
            name: FileSpans(source.paths, source.assumed_zone, source.year) for name, source in self._sources.items()
        }

    async def describe(self) -> str:
        """`NAME: DESCRIPTION (FIRST to LAST)`, a line a source."""
        return await _in_thread(lambda cancelled: "\n".join(self._described(cancelled)))

    async def query_logs(self, query: QueryLogs) -> Evidence:
        if query.source not in self._sources:
            known = ", ".join(self._sources) or "none is set up"
            raise UnknownSource(f"There is no log source of that name. The sources are: {known}.")
        if query.start is not None and query.end is not None and query.start >= query.end:
            raise InvalidToolArguments("start must be before end; end is the instant after the last.")
        return await _in_thread(lambda cancelled: self._searched(query, cancelled))

    def _described(self, cancelled: Callable[[], bool]) -> Iterator[str]:
        for name, source in self._sources.items():
            listing = self._spans[name].listing(cancelled)
            yield f"{name}: {' '.join(source.description.split())} ({_range(listing)})"

    def _searched(self, query: QueryLogs, cancelled: Callable[[], bool]) -> Evidence:
        late = self._time.started() if self._time is not None else _never
        listing = self._spans[query.source].listing(cancelled)
        if not listing.spans:
            raise EvidenceUnavailable(
                "No file of this log source can be read: " + ("; ".join(listing.notes) or "it has none") + "."
            )
        zone = self._sources[query.source].assumed_zone
        search = _Search(query, listing, zone, self._seek_from, self._room.redact)
        budget = ScanBudget(self._max_bytes, cancelled, late)
        search.run(budget)
        # Past its time a search that had ended by then is whole all the same.
        late_after = self._time.seconds if self._time is not None and budget.left and late() else None
        return evidence_of(search.report(budget, late_after), self._room)


def _range(listing: Listing) -> str:
    if not listing.spans:
        return "no readable file"
    if listing.first is None or listing.last is None:
        return "lines without times" if any(span.size for span in listing.spans) else "no lines"
    last = max(span.last if span.last is not None else span.modified for span in listing.spans if span.dated)
    return f"{iso(instant_of(listing.first))} to {iso(instant_of(last))}"


class _Search:
    """One query over one listing of files, run in a worker thread."""

    def __init__(
        self, query: QueryLogs, listing: Listing, zone: tzinfo, seek_from: int, redact: Callable[[str], str]
    ) -> None:
        self._query = query
        self._listing = listing
        self._zone = zone
        self._seek_from = seek_from
        self._start = micros_of(query.start) if query.start else None
        self._end = micros_of(query.end) if query.end else None
        self._levels = frozenset(query.levels)
        self._texts = TextFilter(query.contains, query.excludes, redact)
        self._findings = Findings(query.limit, query.contains, redact)
        self._scanned = 0
        self._continued = 0
        self._undated = 0
        self._offsets: set[int] = set()
        self._assumed = False
        self._reached: int | None = None
        self._problems: list[tuple[FileSpan, ReadProblems]] = []
        self._gone: list[str] = []

    def run(self, budget: ScanBudget) -> None:
        """Raises Cancelled."""
        rows = lanes([span for span in self._listing.spans if not span.outside(self._start, self._end)])
        streams = [self._row(row, number, budget) for number, row in enumerate(rows)]
        for order, _, record, level in heapq.merge(*streams, key=lambda entry: entry[:2]):
            self._findings.add(order, _log_record(record, level))
        self._findings.finish()

    def report(self, budget: ScanBudget, late_after: float | None) -> Report:
        return Report(
            query=self._query,
            listing=self._listing,
            findings=self._findings,
            scanned=self._scanned,
            continued=self._continued,
            undated=self._undated,
            offsets=frozenset(self._offsets),
            assumed=self._assumed,
            reached=self._reached,
            read_bytes=budget.used,
            late_after=late_after,
            problems=tuple(self._problems),
            gone=tuple(self._gone),
        )

    def _row(
        self, spans: list[FileSpan], number: int, budget: ScanBudget
    ) -> Iterator[tuple[int, int, Record, LogLevel | None]]:
        latest = 0
        for span in spans:
            for record in self._records(span, budget):
                micros = record.stamp.micros if record.stamp else None
                if not self._inside(micros, span):
                    continue
                level = record.level if self._levels else None
                self._scanned += 1
                if not self._matches(record, level):
                    continue
                latest = micros if micros is not None else max(latest, span.first or span.modified)
                yield latest, number, record, level if self._levels else record.level

    def _inside(self, micros: int | None, span: FileSpan) -> bool:
        if micros is None and span.first is not None:
            # Lines above a file's first time: a banner, or the end of a record in the file before.
            micros = span.first
        if micros is None:
            self._undated += 1
            return self._start is None and self._end is None
        return (self._start is None or micros >= self._start) and (self._end is None or micros < self._end)

    def _matches(self, record: Record, level: LogLevel | None) -> bool:
        if self._levels and level not in self._levels:
            return False
        return not self._texts.asks or self._texts.accepts(record.text)

    def _records(self, span: FileSpan, budget: ScanBudget) -> Iterator[Record]:
        try:
            stream = LogStream(span.path)
        except UnreadableFile as error:
            self._gone.append(f"{span.name} {error}")
            return
        with stream:
            if (stream.state.st_dev, stream.state.st_ino) != span.identity:
                self._gone.append(f"{span.name} was replaced while the source was read")
            yield from self._read(stream, span, budget)

    def _read(self, stream: LogStream, span: FileSpan, budget: ScanBudget) -> Iterator[Record]:
        problems = ReadProblems()
        self._problems.append((span, problems))
        sought = stream.size >= self._seek_from and not (
            span.packed or span.yearless or span.shape.encoding or not span.ordered
        )
        begin = offset_near(stream, span, self._zone, self._start) if sought and self._start is not None else 0
        until = self._end + DISORDER if sought and self._end is not None else None
        times = TimestampReader(self._zone, span.year)
        reader = RecordReader(times, dated=span.dated)
        before = reader.continued_lines
        for lines in line_blocks(stream, budget, problems, begin=begin, shape=None if begin else span.shape):
            last: Record | None = None
            for record in reader.feed(lines):
                last = record
                self._note_zone(record)
                yield record
            if until is not None and last and last.stamp and last.stamp.micros > until:
                return
        if not problems.exhausted:
            yield from reader.finish()
        self._continued += reader.continued_lines - before

    def _note_zone(self, record: Record) -> None:
        stamp = record.stamp
        if stamp is None:
            return
        if stamp.offset not in self._offsets and len(self._offsets) < 8:
            self._offsets.add(stamp.offset)
        self._assumed = self._assumed or stamp.assumed
        self._reached = stamp.micros


def _log_record(record: Record, level: LogLevel | None) -> LogRecord:
    micros = record.stamp.micros if record.stamp else None
    return LogRecord(micros, level, record.message, record.text, record.continuation, record.fields)


async def _in_thread(work: Callable[[Callable[[], bool]], T]) -> T:
    """Runs `work` in a worker thread; cancelling the wait makes the function it is given return true."""
    flag = threading.Event()
    future = in_thread(lambda: work(flag.is_set), "log-files")
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        flag.set()
        # The thread looks at the flag between blocks; a file system that hangs must not hang us.
        await asyncio.wait({future}, timeout=_CANCEL_WAIT)
        raise
