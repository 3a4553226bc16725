"""The log sources in CloudWatch: configured aliases of log groups."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

from superbizagent.adapters.cloudwatch_logs.calls import (
    AccessDenied,
    Calls,
    Listing,
    LogsApi,
    NoSuchResource,
    QueryRefused,
    Request,
)
from superbizagent.adapters.cloudwatch_logs.events import Counts, Event, Selected, counts_of, key_of, selected
from superbizagent.adapters.cloudwatch_logs.insights import Insights, Pause, Results
from superbizagent.adapters.cloudwatch_logs.query import Search, compose
from superbizagent.adapters.cloudwatch_logs.report import Found, composed, totals_of
from superbizagent.adapters.cloudwatch_logs.window import Range, Window, needs_range, range_of, resolve
from superbizagent.adapters.log_projection import Composed, Room, Unread, iso
from superbizagent.adapters.worker_thread import in_thread
from superbizagent.domain.evidence import Evidence, QueryLogs
from superbizagent.errors import EvidenceError, EvidenceUnavailable, InvalidToolArguments, UnknownSource
from superbizagent.ports import Clock

MOST_ROWS: Final = 10_000
"""Rows that one query brings here at most; AWS gives no more."""

_LAST: Final = 1_000

_COUNTED: Final = 5_000
_HYDRATED: Final = 10
_LISTING_SECONDS: Final = 4.0
_LISTING_KEPT: Final = 60.0

T = TypeVar("T")


@dataclass(frozen=True)
class CloudWatchSource:
    """One alias. `log_groups` are names; `level_field` is the discovered field that holds the level.

    Events without that field have the level that their text names; an empty `level_field`: all of them.
    """

    description: str
    log_groups: tuple[str, ...]
    level_field: str = "level"


@dataclass(frozen=True)
class _Groups:
    """The groups of an alias that exist, and a note on those that don't."""

    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


