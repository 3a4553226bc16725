"""The checkable values in a text: quotations, times, identifiers and numbers.

One reading for both sides of the evidence guard, so that what a claim says and what the evidence
says are compared in the same terms. ASCII classes on purpose: digits between CJK characters are
numbers too, and `\\w` would swallow them.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation

from superbizagent.domain.text import fold_whitespace


@dataclass(frozen=True)
class Moment:
    """A date, a time of day, or both, as precisely as it was written. `offset` only where one was given.

    `month_day` is a date without its year, as syslog and people write it; `day` is None then.
    """

    day: date | None = None
    hour: int | None = None
    minute: int | None = None
    second: int | None = None
    fraction: str | None = None
    offset: timedelta | None = None
    month_day: tuple[int, int] | None = None

    def agrees_with(self, evidence: "Moment") -> bool:
        """Whether `evidence` shows this moment, at the precision this one is written in."""
        other = self._shifted(evidence)
        if self._dated and not self._same_day(other):
            # A time without a date in the evidence may still show a time; it never shows a date.
            return False
        return self.hour is None or self._same_time(other)

    @property
    def _dated(self) -> bool:
        return self.day is not None or self.month_day is not None

    def _same_day(self, other: "Moment") -> bool:
        if self.day is not None and other.day is not None:
            return self.day == other.day
        return other._dated and self._month_and_day == other._month_and_day

    @property
    def _month_and_day(self) -> tuple[int, int] | None:
        return (self.day.month, self.day.day) if self.day is not None else self.month_day

    def _same_time(self, other: "Moment") -> bool:
        if self.hour != other.hour or (self.minute is not None and self.minute != other.minute):
            return False
        if self.second is not None and self.second != other.second:
            return False
        return self.fraction is None or (other.fraction or "").startswith(self.fraction)

    def _shifted(self, evidence: "Moment") -> "Moment":
        """`evidence` in this moment's zone, where both name one."""
        if self.offset is None or evidence.offset is None or self.offset == evidence.offset:
            return evidence
        if evidence.hour is None:
            return evidence
        # Without a date any day will do, and only the time of day is kept.
        day = evidence.day or date(2000, 6, 15)
        seconds = min(evidence.second or 0, 59)
        there = datetime(
            day.year, day.month, day.day, evidence.hour, evidence.minute or 0, seconds, tzinfo=timezone(evidence.offset)
        )
        here = there.astimezone(timezone(self.offset))
        return Moment(
            day=here.date() if evidence.day is not None else None,
            hour=here.hour,
            minute=here.minute if evidence.minute is not None else None,
            second=here.second if evidence.second is not None else None,
            fraction=evidence.fraction,
            offset=self.offset,
            month_day=evidence.month_day,
        )


@dataclass(frozen=True)
class Number:
    """A number as written; `percent` when a percent sign follows."""

    value: Decimal
    percent: bool = False

    def agrees_with(self, evidence: "Number") -> bool:
        if self.value == evidence.value:
            return True
        return self.percent and not evidence.percent and self.value == evidence.value * 100


@dataclass(frozen=True)
class Values:
    quotations: tuple[str, ...] = ()
    moments: tuple[Moment, ...] = ()
    identifiers: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()


