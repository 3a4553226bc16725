"""How people word a value: each function spells one value in one way, or gives None where that way doesn't fit it."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal

NumberSpelling = Callable[[Decimal, str], str | None]
TimeSpelling = Callable[[datetime], str]

_EN_UNITS = {"ms": "ms", "s": "s", "%": "%", "bytes": "bytes", "": "", "cents": "cents"}
_ZH_UNITS = {"ms": "毫秒", "s": "秒", "%": "%", "bytes": "字节", "": "", "cents": "美分"}
_WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]
_ZH_DIGITS = "零一二三四五六七八九"


def plain_digits(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _en(text: str, unit: str) -> str:
    return f"{text}{'' if unit in ('', '%') else ' '}{_EN_UNITS[unit]}"


def _zh(text: str, unit: str) -> str:
    return f"{text}{_ZH_UNITS[unit]}"


def _comma(value: Decimal, unit: str) -> str | None:
    return _en(f"{int(value):,}", unit) if value >= 1000 and value % 1 == 0 else None


def _space(value: Decimal, unit: str) -> str | None:
    return _en(f"{int(value):,}".replace(",", " "), unit) if value >= 1000 and value % 1 == 0 else None


def _seconds(text: str) -> NumberSpelling:
    def spell(value: Decimal, unit: str) -> str | None:
        return f"{plain_digits(value / 1000)}{text}" if unit == "ms" and value >= 100 else None

    return spell


def _millis(text: str) -> NumberSpelling:
    def spell(value: Decimal, unit: str) -> str | None:
        return f"{plain_digits(value * 1000)}{text}" if unit == "s" else None

    return spell


def _minutes(text: str) -> NumberSpelling:
    def spell(value: Decimal, unit: str) -> str | None:
        return f"{plain_digits(value / 60)}{text}" if unit == "s" and value >= 60 and value % 30 == 0 else None

    return spell


def _megabytes(text: str) -> NumberSpelling:
    def spell(value: Decimal, unit: str) -> str | None:
        return f"{plain_digits(value / 1048576)}{text}" if unit == "bytes" and value % 65536 == 0 and value else None

    return spell


def _euros(value: Decimal, unit: str) -> str | None:
    return f"€{value / 100:.2f}" if unit == "cents" else None


def _word(value: Decimal, unit: str) -> str | None:
    long = {"ms": " milliseconds", "s": " seconds", "%": " percent"}.get(unit)
    if value % 1 or not 2 <= value <= 20 or (unit and long is None):
        return None
    return f"{_WORDS[int(value)]}{long or ''}"


def chinese_numeral(value: int) -> str:
    if value >= 10_000:
        rest = value % 10_000
        return f"{chinese_numeral(value // 10_000)}万{_gap(rest, 1000)}{chinese_numeral(rest) if rest else ''}"
    for power, name in ((1000, "千"), (100, "百"), (10, "十")):
        if value >= power:
            head, rest = divmod(value, power)
            lead = "" if power == 10 and head == 1 else _ZH_DIGITS[head]
            return f"{lead}{name}{_gap(rest, power // 10)}{chinese_numeral_tail(rest)}"
    return _ZH_DIGITS[value]


def chinese_numeral_tail(rest: int) -> str:
    text = chinese_numeral(rest) if rest else ""
    return f"一{text}" if 10 <= rest < 20 else text


def _gap(rest: int, place: int) -> str:
    return "零" if 0 < rest < place else ""


def _zh_numeral(value: Decimal, unit: str) -> str | None:
    if value % 1 or not 2 <= value < 100_000 or unit in ("%", "cents"):
        return None
    return _zh(chinese_numeral(int(value)), unit)


def _wan(value: Decimal, unit: str) -> str | None:
    return _zh(f"{plain_digits(value / 10_000)}万", unit) if value >= 10_000 and value % 100 == 0 else None


def _fullwidth(value: Decimal, unit: str) -> str | None:
    text = plain_digits(value).translate({ord(a): chr(ord(a) + 0xFEE0) for a in "0123456789."})
    return _zh(text, unit)


def step_of(value: Decimal) -> Decimal:
    """The place to which the bench rounds: the third digit, or the second of a small number."""
    digits = len(str(int(value)))
    return Decimal(10) ** max(digits - 2, 0)


def _rounded(words: str, unit_of: Callable[[str, str], str], toward: int) -> NumberSpelling:
    def spell(value: Decimal, unit: str) -> str | None:
        step = step_of(value)
        if value < 100:
            return None
        whole = value // step * step
        near = whole + (step if (value - whole) * 2 > step else 0)
        rounded = {0: near, -1: whole, 1: whole if whole == value else whole + step}[toward]
        return words.format(unit_of(f"{int(rounded):,}", unit))

    return spell


def _percent_words(words: str) -> NumberSpelling:
    def spell(value: Decimal, unit: str) -> str | None:
        return words.format(plain_digits(value)) if unit == "%" else None

    return spell


NUMBERS: Mapping[str, Mapping[str, NumberSpelling]] = {
    "en": {
        "plain": lambda v, u: _en(plain_digits(v), u),
        "thousands 1,234": _comma,
        "thousands 1 234": _space,
        "unit 3 s": _seconds(" s"),
        "unit 3s": _seconds("s"),
        "unit 3 seconds": _seconds(" seconds"),
        "unit 3000 ms of 3 s": _millis(" ms"),
        "unit 15 minutes": _minutes(" minutes"),
        "unit 64 MB": _megabytes(" MB"),
        "unit euros": _euros,
        "number word": _word,
        "about 1,200": _rounded("about {}", _en, 0),
        "~1200": _rounded("~{}", _en, 0),
        "roughly … or so": _rounded("{} or so", _en, 0),
        "nearly 1,300": _rounded("nearly {}", _en, 1),
        "more than 1,200": _rounded("more than {}", _en, -1),
        "percent": _percent_words("{} percent"),
        "code ticks": lambda v, u: f"`{_en(plain_digits(v), u)}`" if not u else None,
    },
    "zh": {
        "plain": lambda v, u: _zh(plain_digits(v), u),
        "thousands 1,234": lambda v, u: _zh(f"{int(v):,}", u) if v >= 1000 and v % 1 == 0 else None,
        "unit 3秒": _seconds("秒"),
        "unit 3 秒钟": _seconds(" 秒钟"),
        "unit 3000毫秒 of 3 s": _millis("毫秒"),
        "unit 15分钟": _minutes("分钟"),
        "unit 64 MB": _megabytes("MB"),
        "numeral 三百": _zh_numeral,
        "numeral 1.2万": _wan,
        "full width": _fullwidth,
        "约1200": _rounded("约{}", _zh, 0),
        "1200左右": _rounded("{}左右", _zh, 0),
        "近1300": _rounded("近{}", _zh, 1),
        "超过1200": _rounded("超过{}", _zh, -1),
        "百分之": _percent_words("百分之{}"),
    },
}

BEIJING = timezone(timedelta(hours=8))
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def _twelve(at: datetime, seconds: bool) -> str:
    hour = at.hour % 12 or 12
    tail = f":{at.second:02}" if seconds else ""
    return f"{hour}:{at.minute:02}{tail} {'pm' if at.hour >= 12 else 'am'}"


def _zh_period(at: datetime) -> str:
    if at.hour < 6:
        return f"凌晨{at.hour}"
    if at.hour < 12:
        return f"上午{at.hour}"
    return f"{'晚上' if at.hour >= 18 else '下午'}{at.hour - 12 or 12}"


def _about(at: datetime) -> datetime:
    return at.replace(minute=at.minute // 10 * 10, second=0, microsecond=0) + timedelta(
        minutes=10 if at.minute % 10 >= 5 else 0
    )


TIMES: Mapping[str, Mapping[str, TimeSpelling]] = {
    "en": {
        "iso": lambda t: f"{t:%Y-%m-%dT%H:%M:%SZ}",
        "date and clock": lambda t: f"{t:%Y-%m-%d %H:%M:%S} UTC",
        "clock, seconds": lambda t: f"{t:%H:%M:%S} UTC",
        "clock": lambda t: f"{t:%H:%M} UTC",
        "clock, no zone": lambda t: f"{t:%H:%M}",
        "12-hour": lambda t: f"{_twelve(t, False)} UTC",
        "12-hour, seconds": lambda t: _twelve(t, True),
        "12-hour dotted": lambda t: _twelve(t, False).replace("am", "a.m.").replace("pm", "p.m.") + " UTC",
        "zone +08:00": lambda t: f"{t.astimezone(BEIJING):%H:%M} +08:00",
        "zone iso": lambda t: f"{t.astimezone(BEIJING):%Y-%m-%dT%H:%M:%S}+08:00",
        "zone UTC+8": lambda t: f"{t.astimezone(BEIJING):%H:%M:%S} (UTC+8)",
        "zone Beijing time": lambda t: f"{t.astimezone(BEIJING):%H:%M} Beijing time",
        "zone New York": lambda t: f"{t.astimezone(timezone(timedelta(hours=-5))):%H:%M:%S} EST",
        "month name": lambda t: f"{_MONTHS[t.month - 1]} {t.day}, {t.year}, {t:%H:%M} UTC",
        "month name, short": lambda t: f"{t.day} {_MONTHS[t.month - 1][:3]} {t.year} {t:%H:%M:%S}",
        "month name, ordinal": lambda t: (
            f"{_MONTHS[t.month - 1]} {t.day}{'th' if t.day > 3 else 'st'} at {t:%H:%M} UTC"
        ),
        "about 14:10": lambda t: f"about {_about(t):%H:%M} UTC",
    },
    "zh": {
        "clock": lambda t: f"UTC {t:%H:%M}",
        "clock, seconds": lambda t: f"{t:%H:%M:%S}（UTC）",
        "clock, no zone": lambda t: f"{t:%H:%M:%S}",
        "点分": lambda t: f"{t.hour}点{t.minute:02}分",
        "点分秒": lambda t: f"{t.hour}时{t.minute}分{t.second}秒",
        "下午": lambda t: f"{_zh_period(t)}点{t.minute:02}分",
        "下午2:15": lambda t: f"{_zh_period(t)}:{t.minute:02}",
        "numerals 十四点": lambda t: (
            f"{chinese_numeral(t.hour)}点{chinese_numeral(t.minute) if t.minute else '整'}" + ("分" if t.minute else "")
        ),
        "date 年月日": lambda t: f"{t.year}年{t.month}月{t.day}日{t:%H:%M}",
        "date 月日": lambda t: f"{t.month}月{t.day}日{t:%H:%M:%S}",
        "zone 北京时间": lambda t: f"北京时间{t.astimezone(BEIJING):%H:%M}",
        "zone（北京时间）": lambda t: f"{t.astimezone(BEIJING):%H:%M:%S}（北京时间）",
        "zone 东八区": lambda t: f"东八区{t.astimezone(BEIJING):%m月%d日%H:%M}",
        "full width": lambda t: f"{t:%H:%M}".translate({ord(a): chr(ord(a) + 0xFEE0) for a in "0123456789:"}),
        "约14:10": lambda t: f"约{_about(t):%H:%M}",
        "14:10左右": lambda t: f"{_about(t):%H:%M}左右",
    },
}
