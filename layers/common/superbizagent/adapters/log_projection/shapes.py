"""Shapes of messages: wordings that differ only in numbers and identifiers, grouped to templates by Drain.

Drain alone would hide a rare wording in a frequent template that resembles it ("child found", "child
lost"). So each template keeps its wordings, and one that is rare among them is told apart again.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from drain3.drain import Drain, LogCluster

from superbizagent.domain.evidence import LogLevel
from superbizagent.domain.pattern import Pattern

MAX_MESSAGE: Final = 1_000
MAX_WORDINGS: Final = 2_500
MAX_TEMPLATES: Final = 800
_MAX_COMPARISONS: Final = 8_000_000
_MAX_TEMPLATE: Final = 200
_MAX_FIELDS: Final = 60
_MAX_VALUES: Final = 60
_MAX_SPLIT: Final = 5
_RARE_SHARE: Final = 20
_GAP: Final = 4

_VARIABLE: Final = Pattern(
    r"\b(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
    r"|[A-Za-z_]*(?:(?<=_)-\d+\b|\d(?:[A-Za-z_]*\d)+\w*)|\d(?=[A-Za-z]{0,3}\b))"
)
_JOINED: Final = Pattern(r"<\*>(?:[.:/_,-]{1,2}<\*>)+")
_PRELUDE: Final = Pattern(
    r"[^A-Za-z]{0,40}(?:(?i:level|severity|lvl)=)?[\[(<]?(?:\w{1,20}:)?(?:(?i:trace|debug|info|notice|warn|warning|error|err|severe"
    r"|fatal|critical|crit|emerg|panic|alert))\b[\])>]?[\s:|-]*"
)
# Records without a level that somebody would still want to see an example of.
_ALARMING: Final = Pattern(
    r"(?i)\b(?:error|fail(?:ed|ure|ing)?|exception|timed?[ -]?out|timeout|refused|denied|panic|killed"
    r"|abort\w*|crash\w*|fatal|unreachable|out of memory|segfault|traceback)\b"
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
)
"""Of which every alarming text has one, in lower case: for sources that can search for a text and no pattern."""

_SEVERITY: Final = {"FATAL": 3, "ERROR": 2, "WARN": 1}


def masked(message: str) -> str:
    """The message with `<*>` for each number and identifier, bounded."""
    head = message[:300]
    if len(message) > 300:
        # Not half a word: it may be half a secret, which nobody would recognise.
        head = head[: head.rfind(" ") if " " in head else 300]
    prelude = _PRELUDE.match(head)
    if prelude and prelude.end() < len(head):
        head = head[prelude.end() :]
    return _bounded(" ".join([_masked_word(word) for word in head.split()]))


def _bounded(template: str) -> str:
    if len(template) <= _MAX_TEMPLATE:
        return template
    cut = template.rfind(" ", 0, _MAX_TEMPLATE)
    return template[: cut if cut > 0 else _MAX_TEMPLATE]


# Most words come again and again; masking them one by one is several times faster than the line at once.
@lru_cache(maxsize=20_000)
def _masked_word(word: str) -> str:
    return _JOINED.sub("<*>", _VARIABLE.sub("<*>", word))


def alarming(text: str) -> bool:
    """Whether the words tell of trouble, whatever the level says."""
    return _ALARMING.search(text) is not None


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

    def fold(self) -> list[str]:
        """Gives up telling the wordings apart; returns those that were known."""
        known = list(self.wordings)
        shapes = list(self.wordings.values())
        self.wordings.clear()
        for shape in shapes:
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

    Either far rarer than the next one, or other in a word in which nearly all agree.
    """
    total = sum(shape.count for shape in wordings)
    rarer = 0
    for end in range(1, min(len(wordings), _MAX_SPLIT + 1)):
        rarest, following = wordings[end - 1], wordings[end]
        if rarest.kin * _RARE_SHARE <= total and rarest.count * _GAP <= following.count:
            rarer = end
    apart = {id(shape): shape for shape in wordings[:rarer]}
    for shape in _otherwise(wordings[:-1], wordings, total):
        if len(apart) >= _MAX_SPLIT:
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
        template = self._template_of(wording, severe=words or severity > 0)
        if template is None:
            self.ungrouped += 1
            return None
        if template.various is not None:
            template.various.seen(micros)
            return None
        shape = Shape(self._level, wording, 1, micros, micros, severity, rank, alarming=words)
        template.wordings[wording] = self._known[wording] = shape
        if len(self._known) > MAX_WORDINGS:
            most = max(self._templates.values(), key=lambda template: len(template.wordings))
            for forgotten in most.fold():
                del self._known[forgotten]
        return shape

    def _template_of(self, wording: str, *, severe: bool) -> _Template | None:
        drain = self._drain
        # What alarms keeps room that chatter with a new wording in each line can't take.
        share = 2 if severe else 1
        full = len(self._templates) >= MAX_TEMPLATES * share // 2
        if drain.comparisons > _MAX_COMPARISONS * share // 2:
            return None
        if full:
            tokens = drain.get_content_as_tokens(wording)
            cluster = drain.tree_search(drain.root_node, tokens, drain.sim_th, False)
            if cluster is None:
                return None
        cluster, _ = drain.add_log_message(wording)
        return self._templates.setdefault(cluster.cluster_id, _Template(cluster, {}))

    def shapes(self) -> Iterator[Shape]:
        """Once, after the last line."""
        for template in self._templates.values():
            yield from template.shapes()


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


class FieldValues:
    """The texts in the fields of JSON records: one that is rare in its field marks its record, whatever it says."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, Shape] | None] = {}

    def add(self, fields: Mapping[str, object], rank: int) -> Iterator[Shape]:
        """The shapes that are new, for the caller to fill in their example; `template` is the value."""
        for name, value in fields.items():
            if not isinstance(value, str) or len(value) > _MAX_TEMPLATE:
                continue
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
            yield from values.values() if values and len(values) > 1 else ()
