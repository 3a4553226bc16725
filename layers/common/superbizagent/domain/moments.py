"""Dates and times of day as people and machines write them, and when one shows another."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from functools import cached_property
from itertools import pairwise

from superbizagent.domain.pattern import Pattern
from superbizagent.domain.rounding import Rounding, rounding_of

_LAST_SECONDS = 5


@dataclass(frozen=True)
class Moment:
    """A date, a time of day, or both, as precisely as it was written. `offset` only where one was given.

    `month_day` is a date without its year, as syslog and people write it; `day` is None then.
    `other_offset` is the second meaning of an ambiguous zone name (CST); `month` a year and its month,
    0 for the year as a whole. `ending`: the end of a range.
    """

    day: date | None = None
    hour: int | None = None
    minute: int | None = None
    second: int | None = None
    fraction: str | None = None
    offset: timedelta | None = None
    month_day: tuple[int, int] | None = None
    rounding: Rounding = Rounding.EXACT
    other_offset: timedelta | None = None
    month: tuple[int, int] | None = None
    ending: bool = False

    def agrees_with(self, evidence: "Moment") -> bool:
        """Whether `evidence` shows this moment, at the precision this one is written in."""
        return any(self._shown_by(other) for other in self._readings(evidence))

    @property
    def dated(self) -> bool:
        return self.day is not None or self.month_day is not None

    def _shown_by(self, other: "Moment") -> bool:
        if self.month is not None:
            return other.month == self.month or (other.day is not None and self._is_month_of(other.day))
        if self.dated and not self._same_day(other):
            # A time without a date in the evidence may still show a time; it never shows a date.
            return False
        return self.hour is None or self._same_time(other) or self._near(other) or self._ends(other)

    def _is_month_of(self, day: date) -> bool:
        return self.month in ((day.year, day.month), (day.year, 0))

    def _same_day(self, other: "Moment") -> bool:
        if self.day is not None and other.day is not None:
            return self.day == other.day
        return other.dated and self._month_and_day == other._month_and_day

    @property
    def _month_and_day(self) -> tuple[int, int] | None:
        return (self.day.month, self.day.day) if self.day is not None else self.month_day

    def _same_time(self, other: "Moment") -> bool:
        if self.hour != other.hour or (self.minute is not None and self.minute != other.minute):
            return False
        if self.second is not None and self.second != other.second:
            return False
        return self.fraction is None or (other.fraction or "").startswith(self.fraction)

    def _ends(self, other: "Moment") -> bool:
        """Whether the range ends with the minute of which the other time is one of the last seconds."""
        if not self.ending or self.second is not None or self.minute is None or other.second is None:
            return False
        return 0 < (self.seconds - other.seconds) % 86_400 <= _LAST_SECONDS

    def _near(self, other: "Moment") -> bool:
        """Whether the times are as close as a rounded one says, by the roundness of its minutes."""
        if self.rounding is Rounding.EXACT or other.hour is None:
            return False
        apart = (other.seconds - self.seconds + 43_200) % 86_400 - 43_200
        room = self._room
        if self.rounding is Rounding.NEAR:
            return abs(apart) <= room
        return 0 <= (apart if self.rounding is Rounding.ABOVE else -apart) <= room

    @cached_property
    def seconds(self) -> int:
        return (self.hour or 0) * 3_600 + (self.minute or 0) * 60 + (self.second or 0)

    @property
    def _room(self) -> int:
        """In seconds."""
        if self.second is not None:
            return 1
        if not self.minute:
            return 600
        if self.minute % 10 == 0 or self.minute in (15, 45):
            return 300
        return 180 if self.minute % 5 == 0 else 60

    def _readings(self, evidence: "Moment") -> Iterator["Moment"]:
        """`evidence` in this moment's zone; a time without one is in that of the evidence or in UTC."""
        if self.offset is None:
            yield evidence
            if evidence.offset:
                yield evidence.at(timedelta())
            return
        yield evidence.at(self.offset)
        if self.other_offset is not None:
            yield evidence.at(self.other_offset)

    def at(self, offset: timedelta) -> "Moment":
        """This moment in another zone; unchanged where it has none itself, or no time of day."""
        if self.offset is None or self.hour is None or self.offset == offset:
            return self
        # Without a date any day will do, and only the time of day is kept.
        day = self.day or date(2000, *(self.month_day or (6, 15)))
        seconds = min(self.second or 0, 59)
        there = datetime(
            day.year, day.month, day.day, self.hour, self.minute or 0, seconds, tzinfo=timezone(self.offset)
        )
        try:
            here = there.astimezone(timezone(offset))
        except OverflowError:
            return self
        return replace(
            self,
            day=here.date() if self.day is not None else None,
            month_day=(here.month, here.day) if self.month_day is not None else None,
            hour=here.hour,
            minute=here.minute if self.minute is not None or here.minute else None,
            second=here.second if self.second is not None else None,
            offset=offset,
        )


