"""Expressions of time in a question, English and Chinese, read as a window in UTC."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

_DAY = timedelta(days=1)
_AROUND = timedelta(minutes=30)


@dataclass(frozen=True)
class Window:
    """From `start` up to `end`, UTC; None is no bound."""

    start: datetime | None = None
    end: datetime | None = None

    def overlaps(self, first: datetime | None, last: datetime | None) -> bool:
        """Whether something between `first` and `last` can be in it; unknown ends count as inside."""
        too_late = self.start is not None and last is not None and last < self.start
        too_early = self.end is not None and first is not None and first >= self.end
        return not too_late and not too_early


@dataclass(frozen=True)
class _Clock:
    """A time of day found in the text at `begin` to `finish`; `day` when a date stands with it."""

    begin: int
    finish: int
    time: time
    day: date | None = None


_NUMERALS = {
    "零": 0,
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
}
_WORD_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "ten": 10,
    "twelve": 12,
    "half an": 0.5,
    "few": 3,
    "couple of": 2,
    "半": 0.5,
    "半个": 0.5,
    "几": 3,
}
_N = r"\d{1,4}(?:\.\d)?|half an|an?|one|two|three|four|five|six|ten|twelve|(?:a )?few|(?:a )?couple of"
_ZH_N = r"\d{1,4}|[零一二两三四五六七八九十]{1,3}|半个?|几"
_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": _DAY,
    "w": 7 * _DAY,
    "分": timedelta(minutes=1),
    "小": timedelta(hours=1),
    "钟": timedelta(hours=1),
    "天": _DAY,
    "日": _DAY,
    "周": 7 * _DAY,
    "星": 7 * _DAY,
}
_LAST = re.compile(
    rf"\b(?:last|past|previous|recent)\s+(?:({_N})\s*)?(minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)\b",
    re.I,
)
_AGO = re.compile(rf"\b({_N})\s*(minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)\s+ago\b", re.I)
_ZH_LAST = re.compile(rf"(?:最近|过去|近|前)(?:的)?({_ZH_N})\s*个?(分钟|小时|钟头|天|日|周|星期)")
_ZH_AGO = re.compile(rf"({_ZH_N})\s*个?(分钟|小时|钟头|天|周|星期)(?:以?前|之前)")

_DATE = r"(?<![\w.-])(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?"
_ISO = re.compile(
    rf"{_DATE}(?:[T\s,]*?(?:at\s+)?(?<=[T\s,日0-9])(\d{{1,2}}):(\d{{2}})(?::(\d{{2}})(?:[.,]\d+)?)?"
    rf"\s*(Z\b|[+-]\d{{2}}:?\d{{2}}\b)?)?(?![\w:]*\d)",
    re.I | re.ASCII,
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = "|".join(_MONTHS)
_MONTH_DAY = re.compile(rf"\b({_MONTH})[a-z]*\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(\d{{4}})\b)?", re.I)
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})[a-z]*\.?\b(?:,?\s+(\d{{4}})\b)?", re.I)
_ZH_MONTH_DAY = re.compile(r"(?<!\d)(\d{1,2})月(\d{1,2})[日号]")
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_WEEKDAY = re.compile(rf"\b(?:on\s+|last\s+)({'|'.join(_WEEKDAYS)})\b", re.I)
_ZH_WEEKDAY = re.compile(r"(?:上?周|星期|礼拜)([一二三四五六日天])")

_COLON_CLOCK = re.compile(
    r"(?<![\w:.])(?<!-\d\d-)(?:(凌晨|早上|上午|中午|下午|傍晚|晚上)\s*)?([01]?\d|2[0-4])[:：]([0-5]\d)(?:[:：]([0-5]\d))?"
    r"(?:\.\d+)?\s*([ap]\.?m\b\.?)?(?![:\d])",
    re.I | re.ASCII,
)
_AMPM_CLOCK = re.compile(r"(?<![\w:.-])(1[0-2]|0?[1-9])\s*([ap])\.?m\b\.?", re.I | re.ASCII)
_AMPM_SPAN = re.compile(
    r"(?<![\w:.-])(1[0-2]|0?[1-9])(?=\s*(?:-|–|to|and|until|till)\s*(?:1[0-2]|0?[1-9])\s*([ap])\.?m\b)",
    re.I | re.ASCII,
)
_ZH_CLOCK = re.compile(
    r"(凌晨|早上|上午|中午|下午|傍晚|晚上|今晚|今早)?\s*(?<!\d)(\d{1,2}|[零一二两三四五六七八九十]{1,3})[点时](?!候)"
    r"(?:钟|整)?(半|一刻|三刻|(?:\d{1,2}|[零一二三四五六七八九十]{1,3})分?(?!钟))?"
)
_NOON = re.compile(r"\b(noon|midday|midnight)\b|(正午|午夜|零点)", re.I)

_SINCE = re.compile(
    r"(?:\b(?:since|after|from|starting(?:\s+at)?|as of|beginning)|自从|自|从)\s*(?:about|around|~)?$", re.I
)
_UNTIL = re.compile(r"\b(?:before|until|till|up to|by)\s*$", re.I)
_ZH_SINCE = re.compile(r"^\s*(?:钟|整)?(?:以来|之后|以后|后|起|开始|至今|到现在)")
_ZH_UNTIL = re.compile(r"^\s*(?:钟|整)?(?:以前|之前|前)")
_JOIN = re.compile(
    r"^\s*(?:utc|z)?\s*(?:-|–|—|~|至|到|and|to|until|till|through|和|与)\s*(?:about\s+)?"
    r"(?:today|yesterday|今天|昨天)?\s*(?:at\s+)?$",
    re.I,
)
_ZONE = re.compile(r"\b(?:utc|gmt)\s*([+-])(\d{1,2})(?::?(\d{2}))?\b|(?<=\d)\s*(\+)(\d{2}):(\d{2})\b", re.I)
_CHINA = re.compile(r"北京时间|beijing time|china (?:standard )?time", re.I)

_PARTS: tuple[tuple[re.Pattern[str], int, int], ...] = (
    (re.compile(r"\b(?:this|yesterday|today)?\s*morning\b|上午|早上|今早", re.I), 6, 12),
    (re.compile(r"\bafternoon\b|下午", re.I), 12, 18),
    (re.compile(r"\b(?:evening|tonight)\b|晚上|今晚|昨晚", re.I), 18, 24),
    (re.compile(r"\bovernight\b|凌晨", re.I), 0, 6),
)
_DAY_WORDS: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"\bday before yesterday\b|前天", re.I), -2),
    (re.compile(r"\byesterday\b|昨天|昨日|昨晚", re.I), -1),
    (
        re.compile(r"\btoday\b|\btonight\b|\bthis (?:morning|afternoon|evening)\b|今天|今日|今早|今晚|当天", re.I),
        0,
    ),
)


def window_of(question: str, now: datetime, latest: datetime | None = None) -> Window | None:
    """The window that `question` names, read at `now`; None when it names none.

    A time of day without a date is today's when that has passed or when records reach to it
    (`latest` is the last instant known), yesterday's otherwise. Times are UTC unless the question says
    another zone.
    """
    try:
        return _Reader(question, now, latest).window()
    except (ValueError, OverflowError):  # no such day, or beyond the calendar
        return None


class _Reader:
    def __init__(self, question: str, now: datetime, latest: datetime | None) -> None:
        self._text = question
        self._zone = _zone_of(question)
        self._now = now.astimezone(self._zone)
        self._latest = latest or now
        self._day = self._named_day()

    def window(self) -> Window | None:
        for attempt in (self._relative, self._clocks, self._part_of_day, self._whole_day, self._week):
            found = attempt()
            if found is not None:
                return Window(_utc(found.start), _utc(found.end))
        return None

    def _relative(self) -> Window | None:
        for pattern in (_LAST, _ZH_LAST, _AGO, _ZH_AGO):
            if match := pattern.search(self._text):
                span = _number(match[1]) * _unit(match[2])
                whole_days = pattern is _AGO and span >= _DAY
                if whole_days:
                    return self._one_day((self._now - span).date())
                return Window(self._now - span, None)
        return None

    def _clocks(self) -> Window | None:
        clocks = self._find_clocks()
        if not clocks:
            return None
        if len(clocks) > 1 and _JOIN.match(self._text[clocks[0].finish : clocks[1].begin]):
            start = self._at(clocks[0])
            end = self._at(clocks[1], near=start.date() if clocks[1].day is None else None)
            return Window(start, _later(start, end))
        clock = clocks[0]
        before, after = self._text[: clock.begin], self._text[clock.finish :]
        before = re.sub(r"(?:yesterday|today|at|on|utc|今天|昨天|前天|昨日|今日|,|\s)+$", "", before, flags=re.I)
        at = self._at(clock)
        if _SINCE.search(before) or _ZH_SINCE.match(after):
            return Window(at, None)
        if _UNTIL.search(before) or _ZH_UNTIL.match(after):
            midnight = datetime.combine(at.date(), time(), self._zone)
            return Window(midnight, at)
        return Window(at - _AROUND, at + _AROUND)

    def _find_clocks(self) -> list[_Clock]:
        found: list[_Clock] = []
        taken: list[range] = []

        def scan(pattern: re.Pattern[str], read: Callable[[re.Match[str]], _Clock | None]) -> None:
            for match in pattern.finditer(self._text):
                if any(match.start() < span.stop and match.end() > span.start for span in taken):
                    continue
                clock = read(match)
                if clock:
                    found.append(clock)
                    taken.append(range(match.start(), match.end()))

        scan(_ISO, self._iso_clock)
        for match in _AMPM_SPAN.finditer(self._text):
            found.append(_Clock(match.start(), match.end(1), time(_hour(int(match[1]), match[2]))))
            taken.append(range(match.start(), match.end(1)))
        scan(_COLON_CLOCK, _colon_clock)
        scan(_AMPM_CLOCK, _ampm_clock)
        scan(_ZH_CLOCK, _chinese_clock)
        scan(_NOON, _noon)
        return sorted(found, key=lambda clock: clock.begin)

    def _iso_clock(self, match: re.Match[str]) -> _Clock | None:
        if match[4] is None:
            return None
        at = datetime.combine(
            date(int(match[1]), int(match[2]), int(match[3])),
            time(int(match[4]), int(match[5]), int(match[6] or 0)),
        )
        zone = _offset(match[7]) if match[7] else self._zone
        local = at.replace(tzinfo=zone).astimezone(self._zone)
        return _Clock(match.start(), match.end(), local.time(), local.date())

    def _at(self, clock: _Clock, near: date | None = None) -> datetime:
        day = clock.day or self._day or near
        if day is not None:
            return datetime.combine(day, clock.time, self._zone)
        today = datetime.combine(self._now.date(), clock.time, self._zone)
        return today if today <= max(self._now, self._latest) else today - _DAY

    def _named_day(self) -> date | None:
        for read in (_calendar_day, _weekday):
            if (day := read(self._text, self._now.date())) is not None:
                return day
        for pattern, offset in _DAY_WORDS:
            if pattern.search(self._text):
                return self._now.date() + offset * _DAY
        return None

    def _one_day(self, day: date) -> Window:
        midnight = datetime.combine(day, time(), self._zone)
        return Window(midnight, midnight + _DAY)

    def _part_of_day(self) -> Window | None:
        if re.search(r"\blast night\b", self._text, re.I):
            midnight = datetime.combine(self._now.date(), time(), self._zone)
            return Window(midnight - timedelta(hours=6), midnight + timedelta(hours=6))
        for pattern, start, end in _PARTS:
            if pattern.search(self._text):
                midnight = datetime.combine(self._day or self._now.date(), time(), self._zone)
                return Window(midnight + timedelta(hours=start), midnight + timedelta(hours=end))
        return None

    def _whole_day(self) -> Window | None:
        if self._day is None:
            return None
        day = self._one_day(self._day)
        mentioned = re.search(
            rf"(?:since|after|from)\s+(?:{_MONTH}|yesterday|\d{{4}}-)|(?:日|天|号)(?:以来|起|开始|至今)",
            self._text,
            re.I,
        )
        return Window(day.start, None) if mentioned else day

    def _week(self) -> Window | None:
        monday = self._now.date() - self._now.weekday() * _DAY
        if re.search(r"\bthis week\b|这周|本周", self._text, re.I):
            return Window(datetime.combine(monday, time(), self._zone), None)
        return None


def _later(start: datetime, end: datetime) -> datetime:
    """The end of a span after its start: "下午2点到3点" names its half of the day once."""
    if end > start:
        return end
    return end + _DAY / 2 if end + _DAY / 2 > start else end + _DAY


def _utc(value: datetime | None) -> datetime | None:
    return value.astimezone(UTC) if value else None


def _zone_of(text: str) -> tzinfo:
    if _CHINA.search(text):
        return timezone(timedelta(hours=8))
    match = _ZONE.search(text)
    if not match:
        return UTC
    sign, hours, minutes = (match[1], match[2], match[3]) if match[1] else (match[4], match[5], match[6])
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return timezone(-offset if sign == "-" else offset) if offset < _DAY else UTC


def _offset(text: str) -> tzinfo:
    if text in "Zz":
        return UTC
    digits = text.replace(":", "")
    offset = timedelta(hours=int(digits[1:3]), minutes=int(digits[3:5]))
    return timezone(-offset if digits[0] == "-" else offset)


def _number(text: str | None) -> float:
    word = re.sub(r"^a (?=few|couple)", "", (text or "1").lower())
    if word in _WORD_NUMBERS:
        return _WORD_NUMBERS[word]
    return float(word) if word[0].isdigit() else _chinese_number(word)


def _unit(text: str) -> timedelta:
    return _UNITS[text[0].lower()]


def _chinese_number(text: str) -> int:
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.partition("十")
    if not ten:
        return _NUMERALS[text]
    return 10 * (_NUMERALS[tens] if tens else 1) + (_NUMERALS[ones] if ones else 0)


def _hour(hour: int, part: str | None) -> int:
    """A 12-hour clock's hour as one of 24."""
    afternoon = part is not None and (part in {"下午", "傍晚", "晚上", "今晚"} or part.lower().startswith("p"))
    morning = part is not None and (part == "凌晨" or part.lower().startswith("a"))
    if afternoon and hour < 12:
        return hour + 12
    if part == "中午" and hour < 3:
        return hour + 12
    return 0 if morning and hour == 12 else hour


