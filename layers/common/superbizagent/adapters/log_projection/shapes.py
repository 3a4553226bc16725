"""Shapes of messages: wordings that differ only in numbers and identifiers, grouped to templates by Drain.

Drain alone would hide a rare wording in a frequent template that resembles it ("child found", "child
lost"). So each template keeps its wordings, and one that is rare among them is told apart again.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from drain3.drain import Drain, LogCluster

from superbizagent.domain.evidence import LogLevel
from superbizagent.domain.pattern import Pattern

CUT_MARK: Final = "characters cut]…"
MAX_MESSAGE: Final = 1_000
MAX_WORDINGS: Final = 2_500
MAX_TEMPLATES: Final = 800
_MAX_COMPARISONS: Final = 8_000_000
_MASKED: Final = 300
_MASKED_END: Final = 70
_MAX_TEMPLATE: Final = 200
_MAX_FIELDS: Final = 60
_MAX_VALUES: Final = 60
_MAX_SPLIT: Final = 5
_MAX_ODD: Final = 40
_DEPARTED: Final = "cluster_template_changed"
_RARE_SHARE: Final = 20
_GAP: Final = 4

# ASCII, so that digits end at the next Chinese character: 订单号8842，金额532元.
_VARIABLE: Final = Pattern(
    r"(?a)\b(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
    r"|[A-Za-z_]*(?:(?<=_)-\d+\b|\d(?:[A-Za-z_]*\d)+\w*)|(?=[0-9a-f]*\d)[0-9a-f]{4,}\b|[A-Z]{2,8}\d\b|\d(?=[A-Za-z]{0,3}\b))"
)
# Hexadecimal letters behind an id's hyphen are one more part of it.
_JOINED: Final = Pattern(r"(?a)<\*>(?:[.:/_,-]{1,2}<\*>|-[a-f]{4,12}\b)+")
_PRELUDE: Final = Pattern(
    r"[^A-Za-z]{0,40}(?:(?i:level|severity|lvl)=)?[\[(<]?(?:\w{1,20}:)?(?:(?i:trace|debug|info|notice|warn|warning|error|err|severe"
    r"|fatal|critical|crit|emerg|panic|alert))\b[\])>]?[\s:|-]*"
)
# A response's status is a word for how it went, and no number: behind a request, before one, or after its key.
# Apart, each with what it can't be without: one pattern for all would make every line three times slower.
_STATUSES: Final = tuple(
    (marks, Pattern(rf"(?P<before>{before})(?P<status>[1-5][0-9]{{2}})(?![\w.]){after}"))
    for marks, before, after in (
        (("HTTP/",), r"HTTP/[0-9.]{1,3}\"\s", ""),
        (("://",), r"\s", r"(?=\s(?:[1-5][0-9]{2}|-)\s[0-9]+\s[0-9]+\s\"[A-Z]+\s)"),
        (("tatus", "TATUS"), r"(?i:status(?:_?code)?)(?:=|:|\":|\s)[\s\"']?", ""),
        (("code", "Code", "CODE"), r"\b(?i:code)(?:=|:|\":|\s)[\s\"']?", ""),
    )
)
_LETTERS: Final = str.maketrans("0123456789", "abcdefghij")
_DIGITS: Final = str.maketrans("abcdefghij", "0123456789")
_SPELLED: Final = Pattern("\ue000([a-j]{3})")
_STATUS_NAME: Final = Pattern(r"status|code", re.IGNORECASE)
# Records without a level that somebody would still want to see an example of.
_ALARMING: Final = Pattern(
    r"(?i)\b(?:error|fail(?:ed|ure|ing)?|exception|timed?[ -]?out|timeout|refused|denied|panic|killed"
    r"|abort\w*|crash\w*|fatal|unreachable|out of memory|segfault|traceback)\b"
    r"|错误|失败|异常|超时|拒绝|拦截|不足|耗尽|中断|崩溃|宕机|无法|丢失|死锁|熔断|溢出|泄漏|泄露|断开|不可用|告警|警告|过期"
)
ALARM_STEMS: Final = (
    "abort",
    "crash",
    "denied",
    "error",
    "exception",
    "fail",
    "fatal",
    "killed",
    "out of memory",
    "panic",
    "refused",
    "segfault",
    "time out",
    "time-out",
    "timed out",
    "timed-out",
    "timedout",
    "timeout",
    "traceback",
    "unreachable",
    "错误",
    "失败",
    "异常",
    "超时",
    "拒绝",
    "拦截",
    "不足",
    "耗尽",
    "中断",
    "崩溃",
    "宕机",
    "无法",
    "丢失",
    "死锁",
    "熔断",
    "溢出",
    "泄漏",
    "泄露",
    "断开",
    "不可用",
    "告警",
    "警告",
    "过期",
)
"""Of which every alarming text has one, in lower case: for sources that can search for a text and no pattern."""

_SEVERITY: Final = {"FATAL": 3, "ERROR": 2, "WARN": 1}


def masked(message: str) -> str:
    """The message with `<*>` for each number and identifier, bounded."""
    head = message[:_MASKED]
    if len(message) > _MASKED:
        # Not half a word: it may be half a secret, which nobody would recognise.
        head = head[: head.rfind(" ") if " " in head else _MASKED]
    prelude = _PRELUDE.match(head)
    if prelude and prelude.end() < len(head):
        head = head[prelude.end() :]
    # Where a source was cut, its end is not the message's.
    if len(message) <= _MASKED or message.endswith(CUT_MARK):
        return _bounded(_masked_words(head))
    # How a long line ends may be all that is unusual about it.
    _, _, end = message[-_MASKED_END:].partition(" ")
    return f"{_bounded(_masked_words(head), _MAX_TEMPLATE - _MASKED_END)} {_bounded(_masked_words(end))}".rstrip()


def _masked_words(text: str) -> str:
    spelled = text
    for marks, pattern in _STATUSES:
        if any(mark in text for mark in marks):
            spelled = pattern.sub(_in_letters, spelled)
    template = " ".join([_masked_word(word) for word in spelled.split()])
    return _SPELLED.sub(lambda match: match[1].translate(_DIGITS), template) if spelled != text else template


def _in_letters(match: re.Match[str]) -> str:
    return f"{match['before']}\ue000{match['status'].translate(_LETTERS)}"


def _bounded(template: str, most: int = _MAX_TEMPLATE) -> str:
    if len(template) <= most:
        return template
    cut = template.rfind(" ", 0, most)
    return template[: cut if cut > 0 else most]


# Most words come again and again; masking them one by one is several times faster than the line at once.
@lru_cache(maxsize=20_000)
def _masked_word(word: str) -> str:
    return _JOINED.sub("<*>", _VARIABLE.sub("<*>", word))


def alarming(text: str) -> bool:
    """Whether the words tell of trouble, whatever the level says."""
    return _ALARMING.search(text) is not None or _failed(text)


def _failed(text: str) -> bool:
    return any(
        match["status"].startswith("5")
        for marks, pattern in _STATUSES
        if any(mark in text for mark in marks)
        for match in pattern.finditer(text)
    )


@dataclass(slots=True)
class Shape:
    """Equal messages but for what varies. `first` and `last` are microseconds; `rank` is where the example stands.

    `kin` counts the lines of its template that are no more frequent than this wording: a name that
    differs in every line has many kin, a wording that stands out has none but itself.
    """

    level: LogLevel | None
    template: str
    count: int
    first: int | None
    last: int | None
    severity: int
    rank: int
    example: str = ""
    message: str = ""
    alarming: bool = False
    kin: int = 0

    def seen(self, micros: int | None, count: int = 1) -> None:
        self.count += count
        if micros is not None:
            self.first = micros if self.first is None else min(self.first, micros)
            self.last = micros if self.last is None else max(self.last, micros)

    def absorb(self, other: "Shape") -> None:
        """Counts the other's lines as this one's; the earlier example stays."""
        self.seen(other.first, other.count)
        self.seen(other.last, 0)
        self.severity = max(self.severity, other.severity)
        self.alarming = self.alarming or other.alarming
        if other.rank < self.rank:
            self.rank, self.example, self.message = other.rank, other.example, other.message


@dataclass(slots=True)
class _Template:
    """Wordings that Drain takes for one; `various` holds them together once they are too many to tell apart."""

    cluster: LogCluster
    wordings: dict[str, Shape]
    various: Shape | None = None
    odd: dict[str, Shape] = field(default_factory=dict)

    def fold(self) -> list[str]:
        """Gives up telling the wordings apart, but for those that stand out; returns those that were known."""
        known = list(self.wordings)
        shapes = sorted(self.wordings.values(), key=lambda shape: shape.count)
        self.wordings.clear()
        _count_kin(shapes)
        self.odd |= {shape.template: shape for shape in _apart(shapes)}
        for shape in shapes:
            if shape.template in self.odd:
                continue
            if self.various is None:
                self.various = shape
            else:
                self.various.absorb(shape)
        return known

    def shapes(self) -> Iterator[Shape]:
        """The template as one shape, and apart from it the wordings that are rare in it."""
        if self.various is not None:
            self.various.template = _bounded(self.cluster.get_template())
            self.various.kin = self.various.count
            yield self.various
            alarms = sum(shape.count for shape in self.odd.values() if shape.alarming)
            for shape in self.odd.values():
                shape.kin = alarms if shape.alarming else shape.count
                yield shape
            return
        wordings = sorted(self.wordings.values(), key=lambda shape: shape.count)
        _count_kin(wordings)
        apart = _apart(wordings)
        yield from apart
        ids = {id(shape) for shape in apart}
        common = [shape for shape in wordings if id(shape) not in ids]
        merged = common[-1]
        template = _merged_template([shape.template for shape in common])
        for shape in common[:-1]:
            merged.absorb(shape)
        merged.template, merged.kin = template, merged.count
        yield merged


def _count_kin(wordings: Sequence[Shape]) -> None:
    """`wordings` in order of their counts; equal counts have equal kin."""
    total, at = 0, 0
    while at < len(wordings):
        end = at
        while end < len(wordings) and wordings[end].count == wordings[at].count:
            total += wordings[end].count
            end += 1
        for shape in wordings[at:end]:
            shape.kin = total
        at = end


def _apart(wordings: Sequence[Shape]) -> list[Shape]:
    """Of one template's wordings in order of their counts, the few that stand out; never the most frequent.

    Either far rarer than the next one, or of trouble where nearly all are not, or other in a word in which nearly
    all agree.
    """
    total = sum(shape.count for shape in wordings)
    rarer = 0
    for end in range(1, min(len(wordings), _MAX_SPLIT + 1)):
        rarest, following = wordings[end - 1], wordings[end]
        if rarest.kin * _RARE_SHARE <= total and rarest.count * _GAP <= following.count:
            rarer = end
    apart = {id(shape): shape for shape in wordings[:rarer]}
    alarms = [shape for shape in wordings[:-1] if shape.alarming]
    if sum(shape.count for shape in alarms) * _RARE_SHARE <= total:
        for shape in alarms[:_MAX_SPLIT]:
            shape.kin = shape.count
            apart.setdefault(id(shape), shape)
    for shape in _otherwise(wordings[:-1], wordings, total):
        if len(apart) >= 2 * _MAX_SPLIT:
            break
        apart.setdefault(id(shape), shape)
    return list(apart.values())


def _otherwise(candidates: Sequence[Shape], wordings: Sequence[Shape], total: int) -> Iterator[Shape]:
    """Those with another word at a place where all but one in twenty lines have the same."""
    masses: list[Counter[str]] = []
    split = [shape.template.split() for shape in wordings]
    for words, shape in zip(split, wordings, strict=True):
        masses += [Counter() for _ in range(len(words) - len(masses))]
        for place, word in enumerate(words):
            masses[place][word] += shape.count
    agreed = {
        place: word
        for place, mass in enumerate(masses)
        for word, count in mass.most_common(1)
        if (total - count) * _RARE_SHARE <= total
    }
    for shape, words in zip(candidates, split, strict=False):
        odd = [masses[place][word] for place, word in enumerate(words) if agreed.get(place, word) != word]
        if odd:
            shape.kin = min(shape.kin, *odd)
            yield shape


def _merged_template(templates: Sequence[str]) -> str:
    words = zip(*(template.split() for template in templates), strict=False)
    return " ".join(alike[0] if len(set(alike)) == 1 else "<*>" for alike in words) or templates[0]


class _CountingDrain(Drain):
    """Drain compares a line with each cluster of a leaf; counting lets a log of endless wordings be given up on."""

    comparisons = 0

    def fast_match(
        self, cluster_ids: Collection[int], tokens: Sequence[str], sim_th: float, include_params: bool
    ) -> LogCluster | None:
        self.comparisons += len(cluster_ids)
        return super().fast_match(cluster_ids, tokens, sim_th, include_params)


class Miner:
    """The shapes of one level, in bounded memory and time."""

    def __init__(self, level: LogLevel | None) -> None:
        self.ungrouped = 0
        self._level = level
        self._drain = _CountingDrain(sim_th=0.4, depth=4, max_children=100)
        self._templates: dict[int, _Template] = {}
        self._known: dict[str, Shape] = {}

    def known(self, wording: str) -> Shape | None:
        return self._known.get(wording)

    def add(self, wording: str, micros: int | None, rank: int, text: str) -> Shape | None:
        """A message whose wording is not known yet; the caller fills in example and message of what is returned."""
        words = alarming(text[:MAX_MESSAGE])
        severity = _SEVERITY.get(self._level or "", int(words and self._level is None))
        template, departs = self._template_of(wording, severe=words or severity > 0)
        if template is None:
            self.ungrouped += 1
            return None
        shape = Shape(self._level, wording, 1, micros, micros, severity, rank, alarming=words)
        if template.various is not None:
            return _of_various(template, template.various, shape, departs=departs)
        template.wordings[wording] = self._known[wording] = shape
        if len(self._known) > MAX_WORDINGS:
            most = max(self._templates.values(), key=lambda template: len(template.wordings))
            for forgotten in most.fold():
                del self._known[forgotten]
        return shape

    def _template_of(self, wording: str, *, severe: bool) -> tuple[_Template | None, bool]:
        """Also whether the wording differs from all that came before it in a word in which those agree."""
        drain = self._drain
        # What alarms keeps room that chatter with a new wording in each line can't take.
        share = 2 if severe else 1
        full = len(self._templates) >= MAX_TEMPLATES * share // 2
        if drain.comparisons > _MAX_COMPARISONS * share // 2:
            return None, False
        if full:
            tokens = drain.get_content_as_tokens(wording)
            cluster = drain.tree_search(drain.root_node, tokens, drain.sim_th, False)
            if cluster is None:
                return None, False
        cluster, change = drain.add_log_message(wording)
        return self._templates.setdefault(cluster.cluster_id, _Template(cluster, {})), change == _DEPARTED

    def shapes(self) -> Iterator[Shape]:
        """Once, after the last line."""
        for template in self._templates.values():
            yield from template.shapes()


def _of_various(template: _Template, various: Shape, shape: Shape, *, departs: bool) -> Shape | None:
    """Counts a line among wordings that are not told apart any more, unless it stands out; the shape if it is new."""
    known = template.odd.get(shape.template)
    if known is not None:
        known.seen(shape.first)
        return None
    if (departs or shape.alarming) and len(template.odd) < _MAX_ODD:
        template.odd[shape.template] = shape
        return shape
    various.seen(shape.first)
    return None


class ContinuationLines:
    """Lines that continue a record, such as those of a stack trace; a rare one marks its record as worth showing."""

    def __init__(self) -> None:
        self._known: dict[str, Shape] = {}

    def add(self, line: str, rank: int) -> Shape | None:
        """The shape when it is new, for the caller to fill in its example."""
        wording = masked(line)
        shape = self._known.get(wording)
        if shape is not None:
            shape.count += 1
            return None
        words = alarming(line)
        if len(self._known) >= MAX_WORDINGS * (2 if words else 1) // 2:
            return None
        shape = self._known[wording] = Shape(None, wording, 1, None, None, int(words), rank, alarming=words)
        return shape

    def shapes(self) -> Iterator[Shape]:
        yield from self._known.values()


def _texts(fields: Mapping[str, object], prefix: str = "", depth: int = 3) -> Iterator[tuple[str, str]]:
    """The short texts, the truth values and the statuses, also of objects inside, by their path."""
    for name, value in fields.items():
        if isinstance(value, str):
            if len(value) <= _MAX_TEMPLATE:
                yield prefix + name, value
        elif isinstance(value, bool):
            yield prefix + name, str(value)
        elif isinstance(value, int):
            if 100 <= value < 600 and _STATUS_NAME.search(name):
                yield prefix + name, f"status {value}"
        elif isinstance(value, dict) and depth > 1:
            yield from _texts(value, f"{prefix}{name}.", depth - 1)


class FieldValues:
    """The texts in the fields of JSON records: one that is rare in its field marks its record, whatever it says."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, Shape] | None] = {}
        self._records = 0

    def add(self, fields: Mapping[str, object], rank: int) -> Iterator[Shape]:
        """The shapes that are new, for the caller to fill in their example; `template` is the value."""
        self._records += 1
        for name, value in _texts(fields):
            if name not in self._values and len(self._values) < _MAX_FIELDS:
                self._values[name] = {}
            values = self._values.get(name)
            if values is None:
                continue
            wording = masked(value)
            shape = values.get(wording)
            if shape is not None:
                shape.count += 1
            elif len(values) >= _MAX_VALUES:
                # A field of names or ids: that one of them is rare says nothing.
                self._values[name] = None
            else:
                words = alarming(value)
                values[wording] = Shape(None, value, 1, None, None, int(words), rank, alarming=words)
                yield values[wording]

    def shapes(self) -> Iterator[Shape]:
        for values in self._values.values():
            if values and (len(values) > 1 or self._is_rare(values)):
                yield from values.values()

    def _is_rare(self, values: Mapping[str, Shape]) -> bool:
        """Whether hardly any record has the field at all."""
        return sum(shape.count for shape in values.values()) * _RARE_SHARE <= self._records
