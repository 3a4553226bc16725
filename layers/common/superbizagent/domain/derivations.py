"""Numbers that stand in no evidence and follow from what a sentence states beside them, all of it shown."""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import combinations

from superbizagent.domain.evidence_text import EvidenceText
from superbizagent.domain.identifiers import identifier_pattern, is_identifier
from superbizagent.domain.pattern import Pattern
from superbizagent.domain.quantities import DAYS, Dimension, Number
from superbizagent.domain.rounding import Rounding
from superbizagent.domain.values import Moment, Values, moments_in, read_prose

_LONGEST_LIST = 20
_DAY = 86_400
_SHARE_DIGITS = 2
# The words that tell of arithmetic: without them a number that is by chance another's sum proves nothing.
_ADDED = Pattern(
    r"\b(?:total(?:l?ing|s)?|altogether|combined|together|sum|add(?:s|ed|ing)?\s+up|both)\b|=|合计|共计|总计|总共|一共|相加|之和",
    re.IGNORECASE,
)
_APART = Pattern(
    r"\bby\b|\b(?:increase|decrease|rise|drop|difference|gap|jump|growth|decline|gain|loss|remaining|rest|others?)\b"
    r"|\b(?:more|fewer|less|higher|lower|larger|smaller|bigger|longer|shorter|faster|slower)\s+than\b|增加了|减少了|下降了|上升了|多了|少了|增长了|降低了|相差|差值|净增|其余|剩余",
    re.IGNORECASE,
)
_MEASURE = r"(?:(?:milli|micro)?sec|min|hour|day|week|ms\b|s\b|h\b|[kmg]i?b\b|byte|percent|毫?秒|分|个?小时|天|周)"
_LIST = Pattern(
    rf"(?<![A-Za-z0-9.,:-])(?P<count>[0-9]{{1,2}})\s?(?!{_MEASURE})(?P<noun>(?:[A-Za-z]+\s){{0,3}}?[A-Za-z]+|个?[\u4e00-\u9fff]{{1,6}})\s?"
    r"(?:[:(]\s?)(?P<items>[^():;。；\u4e00-\u9fff]*(?:[、,]|\band\b|\bor\b|和|及|与)[^():;。；\u4e00-\u9fff]*"
    r"|(?:[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?Z?[,、\s]*(?:and|和|及)?\s?){2,})(?=[).;。；，]|$)",
)
_JOINT = Pattern(r"\s*(?:,\s*and\b|、|,|\band\b|和|及|与)\s*")
_TIME_ALONE = Pattern(r"[0-9:.TZ-]+(?:\s?UTC)?")
_OPEN = Pattern(
    r"e\.g|such\s+as|including|among|for\s+example|例如|比如|包括|如|等|其中|\.\.\.|…|\betc|\bor\b", re.IGNORECASE
)


def follows(value: Values, values: Values, prose: str, texts: Sequence[EvidenceText]) -> bool:
    """Whether a number counts what the sentence lists or complete evidence has, or is reckoned from what is shown."""
    if len(value.numbers) != 1:
        return False
    (number,) = value.numbers
    if number.unit == DAYS and number.value > 1 and number.value == sum(other.unit is None for other in values.numbers):
        return True
    if number.unit is None and (_counts_list(number, values) or _counts_records(number, values, texts)):
        return True
    if number.unit is not None and number.unit.dimension is Dimension.TIME and _spans(number, values, texts):
        return True
    shown = [other for other in values.numbers if other != number and _shown(other, texts)]
    if number.unit is not None and number.unit.dimension is Dimension.RATIO:
        return _is_share(number, shown)
    return _is_sum_or_difference(number, shown, prose)


def _counts_list(number: Number, values: Values) -> bool:
    listed = {len(set(values.identifiers)), len(set(values.quotations))}
    for dimension in Dimension:
        listed.add(sum(other.unit is not None and other.unit.dimension is dimension for other in values.numbers))
    return 1 < number.value <= _LONGEST_LIST and number.value % 1 == 0 and int(number.value) in listed


