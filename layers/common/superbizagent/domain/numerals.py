"""Numbers written in words, English and Chinese, rewritten in digits so that there is one reading of a number."""

import re
from collections.abc import Callable
from decimal import Decimal

from superbizagent.domain.pattern import Pattern

_ONES = [
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
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_VALUES = {
    **{word: value for value, word in enumerate(_ONES, start=1)},
    **{word: value for value, word in zip(range(20, 100, 10), _TENS, strict=True)},
}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_ORDINALS = ["second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_WORD = "|".join((*_VALUES, *_SCALES))
_ENGLISH = Pattern(
    rf"(?<![A-Za-z0-9_-])(?P<only>(?:only|exactly|just)\s)?(?P<words>(?:an?\s(?=hundred|thousand|million))?"
    rf"(?:{_WORD})(?:(?:\s|-|\sand\s)(?:{_WORD}))*)"
    r"(?![A-Za-z0-9_])(?!-(?!second|minute|hour|day|millisecond))",
    re.IGNORECASE,
)
_ORDINAL = Pattern(
    rf"\b({'|'.join(_ORDINALS)})(?=\s(?:attempt|retry|time|try|replica|node|shard|row|line|request|call)\b)",
    re.IGNORECASE,
)
_ENGLISH_PHRASES = tuple(
    (Pattern(pattern, re.IGNORECASE), digits)
    for pattern, digits in (
        (r"\bhalf\san\shour\b|\ba\shalf[\s-]hour\b", "0.5 hours"),
        (r"\bhalf\sa\s(?=second|minute|day)", "0.5 "),
        (r"\ba\squarter\sof\san\shour\b", "0.25 hours"),
        (r"\b(?:an|one)\shour\sand\sa\shalf\b|\bone\sand\sa\shalf\shours\b", "1.5 hours"),
        (r"\b([0-9]+)\sand\sa\shalf\b", r"\1.5"),
        (r"\bhalf\spast\s([0-9]{1,2})\b(?!:)", r"\1:30"),
        (r"\b(?:a\s)?quarter\spast\s([0-9]{1,2})\b(?!:)", r"\1:15"),
        (r"(?<![A-Za-z0-9])([01]?[0-9]|2[0-3])h([0-5][0-9])(?![A-Za-z0-9])", r"\1:\2"),
        (r"\b(?:a\s)?dozen\b", "12"),
        (r"\b(?:minus|negative)\s(?=[0-9])", "-"),
        (r"\b([0-9]{1,2})\so['’]clock\b", r"\1:00"),
        (r"(?<![A-Za-z0-9])(?:at|around|about|since|until|till|before|after|by|from|to)\snoon\b", " at 12:00"),
        (r"(?<![A-Za-z0-9])(?:at|around|about|since|until|till|before|after|by|from|to)\smidnight\b", " at 00:00"),
        (r"(?<![0-9:.])([0-9]{1,2})\s?(?:[-–—~]|to)\s?([0-9]{1,2})\s?([ap]\.?m\b)", r"\1 \3 - \2 \3"),
        (r"\bbetween\s([0-9]{1,2})\sand\s([0-9]{1,2})\s?([ap]\.?m\b)", r"between \1 \3 and \2 \3"),
        (
            r"(?<![0-9:.])([0-9]{1,2}:[0-9]{2})\s?(?:[-–—~]|to|and)\s?([0-9]{1,2}:[0-9]{2})\s?([ap]\.?m\b)",
            r"\1 \3 - \2 \3",
        ),
        (r"(?<=[0-9])\sin\sthe\smorning\b", " am"),
        (r"(?<=[0-9])\s(?:in\sthe\s(?:afternoon|evening)|at\snight)\b", " pm"),
    )
)

_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_POWERS = {"十": 10, "百": 100, "千": 1_000}
_MYRIADS = {"万": 10_000, "萬": 10_000, "亿": 100_000_000, "億": 100_000_000}
_CHARACTERS = "".join((*_DIGITS, *_POWERS, *_MYRIADS))
_CHINESE = Pattern(rf"(?P<before>.?)(?P<run>[{_CHARACTERS}]+)(?P<after>.?.?)", re.DOTALL)
_MEASURES = frozenset(
    "次条條个個秒分小时時毫微行笔筆台臺天倍项項份种種单單位人处處起例点點月日号號周年轮輪批组組名家套只张張页頁级級版段块塊字层層回遍刻"
)
_PHRASES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"百分之\s?([0-9]+(?:\.[0-9]+)?)", r"\1%"),
    (r"(?<![0-9.])([1-9])成(?![为為立功本交员員果就长長分])半", r"\g<1>5%"),
    (
        r"(?<![0-9.])([1-9])成([1-9一二三四五六七八九])(?![0-9.])",
        lambda match: f"{match[1]}{_DIGITS.get(match[2], match[2])}%",
    ),
    (r"(?<![0-9.点])([13])\s?刻钟", lambda match: f"{15 * int(match[1])}分钟"),
    (r"(?<![0-9.])([1-9])成(?![为為立功本交员員果就长長分])", r"\g<1>0%"),
    (r"(?<![0-9.])([0-9]+)\s?个?(小时|分钟|秒|天)半", r"\1.5\2"),
    (r"(?<![0-9.])([0-9]+)\s?个半(?=小时|月)", r"\1.5"),
    (r"半个?(?=小时|钟头|分钟)", "0.5"),
    (r"点\s?1刻", "点15分"),
    (r"点\s?3刻", "点45分"),
    (r"正午", "12:00"),
    (r"(?<=[到至于於从自])(?:午夜|半夜)", "00:00"),
    (r"(?<![0-9])负\s?(?=[0-9])|零下\s?(?=[0-9])", "-"),
    (r"(?<=[0-9])\s?点钟", "点整"),
)
_CHINESE_PHRASES = tuple((Pattern(pattern), digits) for pattern, digits in _PHRASES)
_CHINESE_DECIMAL = Pattern(
    rf"(?P<share>百分之)?(?P<whole>[{_CHARACTERS}]+)点(?P<decimals>[〇零一二三四五六七八九]+)"
    r"(?(share)|(?=个?(?:毫秒|微秒|秒|分钟|小时|天|倍|百分点|[万亿兆]|[KMG]i?B|字节|元)))"
)
_COMPACT = Pattern(
    r"(?<![A-Za-z0-9_.-])(?=[0-9])(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+(?:\.[0-9]+)?)s)?(?:([0-9]+)ms)?(?![A-Za-z0-9_])"
)


