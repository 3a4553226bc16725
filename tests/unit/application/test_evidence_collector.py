"""What becomes of a source's result before anybody sees it."""

import asyncio
from functools import partial
from typing import Any

import pytest

from superbizagent.application.evidence_collector import EvidenceCollector, EvidenceLimits
from superbizagent.domain.codes import ObservationStatus, ToolName, Unit
from superbizagent.domain.evidence import (
    Coverage,
    Evidence,
    LookupKnowledge,
    Observation,
    QueryLogs,
    QueryMysql,
    ToolArguments,
)
from tests.fakes.clock import FakeClock
from tests.fakes.sources import document_evidence, log_evidence, row_evidence
from tests.unit.application.test_router import context

LOGS = QueryLogs(source="payment")


def collector(**limits: Any) -> EvidenceCollector:
    def redact(text: str) -> str:
        return text.replace("hunter2", "[secret-1]")

    return EvidenceCollector(context(), FakeClock(), redact, EvidenceLimits(**limits))


async def collect(
    evidence: Evidence, arguments: ToolArguments = LOGS, tool: ToolName = ToolName.QUERY_LOGS, **limits: Any
) -> Observation:
    async def fetch() -> Evidence:
        return evidence

    return await collector(**limits).collect(tool, arguments, fetch)


def numbered(count: int) -> Evidence:
    """Lines of 10 bytes each, line break included; the title is such a line too."""
    return Evidence(
        title="title 000",
        lines=tuple(f"line {number:04}" for number in range(1, count)),
        coverage=Coverage(unit=Unit.LINES, matched=count - 1, shown=count - 1),
    )


@pytest.mark.spec("SEC-3", "DIAG-2")
async def test_titles_arguments_and_notes_are_redacted() -> None:
    arguments = QueryLogs(source="payment", contains=("登录 hunter2",), limit=7)

    observation = await collect(log_evidence("x", title="payment hunter2", notes=("see hunter2",)), arguments)

    assert observation.title == "payment [secret-1]"
    assert observation.projection.startswith("payment [secret-1]\n")
    assert observation.arguments == (
        '{"contains": ["登录 [secret-1]"], "end": null, "excludes": [], "levels": [], "limit": 7,'
        ' "source": "payment", "start": null}'
    )
    assert observation.coverage is not None
    assert observation.coverage.notes == ("see [secret-1]",)


@pytest.mark.spec("DIAG-2")
async def test_notes_are_bounded_in_number_and_length() -> None:
    observation = await collect(log_evidence("x", notes=("n" * 300, *(str(number) for number in range(20)))))

    assert observation.coverage is not None
    assert observation.coverage.notes == ("n" * 199 + "…", *"0123456")


@pytest.mark.spec("DIAG-2")
async def test_what_fits_is_shown_whole() -> None:
    observation = await collect(numbered(60), projection_bytes=600)

    assert observation.projection.split("\n") == ["title 000", *(f"line {number:04}" for number in range(1, 60))]
    assert observation.coverage == Coverage(unit=Unit.LINES, matched=59, shown=59)


@pytest.mark.spec("DIAG-2")
async def test_what_does_not_fit_keeps_its_head_and_its_tail() -> None:
    observation = await collect(numbered(61), projection_bytes=600)

    lines = observation.projection.split("\n")
    assert lines[:40] == ["title 000", *(f"line {number:04}" for number in range(1, 40))], "two thirds for the head"
    assert lines[40] == "… 5 lines not shown …"
    assert lines[41:] == [f"line {number:04}" for number in range(45, 61)]
    assert len(observation.projection.encode()) <= 600
    assert observation.coverage == Coverage(
        unit=Unit.LINES, matched=60, shown=55, truncated=True, notes=("the result was cut to fit",)
    )


@pytest.mark.spec("DIAG-2", "GUARD-2")
async def test_a_line_that_is_cut_makes_the_observation_incomplete() -> None:
    observation = await collect(log_evidence("x" * 200), line_characters=100)

    assert observation.projection.endswith("\n" + "x" * 99 + "…")
    assert observation.coverage is not None
    assert observation.coverage.notes == ("long lines were cut",)
    assert (observation.coverage.shown, observation.coverage.truncated) == (1, True)


