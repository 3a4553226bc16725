"""Claims about one row of a table: what they say of it has to stand in that row, not in another."""

import re
from collections.abc import Iterator, Sequence

from superbizagent.domain.codes import ToolName
from superbizagent.domain.evidence import Observation
from superbizagent.domain.evidence_text import EvidenceText, evidence_text, text_of
from superbizagent.domain.pattern import Pattern
from superbizagent.domain.values import Values

# With these a claim may set a row beside others.
_COMPARES = Pattern(
    r"\b(?:than|compar\w+|versus|vs|while|whereas|but|both|others?|another|from|rose|fell|increas\w+|decreas\w+|drop\w*|jump\w*"
    r"|up|down|before|after|since|until|earlier|later|previous(?:ly)?|following|next|respectively|between|total)\b|[0-9]\s+of\b|\bof\s+the\s+[0-9]"
    r"|相比|比|而|从|從|升|降|增|减|減|前|后|後|其他|其余|共|均|都|分别|之间|其中",
    re.IGNORECASE,
)
_SEVERAL = 2
_SMALL = 9


def mixes_rows(prose: str, values: Values, cited: Sequence[Observation]) -> bool:
    """Whether a claim that names one row gives it the value of another one."""
    if _COMPARES.search(prose):
        return False
    for observation in cited:
        rows = _rows(observation)
        others = [evidence_text(other) for other in cited if other is not observation]
        if len(rows) >= _SEVERAL and _mixes(values, rows, others):
            return True
    return False


def _rows(observation: Observation) -> list[EvidenceText]:
    if observation.tool != ToolName.QUERY_MYSQL:
        return []
    return [text_of(line) for line in observation.projection.splitlines() if line.startswith("{")]


def _mixes(values: Values, rows: Sequence[EvidenceText], others: Sequence[EvidenceText]) -> bool:
    keys = [places[0] for key in _keys(values) if len(places := _places(key, rows)) == 1]
    if len(set(keys)) != 1:
        return False
    own = rows[keys[0]]
    return any(
        _places(value, rows) and not own.shows(value) and not any(other.shows(value) for other in others)
        for value in _facts(values)
    )


def _places(value: Values, rows: Sequence[EvidenceText]) -> list[int]:
    return [place for place, row in enumerate(rows) if row.shows(value)]


def _keys(values: Values) -> Iterator[Values]:
    """Names with digits in them, and days."""
    for name in values.identifiers:
        if re.search(r"[0-9]", name):
            yield Values(identifiers=(name,))
    for moment in values.moments:
        if moment.dated and moment.hour is None:
            yield Values(moments=(moment,))


def _facts(values: Values) -> Iterator[Values]:
    """What a row may say: amounts and measures, times, states and names. Small numbers may count the rows."""
    for number in values.numbers:
        if abs(number.value) > _SMALL or number.step < 1:
            yield Values(numbers=(number,))
    for moment in values.moments:
        if moment.minute is not None:
            yield Values(moments=(moment,))
    for name in values.identifiers:
        if re.fullmatch(r"[A-Z_]+|.*[0-9].*", name):
            yield Values(identifiers=(name,))
