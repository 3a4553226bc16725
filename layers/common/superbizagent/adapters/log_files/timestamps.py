"""Finding and reading the instant a log line begins with, in the formats that services write."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final, NamedTuple

from superbizagent.adapters.log_projection import MICROSECONDS, instant_of, micros_of
from superbizagent.domain.pattern import Pattern

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_DAY_NAME: Final = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH_NAME: Final = r"(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME: Final = r"(?P<h>\d{1,2}):(?P<mi>\d\d):(?P<s>\d\d)"
_FRACTION: Final = r"(?:[.,](?P<f>\d{1,9})\d*)?"
_ZONE: Final = r"(?P<z>Z\b|[+-]\d\d(?::?\d\d)?(?!\d)|\ (?:[+-]\d\d:?\d\d(?!\d)|(?:UTC|GMT)\b))?"
_NO_DIGIT: Final = r"(?![\d])"

# What may stand before the time without any doubt that the line begins a record: brackets, a syslog
# priority, a level word, a `service |` column, or the time's own key.
_STRICT_PREFIX: Final = (
    r"\ufeff?(?:<\d{1,3}>(?:\d\ )?)?"
    r"(?:[\w.-]{1,60}\s*\|\s*)?"
    r"(?:(?:[\w.]{1,40}=(?:\"[^\"]{0,80}\"|[^\s\"]{1,80})\s+){0,4}"
    r"@?(?:timestamp|time|ts|t|at|date|datetime)[=:]\s*)?"
    r"(?:[\[(<]?\s?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE)\s?[\])>]?[\s:,|-]+)?"
    r"[\[(<\"'|*]{0,3}\s?"
)
# Up to four words of any kind, such as a file or host name: believed only in files whose lines never
# begin with a time outright.
_LOOSE_PREFIX: Final = r"\ufeff?(?:\S{1,200}\s+){1,4}?[\[(<\"'|]{0,3}"

_NEVER: Final = Pattern(r"(?!)")


@dataclass(frozen=True)
class _Format:
    name: str
    strict: Pattern
    loose: Pattern
    bare: Pattern
    has_year: bool


def _format(name: str, core: str, *, has_year: bool = True, strict: str | None = _STRICT_PREFIX) -> _Format:
    return _Format(
        name,
        Pattern(strict + core) if strict is not None else _NEVER,
        Pattern(_LOOSE_PREFIX + core),
        Pattern(r"\s*" + core),
        has_year,
    )


_FORMATS: Final = (
    _format(
        "iso",
        r"(?P<w>(?P<y>\d{4})-(?P<mo>\d\d?)-(?P<d>\d\d?)[T ](?P<h>\d\d?):(?P<mi>\d\d)(?::(?P<s>\d\d))?)"
        r"(?:[.,:](?P<f>\d{1,9})\d*)?" + _ZONE + r"(?!\d|:\d)",
    ),
    _format(
        "slashes",
        r"(?P<w>(?P<y>\d{4}|\d\d)/(?P<mo>\d\d)/(?P<d>\d\d)[ T]" + _TIME + ")" + _FRACTION + _ZONE + _NO_DIGIT,
    ),
    _format(
        "dots",
        r"(?P<w>(?P<y>\d{4})\.(?P<mo>\d\d)\.(?P<d>\d\d)[ T-]" + _TIME + ")" + _FRACTION + _ZONE + _NO_DIGIT,
    ),
    _format(
        "ctime",
        rf"(?P<w>{_DAY_NAME}\s{_MONTH_NAME}\s+(?P<d>\d\d?)\s"
        + _TIME
        + r"(?:\.(?P<f>\d{1,9}))?(?:\ (?P<z>UTC|GMT|[+-]\d{4}))?\s(?P<y>\d{4}))\b",
    ),
    _format(
        "clf",
        rf"(?P<w>(?P<d>\d\d?)[/-]{_MONTH_NAME}[/-](?P<y>\d{{4}})[: ]{_TIME})" + _FRACTION + _ZONE + _NO_DIGIT,
        strict=r"(?:[^\[\n]{0,160}\[|" + _STRICT_PREFIX + ")",
    ),
    _format(
        "day-month",
        rf"(?P<w>(?:{_DAY_NAME},?\s)?(?P<d>\d\d?)\s{_MONTH_NAME}\s(?P<y>\d{{4}})\s{_TIME})" + _FRACTION + _ZONE,
    ),
    _format(
        "month-day",
        rf"(?P<w>{_MONTH_NAME}\s+(?P<d>\d\d?),?\s+(?P<y>\d{{4}}),?\s+{_TIME})"
        + _FRACTION
        + r"(?:\s(?P<ap>[AP]M)\b)?"
        + _ZONE,
    ),
    _format(
        "compact",
        r"(?P<w>(?P<y>\d{4}|\d\d)(?P<mo>\d\d)(?P<d>\d\d)(?:[T-]|\ {1,2})"
        r"(?P<h>\d\d?):?(?P<mi>\d\d):?(?P<s>\d\d))(?:[.,:](?P<f>\d{1,9}))?" + _ZONE + r"(?![\w:.])",
    ),
    _format(
        "glog",
        r"[IWEFD](?P<w>(?P<y>\d{4})(?P<mo>\d\d)(?P<d>\d\d)\s" + _TIME + r")\.(?P<f>\d{1,9})\b",
    ),
    _format("klog", r"[IWEFD](?P<w>(?P<mo>\d\d)(?P<d>\d\d)\s" + _TIME + r")\.(?P<f>\d{1,9})\b", has_year=False),
    _format(
        "syslog",
        rf"(?P<w>{_MONTH_NAME}\s+(?P<d>\d\d?)\s+{_TIME})" + _FRACTION + _NO_DIGIT,
        has_year=False,
    ),
    _format(
        "logcat",
        r"(?P<w>(?P<mo>\d\d)[.-](?P<d>\d\d)\s" + _TIME + r")(?:[.,](?P<f>\d{1,9}))?" + _NO_DIGIT,
        has_year=False,
    ),
    # Ten digits could be any identifier, so seconds since 1970 are believed only at the line's front
    # in files with no other times, where they look like a time of this century.
    _Format(
        "epoch",
        _NEVER,
        Pattern(r"(?:\S{1,60}\s+)?\[?(?P<w>1\d{9}|[2-4]\d{9})(?:\.(?P<f>\d{1,9}))?(?=[\s\],;:|]|$)"),
        Pattern(r"\s*(?P<w>\d{9,10})(?:\.(?P<f>\d{1,9}))?\s*$"),
        True,
    ),
)

# Cheap proof that a line holds no time at all.
_PERHAPS: Final = Pattern(r"\d:\d\d|\d{6}")
_REACH: Final = 260


class Stamp(NamedTuple):
    """An instant in microseconds since 1970 UTC, and where the text after it begins in its line.

    `offset` is the zone's distance from UTC in seconds; `assumed` when the line doesn't say it.
    """

    micros: int
    end: int
    offset: int
    assumed: bool
    format: str


def epoch_micros(value: float) -> int | None:
    """A number of seconds, milli-, micro- or nanoseconds since 1970, told apart by size."""
    if value != value or value <= 0 or value >= 1e20:
        return None
    for bound, factor in ((1e11, MICROSECONDS), (1e14, 1_000), (1e17, 1)):
        if value < bound:
            return int(value * factor) if isinstance(value, int) else round(value * factor)
    return int(value) // 1_000


class TimestampReader:
    """Reads the times of one file's lines; remembers which formats the file uses.

    `zone` is that of lines that carry none. `year` is that of the first line without a year; a later
    one takes the year that brings it nearest to the line before it, so that December passes into
    January.
    """

    def __init__(self, zone: tzinfo = UTC, year: int | None = None) -> None:
        self._zone = zone
        self._year = year
        self._known: list[tuple[_Format, Pattern]] = []
        self._strict_seen = False
        self._last_yearless: int | None = None
        self._cached: tuple[str, str | None, str | None] = ("", None, None)
        self._cached_value: tuple[int, int, bool] = (0, 0, True)

    @property
    def yearless(self) -> bool:
        """Whether the file's lines leave out the year."""
        return any(not format_.has_year for format_, _ in self._known)

    def read(self, line: str) -> Stamp | None:
        """The time a record begins with; None for a line that continues the record above."""
        for format_, pattern in self._known:
            match = pattern.match(line)
            if match and (stamp := self._stamp(format_, match)):
                return stamp
        return self._learn(line)

    def read_value(self, value: str) -> Stamp | None:
        """The time that is a whole value, such as a JSON field."""
        for format_ in _FORMATS:
            match = format_.bare.match(value)
            if match and (stamp := self._stamp(format_, match)):
                return stamp
        return None

    def _learn(self, line: str) -> Stamp | None:
        if self._known and line[:1] in (" ", "\t", ""):
            return None
        head = line[:_REACH]
        if not _PERHAPS.search(head):
            return None
        for format_, pattern, strict in self._candidates():
            match = pattern.match(head)
            stamp = self._stamp(format_, match) if match else None
            if stamp:
                self._remember(format_, pattern, strict=strict)
                return stamp
        return None

    def _candidates(self) -> Iterator[tuple[_Format, Pattern, bool]]:
        for format_ in _FORMATS:
            yield format_, format_.strict, True
        if not self._strict_seen:
            for format_ in _FORMATS:
                yield format_, format_.loose, False

    def _remember(self, format_: _Format, pattern: Pattern, *, strict: bool) -> None:
        if strict and not self._strict_seen:
            self._strict_seen = True
            self._known.clear()
        self._known.append((format_, pattern))

    def _stamp(self, format_: _Format, match: re.Match[str]) -> Stamp | None:
        groups = match.re.groupindex
        zone_text = match.group("z") if "z" in groups else None
        key = (match.group("w"), zone_text, match.group("ap") if "ap" in groups else None)
        if key != self._cached:
            value = self._seconds(format_, match, zone_text)
            if value is None:
                return None
            self._cached, self._cached_value = key, value
        seconds, offset, assumed = self._cached_value
        fraction = match.group("f") if "f" in groups else None
        micros = seconds * MICROSECONDS + (int(fraction[:6].ljust(6, "0")) if fraction else 0)
        if not format_.has_year:
            self._last_yearless = seconds
        return Stamp(micros, match.end(), offset, assumed, format_.name)

    def _seconds(self, format_: _Format, match: re.Match[str], zone_text: str | None) -> tuple[int, int, bool] | None:
        if format_.name == "epoch":
            return int(match.group("w")), 0, False
        parts = match.groupdict()
        zone = _zone(zone_text)
        if format_.has_year:
            moment = _moment(parts, _full_year(int(parts["y"])), zone or self._zone)
        else:
            moment = self._nearest(parts, zone or self._zone)
        if moment is None:
            return None
        offset = moment.utcoffset() or timedelta()
        return micros_of(moment) // MICROSECONDS, int(offset.total_seconds()), zone is None

    def _nearest(self, parts: dict[str, str | None], zone: tzinfo) -> datetime | None:
        if self._last_yearless is None:
            year = self._year or 1970
            return _moment(parts, year, zone) or _moment(parts, _leap_year_near(year), zone)
        last = instant_of(self._last_yearless * MICROSECONDS)
        choices = [_moment(parts, last.year + step, zone) for step in (-1, 0, 1)]
        return min((choice for choice in choices if choice), key=lambda choice: abs(choice - last), default=None)


