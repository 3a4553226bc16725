"""Lines put together to records: a time, a level, and the text with what continues it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from superbizagent.adapters.log_files.levels import level_of_fields, level_of_message, level_of_text
from superbizagent.adapters.log_files.reading import MAX_LINE
from superbizagent.adapters.log_files.timestamps import Stamp, TimestampReader, epoch_micros
from superbizagent.adapters.log_projection import message_of
from superbizagent.domain.evidence import LogLevel
from superbizagent.domain.pattern import Pattern

MAX_CONTINUATION: Final = 400

_TIME_KEYS: Final = (
    "@timestamp",
    "timestamp",
    "time",
    "ts",
    "@t",
    "datetime",
    "dateTime",
    "date",
    "eventTime",
    "event_time",
    "asctime",
    "timeMillis",
    "Timestamp",
    "Time",
    "TimeUnixNano",
    "timeUnixNano",
    "instant",
    "t",
    "__REALTIME_TIMESTAMP",
    "_time",
    "created",
    "epoch",
)
# Base64, the header lines of an old key, and the end.
_BLOCK_LINE: Final = Pattern(r"\s*(?:[A-Za-z0-9+/=]*|[A-Z][A-Za-z-]+: .*|-----END .*)\s*$")
_LEADING: Final = Pattern(r"[\s\])>|,:;\"-]+")


@dataclass(slots=True)
class Record:
    """One record. `stamp` is None where nothing tells its time; `message` is its text after the time."""

    stamp: Stamp | None
    first: str
    begin: int
    fields: dict[str, Any] | None = None
    continuation: list[str] | None = None
    cut: int = 0
    size: int = 0

    def add(self, line: str) -> None:
        """Another line of this record; beyond the bounds it is only counted."""
        if self.continuation is None:
            self.continuation = []
        if len(self.continuation) >= MAX_CONTINUATION or self.size + len(line) > MAX_LINE:
            self.cut += 1
            return
        self.continuation.append(line)
        self.size += len(line)

    @property
    def text(self) -> str:
        """As in the file, up to the bounds."""
        if not self.continuation:
            return self.first
        lines = [self.first, *self.continuation]
        while len(lines) > 1 and not lines[-1].strip():
            lines.pop()
        if self.cut:
            lines.append(f"…[record cut: {self.cut} more lines]")
        return "\n".join(lines)

    @property
    def level(self) -> LogLevel | None:
        if self.fields is not None:
            level = level_of_fields(self.fields)
            return level or (level_of_message(message) if (message := self.message) else None)
        return level_of_text(self.first, self.begin, self.stamp.format if self.stamp else "")

    @property
    def message(self) -> str:
        """What the record says, without its time."""
        if self.fields is None:
            rest = self.first[self.begin :]
            skipped = _LEADING.match(rest)
            return rest[skipped.end() :] if skipped else rest
        return message_of(self.fields) or self.first


class RecordReader:
    """Puts one file's lines together; yields each record once the next one begins.

    A line without a time continues the record above it. In a file with no times at all each line that
    isn't indented is a record of its own.
    """

    def __init__(self, times: TimestampReader, *, dated: bool) -> None:
        self._times = times
        self._dated = dated
        self._current: Record | None = None
        self._json_seen = False
        self._in_block = False
        self.continued_lines = 0

    def feed(self, lines: list[str]) -> Iterator[Record]:
        for line in lines:
            record = self._begin(line)
            if record is None:
                continue
            if self._current is not None:
                yield self._current
            self._current = record

    def finish(self) -> Iterator[Record]:
        if self._current is not None:
            yield self._current
            self._current = None

    def _begin(self, line: str) -> Record | None:
        """The record this line begins; None when it continues the current one or is blank."""
        if self._continues_block(line):
            return None
        record = self._json(line) if line[:1] == "{" else self._plain(line)
        if record is not None:
            return record
        if not line.strip() and (self._current is None or not self._dated):
            return None
        if self._current is None or (not self._dated and line[:1] not in (" ", "\t")):
            return Record(None, line, 0)
        self._current.add(line)
        self.continued_lines += 1
        return None

    def _continues_block(self, line: str) -> bool:
        """A block such as a private key is one record: redaction has to see the whole of it."""
        if self._in_block and self._current is not None and _BLOCK_LINE.match(line):
            self._current.add(line)
            self.continued_lines += 1
            self._in_block = "-----END" not in line
            return True
        self._in_block = "-----BEGIN" in line and "-----END" not in line
        return False

    def _plain(self, line: str) -> Record | None:
        stamp = self._times.read(line)
        return Record(stamp, line, stamp.end, size=len(line)) if stamp else None

    def _json(self, line: str) -> Record | None:
        fields = _object(line)
        if fields is None:
            return None
        stamp = self._time_of(fields)
        if stamp is None and not self._json_seen and self._dated:
            return None
        if stamp is None:
            # Among dated objects one without a time belongs where it stands.
            stamp = self._current.stamp if self._current else None
        else:
            self._json_seen = True
        return Record(stamp, line, 0, fields, size=len(line))

    def _time_of(self, fields: dict[str, Any]) -> Stamp | None:
        for key in _TIME_KEYS:
            value = fields.get(key)
            if value is not None and (stamp := self._time_of_value(value)):
                return stamp
        return None

    def _time_of_value(self, value: Any) -> Stamp | None:
        if isinstance(value, str):
            return self._times.read_value(value) or self._time_of_number(_number(value))
        if isinstance(value, dict):
            return self._time_of_parts(value)
        return self._time_of_number(value)

    def _time_of_parts(self, value: dict[str, Any]) -> Stamp | None:
        seconds = value.get("seconds", value.get("epochSecond", value.get("$date")))
        nanos = value.get("nanos", value.get("nanoOfSecond", 0))
        if isinstance(seconds, str):
            return self._times.read_value(seconds) or self._time_of_number(_number(seconds))
        stamp = self._time_of_number(seconds)
        if stamp is None or not isinstance(nanos, int) or isinstance(nanos, bool) or not 0 <= nanos < 10**9:
            return stamp
        return Stamp(stamp.micros + nanos // 1_000, 0, 0, False, "epoch")

    def _time_of_number(self, value: Any) -> Stamp | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        # Small numbers are counters and durations, not times since 1970.
        micros = epoch_micros(value) if value >= 1e8 else None
        return None if micros is None else Stamp(micros, 0, 0, False, "epoch")


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _number(value: str) -> float | int | None:
    text = value.strip()
    if not re.fullmatch(r"[0-9]{9,19}(?:\.[0-9]{1,9})?", text):
        return None
    return float(text) if "." in text else int(text)