_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_MONTH = (
    r"(?<![A-Za-z0-9_])(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?![A-Za-z0-9_])\.?"
)

_ZONE_HOURS = {
    "utc": 0, "gmt": 0, "z": 0, "bst": 1, "cet": 1, "cest": 2, "msk": 3, "ist": 5.5, "sgt": 8, "hkt": 8, "jst": 9,
    "est": -5, "edt": -4, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7, "cst": 8,
}  # fmt: skip
_EIGHT = (
    r"北京时间|北京時間|中国时间|中國時間|上海时间|东八区|東八區"
    r"|(?:Beijing|China|Shanghai|Singapore)(?:\s(?:Standard\s)?time)|Asia/Shanghai"
    r"|(?<=\bin\s)(?:Beijing|China|Shanghai|Singapore)\b"
)
_UTC_WORDS = r"协调世界时|世界标准时间|世界时|Coordinated\sUniversal\sTime"
_NAMED_ZONE = (
    rf"(?:{_EIGHT}|{_UTC_WORDS}|(?:{'|'.join(name for name in _ZONE_HOURS if len(name) > 1)})(?![A-Za-z0-9_/]))"
)
_UTC_OFFSET = r"(?:UTC|GMT)\s?[+-]\s?[0-9]{1,2}(?::?[0-9]{2})?(?![0-9])"
# A minus after hours and minutes alone is a range (14:00-14:30); after seconds or an ISO T it is an offset.
_MINUS = r"\s?-(?:0[0-9]|1[0-2]):?(?:00|30)(?![0-9A-Za-z:])"
# A zone that begins a bracket is that of the time in it: 13:57（北京时间 21:57）.
_OTHER_TIME = r"(?<=[\u4e00-\u9fff])\s?[0-9]{1,2}\s?[:点點时時]|\s?:?\s[0-9]{1,2}:[0-9]{2}[^()]{0,20}\)"
_OFFSET = (
    rf"\s?\(?\s?(?:in\s|the\s)?(?:{_UTC_OFFSET}|{_NAMED_ZONE})(?!{_OTHER_TIME})\s?\)?|\s?Z(?![A-Za-z0-9_])"
    r"|\s?\(?\s?\+(?:0[0-9]|1[0-4]):?(?:00|15|30|45)(?![0-9A-Za-z:])\s?\)?"
)
# Not the zone of an earlier time: 22:15 CST 14:15.
_ZONE_BEFORE = Pattern(rf"(?<![0-9])(?<![0-9]\s)(?P<zone>{_UTC_OFFSET}|{_NAMED_ZONE})\s?:?\s*$", re.IGNORECASE)
_PERIOD = r"凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|今早|今晚|夜里|夜间"


def _clock(minus: str) -> str:
    return (
        rf"(?:(?P<period>{_PERIOD})\s?)?"
        r"(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])"
        r"(?::(?P<second>[0-5][0-9]|60)(?:[.,](?P<fraction>[0-9]{1,9}))?)?(?![0-9]|:[0-9])"
        rf"(?:\s?(?P<half>[ap])\.?m(?![A-Za-z0-9_])\.?)?(?P<offset>{_OFFSET}|{minus})?"
    )