def _leap_year_near(year: int) -> int:
    """The latest leap year not after `year`: where 29 February is found in a year without one."""
    while not (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)):
        year -= 1
    return year


def _full_year(year: int) -> int:
    """Two digits mean 1970 to 2069, as POSIX has it."""
    if year >= 100:
        return year
    return year + (2000 if year < 70 else 1900)


def _moment(parts: dict[str, str | None], year: int, zone: tzinfo) -> datetime | None:
    name = parts.get("mon")
    month = _MONTHS[name.lower()] if name else int(parts.get("mo") or 0)
    hour = int(parts["h"] or 0)
    if half := parts.get("ap"):
        hour = hour % 12 + (12 if half == "PM" else 0)
    # A leap second has no place in datetime; the second before it is the nearest.
    second = min(int(parts.get("s") or 0), 59)
    try:
        moment = datetime(year, month, int(parts["d"] or 0), hour, int(parts["mi"] or 0), second, tzinfo=zone)
        # Near years 1 and 9999 the zone's offset leaves the range of datetime.
        return moment if 1970 <= moment.astimezone(UTC).year <= 9000 else None
    except (ValueError, OverflowError):
        return None


def _zone(text: str | None) -> tzinfo | None:
    if not text:
        return None
    text = text.strip()
    if text in ("Z", "UTC", "GMT"):
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    distance = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]))
    if distance >= timedelta(hours=24):
        return None
    return timezone(-distance if text[0] == "-" else distance)
