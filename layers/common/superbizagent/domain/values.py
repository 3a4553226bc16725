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
    """A date, a time of day, or both, as precisely as it was written. `offset` only where one was given."""

    day: date | None
    hour: int | None = None
    minute: int | None = None
    second: int | None = None
    fraction: str | None = None
    offset: timedelta | None = None

    def agrees_with(self, evidence: "Moment") -> bool:
        """Whether `evidence` shows this moment, at the precision this one is written in."""
        if self.day is not None and evidence.day is not None and self._shifted(evidence).day != self.day:
            return False
        if self.hour is None:
            return evidence.day is not None
        if self.day is not None and evidence.day is None:
            return False
        other = self._shifted(evidence)
        if (other.hour, other.minute) != (self.hour, self.minute):
            return False
        if self.second is not None and other.second != self.second:
            return False
        return self.fraction is None or (other.fraction or "").startswith(self.fraction)

    def _shifted(self, evidence: "Moment") -> "Moment":
        """`evidence` in this moment's zone, where both name one."""
        zones = (self.offset, evidence.offset)
        if None in zones or self.offset == evidence.offset or evidence.day is None or evidence.hour is None:
            return evidence
        local = datetime(
            evidence.day.year,
            evidence.day.month,
            evidence.day.day,
            evidence.hour,
            evidence.minute or 0,
            evidence.second or 0,
            tzinfo=timezone(evidence.offset or timedelta()),
        ).astimezone(timezone(self.offset or timedelta()))
        return Moment(local.date(), local.hour, local.minute, local.second, evidence.fraction, self.offset)


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
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = (
    r"(?P<hour>[01]?[0-9]|2[0-4]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-6][0-9])(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    r"(?:\s?(?P<half>[ap])\.?m\b\.?)?(?:\s?(?P<offset>Z\b|UTC(?![+-])\b|(?:UTC)?[+-][0-9]{2}:?[0-9]{2}\b))?"
)
_BEFORE = r"(?<![A-Za-z0-9_.:])"
_MOMENTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        _BEFORE + r"(?P<y>[12][0-9]{3})[-/年](?P<m>[01]?[0-9])[-/月](?P<d>[0-3]?[0-9])日?(?:[T ]|\s*)" + _CLOCK,
        _BEFORE + r"(?P<y>[12][0-9]{3})[-/年](?P<m>[01]?[0-9])[-/月](?P<d>[0-3]?[0-9])(?![0-9:])日?",
        _BEFORE + r"(?P<d>[0-3]?[0-9])(?:st|nd|rd|th)?\s" + _MONTH + r",?\s(?P<y>[12][0-9]{3})\b",
        _BEFORE + _MONTH + r"\s(?P<d>[0-3]?[0-9])(?:st|nd|rd|th)?,?\s(?P<y>[12][0-9]{3})\b",
        _BEFORE + _MONTH + r"\s+(?P<d>[0-3]?[0-9])\s" + _CLOCK + r"\s(?P<y>[12][0-9]{3})\b",
        r"(?<![A-Za-z0-9_.:])" + _CLOCK + r"(?![0-9:])",
    )
)
_TOKEN = re.compile(r"[A-Za-z0-9_/$.][A-Za-z0-9_.:/@#$*-]*[A-Za-z0-9_*]|[A-Za-z]")
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?P<number>[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![0-9])|[0-9]+(?:\.[0-9]+)?)"
    r"(?:\s?(?P<percent>[%％]))?"
)
_MEASURE = re.compile(_NUMBER.pattern + r"(?:\s?(?:[a-zµ]{1,3}|[KMGT]i?B))?(?![A-Za-z0-9_])")
_HASH = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b(?=[a-f]*[0-9])[0-9a-f]{16,}\b", re.IGNORECASE)
_STATUS_CLASS = re.compile(r"\b[1-5]xx\b", re.IGNORECASE)
_QUANTITY = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?(?:[A-Za-z]{1,3}|%)?(?:/[A-Za-z]{1,6})?")
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

    A claim of 30 errors is not shown by the date 2026-11-30, nor one of 7 by the request id 7f3a.
    """
    rest, _ = _take_moments(unicodedata.normalize("NFKC", text))
    return frozenset(_numbers(_HASH.sub(" ", rest), _MEASURE))


def identifier_pattern(identifier: str) -> re.Pattern[str]:
    """Finds `identifier` as a whole, in any case; a camel-case one also spelled as separate words.

    Whole means: not inside a longer word, and one that ends in a digit is not followed by more digits
    after a dot or hyphen (10.0.0.1 is not in 10.0.0.1.7, nor v1 in v1.2).
    """
    body = r"[\s_.-]?".join(re.escape(part) for part in _HUMP.split(identifier))
    after = r"(?![A-Za-z0-9_]|[.-][0-9])" if identifier[-1].isdigit() else r"(?![A-Za-z0-9_])"
    return re.compile(rf"(?<![A-Za-z0-9_]){body}{after}", re.IGNORECASE)


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
        day = _day(groups)
    except ValueError:
        return None
    if not groups.get("hour"):
        return Moment(day)
    hour = int(groups["hour"])
    if groups.get("half"):
        hour = hour % 12 + (12 if groups["half"].lower() == "p" else 0)
    if hour > 23:
        return None
    return Moment(
        day,
        hour,
        int(groups["minute"]),
        int(groups["second"]) if groups.get("second") else None,
        groups.get("fraction"),
        _offset(groups.get("offset")),
    )


def _day(groups: dict[str, str]) -> date | None:
    if not groups.get("y"):
        return None
    month = int(groups["m"]) if groups.get("m") else _MONTHS[groups["month"][:3].lower()]
    return date(int(groups["y"]), month, int(groups["d"]))


def _offset(text: str | None) -> timedelta | None:
    if not text:
        return None
    digits = text.upper().removeprefix("UTC").replace(":", "")
    if digits in ("", "Z"):
        return timedelta()
    sign = -1 if digits[0] == "-" else 1
    return sign * timedelta(hours=int(digits[1:3]), minutes=int(digits[3:5]))


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
