"""What to look at next: from the logs that the question names to what they lead to. Keeps no state."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from local.model_server.findings import Shape, ready, shapes, trouble_terms
from local.model_server.prompt import Briefing, Observation, Source, Table
from local.model_server.routing import follows_up
from local.model_server.statements import (
    change_statement,
    identifier_statement,
    relevance,
    status_statement,
    status_tables,
    tells_changes,
)
from local.model_server.text import identifiers, overlap, terms, topic
from local.model_server.times import Window, window_of

LEVELS = ["WARN", "ERROR", "FATAL"]
_MOST_SOURCES = 4
_MOST_CALLS = 14
_MOST_CALLS_A_TURN = 5


@dataclass(frozen=True)
class Call:
    """A tool call to make."""

    tool: str
    arguments: Mapping[str, Any]

    @property
    def key(self) -> str:
        return json.dumps([self.tool, self.arguments], sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True)
class Case:
    """All that one agent turn knows: the question, the world as the prompt tells it, what came back."""

    question: str
    previous_question: str
    briefing: Briefing
    tools: frozenset[str]
    made: tuple[Call, ...]
    observations: tuple[Observation, ...]

    @cached_property
    def topic(self) -> frozenset[str]:
        return topic(self.question) or topic(self.previous_question)

    @cached_property
    def named_sources(self) -> tuple[Source, ...]:
        """The sources that the question names, by name rather than by description where both do."""
        by_name = self._matching(lambda source: source.name)
        return by_name or self._matching(lambda source: source.description)

    def _matching(self, described: Callable[[Source], str]) -> tuple[Source, ...]:
        scored = [(overlap(self.topic, described(source)), source) for source in self.briefing.sources]
        best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
        return tuple(source for _, source in best[:_MOST_SOURCES])

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        return self.named_sources or self.briefing.sources[:_MOST_SOURCES]

    @cached_property
    def _read_window(self) -> tuple[Window | None, bool]:
        latest = max((source.last for source in self.sources if source.last), default=None)
        now = self.briefing.now or latest
        if now is None:
            return None, False
        timed = self.question
        if window_of(timed, now) is None and self.previous_question and follows_up(self.question):
            timed = self.previous_question
        window = window_of(timed, now, latest)
        if window is None or latest is None or self._reaches(window):
            return window, False
        shifted = window_of(timed, latest, latest)
        if shifted is not None and self._reaches(shifted):
            return shifted, shifted != window
        return window, False

    def _reaches(self, window: Window) -> bool:
        return any(window.overlaps(source.first, source.last) for source in self.sources)

    @property
    def window(self) -> Window | None:
        return self._read_window[0]

    @property
    def shifted(self) -> bool:
        """Whether the question's time was read as of the last log line, because nothing is that recent."""
        return self._read_window[1]

    @cached_property
    def shapes(self) -> list[Shape]:
        return shapes(self.observations, self.question)

    @cached_property
    def main(self) -> Shape | None:
        """The shape of trouble that matters most: of a named source where one has any to the point."""
        if self.named_sources:
            named = [shape for shape in self.shapes if self._is_named(shape.view.source)]
            likely = [shape for shape in named if shape.severe or self._asked_for(shape)] or named
        else:
            asked = [shape for shape in self.shapes if self._asked_for(shape)]
            likely = asked or [shape for shape in self.shapes if shape.severe]
        found = likely or self.shapes
        # Of equals the first: shapes come sorted by weight.
        return max(found, key=self._asked_for, default=None)

    def _is_named(self, name: str) -> bool:
        return any(source.name == name for source in self.named_sources)

    def _asked_for(self, shape: Shape) -> int:
        """How many of the question's words the shape has, besides those that name its source."""
        return overlap(self.topic - topic(shape.view.source), shape.pattern.text)

    @cached_property
    def began(self) -> datetime | None:
        return self.main.began if self.main else None

    @cached_property
    def trouble(self) -> frozenset[str]:
        return trouble_terms(self.main, self.shapes) if self.main else frozenset()


def next_calls(case: Case) -> list[Call]:
    """The tool calls of the next turn; none when there is nothing left to look at."""
    made = {call.key for call in case.made}
    room = _MOST_CALLS - len(case.made)
    for stage in (_survey, _broaden, _relate, _facts, _recheck):
        wanted = {call.key: call for call in stage(case) if call.tool in case.tools and call.key not in made}
        if wanted and room > 0:
            return list(wanted.values())[: min(room, _MOST_CALLS_A_TURN)]
    return []


def _survey(case: Case) -> list[Call]:
    calls = [_logs(source, case.window, levels=LEVELS) for source in _within(case.sources, case.window)]
    for identifier in identifiers(case.question)[:1]:
        calls += [_logs(source, None, contains=[identifier]) for source in case.briefing.sources[:_MOST_SOURCES]]
    if not case.sources:
        calls.append(_lookup(case))
    return calls


def _broaden(case: Case) -> list[Call]:
    """Where no level told anything: all lines of the window, and more sources if none was named."""
    if case.shapes or not case.observations:
        return []
    sources = _within(case.sources, case.window)
    others = [source for source in case.briefing.sources if source not in case.sources]
    calls = [_logs(source, case.window, limit=30) for source in sources[:2]]
    if not case.named_sources:
        calls += [_logs(source, case.window, levels=LEVELS) for source in _within(others, case.window)[:2]]
    return calls


