"""What every LogSource does; the same suite on the fake, on files and on CloudWatch."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from superbizagent.adapters.cloudwatch_logs import CloudWatchLogs, CloudWatchSource
from superbizagent.adapters.log_files import LogFiles, LogFileSource
from superbizagent.domain.evidence import LogLevel, QueryLogs
from superbizagent.errors import InvalidToolArguments, UnknownSource
from superbizagent.ports import LogSource
from tests.cloudwatch_stub import CloudWatchStub, StubEvent, stub_api
from tests.fakes.clock import FakeClock
from tests.fakes.sources import FakeLine, FakeSource, log_description, log_search
from tests.http_stub import http_stub

START = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)

NewSource = Callable[[Sequence[tuple[LogLevel, str]]], LogSource]


def _lines(messages: Sequence[tuple[LogLevel, str]]) -> list[FakeLine]:
    times = [START + timedelta(seconds=second) for second in range(len(messages))]
    return [
        FakeLine(at, level, f"{at:%Y-%m-%dT%H:%M:%SZ} {level} {message}")
        for at, (level, message) in zip(times, messages, strict=True)
    ]


@pytest.fixture(params=["fake", "files", "cloudwatch"])
async def new_source(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[NewSource]:
    """Makes a source named `app` of messages one second apart."""

    def fake(messages: Sequence[tuple[LogLevel, str]]) -> LogSource:
        lines = {"app": _lines(messages)}
        return FakeSource(log_search(lines), log_description(lines, {"app": "The service"}))

    def files(messages: Sequence[tuple[LogLevel, str]]) -> LogSource:
        path = tmp_path / "app.log"
        path.write_text("".join(line.text + "\n" for line in _lines(messages)))
        return LogFiles({"app": LogFileSource("The service", (str(path),))})

    if request.param != "cloudwatch":
        yield fake if request.param == "fake" else files
        return

    async with http_stub() as server:

        def cloudwatch(messages: Sequence[tuple[LogLevel, str]]) -> LogSource:
            events = [StubEvent(line.at, line.text) for line in _lines(messages)]
            server.answer = CloudWatchStub({"/app": events}).answer
            clock = FakeClock(START + timedelta(days=1))

            async def pause(seconds: float) -> None:
                clock.advance(seconds)

            return CloudWatchLogs(
                {"app": CloudWatchSource("The service", ("/app",))},
                api=lambda: stub_api(server.url),
                clock=clock,
                pause=pause,
            )

        yield cloudwatch


MESSAGES: tuple[tuple[LogLevel, str], ...] = (
    ("INFO", "started"),
    ("ERROR", "Payment TIMED out"),
    ("WARN", "slow"),
    ("ERROR", "disk full"),
)


@pytest.mark.spec("DIAG-2")
async def test_counts_and_shows_all_lines_without_a_filter(new_source: NewSource) -> None:
    evidence = await new_source(MESSAGES).query_logs(QueryLogs(source="app"))

    coverage = evidence.coverage
    assert (coverage.scanned, coverage.matched, coverage.shown) == (4, 4, 4)
    assert coverage.complete
    assert not coverage.filtered
    assert (coverage.start, coverage.end) == (START, START + timedelta(seconds=3))
    assert [line.split(" ", 2)[2] for line in evidence.lines] == [message for _, message in MESSAGES]
    assert evidence.title == "logs app"


@pytest.mark.spec("DIAG-2", "GUARD-2")
async def test_filters_by_level_and_wording(new_source: NewSource) -> None:
    source = new_source(MESSAGES)

    evidence = await source.query_logs(
        QueryLogs(source="app", levels=("ERROR",), contains=("timed",), excludes=("disk",))
    )

    assert [line.split(" ", 2)[2] for line in evidence.lines] == ["Payment TIMED out"]
    assert evidence.coverage.filtered
    assert (evidence.coverage.scanned, evidence.coverage.matched) == (4, 1)


@pytest.mark.spec("GUARD-2")
async def test_the_window_has_its_start_and_lacks_its_end(new_source: NewSource) -> None:
    start, end = START + timedelta(seconds=1), START + timedelta(seconds=3)

    evidence = await new_source(MESSAGES).query_logs(QueryLogs(source="app", start=start, end=end))

    assert [line.split(" ", 2)[2] for line in evidence.lines] == ["Payment TIMED out", "slow"]
    assert (evidence.coverage.start, evidence.coverage.end) == (start, end)


@pytest.mark.spec("GUARD-2")
async def test_more_matches_than_the_limit_are_truncated(new_source: NewSource) -> None:
    evidence = await new_source(MESSAGES).query_logs(QueryLogs(source="app", limit=2))

    assert evidence.coverage.truncated
    assert not evidence.coverage.complete
    assert (evidence.coverage.matched, evidence.coverage.shown) == (4, 2)


async def test_no_match_is_no_error(new_source: NewSource) -> None:
    evidence = await new_source(MESSAGES).query_logs(QueryLogs(source="app", contains=("nowhere",)))

    assert evidence.lines == ()
    assert evidence.coverage.complete
    assert evidence.coverage.matched == 0


@pytest.mark.spec("SEC-2")
@pytest.mark.parametrize("name", ["other", "../app", "/etc/passwd", "app*"])
async def test_only_configured_names_are_sources(new_source: NewSource, name: str) -> None:
    with pytest.raises(UnknownSource, match="app"):
        await new_source(MESSAGES).query_logs(QueryLogs(source=name))


async def test_an_empty_window_is_refused(new_source: NewSource) -> None:
    with pytest.raises(InvalidToolArguments):
        await new_source(MESSAGES).query_logs(QueryLogs(source="app", start=START, end=START))


async def test_describes_name_contents_and_range(new_source: NewSource) -> None:
    assert await new_source(MESSAGES).describe() == ("app: The service (2026-11-30T14:00:00Z to 2026-11-30T14:00:03Z)")
