"""What the observations so far say, in the order in which a reader would look at them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from local.model_server.prompt import (
    LogView,
    Observation,
    Passage,
    Pattern,
    instant,
    log_view,
    passages,
    rows,
)
from local.model_server.text import identifiers, overlap, terms, topic

SEVERE = ("ERROR", "FATAL")
_CHANGE = re.compile(
    r"\b(?:chang\w+|deploy\w*|rollout|roll(?:ed|ing) (?:out|back)|restart\w*|reload\w*|"
    r"upgrad\w+|migrat\w+|resiz\w+|failover|switch(?:ed|ing)|reconfigur\w+)\b|变更|修改|发布|部署|重启|升级|回滚",
    re.I,
)
_LEAST_SHARED_WORDS = 2
_SAME_TROUBLE = timedelta(hours=6)
_NO_TOPIC = frozenset({"error", "warn", "info", "ms", "id", "level", "msg", "ts", "http", "code", "service"})
_DOTTED = re.compile(r"[\w$]+(?:\.[\w$]+){2,}")
_WEIGHT = {"FATAL": 4.0, "ERROR": 3.0, "WARN": 1.0, "WARNING": 1.0}


@dataclass(frozen=True)
class Shape:
    """A message shape of one observation, with how much it matters here."""

    observation: Observation
    view: LogView
    pattern: Pattern
    weight: float

    @property
    def severe(self) -> bool:
        return self.pattern.level in SEVERE

    @property
    def began(self) -> datetime | None:
        return pattern_instant(self.pattern.first, self.view)


@dataclass(frozen=True)
class Row:
    observation: Observation
    line: str
    values: dict[str, str]


@dataclass(frozen=True)
class Found:
    """A passage of one lookup."""

    observation: Observation
    passage: Passage
    score: int


def ready(observations: Sequence[Observation], tool: str) -> list[Observation]:
    return [observation for observation in observations if observation.tool == tool and observation.ready]


def surveyed(observation: Observation) -> bool:
    """Whether it counted the lines of some levels, whatever their wording."""
    return bool(observation.call.get("levels")) and not observation.call.get("contains")


def tells_of(observation: Observation, question: str) -> bool:
    """Whether it holds the records of the one thing that the question names by its identifier."""
    named = identifiers(question)[:1]
    return bool(named) and observation.call.get("contains") == named


def shapes(observations: Sequence[Observation], question: str) -> list[Shape]:
    """The shapes of trouble: severe, frequent and to the point first."""
    wanted = topic(question)
    about = [observation for observation in ready(observations, "query_logs") if tells_of(observation, question)]
    found = []
    for observation in about or ready(observations, "query_logs"):
        if not about and not surveyed(observation):
            continue
        view = log_view(observation)
        for pattern in view.patterns:
            if pattern.level not in _WEIGHT:
                continue
            weight = _WEIGHT[pattern.level] * (1 + min(pattern.count, 500)) ** 0.5
            weight *= 1 + 0.5 * min(overlap(wanted, pattern.text), 3)
            found.append(Shape(observation, view, pattern, weight))
    return sorted(found, key=lambda shape: -shape.weight)


def pattern_instant(text: str, view: LogView) -> datetime | None:
    """When a pattern's `first` or `last` was. A time of day is put on a day of the observation's matches."""
    if "-" in text:
        return instant(text.replace(" ", "T"))
    first, last = instant(view.first_match), instant(view.last_match)
    if first is None:
        return None
    clock = instant(f"{first:%Y-%m-%d}T{text}")
    if clock is None:
        return None
    clock = clock.astimezone(UTC)
    while last is not None and clock < first.replace(microsecond=0) and clock + timedelta(days=1) <= last:
        clock += timedelta(days=1)
    return clock


def change_records(observations: Sequence[Observation], related: frozenset[str]) -> list[tuple[Observation, str]]:
    """Log records that tell of a change, those that share words with the trouble first."""
    found: list[tuple[int, Observation, str]] = []
    for observation in ready(observations, "query_logs"):
        if surveyed(observation):
            continue
        found.extend(
            (overlap(related, record), observation, record)
            for record in log_view(observation).records
            if _CHANGE.search(record)
        )
    found.sort(key=lambda item: -item[0])
    return [(observation, record) for score, observation, record in found if score >= _LEAST_SHARED_WORDS]


def change_rows(observations: Sequence[Observation], related: frozenset[str]) -> list[Row]:
    """Rows of tables of changes, those that share words with the trouble first, the others left out."""
    found = [
        Row(observation, line, values)
        for observation in ready(observations, "query_mysql")
        if "GROUP BY" not in str(observation.call.get("statement", ""))
        for line, values in rows(observation)
        if "row_count" not in values and _looks_like_change(observation)
    ]
    scored = [(overlap(related, " ".join(row.values.values())), row) for row in found]
    scored.sort(key=lambda pair: -pair[0])
    return [row for score, row in scored if score >= _LEAST_SHARED_WORDS]


def _looks_like_change(observation: Observation) -> bool:
    return _CHANGE.search(str(observation.call.get("statement", "")).replace("_", " ")) is not None


def status_rows(observations: Sequence[Observation]) -> list[tuple[Observation, list[Row]]]:
    found = []
    for observation in ready(observations, "query_mysql"):
        counted = [Row(observation, line, v) for line, v in rows(observation) if "row_count" in v]
        if counted:
            found.append((observation, counted))
    return found


def documents(observations: Sequence[Observation], wanted: frozenset[str]) -> list[Found]:
    """The passages that share several words with question and trouble, best first; the title counts twice."""
    found = [
        Found(
            observation,
            passage,
            2 * overlap(wanted, passage.heading) + overlap(wanted, "\n".join(passage.lines)),
        )
        for observation in ready(observations, "lookup_knowledge")
        for passage in passages(observation)
    ]
    # Sorting is stable: of equals, the index's own order stands.
    return sorted((item for item in found if item.score >= 2 * _LEAST_SHARED_WORDS), key=lambda item: -item.score)


def goes_with(main: Shape, other: Shape) -> bool:
    """Whether the other shape can belong to the same trouble: by its source, or by words and time."""
    if other.view.source == main.view.source:
        return True
    near = main.began is not None and other.began is not None and abs(main.began - other.began) <= _SAME_TROUBLE
    return near and bool(_words_of(main) & _words_of(other))


def trouble_terms(main: Shape, found: Sequence[Shape]) -> frozenset[str]:
    """What the trouble is about: the words of its main shape and of the severe ones that go with it."""
    others = [shape for shape in found if shape.severe and _words_of(main) & _words_of(shape)]
    together = [main, *(shape for shape in others if goes_with(main, shape))]
    return frozenset().union(*(_words_of(shape) | terms(shape.view.source) for shape in together))


def _words_of(shape: Shape) -> frozenset[str]:
    """The words of the message itself: not of its logger's dotted name, which all its messages share."""
    message = shape.pattern.text.split(" - ", 1)[-1]
    return terms(_DOTTED.sub(" ", message)) - _NO_TOPIC
