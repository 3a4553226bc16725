"""Numbers with their units, magnitudes and rounding, and when one shows another."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

from superbizagent.domain.pattern import Pattern
from superbizagent.domain.rounding import Rounding, rounding_of


class Dimension(StrEnum):
    TIME = "TIME"
    SIZE = "SIZE"
    RATIO = "RATIO"
    MONEY = "MONEY"


@dataclass(frozen=True)
class Unit:
    """`factors`: how many base units it is; two for KB, which people use for 1000 and for 1024 bytes."""

    dimension: Dimension
    factors: tuple[Decimal, ...]


_USUAL = {Dimension.SIZE: Decimal(1), Dimension.TIME: Decimal("0.001")}
_LARGEST_ERROR = {
    Rounding.NEAR: Decimal("0.2"),
    Rounding.BELOW: Decimal("0.15"),
    Rounding.ABOVE: Decimal("0.25"),
}
"""Relative to the true value: "about 1,000" is no fair word for 1,400."""
_UNHEARD = Decimal("0.001")
_LEAST_ROUNDED = 3
"""Digits of a measure that nobody says "about" with; with fewer, rounding has to be told."""


@dataclass(frozen=True)
class Number:
    """A number as written, magnitude words multiplied out. `step` is the place of its last written digit.

    `naming`: part of a name (ORD-104952), which one may be called by, but nothing is near it. `counting`: a field or
    count that says what it is and is no measure: 4 active connections are not 4 seconds. `measuring`: a field that
    may be one, or a fraction. `timing`: one that is no count: a latency of 51 are not 51 errors. `worded`: a word
    follows that is no unit. `labelling`: the width of a histogram's bars. `counted`: a claim says what of.
    `parts`: another reading, in which white space or a smaller unit separates several numbers.
    """

    value: Decimal
    unit: Unit | None = None
    rounding: Rounding = Rounding.EXACT
    step: Decimal = Decimal(1)
    parts: "tuple[Number, ...]" = ()
    naming: bool = False
    counting: bool = False
    measuring: bool = False
    timing: bool = False
    worded: bool = False
    labelling: bool = False
    counted: bool = False

    def agrees_with(self, evidence: "Number") -> bool:
        """Whether `evidence` shows this number, in its own unit and rounded as it says."""
        if evidence.labelling:
            return any(self.value * scale == found for scale, found in self._compared(evidence))
        finer = evidence.step < 1 and evidence.unit is not None
        return any(self._close(scaled, found, finer) for scaled, found in self._compared(evidence))

    def is_near(self, value: Decimal, digits: int = _LEAST_ROUNDED) -> bool:
        """Whether `value`, which nobody rounded yet, is this number, to the last of so many digits or more."""
        return self._close(Decimal(1), value, finer=True, digits=digits)

    def _compared(self, evidence: "Number") -> Iterator[tuple[Decimal, Decimal]]:
        """Pairs of this number's scale and the evidence's value, in a common unit."""
        mine, theirs = self.unit, evidence.unit
        if mine is not None and theirs is not None:
            if mine.dimension is theirs.dimension and (not evidence.labelling or self._labels(evidence)):
                yield from ((a, evidence.value * b) for a in mine.factors for b in theirs.factors)
            return
        if mine is not None and (evidence.counting or (evidence.worded and mine.dimension in _USUAL)):
            return
        if self.counted and (theirs is not None or evidence.timing):
            return
        if theirs is not None and theirs.dimension is Dimension.RATIO:
            return
        if evidence.naming and self.rounding is not Rounding.EXACT:
            return
        if mine is not None and mine.dimension is Dimension.RATIO and not evidence.measuring:
            return
        yield Decimal(1), evidence.value
        bare = not evidence.worded and self.rounding is Rounding.EXACT
        if mine is not None and mine.dimension in _USUAL and (evidence.measuring or bare) and evidence.value >= 1_000:
            # Sizes are written in bytes and times in milliseconds where no unit is.
            yield from ((factor, evidence.value * _USUAL[mine.dimension]) for factor in mine.factors)
        if mine is not None and mine.dimension is Dimension.RATIO:
            # A share of one shows its percentage.
            yield mine.factors[0], evidence.value

    def _labels(self, evidence: "Number") -> bool:
        return self.unit == evidence.unit or evidence.unit == SECONDS

    def _rounds(self, scale: Decimal, found: Decimal, finer: bool, digits: int) -> bool:
        """Whether a measure is the other one to the last of its digits: 18.3 s are 18342.557 ms."""
        if self.unit is None or not (self.step < 1 or finer):
            return False
        apart = abs(self.value * scale - found)
        said = self._digits >= digits or apart <= abs(found) * _UNHEARD
        return said and apart * 2 <= min(self.step, Decimal(1)) * scale

    @property
    def _digits(self) -> int:
        """Those that tell how much it is: three of 0.0475."""
        return len(str(int(abs(self.value) / min(self.step, Decimal(1)))))

    def _close(self, scale: Decimal, found: Decimal, finer: bool, digits: int = _LEAST_ROUNDED) -> bool:
        """`finer`: the other number has more places than a measure is usually said with."""
        stated = self.value * scale
        if stated == found:
            return True
        if self.rounding is Rounding.EXACT:
            return self._rounds(scale, found, finer, digits)
        if abs(stated - found) > abs(found) * _LARGEST_ERROR[self.rounding]:
            return False
        step = self.step * scale
        if self.rounding is Rounding.NEAR:
            return abs(stated - found) * 2 <= step
        above = found - stated if self.rounding is Rounding.ABOVE else stated - found
        return 0 <= above < step


def _unit(dimension: Dimension, *factors: str) -> Unit:
    return Unit(dimension, tuple(Decimal(factor) for factor in factors))


_UNITS = (
    (r"(?i:ns|nsecs?|nanoseconds?)|纳秒|納秒", _unit(Dimension.TIME, "0.000000001")),
    (r"(?i:[uµμ]s|usecs?|microseconds?)|微秒", _unit(Dimension.TIME, "0.000001")),
    (r"(?i:ms|msecs?|millis|milliseconds?)|毫秒", _unit(Dimension.TIME, "0.001")),
    (r"(?i:s|secs?|seconds?)|秒钟|秒鐘|秒", _unit(Dimension.TIME, "1")),
    (r"(?i:mins?|minutes?)|(?<=[0-9])m|个?分钟|分鐘|分(?![之别析布区支类片配级为成流])", _unit(Dimension.TIME, "60")),
    (r"(?i:h|hrs?|hours?)|个?小时|個?小時|个?钟头", _unit(Dimension.TIME, "3600")),
    (r"(?i:d|days?)|天", _unit(Dimension.TIME, "86400")),
    (r"(?i:weeks?)|周|个?星期", _unit(Dimension.TIME, "604800")),
    (r"B|(?i:bytes?)|字节|位元組", _unit(Dimension.SIZE, "1")),
    (r"(?i:kb|kilobytes?)|千字节", _unit(Dimension.SIZE, "1000", "1024")),
    (r"(?i:kib|kibibytes?)|(?<=[0-9])Ki", _unit(Dimension.SIZE, "1024")),
    (r"(?i:mb|megabytes?)|兆字节|兆", _unit(Dimension.SIZE, "1000000", "1048576")),
    (r"(?i:mib|mebibytes?)|(?<=[0-9])Mi", _unit(Dimension.SIZE, "1048576")),
    (r"(?i:gb|gigabytes?)|(?<=[0-9])G", _unit(Dimension.SIZE, "1000000000", "1073741824")),
    (r"(?i:gib|gibibytes?)|(?<=[0-9])Gi", _unit(Dimension.SIZE, "1073741824")),
    (r"(?i:tb|terabytes?)|(?<=[0-9])T", _unit(Dimension.SIZE, "1000000000000", "1099511627776")),
    (r"%|(?i:percent|per\scent|pct)|个?百分点", _unit(Dimension.RATIO, "0.01")),
    (r"¢|(?i:cents?)|美分|分钱", _unit(Dimension.MONEY, "0.01")),
    (r"€|\$|£|¥|(?i:eur|euros?|usd|dollars?|cny|rmb|yuan)|元|美元|欧元", _unit(Dimension.MONEY, "1")),
)
SECONDS, DAYS = _UNITS[3][1], _UNITS[6][1]
_PLURAL_STATUS = Pattern(r"[45][0-9]{2}s")
_FAILED_STATUSES = range(400, 600)
_FIELD_UNITS = {
    "ns": _UNITS[0][1],
    "us": _UNITS[1][1],
    "ms": _UNITS[2][1],
    "millis": _UNITS[2][1],
    "s": _UNITS[3][1],
    "sec": _UNITS[3][1],
    "secs": _UNITS[3][1],
    "seconds": _UNITS[3][1],
    "minutes": _UNITS[4][1],
    "mins": _UNITS[4][1],
    "hours": _UNITS[5][1],
    "days": _UNITS[6][1],
    "bytes": _UNITS[8][1],
    "kb": _UNITS[9][1],
    "mb": _UNITS[11][1],
    "gb": _UNITS[13][1],
    "pct": _UNITS[16][1],
    "percent": _UNITS[16][1],
    "cents": _UNITS[17][1],
}
_FIELD = Pattern(rf"[_.-](?P<unit>{'|'.join(_FIELD_UNITS)})[\"']?\s?[:=]\s?[\"']?-?$", re.IGNORECASE)
_MONEY_BEFORE = Pattern(r"[€$£¥]\s?-?$")
_MAGNITUDES = {
    "k": 1_000,
    "thousand": 1_000,
    "m": 1_000_000,
    "mn": 1_000_000,
    "million": 1_000_000,
    "bn": 1_000_000_000,
    "billion": 1_000_000_000,
    "百": 100,
    "千": 1_000,
    "万": 10_000,
    "萬": 10_000,
    "百万": 1_000_000,
    "千万": 10_000_000,
    "亿": 100_000_000,
    "億": 100_000_000,
}
_LONGEST = 28
"""Digits: more than decimals are exact for."""
_LATIN_END = r"(?![A-Za-z0-9_])"
_NUMBER = Pattern(
    r"(?<![A-Za-z0-9_])(?<![0-9][.,])(?P<sign>(?<![A-Za-z0-9_)\]%年月日点时分秒~-])[-−](?=[0-9]))?"
    r"(?P<digits>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]{1,3}(?:[ '’][0-9]{3})+(?![0-9:'’]|,[0-9])|[0-9]+)"
    r"(?P<decimals>\.[0-9]+)?(?:[eE](?P<exponent>[+-]?[0-9]{1,2})(?![A-Za-z0-9_]))?"
    r"(?:\s?[x×*]\s?10\^?(?P<power>[+-]?[0-9]{1,2})(?![0-9]))?(?![0-9]|\.[0-9])"
    r"(?P<ordinal>(?:st|nd|rd|th)(?![A-Za-z]))?"
    rf"(?P<magnitude>[kKM]{_LATIN_END}|\s?(?:(?i:thousand|million|mn|billion|bn)\b"
    r"|百万|千万|[百千](?!字节|克|米)|[万萬亿億]))?"
)
_UNIT = tuple((Pattern(rf"(?P<round>多|余|餘|几)?(?:\s?|-)(?:{words}){_LATIN_END}"), unit) for words, unit in _UNITS)
_LETTERS = Pattern(rf"[A-Za-zµμ/%]{{1,4}}{_LATIN_END}|{_LATIN_END}")
_FIELD_NAME = Pattern(r"(?P<name>(?:[A-Za-z]+\s)?[A-Za-z_][A-Za-z0-9_()]*)[\"']?\s?[:=]\s?[\"']?-?$")
_MEASURING = Pattern(
    r"time|latenc|duration|took|elapsed|delay|wait(?!ing)|interval|age|ttl|lag|period|uptime|size|byte|len|mem|heap|disk|avg|mean"
    r"|p[0-9]{2}|value|ms|sec|rate|ratio(?!n)|share|percent|pct|usage|util|cpu|load|amount|price|cost|cents|eur|usd|total|sum|progress"
    r"|revenue|balance|income|fee",
    re.IGNORECASE,
)
_TIMING = Pattern(
    # Not times and timeouts, the throttled, operations and usage.
    r"time(?!s|out)|latenc|duration|took|elapsed|delay(?!ed)|wait(?!ing|er)|interval|(?<![a-z])(?:age|ttl|lag)$|byte|heap"
    r"|mem(?!ber)|p[0-9]{2}$|_ms$|^ms$|_secs?$|percent|pct|ratio(?!n)|^u?rt$",
    re.IGNORECASE,
)
# Web servers write these in seconds, with milliseconds behind the point.
_SECONDS_FIELD = Pattern(
    r"(?<![A-Za-z0-9_])(?:u?rt|u[ch]t|request_time|upstream_(?:response|connect|header)_time)[\"']?\s?[:=]\s?[\"']?$"
)
_WORD_BEFORE = Pattern(r"(?<![A-Za-z0-9_])(?P<name>[A-Za-z]+)\s$")
_WORD_AFTER = Pattern(r"\s[a-z]{2,}|\s?[\u4e00-\u9fff]")
_COUNTED = Pattern(
    r"\s(?:[A-Za-z-]+\s){0,2}?(?:errors?|failures?|warnings?|exceptions?|timeouts?|lines?|records?|rows?|entries|messages?|times"
    r"|occurrences?|events?|restarts?|retries|requests?|attempts?|ERROR|WARN|FATAL|INFO)\b|\s?[次条條笔筆]",
)
_LABEL_BEFORE = Pattern(r"^per $", re.MULTILINE)
_LEVEL_BEFORE = Pattern(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\s$")
_NAME_BEFORE = Pattern(r"[A-Za-z_]-$")
_BETWEEN_PARTS = Pattern(r"\s?(?:and\s|零|,\s)?")
_RANGE = Pattern(r"\s?(?:-|–|—|~|to|and|or|至|到|和|或)\s?", re.IGNORECASE)


@dataclass(frozen=True)
class _Place:
    begin: int
    end: int
    number: Number


def numbers_of(text: str) -> Iterator[Number]:
    """The numbers that an evidence text shows, in each reading; none that a word runs on from: 7f3a is an id."""
    places = _with_shared_units(text, list(_places(text, whole=True)))
    for place in places:
        yield place.number
        yield from place.number.parts
    yield from _durations(text, places)


def claimed_numbers(text: str) -> tuple[Number, ...]:
    """The numbers that a claim states; those of one duration (1 min 30 s) together."""
    places = list(_places(text, whole=False))
    read = []
    for place in places:
        plural = _PLURAL_STATUS.fullmatch(text, place.begin, place.end) is not None
        read.append(replace(place, number=replace(place.number, parts=_other_reading(place.number, plural=plural))))
    places = read
    return tuple(_joined(text, _with_shared_units(text, places)))


def _other_reading(number: Number, *, plural: bool) -> tuple[Number, ...]:
    """What else a claim's number may mean where one is the status of a response: 15 502 errors, the 502s.

    Else white space groups the digits of one number; only evidence may have meant two.
    """
    if plural:
        return (replace(number, unit=None, counted=True),)
    if len(number.parts) == 2 and number.parts[1].value in _FAILED_STATUSES:
        return number.parts
    return ()


def _places(text: str, *, whole: bool) -> Iterator[_Place]:
    for match in _NUMBER.finditer(text):
        if sum(map(str.isdigit, match.group())) <= _LONGEST and (place := _place(text, match, whole=whole)) is not None:
            yield place


def _place(text: str, match: re.Match[str], *, whole: bool) -> _Place | None:
    unit, end, suffix = _unit_after(text, match.end())
    if whole and unit is None and not _LETTERS.match(text, match.end()):
        return None
    number = _number(match, unit or _unit_before(text, match.start(), decimals=bool(match["decimals"])))
    rounding = suffix or rounding_of(text, match.start(), end)
    naming = bool(_NAME_BEFORE.search(text, max(match.start() - 2, 0), match.start()))
    labelling = unit is not None and _LABEL_BEFORE.search(text, max(match.start() - 5, 0), match.start()) is not None
    number = replace(number, rounding=rounding, naming=naming, labelling=labelling)
    return _Place(match.start(), end, number if unit is not None else _of_field(number, text, match))


def _of_field(number: Number, text: str, match: re.Match[str]) -> Number:
    """A number without a unit, with what the name of its field tells of it."""
    if text[match.end() : match.end() + 2].rstrip() == "x" or _LEVEL_BEFORE.search(
        text[max(match.start() - 8, 0) : match.start()]
    ):
        return replace(number, counting=True)
    field = _FIELD_NAME.search(text, max(match.start() - 40, 0), match.start())
    name = field or _WORD_BEFORE.search(text, max(match.start() - 24, 0), match.start())
    measuring = number.step < 1 or (name is not None and _MEASURING.search(name["name"]) is not None)
    return replace(
        number,
        counting=field is not None and not measuring,
        measuring=measuring,
        timing=field is not None and _TIMING.search(field["name"]) is not None,
        worded=field is None and not measuring and _WORD_AFTER.match(text, match.end()) is not None,
        counted=_COUNTED.match(text, match.end()) is not None,
    )


def _unit_after(text: str, at: int) -> tuple[Unit | None, int, Rounding | None]:
    for pattern, unit in _UNIT:
        found = pattern.match(text, at)
        if found:
            return unit, found.end(), Rounding.ABOVE if found["round"] else None
    return None, at, None


def _unit_before(text: str, begin: int, *, decimals: bool) -> Unit | None:
    before = text[max(begin - 24, 0) : begin]
    if _MONEY_BEFORE.search(before):
        return _unit(Dimension.MONEY, "1")
    if decimals and _SECONDS_FIELD.search(before):
        return _unit(Dimension.TIME, "1")
    field = _FIELD.search(before)
    return _FIELD_UNITS[field["unit"].lower()] if field else None


def _number(match: re.Match[str], unit: Unit | None) -> Number:
    digits, decimals = match["digits"], match["decimals"] or ""
    plain = re.sub(r"[ ,'’]", "", digits)
    magnitude = Decimal(_MAGNITUDES[match["magnitude"].strip().lower()]) if match["magnitude"] else Decimal(1)
    if match["exponent"] or match["power"]:
        magnitude *= Decimal(10) ** int(match["exponent"] or match["power"])
    sign = -1 if match["sign"] else 1
    number = Number(sign * Decimal(plain + decimals) * magnitude, unit, step=_step(plain, decimals) * magnitude)
    if " " not in digits:
        return number
    parts = digits.split(" ")
    apart = (*(Number(Decimal(part)) for part in parts[:-1]), Number(Decimal(parts[-1] + decimals) * magnitude, unit))
    return replace(number, parts=apart)


def _step(digits: str, decimals: str) -> Decimal:
    if decimals:
        return Decimal(1).scaleb(1 - len(decimals))
    return Decimal(10) ** min(len(digits) - len(digits.rstrip("0")), max(len(digits) - 1, 0))


def _with_shared_units(text: str, places: list[_Place]) -> list[_Place]:
    """In a range the unit is written once: 3-5 %."""
    for index in range(len(places) - 2, -1, -1):
        this, following = places[index], places[index + 1]
        linked = _RANGE.fullmatch(text[this.end : following.begin])
        if this.number.unit is None and following.number.unit is not None and linked:
            places[index] = replace(this, number=replace(this.number, unit=following.number.unit))
    return places


def _joined(text: str, places: list[_Place]) -> Iterator[Number]:
    waiting: _Place | None = None
    for place in places:
        if waiting is not None and _continues(text, waiting, place):
            waiting = _Place(waiting.begin, place.end, _sum(waiting.number, place.number))
            continue
        if waiting is not None:
            yield waiting.number
        waiting = place
    if waiting is not None:
        yield waiting.number


def _durations(text: str, places: list[_Place]) -> Iterator[Number]:
    yield from (number for number in _joined(text, places) if len(number.parts) > 1)


def _continues(text: str, first: _Place, second: _Place) -> bool:
    """Whether `second` is the smaller part of one duration."""
    one, two = first.number.unit, second.number.unit
    if one is None or two is None or one.dimension is not Dimension.TIME or two.dimension is not Dimension.TIME:
        return False
    return two.factors[0] < one.factors[0] and bool(_BETWEEN_PARTS.fullmatch(text[first.end : second.begin]))


def _sum(first: Number, second: Number) -> Number:
    if first.unit is None or second.unit is None:
        return first
    value = first.value * first.unit.factors[0] / second.unit.factors[0] + second.value
    rounding = next((n.rounding for n in (first, second) if n.rounding is not Rounding.EXACT), Rounding.EXACT)
    parts = (*(first.parts or (first,)), second)
    return Number(value, second.unit, rounding, second.step, parts)