_CLOCK = _clock(rf"(?(second){_MINUS}|(?!))")
_ISO_CLOCK = _clock(rf"(?(second){_MINUS}|(?(t){_MINUS}|(?!)))")
_HALF_DAY_CLOCK = rf"(?P<hour>1[0-2]|0?[1-9])\s?(?P<half>[ap])(?:\.m\.?|m)(?![A-Za-z0-9_])(?P<offset>{_OFFSET})?"
_CJK_CLOCK = (
    rf"(?P<period>{_PERIOD})?\s?(?P<hour>[01]?[0-9]|2[0-3])\s?[点點时時]"
    r"(?:(?:(?P<minute>[0-5]?[0-9])(?!点|點)|\s(?P<apart>[0-5]?[0-9])(?=\s?分))"
    r"(?:\s?分)?(?:\s?(?P<second>[0-5]?[0-9])\s?秒)?|(?P<mark>半|整|钟|鐘)"
    # 3点原因 are three points.
    r"|(?(period)|(?!\s?[0-9原建问意变不区要结理说内])))"
    rf"(?P<offset>{_OFFSET})?"
)
# A full-width colon, which is folded to this one, may stand before a time; what stands before the minutes is its hour.
_BEFORE = r"(?<![A-Za-z0-9_.+])(?<![A-Za-z0-9_\]]:)"
_ISO_DAY = r"(?P<y>[12][0-9]{3})[-/年.](?P<m>[01]?[0-9])[-/月.](?P<d>[0-3]?[0-9])"
_CJK_DAY = r"(?P<m>[01]?[0-9])\s?月\s?(?P<d>[0-3]?[0-9])\s?[日号號]"
_DAY_OF_MONTH = r"(?P<d>[0-3]?[0-9])(?:st|nd|rd|th)?"
_YEAR = r"(?P<y>[12][0-9]{3})(?![0-9A-Za-z])"
_YEAR_OF_MONTH = r"(?P<my>[12][0-9]{3})"
_COMPACT = (
    r"(?m:^)(?P<yy>[0-9]{2})(?P<m>0[1-9]|1[0-2])(?P<d>[0-3][0-9])\s(?P<hour>[01][0-9]|2[0-3])(?P<minute>[0-5][0-9])"
    r"(?P<second>[0-5][0-9])(?=\s)"
)
_AND_CLOCK = r"(?:,?\s?(?:at\s|around\s|about\s)?" + _CLOCK + ")?"
_MOMENTS = tuple(
    Pattern(pattern, re.IGNORECASE)
    for pattern in (
        _BEFORE + _ISO_DAY + r"日?(?:(?P<t>T)|\s*)" + _ISO_CLOCK,
        _BEFORE + _ISO_DAY + r"日?\s*" + _CJK_CLOCK,
        _BEFORE + _ISO_DAY + r"(?![0-9:]|\.[0-9])[日号]?",
        _BEFORE + _CJK_DAY + r"\s*" + _CLOCK,
        _BEFORE + _CJK_DAY + r"\s*" + _CJK_CLOCK,
        _BEFORE + _CJK_DAY,
        _BEFORE
        + _DAY_OF_MONTH
        + r"(?:\sof\s|[\s/-])"
        + _MONTH
        + r"(?:,?[\s/-]|:)"
        + _YEAR
        + r"(?:[,:]?\s?"
        + _CLOCK
        + ")?",
        _BEFORE + _MONTH + r"\s+" + _DAY_OF_MONTH + r"(?:,?\s" + _YEAR + r")" + _AND_CLOCK,
        _BEFORE + _MONTH + r"\s+" + _DAY_OF_MONTH + r",?\s(?:at\s)?" + _CLOCK + r"(?:\s" + _YEAR + ")?",
        # Not the number that follows a day: on 29 November 15 requests failed.
        r"(?<![^0-9:][0-9]\s)(?<![^0-9:][0-3][0-9]\s)"
        + _BEFORE
        + _MONTH
        + r"\s"
        + _DAY_OF_MONTH
        + r"(?![0-9A-Za-z]|[.:,][0-9])",
        _BEFORE + _DAY_OF_MONTH + r"(?:\sof)?\s" + _MONTH,
        _BEFORE + r"(?P<m>0?[1-9]|1[0-2])/(?P<d>0?[1-9]|[12][0-9]|3[01])/" + _YEAR,
        _BEFORE + r"(?P<d>[12][0-9]|3[01])/(?P<m>0?[1-9]|1[0-2])/" + _YEAR,
        r"(?<=on\s)(?P<m>0?[1-9]|1[0-2])/(?P<d>0?[1-9]|[12][0-9]|3[01])(?![0-9/])",
        _BEFORE + _YEAR_OF_MONTH + r"年(?P<m>1[0-2]|0?[1-9])月",
        _BEFORE + _MONTH + r",?\s" + _YEAR_OF_MONTH + r"(?![0-9A-Za-z])",
        r"(?<=\bin\s)" + _YEAR_OF_MONTH + r"(?![0-9A-Za-z.,%])(?!\s[a-z]+s\b)",
        _BEFORE + _YEAR_OF_MONTH + r"年(?!前|后|内|期)",
        _COMPACT,
        _BEFORE + _CLOCK,
        _BEFORE + _HALF_DAY_CLOCK,
        _BEFORE + _CJK_CLOCK,
    )
)
_ZONE_WORDS = Pattern(rf"{_UTC_OFFSET}|(?<![0-9A-Za-z+-])[+-](?:0[0-9]|1[0-4]):(?:00|15|30|45)(?![0-9A-Za-z:])", re.I)
_SENTENCE_END = Pattern(r"[.!?;](?=\s)|[。！？；\n]")
_RANGE = Pattern(r"\s?(?:-|–|—|~|to|and|until|till|through|至|到|和|与|與)\s?", re.IGNORECASE)