def _clock(match: re.Match[str], hour: int, minute: int = 0, second: int = 0) -> _Clock | None:
    if hour > 24 or minute > 59:
        return None
    at = time(23, 59, 59) if hour == 24 else time(hour, minute, second)
    return _Clock(match.start(), match.end(), at)


def _colon_clock(match: re.Match[str]) -> _Clock | None:
    return _clock(match, _hour(int(match[2]), match[5] or match[1]), int(match[3]), int(match[4] or 0))


def _ampm_clock(match: re.Match[str]) -> _Clock | None:
    return _clock(match, _hour(int(match[1]), match[2]))


def _chinese_clock(match: re.Match[str]) -> _Clock | None:
    minutes = {"半": 30, "一刻": 15, "三刻": 45, None: 0}
    minute = minutes[match[3]] if match[3] in minutes else _chinese_number(match[3].rstrip("分"))
    return _clock(match, _hour(_chinese_number(match[2]), match[1]), minute)


def _noon(match: re.Match[str]) -> _Clock | None:
    return _clock(match, 12 if match.group().lower() in {"noon", "midday", "正午"} else 0)


def _calendar_day(text: str, today: date) -> date | None:
    if match := _ISO.search(text):
        return date(int(match[1]), int(match[2]), int(match[3]))
    if match := _MONTH_DAY.search(text):
        return _latest_date(match[3], _MONTHS.index(match[1].lower()) + 1, int(match[2]), today)
    if match := _DAY_MONTH.search(text):
        return _latest_date(match[3], _MONTHS.index(match[2].lower()) + 1, int(match[1]), today)
    if match := _ZH_MONTH_DAY.search(text):
        return _latest_date(None, int(match[1]), int(match[2]), today)
    return None


def _latest_date(year: str | None, month: int, day: int, today: date) -> date:
    """Without a year: the last such day that isn't in the future."""
    if year:
        return date(int(year), month, day)
    this_year = date(today.year, month, day)
    return this_year if this_year <= today else date(today.year - 1, month, day)


def _weekday(text: str, today: date) -> date | None:
    number: int | None = None
    if match := _WEEKDAY.search(text):
        number = _WEEKDAYS.index(match[1].lower())
    elif match := _ZH_WEEKDAY.search(text):
        number = min("一二三四五六日天".index(match[1]), 6)
    if number is None:
        return None
    return today - ((today.weekday() - number) % 7 or 7) * _DAY