_QUOTATION = re.compile(r'"([^"\n]{2,})"|“([^”]{2,})”|「([^」]{2,})」|『([^』]{2,})』|«([^»]{2,})»|`([^`\n]{2,})`')
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_MONTH = (
    r"\b(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
# A minus after hours and minutes alone is a range (14:00-14:30); after seconds or an ISO T it is an offset.
_MINUS = r"\s?-(?:0[0-9]|1[0-2]):?(?:00|30)\b(?!:)"
_OFFSET = (
    r"\s?Z\b|\s?(?:UTC|GMT)[+-][0-9]{1,2}(?::?[0-9]{2})?\b|\s?(?:UTC|GMT)\b"
    r"|\s?\+(?:0[0-9]|1[0-4]):?(?:00|15|30|45)\b(?!:)"
)


def _clock(minus: str) -> str:
    return (
        r"(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])"
        r"(?::(?P<second>[0-5][0-9]|60)(?:[.,](?P<fraction>[0-9]{1,9}))?)?(?![0-9:])"
        rf"(?:\s?(?P<half>[ap])\.?m\b\.?)?(?P<offset>{_OFFSET}|{minus})?"
    )


_CLOCK = _clock(rf"(?(second){_MINUS}|(?!))")
_ISO_CLOCK = _clock(rf"(?(second){_MINUS}|(?(t){_MINUS}|(?!)))")
_CJK_CLOCK = (
    r"(?P<period>凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上)?\s?(?P<hour>[01]?[0-9]|2[0-3])\s?[点點时時]"
    r"(?:(?P<minute>[0-5]?[0-9])分?(?:(?P<second>[0-5]?[0-9])秒)?|(?P<mark>半|整|钟|鐘)"
    # An hour alone has to look like one: 3点 may be three points.
    r"|(?(period)|(?=左右|前|后|後|至|到|起|之|开始|開始)))"
)
_BEFORE = r"(?<![A-Za-z0-9_.:])"
_ISO_DAY = r"(?P<y>[12][0-9]{3})[-/年](?P<m>[01]?[0-9])[-/月](?P<d>[0-3]?[0-9])"
_CJK_DAY = r"(?P<m>[01]?[0-9])月(?P<d>[0-3]?[0-9])[日号號]"
_DAY_OF_MONTH = r"(?P<d>[0-3]?[0-9])(?:st|nd|rd|th)?"
_YEAR = r"(?P<y>[12][0-9]{3})\b"
_MOMENTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        _BEFORE + _ISO_DAY + r"日?(?:(?P<t>T)|\s*)" + _ISO_CLOCK,
        _BEFORE + _ISO_DAY + r"日?\s*" + _CJK_CLOCK,
        _BEFORE + _ISO_DAY + r"(?![0-9:])日?",
        _BEFORE + _CJK_DAY + r"\s*" + _CLOCK,
        _BEFORE + _CJK_DAY + r"\s*" + _CJK_CLOCK,
        _BEFORE + _CJK_DAY,
        _BEFORE + _DAY_OF_MONTH + r"[\s/-]" + _MONTH + r"(?:,?[\s/-]|:)" + _YEAR + r"(?:[,:]?\s?" + _CLOCK + ")?",
        _BEFORE + _MONTH + r"\s+" + _DAY_OF_MONTH + r"(?:,?\s" + _YEAR + r")(?:,?\s" + _CLOCK + ")?",
        _BEFORE + _MONTH + r"\s+" + _DAY_OF_MONTH + r",?\s" + _CLOCK + r"(?:\s" + _YEAR + ")?",
        _BEFORE + _MONTH + r"\s" + _DAY_OF_MONTH + r"(?![0-9A-Za-z.:])",
        _BEFORE + _DAY_OF_MONTH + r"\s" + _MONTH,
        _BEFORE + _CLOCK,
        _BEFORE + _CJK_CLOCK,
    )
)
_TOKEN = re.compile(r"[A-Za-z0-9_/$.][A-Za-z0-9_.:/@#$*-]*[A-Za-z0-9_*]|[A-Za-z]")
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?P<number>[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![0-9])|[0-9]+(?:\.[0-9]+)?)"
    r"(?:\s?(?P<percent>[%％]))?"
)
_MEASURE = re.compile(_NUMBER.pattern + r"(?:\s?(?:[a-zµ]{1,3}|[KMGT]i?B))?(?![A-Za-z0-9_])")
_HASH = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b(?=[a-f]*[0-9])[0-9a-f]{16,}\b", re.IGNORECASE)
_LONG_ID = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+){2,}")
_STATUS_CLASS = re.compile(r"\b[1-5]xx\b", re.IGNORECASE)
_QUANTITY = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?(?:[A-Za-z]{1,3}|%)?(?:/[A-Za-z]{1,6})?")
_NUMBER_PAIR = re.compile(r"[1-9][0-9]{0,2}[-/][1-9][0-9]{0,2}")
_CAMEL = re.compile(r"(?:[A-Z][a-z0-9]+){2,}|[a-z]+(?:[A-Z][a-z0-9]+)+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def normalise(text: str) -> str:
    """Compatibility forms folded (full-width digits, ligatures); white space made single spaces."""
    return fold_whitespace(unicodedata.normalize("NFKC", text))


def values_in(text: str) -> Values:
    """The values of a text in which each character counts for one value at most.

    Quotations are taken first, then times, identifiers and numbers, each blanking what it took: the
    digits of a time are no number, and those of an identifier neither.
    """
    rest = _STATUS_CLASS.sub(" ", unicodedata.normalize("NFKC", text))
    rest, quotations = _take_quotations(rest)
    rest, moments = _take_moments(rest)
    rest, identifiers = _take_identifiers(rest)
    return Values(quotations, moments, identifiers, tuple(_numbers(rest, _NUMBER)))


def moments_in(text: str) -> tuple[Moment, ...]:
    """Every time in an evidence text."""
    return _take_moments(unicodedata.normalize("NFKC", text))[1]


def numbers_in(text: str) -> frozenset[Number]:
    """Every number in an evidence text that is no part of a time, a word or a hash.

    A claim of 30 errors is not shown by the date 2026-11-30, nor one of 7 by the request id 7f3a, nor one of
    42 by the order ORD-2026-0042.
    """
    rest, _ = _take_moments(unicodedata.normalize("NFKC", text))
    return frozenset(_numbers(_LONG_ID.sub(" ", _HASH.sub(" ", rest)), _MEASURE))


def identifier_pattern(identifier: str) -> re.Pattern[str]:
    """Finds `identifier` as a whole, in any case; a camel-case one also spelled as separate words.

    Whole means: not inside a longer word, and one that begins or ends in a digit has no more digits next to
    it across a dot or hyphen (neither 10.0.0.1 nor 0.0.1.7 is in 10.0.0.1.7, nor v1 in v1.2).
    """
    body = r"[\s_.-]?".join(re.escape(part) for part in _HUMP.split(identifier))
    after = r"(?![A-Za-z0-9_]|[.-][0-9])" if identifier[-1].isdigit() else r"(?![A-Za-z0-9_])"
    before = r"(?<![A-Za-z0-9_])(?<![0-9][.-])" if identifier[0].isdigit() else r"(?<![A-Za-z0-9_])"
    return re.compile(rf"{before}{body}{after}", re.IGNORECASE)


def _take_quotations(text: str) -> tuple[str, tuple[str, ...]]:
    found = [next(group for group in match.groups() if group) for match in _QUOTATION.finditer(text)]
    return _QUOTATION.sub(" ", text), tuple(found)


def _take_moments(text: str) -> tuple[str, tuple[Moment, ...]]:
    found: list[Moment] = []

    def take(match: re.Match[str]) -> str:
        moment = _moment(match)
        if moment is None:
            return match.group()
        found.append(moment)
        return " " * len(match.group())

    for pattern in _MOMENTS:
        text = pattern.sub(take, text)
    return text, tuple(found)


def _moment(match: re.Match[str]) -> Moment | None:
    groups = match.groupdict()
    try:
        day, month_day = _day(groups)
    except ValueError:
        return None
    if not groups.get("hour"):
        return Moment(day=day, month_day=month_day)
    minute = "30" if groups.get("mark") == "半" else "0" if groups.get("mark") == "整" else groups.get("minute")
    return Moment(
        day=day,
        hour=_hour(int(groups["hour"]), groups.get("half") or groups.get("period") or ""),
        minute=int(minute) if minute else None,
        second=int(groups["second"]) if groups.get("second") else None,
        fraction=groups.get("fraction"),
        offset=_offset(groups.get("offset")),
        month_day=month_day,
    )


def _hour(hour: int, half: str) -> int:
    """`hour` on the 24-hour clock."""
    if half in ("a", "A", "凌晨") and hour == 12:
        return 0
    afternoon = half in ("p", "P", "下午", "傍晚", "晚上") or (half == "中午" and hour < 3)
    return hour + 12 if afternoon and hour < 12 else hour


def _day(groups: dict[str, str]) -> tuple[date | None, tuple[int, int] | None]:
    """The date, or only its month and day where no year is written; raises ValueError for no such day."""
    if not groups.get("d"):
        return None, None
    month = int(groups["m"]) if groups.get("m") else _MONTHS[groups["month"][:3].lower()]
    # A leap year, so that 29 February is one of the days.
    found = date(int(groups.get("y") or 2000), month, int(groups["d"]))
    return (found, None) if groups.get("y") else (None, (found.month, found.day))


def _offset(text: str | None) -> timedelta | None:
    if not text:
        return None
    digits = re.search(r"([+-])([0-9]{1,2}):?([0-9]{2})?", text)
    if digits is None:
        return timedelta()
    offset = timedelta(hours=int(digits[2]), minutes=int(digits[3] or 0))
    if offset >= timedelta(hours=24):
        return timedelta()
    return -offset if digits[1] == "-" else offset


def _take_identifiers(text: str) -> tuple[str, tuple[str, ...]]:
    found: list[str] = []

    def take(match: re.Match[str]) -> str:
        token = match.group().rstrip(".:/-*#@$").lstrip(".")
        if not _is_identifier(token):
            return match.group()
        found.append(token)
        return " "

    return _TOKEN.sub(take, text), tuple(found)


def _is_identifier(token: str) -> bool:
    if len(token) < 2 or _QUANTITY.fullmatch(token):
        return False
    letters = any(character.isalpha() for character in token)
    digits = any(character.isdigit() for character in token)
    if (letters and digits) or "_" in token.strip("_"):
        return True
    if not letters:
        if _NUMBER_PAIR.fullmatch(token):
            return False
        # Dotted digit groups are addresses and versions; one dot is a decimal number.
        return token.count(".") > 1 or bool(re.search(r"[0-9][-:/][0-9]", token))
    if token.startswith("/") or token.count("/") > 1 or re.search(r"[a-z]{3}[.:][a-z]{3}", token, re.IGNORECASE):
        return True
    return len(token) >= 8 and _CAMEL.fullmatch(token) is not None


def _numbers(text: str, pattern: re.Pattern[str]) -> Iterator[Number]:
    for match in pattern.finditer(text):
        try:
            value = Decimal(match["number"].replace(",", ""))
        except InvalidOperation:
            continue
        yield Number(value, percent=bool(match["percent"]))
