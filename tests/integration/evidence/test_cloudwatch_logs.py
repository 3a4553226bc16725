"""CloudWatch Logs over real HTTP: what is asked, what comes of each state of a query, and what is told of it."""

import asyncio
import heapq
import itertools
import json
import random
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from superbizagent.adapters.cloudwatch_logs import CloudWatchLogs, CloudWatchSource, LogsApi, group_arn, new_api
from superbizagent.adapters.log_projection import Room
from superbizagent.adapters.log_sources import LogSources
from superbizagent.adapters.redaction import SecretRedactor
from superbizagent.domain.evidence import Evidence, QueryLogs
from superbizagent.errors import (
    ConfigurationError,
    EvidenceError,
    EvidenceTimeout,
    EvidenceUnavailable,
    InvalidToolArguments,
    UnknownSource,
)
from tests.cloudwatch_stub import CloudWatchStub, StubEvent, refusal, stub_api
from tests.fakes.clock import FakeClock
from tests.fakes.sources import FakeSource, log_search
from tests.http_stub import HttpStub, Reply, http_stub, tcp_stub

START = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
END = START + timedelta(hours=1)
NOW = START + timedelta(days=1)
ONE_HOUR = QueryLogs(source="app", start=START, end=END)


@pytest.fixture(autouse=True)
def signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")


def events(messages: Iterable[str], step: timedelta = timedelta(seconds=1)) -> list[StubEvent]:
    return [StubEvent(START + step * place, message) for place, message in enumerate(messages)]


@dataclass
class Stage:
    """A source `app` over a stub; time passes only in its pauses."""

    server: HttpStub
    stub: CloudWatchStub
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOW))
    pauses: list[float] = field(default_factory=list)
    groups: tuple[str, ...] = ("/app",)
    level_field: str = "level"
    rows: int = 1_000
    redact: Callable[[str], str] = str
    arn: Callable[[str], str] | None = None
    block: asyncio.Event | None = None
    api: Callable[[str], LogsApi] = stub_api

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(seconds)
        if self.block is not None:
            self.block.set()
            await asyncio.Event().wait()
        await asyncio.sleep(0)

    @property
    def logs(self) -> CloudWatchLogs:
        return CloudWatchLogs(
            {"app": CloudWatchSource("The  service", self.groups, self.level_field)},
            api=lambda: self.api(self.server.url),
            group_arn=self.arn,
            clock=self.clock,
            rows=self.rows,
            room=Room(redact=self.redact),
            timeout=25,
            pause=self.pause,
            jitter=lambda: 0.5,
        )

    async def query(self, **arguments: Any) -> Evidence:
        return await self.logs.query_logs(QueryLogs(**{"source": "app", "start": START, "end": END, **arguments}))

    @property
    def running(self) -> list[str]:
        """Queries that have not been stopped."""
        return [query_id for query_id, query in self.stub.queries.items() if not query.stopped]


@asynccontextmanager
async def staged(messages: Iterable[str] | list[StubEvent], **options: Any) -> AsyncIterator[Stage]:
    known = [message if isinstance(message, StubEvent) else None for message in messages]
    held = [event for event in known if event] or events(str(message) for message in messages)
    stub = CloudWatchStub({"/app": held}, **options)
    async with http_stub(stub.answer) as server:
        yield Stage(server, stub)


HOSTILE = (
    'x" | limit 10000',
    '" or @message like "',
    'a\\" | fields @log | filter "a',
    "\\",
    '\\" or "',
    '"\\',
    "x' | SOURCE logGroups(namePrefix: ['/'])",
    'SOURCE "/aws/lambda/other" | fields @message',
    "x\n| limit 1",
    "x # comment",
    "/.*/",
    "`@ptr`",
    "%_*",
    "\u2028| limit 1",
    "\u202e\x00",
    "$(id) ${x} {{y}}",
    "]) or (1=1",
    "支付\\网关",
    "STRASSE ß İ Σ",
)