def in_digits(text: str) -> str:
    """`text` with its number words in digits; words that only look like numbers stay."""
    text = _ENGLISH.sub(_english, text)
    text = _ORDINAL.sub(lambda match: str(_ORDINALS.index(match[1].lower()) + 2), text)
    for pattern, digits in _ENGLISH_PHRASES:
        text = pattern.sub(digits, text)
    text = _CHINESE_DECIMAL.sub(_decimal, text)
    text = re.sub(rf"百分之(?=[{_CHARACTERS}])", "百分之 ", text)
    text = _chinese(text)
    for pattern, reading in _CHINESE_PHRASES:
        text = pattern.sub(reading, text)
    return _COMPACT.sub(_spaced, text)


def _decimal(match: re.Match[str]) -> str:
    whole = _chinese_value(match["whole"])
    digits = "".join(str(_DIGITS[character]) for character in match["decimals"])
    return match.group() if whole is None else f"{match['share'] or ''}{whole}.{digits}"


def _spaced(match: re.Match[str]) -> str:
    """1m30s with its parts apart."""
    parts = [
        f"{digits}{unit}" for digits, unit in zip(match.groups(), ("d", "h", "min", "s", "ms"), strict=True) if digits
    ]
    return " ".join(parts) if len(parts) > 1 else match.group()


def _english(match: re.Match[str]) -> str:
    words = re.split(r"[\s-]+", match["words"].lower())
    if words == ["one"]:
        # "one of them", "no one": an article more often than a number.
        return f"{match['only']}1" if match["only"] else match.group()
    value = _english_value([word for word in words if word not in ("and", "a", "an")])
    if value is None or words in (["hundred"], ["thousand"], ["million"], ["billion"]):
        return match.group()
    # Not one number with what follows: fifteen 502 responses.
    apart = " " if re.match(r"\s[0-9]", match.string[match.end() :]) else ""
    return f"{match['only'] or ''}{value}{apart}"


