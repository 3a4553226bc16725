"""How exactly a value is stated: to the digit, or rounded as its wording says."""

import re
from enum import StrEnum

from superbizagent.domain.pattern import Pattern


class Rounding(StrEnum):
    """What stands around a value: nothing, "about", "nearly" (the truth is below it) or "over" (above it)."""

    EXACT = "EXACT"
    NEAR = "NEAR"
    BELOW = "BELOW"
    ABOVE = "ABOVE"


_CURRENCY = r"\s*(?:the\s)?[$€£¥]?"
_BEFORE = {
    Rounding.BELOW: r"nearly|almost"
    r"|just\s(?:under|below|before|short\sof)|shortly\sbefore|(?:a\s(?:little|bit)|slightly)\s"
    r"(?:under|below|less\sthan|fewer\sthan|before)|less\sthan|fewer\sthan|under|below|close\sto|approaching"
    r"|将近|將近|接近|临近|臨近|近|快到|不到|不足|少于|少於|低于|低於",
    Rounding.ABOVE: r"(?:a\s(?:little|bit)|slightly|just|well)?\s?(?:over|above|more\sthan|past)|at\sleast|upwards\sof"
    r"|in\sexcess\sof|exceed(?:s|ed|ing)?|(?:just|shortly|soon|right)\safter|超过|超過|超出|逾|多于|多於|高于|高於|大于|至少|不少于|刚过|剛過",
    Rounding.NEAR: r"about|around|approximately|approx\.?|roughly|circa|ca\.|some"
    r"|in\sthe\sregion\sof|on\sthe\sorder\sof"
    r"|(?<![0-9点點时時分秒日])[~≈]|≈|大约|大約|大概|约莫|约为|约|約|差不多|估计|近似",
}
_AFTER = {
    # A unit or a noun may stand between: 1200条左右, 1,200 lines or so.
    Rounding.NEAR: r"[\u4e00-\u9fff]{0,4}?(?:左右|上下)|前后|前後|许(?![多可])"
    r"|(?:\s?[a-z]+)?\sor\sso\b|-?ish\b|(?:\s?[a-z]+)?,?\sgive\sor\stake\b"
    r"|\sor\sthereabouts\b",
    Rounding.ABOVE: r"多(?![于於少])|余(?!额|量)|餘|以上|\+(?![0-9])|or\smore\b|or\sabove\b",
}
_WORDS_BEFORE = {
    rounding: Pattern(rf"(?:(?<![A-Za-z])|(?<=[^A-Za-z]))(?:{words}){_CURRENCY}\s*$", re.IGNORECASE)
    for rounding, words in _BEFORE.items()
}
_WORDS_AFTER = {rounding: Pattern(rf"\s?(?:{words})", re.IGNORECASE) for rounding, words in _AFTER.items()}
_REACH = 40


def rounding_of(text: str, begin: int, end: int) -> Rounding:
    """How the value at `text[begin:end]` is said to be rounded."""
    before = text[max(begin - _REACH, 0) : begin]
    for rounding, words in _WORDS_BEFORE.items():
        if words.search(before):
            return rounding
    after = text[end : end + _REACH]
    return next((rounding for rounding, words in _WORDS_AFTER.items() if words.match(after)), Rounding.EXACT)