@pytest.mark.spec("SEC-2")
@pytest.mark.parametrize("text", HOSTILE)
async def test_outside_text_is_only_ever_a_literal(text: str) -> None:
    """The line with the text is found and no other; as an exclusion it takes out that line and no other."""
    async with staged([f"before {text} after", "harmless x"]) as stage:
        wanted = await stage.query(contains=(text,))
        unwanted = await stage.query(excludes=(text,))
        both = await stage.query(contains=(text, "BEFORE"), excludes=("harmless",), levels=("ERROR",))

    assert (wanted.coverage.matched, wanted.coverage.complete) == (1, True)
    assert text.splitlines()[0] in wanted.lines[0]
    assert [line for line in unwanted.lines if "harmless" in line]
    assert unwanted.coverage.matched == 1
    assert both.coverage.matched == 0
    for query in stage.stub.texts:
        assert "\\\\" not in query
        assert query.splitlines()[-1] == "| limit 1000"


@pytest.mark.spec("SEC-2")
async def test_the_stub_would_notice_a_text_that_breaks_out() -> None:
    async with staged(["a"]) as stage:
        client = boto3.client("logs", region_name="eu-west-1", endpoint_url=stage.server.url)
        for query in ('fields @message | filter @message like "x" | SOURCE "y" | limit 1', 'fields @message "'):
            with pytest.raises(client.exceptions.MalformedQueryException):
                await asyncio.to_thread(
                    client.start_query, logGroupNames=["/app"], startTime=0, endTime=1, queryString=query, limit=1
                )


@pytest.mark.spec("SEC-2")
async def test_texts_too_long_for_one_query_are_refused_before_aws_is_asked() -> None:
    async with staged(["a"]) as stage:
        with pytest.raises(InvalidToolArguments, match="too long"):
            await stage.query(
                contains=tuple(f"{place}" + '"' * 499 for place in range(8)), excludes=('"' * 500, '"' * 499)
            )

    assert stage.stub.queries == {}


@pytest.mark.spec("SEC-2")
@pytest.mark.parametrize(
    "name",
    ["/app", "other", "app/../other", "arn:aws:logs:eu-west-1:111122223333:log-group:/app", "SOURCE logGroups()"],
)
async def test_only_aliases_are_sources(name: str) -> None:
    async with staged(["a"]) as stage:
        with pytest.raises(UnknownSource, match="app"):
            await stage.query(source=name)

    assert stage.stub.calls.total() == 0


@pytest.mark.spec("GUARD-2")
async def test_the_window_is_sent_in_whole_seconds_and_kept_to_the_millisecond() -> None:
    held = [StubEvent(START + timedelta(milliseconds=millis), f"at {millis}") for millis in (499, 500, 2_699, 2_700)]
    async with staged(held) as stage:
        evidence = await stage.query(
            start=START + timedelta(seconds=0.5), end=START + timedelta(seconds=2.7), levels=(), limit=10
        )

    request = stage.stub.queries["query-1"].request
    assert (request["startTime"], request["endTime"]) == (START.timestamp(), START.timestamp() + 3)
    assert request["limit"] == 1_000
    assert request["logGroupNames"] == ["/app"]
    assert [line.split(" ", 1)[1] for line in evidence.lines] == ["at 500", "at 2699"]
    assert evidence.lines[0].startswith("2026-11-30T14:00:00.500Z ")
    assert evidence.coverage.complete


@pytest.mark.spec("DIAG-2")
async def test_looks_at_least_a_second_apart_until_the_query_is_complete() -> None:
    async with staged(["a"], statuses=("Scheduled", "Running", "Running", "Complete")) as stage:
        evidence = await stage.query()

    assert evidence.coverage.matched == 1
    assert len(stage.pauses) == 4
    assert min(stage.pauses) >= 1
    assert len(set(stage.pauses)) > 1
    assert stage.stub.calls["StopQuery"] == 0


@pytest.mark.spec("DIAG-2", "GUARD-2")
@pytest.mark.parametrize(
    ("status", "error", "hint", "stops"),
    [
        ("Failed", EvidenceUnavailable, "could not run", 0),
        ("Cancelled", EvidenceUnavailable, "stopped", 0),
        ("Timeout", EvidenceTimeout, "too long", 0),
        ("Unknown", EvidenceUnavailable, "can't tell", 1),
        ("Resting", EvidenceUnavailable, "can't tell", 1),
        ("", EvidenceUnavailable, "can't tell", 1),
    ],
)
async def test_only_complete_is_complete(status: str, error: type[EvidenceError], hint: str, stops: int) -> None:
    async with staged(["a"], statuses=("Scheduled", "Running", status)) as stage:
        with pytest.raises(error, match=hint):
            await stage.query()

    assert stage.stub.calls["StopQuery"] == stops
    assert len(stage.pauses) == 3