class CloudWatchLogs:
    """Implements the port LogSource over Logs Insights.

    `api` makes the client at first use. `timeout` is seconds a search, `lookback` how far back one may
    reach: searches are paid for by the byte that each of their queries scans. A search is one query; three
    more follow, at once, when `rows` are too few for all that matched: counts over all, those that tell of
    trouble, and the last. `room` is what a model may see. `pause` and `jitter` are for tests.
    """

    def __init__(
        self,
        sources: Mapping[str, CloudWatchSource],
        *,
        api: Callable[[], LogsApi],
        clock: Clock,
        group_arn: Callable[[str], str] | None = None,
        room: Room | None = None,
        rows: int = MOST_ROWS,
        timeout: float = 25.0,
        lookback: timedelta = timedelta(days=7),
        pause: Pause = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._sources = dict(sources)
        self._calls = Calls(api, group_arn)
        self._insights = Insights(self._calls, clock, pause, jitter)
        self._clock = clock
        self._room = room or Room()
        self._rows = rows
        self._timeout = timeout
        self._lookback = lookback
        self._ranges: dict[str, tuple[float, Range]] = {}

    async def describe(self) -> str:
        """`NAME: DESCRIPTION (FIRST to LAST)`, a line a source, even while CloudWatch can't be reached."""
        now = self._now()
        deadline = self._clock.monotonic() + _LISTING_SECONDS
        ranges = await asyncio.gather(*(self._range(name, deadline) for name in self._sources))
        return "\n".join(
            self._line(name, source, known, now)
            for (name, source), known in zip(self._sources.items(), ranges, strict=True)
        )

    async def query_logs(self, query: QueryLogs) -> Evidence:
        source = self._sources.get(query.source)
        if source is None:
            known = ", ".join(self._sources) or "none is set up"
            raise UnknownSource(f"There is no log source of that name. The sources are: {known}.")
        if query.start is not None and query.end is not None and query.start >= query.end:
            raise InvalidToolArguments("start must be before end; end is the instant after the last.")
        deadline = self._clock.monotonic() + self._timeout
        window = await self._window(query, deadline)
        search = compose(query, source.level_field, window.start_millis, window.end_millis, self._room.redact)
        run = _Run(self._insights, source, search, window, self._rows, deadline)
        try:
            groups, first = await self._first(run, deadline)
            found = await self._found(run, groups, first)
        except AccessDenied as error:
            raise EvidenceUnavailable(
                f"The service is not allowed to search {_names(source.log_groups)}. Its operator must permit it."
            ) from error
        except NoSuchResource as error:
            raise EvidenceUnavailable(
                f"CloudWatch has no such log group: {_names(source.log_groups)}. Use another source."
            ) from error
        except QueryRefused as error:
            raise InvalidToolArguments(
                "CloudWatch refused the window: it may lie before the log group was made, or be older than the "
                "time that events are kept. Ask for a later window."
            ) from error
        return await self._evidence(query, window, found, deadline)

    async def _evidence(self, query: QueryLogs, window: Window, found: Found, deadline: float) -> Evidence:
        """Of the events to be shown those that AWS cut are read again; then it is composed with their whole texts."""
        first = await self._composed(query, window, found)
        cut = [rank for rank in first.ranks if found.read[rank].cut]
        if not cut:
            return first.evidence
        events = {rank: found.read[rank] for rank in cut[:_HYDRATED] if found.read[rank].pointer}
        wholes = await asyncio.gather(*(self._whole(event, deadline) for event in events.values()))
        found = found.with_whole(dict(zip(events, wholes, strict=True)))
        second = await self._composed(query, window, found)
        if still := sum(found.read[rank].cut for rank in second.ranks):
            return _noted(second.evidence, f"{still} long records are shown without their ends")
        return second.evidence

    async def _composed(self, query: QueryLogs, window: Window, found: Found) -> Composed:
        return await in_thread(lambda: composed(query, window, found, self._room), "cloudwatch-compose")

    async def _window(self, query: QueryLogs, deadline: float) -> Window:
        now = self._now()
        if not needs_range(query, now, self._lookback):
            return resolve(query, Range(), now, self._lookback)
        listing_deadline = min(deadline, self._clock.monotonic() + _LISTING_SECONDS)
        return resolve(query, await self._range(query.source, listing_deadline), now, self._lookback)

    async def _first(self, run: "_Run", deadline: float) -> tuple[_Groups, Results]:
        """The first events of the groups that exist."""
        every = run.source.log_groups
        try:
            return _Groups(every), await run.first(every)
        except NoSuchResource:
            # AWS refuses all groups for one that is missing, and names it only in prose.
            there = [group for group in every if await self._exists(group, deadline)]
            if not there or len(there) == len(every):
                raise
            missing = _names([group for group in every if group not in there])
            notes = (f"CloudWatch has no such log group, so it was not searched: {missing}",)
            return _Groups(tuple(there), notes), await run.first(tuple(there))

    async def _exists(self, group: str, deadline: float) -> bool:
        try:
            await self._streams(group, deadline)
        except NoSuchResource:
            return False
        except EvidenceError:
            # Only what is known to be missing is left out.
            return True
        return True

    async def _found(self, run: "_Run", groups: _Groups, first: Results) -> Found:
        search = run.search
        if first.matched <= len(first.rows):
            found = await in_thread(lambda: _all(selected(first.rows, search), first.scanned), "cloudwatch-select")
        else:
            rest = await run.rest(groups.names)
            found = await in_thread(lambda: _some(search, first, rest), "cloudwatch-select")
        notes = groups.notes + found.notes
        if search.compares_texts and (cut := sum(event.cut for event in found.read)):
            notes += (f"{cut} long records could be compared in part only and are counted as matches",)
        return replace(found, notes=notes, partial=len(notes) > len(found.notes))

    async def _whole(self, event: Event, deadline: float) -> Event:
        """The event with its whole message; as it is, with its mark, where that can't be had."""
        try:
            message = await self._insights.retried(
                lambda: in_thread(partial(self._calls.whole_message, event.pointer), "cloudwatch-record"),
                min(deadline, self._clock.monotonic() + _LISTING_SECONDS),
            )
        except EvidenceError:
            return event
        return event.whole(message) if message and len(message) >= len(event.message) else event

    async def _range(self, name: str, deadline: float) -> Range:
        """What the source holds as far as its streams tell; an empty range where they can't be listed."""
        kept = self._ranges.get(name)
        if kept is not None and self._clock.monotonic() - kept[0] < _LISTING_KEPT:
            return kept[1]
        try:
            listings = [await self._streams(group, deadline) for group in self._sources[name].log_groups]
        except EvidenceError:
            return Range()
        known = range_of(listings)
        self._ranges[name] = (self._clock.monotonic(), known)
        return known

    async def _streams(self, group: str, deadline: float) -> Listing:
        return await self._insights.retried(
            lambda: in_thread(partial(self._calls.streams, group), "cloudwatch-streams"), deadline
        )

    def _now(self) -> datetime:
        """In whole seconds, as people write windows."""
        return self._clock.now().replace(microsecond=0)

    def _line(self, name: str, source: CloudWatchSource, known: Range, now: datetime) -> str:
        window = resolve(QueryLogs(source=name), known, now, self._lookback)
        return f"{name}: {' '.join(source.description.split())} ({iso(window.start)} to {iso(window.covered)})"


@dataclass(frozen=True)
class _Rest:
    """What the further queries of a search brought; None for what failed: the first events are there anyway."""

    counts: Counts | None
    trouble: Results | None
    last: Results | None

    @property
    def rows(self) -> Iterator[Mapping[str, str]]:
        """In order of time."""
        yield from self.trouble.rows if self.trouble else ()
        yield from reversed(self.last.rows if self.last else ())


@dataclass(frozen=True)
class _Run:
    """The queries of one search."""

    insights: Insights
    source: CloudWatchSource
    search: Search
    window: Window
    rows: int
    deadline: float

    async def first(self, groups: tuple[str, ...]) -> Results:
        return await self._run(self.search.records("asc", self.rows), self.rows, groups)

    async def rest(self, groups: tuple[str, ...]) -> _Rest:
        async with asyncio.TaskGroup() as tasks:
            counts = tasks.create_task(_or_none(self._counts(groups)))
            trouble = tasks.create_task(_or_none(self._trouble(groups)))
            last = tasks.create_task(_or_none(self._last(groups)))
        return _Rest(counts.result(), trouble.result(), last.result())

    async def _counts(self, groups: tuple[str, ...]) -> Counts | None:
        results = await self._run(self.search.counts(self._width(), _COUNTED), _COUNTED, groups)
        return counts_of(results.rows) if len(results.rows) < _COUNTED else None

    async def _trouble(self, groups: tuple[str, ...]) -> Results | None:
        """None where the first query looked for nothing else."""
        if self.search.finds_trouble_only:
            return None
        return await self._run(self.search.trouble(self.rows), self.rows, groups)

    async def _last(self, groups: tuple[str, ...]) -> Results:
        limit = min(_LAST, self.rows)
        return await self._run(self.search.records("desc", limit), limit, groups)

    def _width(self) -> str:
        """The slots of the counts: so few that all fit into one answer, with every level."""
        span = self.window.end - self.window.start
        if span <= timedelta(hours=2):
            return "1m"
        if span <= timedelta(hours=12):
            return "10m"
        return "1h" if span <= timedelta(days=7) else "1d"

    async def _run(self, text: str, limit: int, groups: tuple[str, ...]) -> Results:
        window = self.window
        request = Request(groups, window.start_second, window.end_second, text, limit)
        return await self.insights.run(request, self.deadline)


async def _or_none(work: Coroutine[Any, Any, T | None]) -> T | None:
    try:
        return await work
    except EvidenceError:
        return None


def _all(found: Selected, scanned: int | None) -> Found:
    """Every event that the query found was read: all counts can be made here."""
    return Found(sorted(found.events.values(), key=lambda event: event.at), scanned)


def _some(search: Search, first: Results, rest: _Rest) -> Found:
    """More events matched than one query brings here: some of them in order of time, and counts over all."""
    beginning = {key_of(row): row for row in first.rows}
    rows = beginning | {key: row for row in rest.rows if (key := key_of(row)) not in beginning}
    found = selected(rows.values(), search)
    if len(rows) >= first.matched or _all_hidden(search, found):
        return _all(found, first.scanned)
    read = _all(found, first.scanned).read
    ending = {key_of(row) for row in rest.last.rows} - beginning.keys() if rest.last else set()
    begin, end = found.count(beginning), len(read) - found.count(ending)
    inexact = search.compares_texts or found.unlike > 0
    exact, matched = (False, len(read)) if inexact else _number(search, first.matched, rest.counts, len(read))
    return Found(
        read=read,
        scanned=first.scanned,
        totals=totals_of(matched, exact=exact, counts=rest.counts, last=read[-1] if read and rest.last else None),
        unread=Unread(max(matched - len(read), 0) if exact else None, begin, end),
        notes=tuple(_partly_read(len(rows), search, first, rest, hidden=found.unlike > 0)),
    )


def _all_hidden(search: Search, found: Selected) -> bool:
    """Whether AWS found the texts in secrets only. Told as nothing found: how much was not read would tell of them."""
    return found.unlike > 0 and not found.events and not search.compares_texts


def _partly_read(rows: int, search: Search, first: Results, rest: _Rest, *, hidden: bool) -> Iterator[str]:
    parts = ["the first"]
    if rest.trouble is not None:
        whole = rest.trouble.matched <= len(rest.trouble.rows)
        parts.append("those that tell of trouble" if whole else "the first of those that tell of trouble")
    if rest.last is not None:
        parts.append("the last")
    # Events whose texts stand in secrets only are not to be counted out.
    share = "some" if hidden else f"{rows} of {first.matched}"
    yield f"{share} events that the search found were read: {', '.join(parts)}"
    if rest.trouble is None and not search.finds_trouble_only:
        yield "those that tell of trouble could not be looked for apart"
    if rest.counts is None:
        yield "counts by level and time could not be made"


def _number(search: Search, found: int, counts: Counts | None, read: int) -> tuple[bool, int]:
    """Whether it is known how many events there are of those asked for, and how many at least."""
    if not search.levels:
        return True, found
    # The words of a level may stand in a text that is of another one: only the field tells without reading.
    if counts is None or counts.unlevelled:
        return False, read
    return True, max(sum(counts.levels[level] for level in search.levels), read)


def _names(groups: Sequence[str]) -> str:
    return ", ".join(groups)


def _noted(evidence: Evidence, note: str) -> Evidence:
    coverage = evidence.coverage
    return evidence.model_copy(
        update={"coverage": coverage.model_copy(update={"notes": (*coverage.notes, note), "truncated": True})}
    )