def _english_value(words: list[str]) -> int | None:
    total, current, last = 0, 0, 1_000
    for word in words:
        if word == "hundred":
            current, last = max(current, 1) * 100, 100
        elif word in _SCALES:
            total, current, last = total + max(current, 1) * _SCALES[word], 0, 1_000
        elif (value := _VALUES[word]) >= last:
            # "two three" is no number.
            return None
        else:
            current, last = current + value, 10 if value >= 20 else 1
    return total + current


def _chinese(text: str) -> str:
    """Rewrites run by run; a run's neighbours tell numbers from words such as 万一, 十分 and 一些."""
    found: list[str] = []
    end = 0
    for match in re.finditer(rf"[{_CHARACTERS}]+", text):
        value = _chinese_value(match.group())
        before, after = text[: match.start()], text[match.end() : match.end() + 3]
        if value is None or not _counts(match.group(), before[-4:], after):
            continue
        found += [text[end : match.start()], str(value)]
        end = match.end()
    return "".join((*found, text[end:]))


def _counts(run: str, before: str, after: str) -> bool:
    """Whether a run of numeral characters is meant as a number here."""
    if before.endswith(("第", "百分之 ")):
        return True
    if before.endswith(("周", "星期", "几")) or after[:1] == "几" or (before.endswith("数") and run[0] in _POWERS):
        return False
    if run == "十" and after[:1] == "分" and after[1:2] != "钟":
        return False
    if run in ("一", "零"):
        return _counts_one(run, before, after)
    if (
        len(run) == 1
        and before.endswith(("为", "是", "共", "计", "达", "至", "到", "仅", "了", "有"))
        and not after[:1].isalnum()
    ):
        return True
    return len(run) > 1 or after[:1] in _MEASURES or after[:1] in ("成", "%")


def _counts_one(run: str, before: str, after: str) -> bool:
    """一 and 零 are articles and prefixes more often than numbers."""
    if before.endswith("同"):
        return False
    if after[:1] == "月":
        return bool(re.match(rf"月[0-9{_CHARACTERS}]", after))
    if after[:1] in ("点", "點", "时", "時"):
        return (
            run == "零"
            or bool(re.match(rf".(?:整|半|钟|[0-9{_CHARACTERS}])", after))
            or before.endswith(("晨", "午", "上", "夜", "间"))
        )
    if re.match(r"个半|(?:小时|分钟|天|秒)半", after):
        return True
    if after[:1] == "分" and before[-1:] in ("点", "點", "时", "時"):
        return True
    return after[:1] == "刻" or (before.endswith(("仅", "只", "只有", "共")) and after[:1] in _MEASURES)


def _chinese_value(run: str) -> Decimal | None:
    if all(character in _DIGITS for character in run):
        if len(run) == 1 or (len(run) == 2 and run[0] in "零〇"):
            return Decimal(_DIGITS[run[-1]])
        # 二〇二六; 两三 and 七八 are guesses.
        return Decimal("".join(str(_DIGITS[character]) for character in run)) if len(run) > 2 else None
    if run[0] in _MYRIADS or run[0] in "百千":
        return None
    total = section = 0
    digit: int | None = None
    unit = 1
    for character in run:
        if character in _DIGITS:
            if digit and character not in "零〇":
                return None
            digit = _DIGITS[character]
        elif character in _POWERS:
            unit = _POWERS[character]
            section += (1 if digit is None or (digit == 0 and unit == 10) else digit) * unit
            digit = None
        else:
            total = (
                (total + section + (digit or 0)) * _MYRIADS[character]
                if character in "亿億"
                else (total + (section + (digit or 0)) * _MYRIADS[character])
            )
            section, digit, unit = 0, None, _MYRIADS[character]
    # 三百二 is 320.
    tail = (digit or 0) * (unit // 10 if unit >= 100 and run[-2] not in "零〇" else 1)
    return Decimal(total + section + tail)