@pytest.mark.spec("CANCEL-2")
async def test_a_search_that_takes_too_long_is_stopped_at_aws() -> None:
    async with staged(["a"], statuses=("Running",)) as stage:
        with pytest.raises(EvidenceTimeout, match="shorter window"):
            await stage.query()

    assert stage.clock.monotonic() <= 25
    assert stage.running == []


@pytest.mark.spec("CANCEL-2")
async def test_a_cancelled_search_is_stopped_at_aws() -> None:
    async with staged(["a"], statuses=("Running",)) as stage:
        stage.block = asyncio.Event()
        search = asyncio.create_task(stage.query())
        await stage.block.wait()
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search

        assert len(stage.stub.queries) == 1
        assert stage.running == []


@pytest.mark.spec("CANCEL-2")
async def test_a_search_cancelled_while_it_starts_is_stopped_too() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()
    async with staged(["a"]) as stage:

        async def slowly(received: Any) -> Reply:
            reply = stage.stub.answer(received)
            if received.headers["X-Amz-Target"].endswith("StartQuery"):
                started.set()
                await go_on.wait()
            return reply

        stage.server.answer = slowly
        search = asyncio.create_task(stage.query())
        await started.wait()
        search.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await search

        assert len(stage.stub.queries) == 1
        assert stage.running == []


@pytest.mark.spec("CANCEL-2")
async def test_all_further_queries_are_stopped_when_cancelled() -> None:
    async with staged([f"INFO {place}" for place in range(1_200)]) as stage:
        first = await stage.query()
        assert first.coverage.matched == 1_200
        stage.stub.queries.clear()
        polls = 0
        release = asyncio.Event()

        async def third_poll_blocks(received: Any) -> Reply:
            nonlocal polls
            polls += received.headers["X-Amz-Target"].endswith("GetQueryResults")
            if polls == 2:
                stage.stub.statuses = ("Running",)
                stage.block = release
            return stage.stub.answer(received)

        stage.server.answer = third_poll_blocks
        search = asyncio.create_task(stage.query())
        await release.wait()
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search

        assert len(stage.stub.queries) == 4
        assert stage.running == ["query-1"]


@pytest.mark.spec("DIAG-2")
@pytest.mark.parametrize("code", ["LimitExceededException", "ThrottlingException", "ServiceUnavailableException"])
@pytest.mark.parametrize("operation", ["StartQuery", "GetQueryResults"])
async def test_a_busy_aws_is_asked_again(operation: str, code: str) -> None:
    status = 503 if code.startswith("Service") else 400
    busy = [refusal(code, status=status), refusal(code, status=status)]
    async with staged(["a"], refusals={operation: busy}) as stage:
        evidence = await stage.query()

    assert evidence.coverage.matched == 1
    assert stage.stub.calls[operation] == 3
    assert min(stage.pauses) >= 1


@pytest.mark.spec("DIAG-2")
async def test_an_aws_that_stays_busy_is_told_within_the_time_left() -> None:
    async with staged(["a"], refusals={"StartQuery": [refusal("LimitExceededException")] * 99}) as stage:
        with pytest.raises(EvidenceUnavailable, match="too many") as caught:
            await stage.query()

    assert stage.clock.monotonic() <= 25
    assert 3 <= stage.stub.calls["StartQuery"] <= 10
    assert "canary" not in caught.value.hint


class Turns:
    """Time for many searches at once. It passes only while all of them wait; the first to wake then goes on alone."""

    def __init__(self, searches: int) -> None:
        self.clock = FakeClock(NOW)
        self._searches = searches
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    async def pause(self, seconds: float) -> None:
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.clock.monotonic() + seconds, next(self._order), turn))
        self._next()
        await turn

    def ended(self) -> None:
        self._searches -= 1
        self._next()

    def _next(self) -> None:
        if self._waiting and len(self._waiting) == self._searches:
            wakes, _, turn = heapq.heappop(self._waiting)
            self.clock.advance(wakes - self.clock.monotonic())
            turn.set_result(None)