def _counts_records(number: Number, values: Values, texts: Sequence[EvidenceText]) -> bool:
    """Whether so many of the records have one of the names, in evidence that shows them all."""
    if number.rounding is not Rounding.EXACT or number.value <= 1:
        return False
    return any(
        number.value in (_records_with(identifier_pattern(name), text), _records_with(_as_written(name), text))
        for text in texts
        for name in values.identifiers
    )


def _records_with(pattern: re.Pattern[str], text: EvidenceText) -> int:
    return sum(bool(pattern.search(record)) for record in text.all_records)


def _as_written(name: str) -> re.Pattern[str]:
    """A state may be the name of a column in another case."""
    return re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])")


def _spans(number: Number, values: Values, texts: Sequence[EvidenceText]) -> bool:
    """Whether it is the time between two moments that the sentence names and the evidence shows."""
    if number.unit is None:
        return False
    clocks = [moment for moment in values.moments if moment.minute is not None and _shows_moment(moment, texts)]
    factor = number.unit.factors[0]
    return any(_is_span(number, factor, one, two) for one, two in combinations(clocks, 2))


def _is_span(number: Number, factor: Decimal, one: Moment, two: Moment) -> bool:
    if one.offset is not None and two.offset is not None and one.offset != two.offset:
        return False
    seconds = Decimal(abs(two.seconds - one.seconds))
    if one.day is not None and two.day is not None:
        seconds = abs(Decimal((two.day - one.day).days * _DAY + two.seconds - one.seconds))
    apart = seconds / factor
    coarse = (one.second is None or two.second is None) and factor < 60
    # Said in minutes, six minutes are what lies between 13:52:01 and 13:57:58.
    near = abs(apart - number.value) * 2 <= min(number.step, Decimal(1)) and abs(apart - number.value) <= apart / 10
    if number.rounding is Rounding.NEAR and abs(apart - number.value) * factor <= 1:
        # The parts of a second that the moments were said without.
        return True
    return number.is_near(apart) or (near and factor >= 60 and not coarse)


def _is_share(number: Number, shown: Iterable[Number]) -> bool:
    counts = [other for other in shown if other.unit is None]
    return any(
        number.is_near(part.value * 100 / whole.value, digits=_SHARE_DIGITS)
        for part in counts
        for whole in counts
        if 0 < part.value < whole.value
    )


def _is_sum_or_difference(number: Number, shown: Sequence[Number], prose: str) -> bool:
    alike = [other.value for other in shown if other.unit in (number.unit, None)]
    if _ADDED.search(prose) and len(alike) > 1 and (number.value == sum(alike) or number.value in _pairs(alike, 1)):
        return True
    return _APART.search(prose) is not None and any(map(number.is_near, _pairs(alike, -1)))


def _pairs(values: Sequence[Decimal], sign: int) -> set[Decimal]:
    return {abs(one + sign * two) for one, two in combinations(values, 2)}


def _shown(number: Number, texts: Sequence[EvidenceText]) -> bool:
    return any(text.shows(Values(numbers=(number,))) for text in texts)


def _shows_moment(moment: Moment, texts: Sequence[EvidenceText]) -> bool:
    return any(text.shows(Values(moments=(moment,))) for text in texts)


def miscounted(prose: str) -> bool:
    """Whether a sentence gives a number of things and then lists more or fewer: four times (13:52, 13:57 and 14:02)."""
    return any(not _fits(match) for match in _LIST.finditer(read_prose(prose)))


def _fits(match: re.Match[str]) -> bool:
    if _OPEN.search(match.group()):
        return True
    items = [item.strip("`'\"“”. ") for item in _JOINT.split(match["items"].strip()) if item.strip()]
    named = [item for item in items if _is_item(item)]
    return len(items) < 2 or len(named) < len(items) or len(items) == int(match["count"])


def _is_item(item: str) -> bool:
    """One name or one time, and nothing else."""
    if " " not in item and is_identifier(item):
        return True
    return _TIME_ALONE.fullmatch(item) is not None and len(moments_in(item)) == 1