@dataclass(frozen=True)
class _Place:
    begin: int
    end: int
    moment: Moment
    half: str


def take_moments(text: str, *, prose: bool = False) -> tuple[str, tuple[Moment, ...]]:
    """The times of a text, in order, and the text with blanks in their places.

    In prose the only date of a sentence is that of its times.
    """
    found: list[_Place] = []

    def take(match: re.Match[str]) -> str:
        moment = _moment(match, text)
        if moment is None:
            return match.group()
        groups = match.groupdict()
        half = groups.get("half") or groups.get("period") or ""
        found.append(_Place(match.start(), match.end(), moment, half))
        return " " * len(match.group())

    rest = text
    for pattern in _MOMENTS:
        rest = pattern.sub(take, rest)
    if not found:
        return rest, ()
    places = _linked(text, sorted(found, key=lambda place: place.begin))
    if prose:
        places = [place for sentence in _sentences(text, places) for place in _on_the_day(sentence)]
    rest = _ZONE_WORDS.sub(lambda match: " " * len(match.group()), rest)
    return rest, tuple(place.moment for place in places)


def _sentences(text: str, places: list[_Place]) -> Iterator[list[_Place]]:
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    for begin, end in pairwise((0, *ends, len(text) + 1)):
        yield [place for place in places if begin <= place.begin < end]


def _on_the_day(places: list[_Place]) -> list[_Place]:
    dates = [place.moment for place in places if place.moment.dated]
    if len(dates) != 1 or dates[0].hour is not None:
        return places
    day, month_day = dates[0].day, dates[0].month_day
    return [
        replace(place, moment=replace(place.moment, day=day, month_day=month_day))
        if place.moment.hour is not None
        else place
        for place in places
    ]


def _linked(text: str, places: list[_Place]) -> list[_Place]:
    """What is written once for both ends of a range: its date, its half of the day, its zone."""
    for index in range(1, len(places)):
        first, second = places[index - 1], places[index]
        if _RANGE.fullmatch(text[first.end : second.begin]):
            places[index - 1 : index + 1] = _shared(first, second)
    return places