@pytest.mark.spec("DIAG-2")
async def test_ten_searches_at_once_get_by_with_five_calls_a_second() -> None:
    """P115: each looks at most once a second, none in step with another, and to be throttled ends none."""
    turns = Turns(searches=10)
    accepted: deque[float] = deque(maxlen=5)
    looks: dict[str, list[float]] = defaultdict(list)
    refused = 0
    async with staged(["a"], statuses=("Scheduled", "Running", "Running", "Complete")) as stage:

        def throttled(received: Any) -> Reply:
            nonlocal refused
            now = turns.clock.monotonic()
            if query_id := received.json.get("queryId"):
                looks[query_id].append(now)
            if len(accepted) == accepted.maxlen and now - accepted[0] < 1:
                refused += 1
                return refusal("ThrottlingException")
            accepted.append(now)
            return stage.stub.answer(received)

        stage.server.answer = throttled
        api = stub_api(stage.server.url)

        async def search(number: int) -> Evidence:
            logs = CloudWatchLogs(
                {"app": CloudWatchSource("", ("/app",))},
                api=lambda: api,
                clock=turns.clock,
                pause=turns.pause,
                jitter=random.Random(number).random,  # noqa: S311 - the same times in each run
            )
            await turns.pause(0)
            try:
                return await logs.query_logs(ONE_HOUR)
            finally:
                turns.ended()

        found = await asyncio.gather(*map(search, range(10)))

    assert [evidence.coverage.matched for evidence in found] == [1] * 10
    assert refused
    assert len(stage.running) == len(looks) == 10
    assert min(later - sooner for times in looks.values() for sooner, later in itertools.pairwise(times)) >= 1
    every = [time for times in looks.values() for time in times]
    assert len(set(every)) == len(every)


@pytest.mark.spec("CANCEL-2")
async def test_waiting_for_a_busy_aws_ends_with_a_cancellation() -> None:
    async with staged(["a"], refusals={"StartQuery": [refusal("LimitExceededException")] * 99}) as stage:
        stage.block = asyncio.Event()
        search = asyncio.create_task(stage.query())
        await stage.block.wait()
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search

    assert stage.stub.queries == {}


@pytest.mark.spec("DIAG-2")
@pytest.mark.parametrize(
    ("code", "error", "hint"),
    [
        ("AccessDeniedException", EvidenceUnavailable, "not allowed to search /app"),
        ("ExpiredTokenException", EvidenceUnavailable, "not allowed to search /app"),
        ("ResourceNotFoundException", EvidenceUnavailable, "no such log group: /app"),
        ("MalformedQueryException", InvalidToolArguments, "Ask for a later window"),
        ("InvalidParameterException", EvidenceUnavailable, "did not accept"),
        ("SomethingNew", EvidenceUnavailable, "did not accept"),
    ],
)
async def test_what_aws_refuses_is_told_in_our_words(code: str, error: type[EvidenceError], hint: str) -> None:
    async with staged(["a"], refusals={"StartQuery": [refusal(code)] * 2}) as stage:
        with pytest.raises(error, match=hint) as caught:
            await stage.query()

    assert "canary" not in caught.value.hint
    assert code not in caught.value.hint