def _within(sources: Sequence[Source], window: Window | None) -> list[Source]:
    """Those that have lines in the window, as far as the prompt tells; all when none has."""
    reached = [source for source in sources if window is None or window.overlaps(source.first, source.last)]
    return reached or list(sources)


def _relate(case: Case) -> list[Call]:
    """The minutes around the first trouble, sources that it mentions, and one of its things elsewhere."""
    main = case.main
    if main is None or case.began is None:
        return []
    source = _source(case, main.view.source)
    calls = [_logs(source, Window(case.began - timedelta(minutes=3), case.began + timedelta(minutes=1)), limit=30)]
    surveyed = {source.name for source in case.sources}
    related = _related(case, surveyed)
    calls += [_logs(other, case.window, levels=LEVELS) for other in related[:2]]
    for identifier in _traced(main):
        others = [other for other in (*related, *_alive(case)) if other.name != main.view.source]
        calls += [_logs(other, None, contains=[identifier]) for other in list(dict.fromkeys(others))[:2]]
    return calls


def _related(case: Case, surveyed: set[str]) -> list[Source]:
    mentioned = terms(case.main.pattern.text) if case.main else frozenset()
    scored = [
        (2 * overlap(mentioned, source.name) + overlap(mentioned, source.description), source)
        for source in _alive(case)
        if source.name not in surveyed
    ]
    return [source for score, source in sorted(scored, key=lambda pair: -pair[0]) if score > 0]


def _alive(case: Case) -> list[Source]:
    """The sources that have lines from about when the trouble began."""
    if case.began is None:
        return list(case.briefing.sources)
    near = Window(case.began - timedelta(hours=12), case.began + timedelta(hours=12))
    return [source for source in case.briefing.sources if near.overlaps(source.first, source.last)]


def _traced(shape: Shape) -> list[str]:
    """An identifier of the first record with that shape."""
    start = max(shape.pattern.text.split("<*>"), key=len).strip()
    record = next((record for record in shape.view.records if start in record), "")
    return identifiers(record)[:1]


def _facts(case: Case) -> list[Call]:
    """The database, the runbooks, and what was changed before it began."""
    wanted = case.topic | case.trouble
    calls = [_lookup(case)]
    if case.main is not None:
        changes = [table for table in case.briefing.tables if tells_changes(table)]
        changes.sort(key=lambda table: -relevance(table, wanted | {"config", "change"}))
        calls += [_sql(change_statement(table, case.began)) for table in changes[:1]]
    named = identifiers(case.question)[:1]
    if named:
        by_id = (identifier_statement(table, named[0]) for table in _by_relevance(case.briefing.tables, wanted))
        calls += [_sql(statement) for statement in by_id if statement][:3]
    else:
        tables = status_tables(case.briefing.tables, case.topic, case.trouble)
        calls += [_sql(status_statement(table, case.window)) for table in tables]
    return calls + _change_searches(case, "config", 2)


def _by_relevance(tables: Sequence[Table], wanted: frozenset[str]) -> list[Table]:
    return sorted(tables, key=lambda table: -relevance(table, wanted))


def _change_searches(case: Case, word: str, most: int) -> list[Call]:
    """Lines with the word from before the trouble began, in the sources where there is any."""
    if case.began is None:
        return []
    before = Window(case.began - timedelta(hours=2), case.began + timedelta(minutes=1))
    named = dict.fromkeys(shape.view.source for shape in case.shapes if shape.severe or shape is case.main)
    sources = _within([_source(case, name) for name in named], before)
    return [_logs(source, before, contains=[word], limit=10) for source in sources[:most]]


def _recheck(case: Case) -> list[Call]:
    """A second way to what came back empty or as an error: statements without a window, other words."""
    answered = {observation.call.get("statement") for observation in ready(case.observations, "query_mysql")}
    tables = status_tables(case.briefing.tables, case.topic, case.trouble)
    again = case.window is not None and not identifiers(case.question)
    calls = [
        _sql(status_statement(table, None))
        for table in tables
        if again and status_statement(table, case.window) not in answered
    ]
    return calls if _anything_about(case, "config") else [*calls, *_change_searches(case, "deploy", 1)]


def _anything_about(case: Case, word: str) -> bool:
    return any(o.call.get("contains") == [word] for o in ready(case.observations, "query_logs"))


def _source(case: Case, name: str) -> Source:
    return next((source for source in case.briefing.sources if source.name == name), Source(name, ""))


def _logs(
    source: Source,
    window: Window | None,
    levels: Sequence[str] = (),
    contains: Sequence[str] = (),
    limit: int = 20,
) -> Call:
    return Call(
        "query_logs",
        {
            "source": source.name,
            "start": _iso(window.start if window else None),
            "end": _iso(window.end if window else None),
            "levels": list(levels),
            "contains": list(contains),
            "excludes": [],
            "limit": limit,
        },
    )


def _iso(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z") if at else None


def _sql(statement: str) -> Call:
    return Call("query_mysql", {"statement": statement})


def _lookup(case: Case) -> Call:
    query = case.question if case.topic else f"{case.previous_question} {case.question}"
    shape = f" {case.main.pattern.text}" if case.main else ""
    return Call("lookup_knowledge", {"query": f"{query[:600]}{shape[:300]}".replace("<*>", " ").strip(), "limit": 5})