def _shared(first: _Place, second: _Place) -> tuple[_Place, _Place]:
    one, two = first.moment, second.moment
    if one.hour is not None and two.hour is not None:
        if first.half and not second.half:
            two = replace(two, hour=_hour(two.hour, first.half))
        if two.offset is None:
            two = replace(two, offset=one.offset, other_offset=one.other_offset)
        elif one.offset is None:
            one = replace(one, offset=two.offset, other_offset=two.other_offset)
        if one.dated and not two.dated and two.seconds >= one.seconds:
            two = replace(two, day=one.day, month_day=one.month_day)
    return replace(first, moment=one), replace(second, moment=replace(two, ending=two.hour is not None))


def _moment(match: re.Match[str], text: str) -> Moment | None:
    groups = match.groupdict()
    try:
        day, month_day = _day(groups)
    except ValueError:
        return None
    rounding = rounding_of(text, match.start(), match.end())
    if groups.get("my"):
        return Moment(month=(int(groups["my"]), _month(groups)))
    if not groups.get("hour"):
        return Moment(day=day, month_day=month_day)
    minute = groups.get("minute") or groups.get("apart")
    if groups.get("mark"):
        minute = {"半": "30", "整": "0"}.get(groups["mark"], minute)
    before = _ZONE_BEFORE.search(text[max(match.start() - 32, 0) : match.start()])
    zone = groups.get("offset") or (before["zone"] if before else None)
    if before and rounding is Rounding.EXACT:
        rounding = rounding_of(text, match.start() - len(before.group()), match.end())
    return Moment(
        day=day,
        hour=_hour(int(groups["hour"]), groups.get("half") or groups.get("period") or ""),
        minute=int(minute) if minute else None,
        second=int(groups["second"]) if groups.get("second") else None,
        fraction=groups.get("fraction"),
        offset=_offset(zone),
        month_day=month_day,
        rounding=rounding,
        # China's and the American Central Standard Time.
        other_offset=timedelta(hours=-6) if zone and re.search(r"\bCST\b", zone, re.IGNORECASE) else None,
    )


def _hour(hour: int, half: str) -> int:
    """`hour` on the 24-hour clock."""
    if half in ("a", "A", "凌晨") and hour == 12:
        return 0
    afternoon = half in ("p", "P", "下午", "傍晚", "晚上", "今晚", "夜里", "夜间") or (half == "中午" and hour < 3)
    return hour + 12 if afternoon and hour < 12 else hour


def _day(groups: dict[str, str]) -> tuple[date | None, tuple[int, int] | None]:
    """The date, or only its month and day where no year is written; raises ValueError for no such day."""
    if not groups.get("d"):
        return None, None
    month = _month(groups)
    if groups.get("yy"):
        return date(2000 + int(groups["yy"]), month, int(groups["d"])), None
    # A leap year, so that 29 February is one of the days.
    found = date(int(groups.get("y") or 2000), month, int(groups["d"]))
    return (found, None) if groups.get("y") else (None, (found.month, found.day))


def _month(groups: dict[str, str]) -> int:
    if groups.get("m"):
        return int(groups["m"])
    return _MONTHS[groups["month"][:3].lower()] if groups.get("month") else 0


def _offset(text: str | None) -> timedelta | None:
    if not text:
        return None
    digits = re.search(r"([+-])\s?([0-9]{1,2}):?([0-9]{2})?", text)
    if digits is None:
        return _named_offset(text)
    offset = timedelta(hours=int(digits[2]), minutes=int(digits[3] or 0))
    if offset >= timedelta(hours=24):
        return timedelta()
    return -offset if digits[1] == "-" else offset


def _named_offset(text: str) -> timedelta:
    if re.search(_EIGHT, text, re.IGNORECASE):
        return timedelta(hours=8)
    name = re.search(r"[A-Za-z]+\s*\)?\s*$", text)
    return timedelta(hours=_ZONE_HOURS.get(name.group().strip(" )").lower(), 0) if name else 0)