@pytest.mark.spec("DIAG-2")
async def test_nobody_listening_is_told() -> None:
    async def converse(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with tcp_stub(converse) as url:
        pass
    stage = Stage(HttpStub(lambda _: Reply(), url), CloudWatchStub({}))
    stage.api = partial(new_api, "eu-west-1")
    assert await stage.logs.describe() == "app: The service (2026-11-24T14:00:00Z to 2026-12-01T14:00:00Z)"
    with pytest.raises(EvidenceUnavailable, match="could not be reached"):
        await stage.query()


async def test_missing_credentials_are_a_refusal_in_our_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    async with staged(["a"]) as stage:
        stage.api = partial(new_api, "eu-west-1")
        with pytest.raises(EvidenceUnavailable, match="not allowed"):
            await stage.query()


@pytest.mark.spec("GUARD-2")
async def test_a_missing_group_among_others_is_named_and_makes_the_search_partial() -> None:
    async with staged(["a"]) as stage:
        stage.groups = ("/app", "/gone")
        evidence = await stage.query()

    assert evidence.coverage.matched == 1
    assert evidence.coverage.partial
    assert "/gone" in evidence.coverage.notes[0]
    assert "/app" not in evidence.coverage.notes[0]


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(
    ("end", "complete"),
    [(NOW - timedelta(minutes=10), True), (NOW - timedelta(seconds=10), False), (NOW + timedelta(hours=9), False)],
)
async def test_silence_proves_nothing_where_events_may_still_arrive(end: datetime, complete: bool) -> None:
    async with staged(["a"]) as stage:
        evidence = await stage.query(start=NOW - timedelta(hours=1), end=end)

    assert evidence.coverage.matched == 0
    assert evidence.coverage.complete is complete
    assert evidence.coverage.end == min(end, NOW)
    assert any("may not have arrived" in note for note in evidence.coverage.notes) is not complete


@pytest.mark.spec("GUARD-2")
async def test_a_live_source_without_an_end_is_never_proof() -> None:
    async with staged([StubEvent(NOW - timedelta(minutes=30), "INFO alive")]) as stage:
        described = await stage.logs.describe()
        evidence = await stage.query(end=None)

    assert evidence.coverage.partial
    assert evidence.coverage.end == NOW
    assert described == "app: The service (2026-12-01T13:30:00Z to 2026-12-01T14:00:00Z)"


@pytest.mark.spec("GUARD-2")
async def test_searches_reach_back_only_so_far_and_say_so() -> None:
    old = StubEvent(NOW - timedelta(days=30), "old")
    async with staged([old, StubEvent(NOW - timedelta(days=1), "new")]) as stage:
        evidence = await stage.query(start=None, end=NOW - timedelta(hours=1))
        assert evidence.coverage.start == NOW - timedelta(days=7)
        assert evidence.coverage.partial
        assert "older than 7 days" in evidence.coverage.notes[0]
        floor = stage.clock.now().replace(microsecond=0) - timedelta(days=7)
        asked = await stage.query(start=NOW - timedelta(days=90), end=NOW - timedelta(hours=1))
        assert (asked.coverage.start, asked.coverage.partial) == (floor, True)
        with pytest.raises(InvalidToolArguments, match="last 7 days"):
            await stage.query(start=NOW - timedelta(days=90), end=NOW - timedelta(days=80))
        with pytest.raises(InvalidToolArguments, match="future"):
            await stage.query(start=NOW + timedelta(days=1), end=NOW + timedelta(days=2))


@pytest.mark.spec("DIAG-2", "GUARD-2")
async def test_more_than_one_answer_holds_is_counted_as_a_whole() -> None:
    lines = [json.dumps({"level": "INFO", "n": place}) for place in range(3_000)]
    lines[1_500] = json.dumps({"level": "ERROR", "msg": "disk full"})
    lines[2_999] = json.dumps({"level": "warning", "msg": "last"})
    async with staged(lines, page_size=300) as stage:
        evidence = await stage.query(limit=10)

    summary = "\n".join(evidence.summary)
    assert (evidence.coverage.scanned, evidence.coverage.matched, evidence.coverage.shown) == (3_000, 3_000, 10)
    assert evidence.coverage.truncated
    assert not evidence.coverage.partial
    assert "levels: ERROR 1, WARN 1, INFO 2998" in evidence.summary
    assert "per 10 min: 14:00 600, 14:10 600, 14:20 600, 14:30 600, 14:40 600" in evidence.summary
    assert "first match: 2026-11-30T14:00:00Z" in evidence.summary
    assert "last match: 2026-11-30T14:49:59Z" in evidence.summary
    assert "patterns: of the 2001 records read" in summary
    assert '{"level": "ERROR", "msg": "disk full"}' in "\n".join(evidence.lines)
    assert "last" in evidence.lines[-1]
    assert len(stage.stub.queries) == 4
    assert evidence.coverage.notes == (
        "2001 of 3000 events that the search found were read: the first, those that tell of trouble, the last",
    )


@pytest.mark.spec("DIAG-2", "GUARD-2")
@pytest.mark.parametrize(
    "rare",
    [
        "FATAL heap is exhausted",
        json.dumps({"level": "error", "msg": "certificate expired"}),
        "kernel: Out of memory: Killed process 4711",
        "java.lang.IllegalStateException: gone\n\tat shop.Db.run(J)",
        "INFO child 6725 lost in slot 10: connection refused",
        "支付 timed out 数据库",
    ],
)
async def test_a_rare_record_of_trouble_among_those_that_were_not_read_is_shown(rare: str) -> None:
    lines = [f"INFO child {place} found in slot {place % 7}" for place in range(3_000)]
    lines.insert(1_700, rare)
    async with staged(lines) as stage:
        evidence = await stage.query(limit=10)

    shown = "\n".join(evidence.lines)
    assert rare in shown
    assert evidence.coverage.matched == 3_001
    assert evidence.coverage.truncated
    before, _, after = shown.partition(rare)
    assert "or more records not shown" in before
    assert "or more records not shown" in after


@pytest.mark.spec("DIAG-2")
@pytest.mark.parametrize("at", [0, 733, 1_799])
async def test_a_rare_record_of_no_trouble_is_shown_as_it_is_of_a_file(at: int) -> None:
    lines = [f"INFO order {place} of alice paid in {place % 40} ms" for place in range(1_800)]
    lines.insert(at, rare := "INFO feature flag checkout-v2 switched on")
    async with staged(lines) as stage:
        stage.rows = 10_000
        evidence = await stage.query(limit=10)

    assert any(rare in line for line in evidence.lines)
    assert any("feature flag" in line for line in evidence.summary)
    assert len(stage.stub.queries) == 1
    assert (evidence.coverage.matched, evidence.coverage.partial) == (1_801, False)
    hidden = sum(int(line.split()[1]) for line in evidence.lines if line.startswith("…"))
    assert hidden + evidence.coverage.shown == 1_801


@pytest.mark.spec("GUARD-2")
async def test_what_lies_between_the_first_and_the_last_records_read_is_counted() -> None:
    async with staged([f"INFO order {place} paid" for place in range(3_000)]) as stage:
        evidence = await stage.query(limit=10)

    hidden = sum(int(line.split()[1]) for line in evidence.lines if line.startswith("…"))
    assert hidden + evidence.coverage.shown == 3_000


@pytest.mark.spec("DIAG-2")
async def test_who_looks_for_trouble_only_pays_for_no_further_query_for_it() -> None:
    async with staged([json.dumps({"level": "ERROR", "n": place}) for place in range(3_000)]) as stage:
        evidence = await stage.query(levels=("ERROR", "FATAL"))

    assert len(stage.stub.queries) == 3
    assert (evidence.coverage.matched, evidence.coverage.partial) == (3_000, False)


@pytest.mark.spec("GUARD-2")
async def test_counts_that_could_not_be_made_are_not_made_up() -> None:
    async with staged([json.dumps({"level": "INFO", "n": place}) for place in range(3_000)]) as stage:

        def refuses_counts(received: Any) -> Reply:
            asked = received.json.get("queryString", "")
            return refusal("InvalidParameterException") if "stats" in asked else stage.stub.answer(received)

        stage.server.answer = refuses_counts
        evidence = await stage.query()

    assert evidence.coverage.matched == 3_000
    assert evidence.coverage.truncated
    assert not any(line.startswith(("levels:", "per ")) for line in evidence.summary)
    assert any("counts by level and time could not be made" in note for note in evidence.coverage.notes)


@pytest.mark.spec("DIAG-2", "GUARD-2")
async def test_levels_are_told_by_the_field_and_else_by_the_text() -> None:
    lines = [
        json.dumps({"level": "ERROR", "msg": "field"}),
        json.dumps({"level": 50, "msg": "number"}),
        json.dumps({"level": "info", "msg": "error in words only"}),
        "2026-11-30 14:00:03 ERROR plain",
        "[error] bracketed 14:00:04",
        "INFO no error here 14:00:05",
        "Task timed out after 3.00 seconds",
    ]
    async with staged(lines) as stage:
        errors = await stage.query(levels=("ERROR",))
        everything = await stage.query()

    assert (errors.coverage.matched, errors.coverage.complete, errors.coverage.filtered) == (4, True, True)
    assert "levels: ERROR 4, INFO 2, none 1" in everything.summary


@pytest.mark.spec("GUARD-2")
async def test_a_level_told_by_text_is_no_proof_beyond_what_was_read() -> None:
    lines = [f"INFO {place} no error" for place in range(2_500)]
    async with staged(lines) as stage:
        evidence = await stage.query(levels=("ERROR",))

    assert evidence.coverage.matched == 0
    assert evidence.coverage.partial
    assert not evidence.coverage.complete


@pytest.mark.spec("GUARD-2")
async def test_levels_of_a_field_are_counted_beyond_what_was_read() -> None:
    lines = [json.dumps({"log": 1, "sev-level": "ERR" if place % 2 else "INFO"}) for place in range(5_000)]
    async with staged(lines) as stage:
        stage.level_field = "sev-level"
        evidence = await stage.query(levels=("ERROR",), end=START + timedelta(hours=2))

    assert (evidence.coverage.matched, evidence.coverage.partial) == (2_500, False)
    assert "levels: ERROR 2500" in evidence.summary


@pytest.mark.spec("DIAG-2")
async def test_a_cut_message_is_read_again_as_a_whole() -> None:
    long = json.dumps(
        {
            "at": "14:00:00",
            "level": "ERROR",
            "stack": "\n".join(f"frame {place}" for place in range(300)),
            "end": "needle",
        }
    )
    async with staged([long, "short"]) as stage:
        evidence = await stage.query(contains=("needle",))

    assert evidence.lines[0].startswith(long[:100])
    assert evidence.lines[0].endswith('"end": "needle"}')
    assert "by CloudWatch" not in evidence.lines[0]
    assert "/app:0" not in "".join((*evidence.lines, *evidence.summary))
    assert evidence.coverage.truncated


@pytest.mark.spec("DIAG-2")
async def test_a_cut_message_that_can_not_be_had_is_marked_as_cut() -> None:
    async with staged(["e" * 9_000], refusals={"GetLogRecord": [refusal("AccessDeniedException")]}) as stage:
        evidence = await stage.query()

    assert "8000 characters cut]…" in evidence.lines[0]
    assert evidence.coverage.notes == ("1 long records are shown without their ends",)
    assert evidence.coverage.truncated


@pytest.mark.spec("GUARD-2")
async def test_a_text_compared_here_is_no_proof_over_cut_messages() -> None:
    async with staged(["x" * 3_000 + " a\\b", "y"]) as stage:
        evidence = await stage.query(contains=("a\\c",), levels=())
        whole = await stage.query(excludes=("a\\b",))

    assert evidence.coverage.complete
    assert evidence.coverage.matched == 0
    assert whole.coverage.partial
    assert any("compared in part" in note for note in whole.coverage.notes)


@pytest.mark.spec("DIAG-2")
async def test_only_so_many_messages_are_read_again_and_each_is_bounded() -> None:
    async with staged([f"{place} " + "x" * 9_000 + " needle " + "y" * 9_000 for place in range(30)]) as stage:
        evidence = await stage.query(contains=("needle",), limit=30)

    assert stage.stub.calls["GetLogRecord"] <= 10
    records = [line for line in evidence.lines if not line.startswith("…")]
    assert all("needle" in line for line in records)
    assert max(map(len, records)) <= 1_000
    assert len("\n".join((*evidence.summary, *evidence.lines)).encode()) <= 8_000


@pytest.mark.spec("SEC-2")
async def test_with_an_account_groups_are_asked_for_in_it_alone() -> None:
    async with staged(["a"]) as stage:
        stage.arn = lambda group: group_arn("eu-west-1", "111122223333", group)
        evidence = await stage.query(end=None)

    assert evidence.coverage.matched == 1
    full = "arn:aws:logs:eu-west-1:111122223333:log-group:/app"
    request = stage.stub.queries["query-1"].request
    assert request["logGroupIdentifiers"] == [full]
    assert "logGroupNames" not in request
    assert ("DescribeLogStreams", full) in [(name, r.get("logGroupIdentifier")) for name, r in stage.stub.requests]


async def test_requests_and_answers_have_the_shapes_of_the_service() -> None:
    client: Any = new_api("eu-west-1")
    with Stubber(client) as stubber:
        stubber.add_response(
            "start_query",
            {"queryId": "q1"},
            {
                "logGroupNames": ["/app"],
                "startTime": int(START.timestamp()),
                "endTime": int(END.timestamp()),
                "queryString": ANY,
                "limit": 10_000,
            },
        )
        row = [
            {"field": "@timestamp", "value": "2026-11-30 14:00:00.000"},
            {"field": "@message", "value": "ERROR at 14:00:00 " + "x" * 982},
            {"field": "@ptr", "value": "p1"},
        ]
        stubber.add_response(
            "get_query_results",
            {
                "results": [row],
                "statistics": {"recordsMatched": 1.0, "recordsScanned": 7.0, "bytesScanned": 9.0},
                "status": "Complete",
            },
            {"queryId": "q1"},
        )
        stubber.add_response(
            "get_log_record",
            {"logRecord": {"@message": "ERROR at 14:00:00 whole" + "x" * 1_000}},
            {"logRecordPointer": "p1"},
        )
        logs = CloudWatchLogs(
            {"app": CloudWatchSource("", ("/app",))},
            api=lambda: client,
            clock=FakeClock(NOW),
            pause=lambda _: asyncio.sleep(0),
        )
        evidence = await logs.query_logs(ONE_HOUR)
        stubber.assert_no_pending_responses()

    assert "whole" in evidence.lines[0]
    assert (evidence.coverage.scanned, evidence.coverage.matched) == (7, 1)


async def test_names_of_all_kinds_live_side_by_side() -> None:
    files = FakeSource(log_search({"web": []}), "web: Web (no lines)")
    async with staged(["a"]) as stage:
        both = LogSources([(files, ("web",)), (stage.logs, ("app",))])
        assert (await both.query_logs(ONE_HOUR)).title == "logs app"
        assert (await both.query_logs(QueryLogs(source="web"))).title == "logs web"
        assert [line.split(":")[0] for line in (await both.describe()).splitlines()] == ["web", "app"]
        with pytest.raises(UnknownSource, match="web, app"):
            await both.query_logs(QueryLogs(source="/app"))
        with pytest.raises(ConfigurationError, match="app"):
            LogSources([(files, ("app",)), (stage.logs, ("app",))])


@pytest.mark.spec("SEC-2", "SEC-3")
@pytest.mark.parametrize("count", [1, 3_000])
async def test_no_search_tells_whether_a_guessed_secret_is_right(count: int) -> None:
    lines = [f"INFO login of bob {place}: password=hunter2-Zq77" for place in range(count)]
    async with staged([*lines, "INFO paid"]) as stage:
        stage.redact = SecretRedactor()
        right = await stage.query(contains=("hunter2-Zq77",))
        begins = await stage.query(contains=("password=hunt",))
        without = await stage.query(excludes=("hunter2-Zq77",))

        assert (right.coverage.matched, begins.coverage.matched) == (0, 0)
        wrong = await stage.query(contains=("hunter3-Zq77",))
        assert right.coverage == wrong.coverage
        assert right.summary == wrong.summary
        assert without.coverage.matched == (await stage.query(excludes=("hunter3-Zq77",))).coverage.matched > 1
        assert not any("hunter2-zq77" in text and "not like" in text for text in stage.stub.texts)


@pytest.mark.spec("SEC-3")
async def test_a_placeholder_is_found_where_it_is_shown() -> None:
    redact = SecretRedactor()
    secret = "password=hunter2-Zq77"
    shown = redact(secret).removeprefix("password=")
    async with staged([f"login {secret}", "login password=other-Zq78", "paid"]) as stage:
        stage.redact = redact
        same = await stage.query(contains=(shown,))
        named = await stage.query(contains=(f"LOGIN password={shown}",))
        others = await stage.query(excludes=(shown,))

    assert same.coverage.matched == named.coverage.matched == 1
    assert same.coverage.complete
    assert others.coverage.matched == 2