@pytest.mark.spec("DIAG-2", "GUARD-2")
async def test_what_a_source_left_out_stays_said() -> None:
    observation = await collect(log_evidence("x", matched=9, truncated=True))

    assert observation.coverage is not None
    assert (observation.coverage.truncated, observation.coverage.notes) == (True, ())


@pytest.mark.spec("DIAG-2")
async def test_passages_are_counted_as_passages_however_many_lines_are_cut() -> None:
    lookup = LookupKnowledge(query="pool")
    found = document_evidence(("D1", "Gateway", "\n".join(["Restart the pool."] * 100)))

    observation = await collect(found, lookup, ToolName.LOOKUP_KNOWLEDGE, projection_bytes=500)

    assert observation.coverage is not None
    assert (observation.coverage.shown, observation.coverage.truncated) == (1, True)


@pytest.mark.spec("DIAG-2")
async def test_fewer_records_than_lines_cut_are_none_shown() -> None:
    wide = row_evidence("\n".join(["part of one row"] * 100))

    observation = await collect(wide, QueryMysql(statement="SELECT 1"), ToolName.QUERY_MYSQL, projection_bytes=500)

    assert observation.coverage is not None
    assert observation.coverage.shown == 0


@pytest.mark.spec("DIAG-4")
async def test_equal_text_of_another_tool_or_another_status_is_something_new() -> None:
    evidence = collector(saturation=1)
    coverage = Coverage(unit=Unit.LINES, matched=1, shown=1)
    nothing = coverage.model_copy(update={"matched": 0, "shown": 0})

    async def fetch(found: Coverage) -> Evidence:
        return Evidence(title="same", coverage=found)

    for tool, arguments, found, status in (
        (ToolName.QUERY_LOGS, LOGS, coverage, ObservationStatus.READY),
        (ToolName.QUERY_MYSQL, QueryMysql(statement="SELECT 1"), coverage, ObservationStatus.READY),
        (ToolName.QUERY_MYSQL, QueryMysql(statement="SELECT 2"), nothing, ObservationStatus.NO_EVIDENCE),
    ):
        observation = await evidence.collect(tool, arguments, partial(fetch, found))
        assert observation.status is status
        assert not evidence.saturated
    await evidence.collect(ToolName.QUERY_MYSQL, QueryMysql(statement="SELECT 3"), partial(fetch, nothing))
    assert evidence.saturated


@pytest.mark.spec("DIAG-3", "DIAG-4")
async def test_a_repeated_call_shows_nothing_new() -> None:
    evidence = collector(saturation=2)

    async def fetch() -> Evidence:
        return log_evidence("x")

    for saturated in (False, False, True):
        await evidence.collect(ToolName.QUERY_LOGS, LOGS, fetch)
        assert evidence.saturated is saturated


async def hang() -> Evidence:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


@pytest.mark.spec("DIAG-2")
async def test_a_source_that_hangs_is_an_error_after_its_time() -> None:
    evidence = collector(timeout=0.01)

    observation = await asyncio.wait_for(evidence.collect(ToolName.QUERY_LOGS, LOGS, hang), 5)

    assert (observation.status, observation.error_code) == (ObservationStatus.ERROR, "EVIDENCE_TIMEOUT")


@pytest.mark.spec("DIAG-2", "BUDGET-3")
async def test_a_source_s_own_timeout_near_the_deadline_is_not_the_run_s() -> None:
    async def fail() -> Evidence:
        raise TimeoutError

    observation = await collector(timeout=500).collect(ToolName.QUERY_LOGS, LOGS, fail)

    assert observation.error_code == "EVIDENCE_TIMEOUT"


@pytest.mark.spec("CANCEL-2")
async def test_a_cancelled_call_is_no_observation() -> None:
    evidence = collector()
    call = asyncio.create_task(evidence.collect(ToolName.QUERY_LOGS, LOGS, hang))
    await asyncio.sleep(0)

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    assert evidence.observations == ()
