"""What operators can know of the functions: each run's story from its log lines, and metrics that somebody sees."""

import asyncio
import importlib
import io
import itertools
import json
import logging
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from sqlalchemy import text

from local.gateway.template.reader import read_document
from superbizagent import settings
from superbizagent.adapters.cloudwatch_journal import CloudWatchJournal
from superbizagent.adapters.store import SqlCancelRequests
from superbizagent.adapters.system_clock import SystemClock
from superbizagent.domain.budget import Usage
from superbizagent.domain.codes import ObservationStatus
from superbizagent.domain.content import FallbackReason
from superbizagent.domain.run import CancelReason, Intent, ReleaseOutcome, RunIds
from superbizagent.domain.steps import (
    Abandoned,
    Cancelled,
    DraftChecked,
    Finished,
    ModelCalled,
    NotStored,
    PostFailed,
    Released,
    Routed,
    Started,
    Step,
    ToolCalled,
)
from tests.http_stub import Received, Reply, completion
from tests.invocations import CONNECTION, EVENTS, OK, Context, Json, World, event, world_on
from tests.translated_template import TEMPLATE

RECORD = "2026-11-30T14:05:00Z ERROR payment gateway timed out, canary-evidence"
LOOK = ("query_logs", {"source": "app"})
CLAIM = {"text": "The payment gateway timed out.", "evidence_ids": ["E1"], "quotes": ["payment gateway timed out"]}
DRAFT = {
    "conclusion": "The payment gateway timed out.",
    "claims": [CLAIM],
    "scope": "app",
    "limitations": [],
    "next_steps": [],
}
SUPPORTED = {"verdicts": [{"claim": 0, "supported": True}, {"claim": 1, "supported": True}]}


@pytest.fixture
async def world(sqlite_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    (tmp_path / "app.log").write_text(RECORD + "\n")
    async with world_on(sqlite_database, tmp_path, monkeypatch) as world:
        yield world


@pytest.fixture
def written(world: World, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the functions' own handler writes from here on; `world` comes first because it makes that handler."""
    assert world.handlers
    [handler] = logging.getLogger("superbizagent").handlers
    assert isinstance(handler, logging.StreamHandler)
    stream = io.StringIO()
    # Not by setStream: what the handler had may be a captured stream that is closed by now.
    monkeypatch.setattr(handler, "stream", stream)
    return stream


@dataclass(frozen=True)
class Script:
    """The model of a diagnosis: what it says to each kind of call, in turn."""

    turns: deque[Reply]
    verdict: Json

    def __call__(self, call: Received) -> Reply:
        if "tools" in call.json:
            return self.turns.popleft()
        name = call.json["response_format"]["json_schema"]["name"]
        return Reply(completion(json.dumps({"intent": "DIAGNOSIS"} if name == "intent" else self.verdict)))


def script(*turns: tuple[str, Json] | Reply, verdict: Json | None = None) -> Script:
    return Script(deque(turn if isinstance(turn, Reply) else _calling(*turn) for turn in turns), verdict or SUPPORTED)


def _calling(name: str, arguments: Json) -> Reply:
    call = {"id": "", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return Reply(completion("", tool_calls=[call], finish="tool_calls"))


def _lines(stream: io.StringIO) -> list[Json]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


ENDS = {"FINISHED", "ABANDONED"}
IDS_OF_A_RUN = ("run_id", "session_id", "request_id", "connection_id")


@dataclass(frozen=True)
class Story:
    """A run as its lines tell it, and nothing else."""

    steps: tuple[Json, ...]

    @classmethod
    def of(cls, run_id: str, lines: Iterable[Json]) -> "Story":
        """As the saved query finds them: by the run's id, in the order of time and number."""
        found = [line for line in lines if line.get("run_id") == run_id and "step" in line and "seq" in line]
        return cls(tuple(sorted(found, key=lambda line: (line["timestamp"], line["seq"]))))

    @property
    def names(self) -> list[str]:
        return [line["step"] for line in self.steps]

    @property
    def end(self) -> Json:
        """The last step of a whole story."""
        assert [name for name in self.names if name in ENDS] == self.names[-1:]
        return self.steps[-1]

    def only(self, name: str) -> Json:
        [line] = self.all(name)
        return line

    def all(self, name: str) -> list[Json]:
        return [line for line in self.steps if line["step"] == name]

    def row(self) -> Json:
        """The row that must be in the database, put together from the steps before the last one."""
        intents = [line["intent"] for line in self.all("ROUTED")]
        # What a dead process had used is in its steps alone.
        used = self.used if self.end["step"] == "FINISHED" else dict.fromkeys(self.used, 0)
        return {
            **{name: self.only("STARTED")[name] for name in ("session_id", "request_id", "connection_id")},
            "intent": intents[0] if intents else None,
            "release_outcome": self.end["outcome"],
            "failure_code": self.end.get("code"),
            **used,
        }

    @property
    def used(self) -> Json:
        return {
            "model_calls": len(self.all("MODEL_CALL")),
            "tool_calls": len([line for line in self.all("TOOL_CALL") if line["charged"]]),
            "tokens": sum(line["tokens"] for line in self.all("MODEL_CALL")),
        }


def _told(world: World, written: io.StringIO, request_id: str = "question-1") -> Story:
    """The story of that request's run, held against its row."""
    [row] = [row for row in world.rows("SELECT * FROM diagnosis_run") if row["request_id"] == request_id]
    story = Story.of(row["run_id"], _lines(written))
    expected = story.row()
    assert {name: row[name] for name in expected} == expected
    end = story.end
    assert {name: end[name] for name in IDS_OF_A_RUN} == {name: row[name] for name in IDS_OF_A_RUN}
    assert {name: end.get(name, 0) for name in story.used} == {name: row[name] for name in story.used}
    assert end.get("intent") == row["intent"]
    assert round(end["seconds"] * 1000) == row["duration_ms"]
    return story


# Stories -------------------------------------------------------------------------------------------


@pytest.mark.spec("SEC-4")
async def test_the_story_of_a_diagnosis(world: World, written: io.StringIO) -> None:
    await world.connect()
    # The same look twice: the second costs nothing. A tool of no name we know is told as unknown.
    world.model.answer = script(LOOK, LOOK, ("canary-tool", {}), ("submit_draft", DRAFT))
    assert await world.chat(query="Why do payments fail?") == OK

    story = _told(world, written)
    assert story.names == [
        "STARTED",
        "MODEL_CALL",
        "ROUTED",
        *["MODEL_CALL", "TOOL_CALL"] * 3,
        "MODEL_CALL",
        "DRAFT_CHECKED",
        "MODEL_CALL",
        "DRAFT_CHECKED",
        "RELEASED",
        "FINISHED",
    ]
    assert [line["purpose"] for line in story.all("MODEL_CALL")] == ["intent", *["tool_calls"] * 4, "claim_verdicts"]
    assert [(line["tool"], line["status"], line["cached"]) for line in story.all("TOOL_CALL")] == [
        ("query_logs", "READY", False),
        ("query_logs", "READY", True),
        ("unknown", "ERROR", False),
    ]
    assert [(line["guard"], line["rules"]) for line in story.all("DRAFT_CHECKED")] == [
        ("EVIDENCE", {}),
        ("MEANING", {}),
    ]
    assert (story.only("RELEASED")["content"], story.only("FINISHED")["outcome"]) == ("DIAGNOSIS", "SUCCESS")


async def test_the_story_of_a_fallback_tells_the_broken_rule(world: World, written: io.StringIO) -> None:
    await world.connect()
    made_up = DRAFT | {"claims": [CLAIM | {"quotes": ["the canary-draft sang"]}]}
    world.model.answer = script(LOOK, ("submit_draft", made_up))
    await world.chat()

    story = _told(world, written)
    assert story.only("DRAFT_CHECKED")["rules"]["QUOTE_NOT_FOUND"] == 1
    assert (story.only("FINISHED")["outcome"], story.only("FINISHED")["reason"]) == ("FALLBACK", "GUARD_REJECTED")


async def test_the_story_of_a_claim_that_does_not_follow(world: World, written: io.StringIO) -> None:
    await world.connect()
    refused = {"verdicts": [{"claim": 0, "supported": False}, {"claim": 1, "supported": True}]}
    world.model.answer = script(LOOK, ("submit_draft", DRAFT), verdict=refused)
    await world.chat()
    checked = _told(world, written).all("DRAFT_CHECKED")
    assert [line["rules"] for line in checked] == [{}, {"MEANING_NOT_SHOWN": 1}]


async def test_the_story_of_a_failed_run_tells_each_call_that_failed(world: World, written: io.StringIO) -> None:
    await world.connect()
    throttled = Reply({"error": {"message": "slow down, canary-error"}}, 429)
    world.model.answer = script(LOOK, throttled, throttled)
    await world.chat()
    story = _told(world, written)
    assert story.only("FINISHED")["outcome"] == "FAILED"
    assert [line.get("code") for line in story.all("MODEL_CALL")] == [None, None, *["MODEL_THROTTLED"] * 2]


@pytest.mark.spec("CANCEL-1")
async def test_the_story_of_a_cancelled_run_tells_how_long_its_end_took(world: World, written: io.StringIO) -> None:
    await world.connect()

    async def cancel_and_hang() -> Reply:
        [row] = world.rows("SELECT run_id FROM diagnosis_run")
        await SqlCancelRequests(world.database).cancel_run(row["run_id"], "alice", SystemClock().now())
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    world.model.answer = lambda _: cancel_and_hang()
    await world.chat()
    story = _told(world, written)
    assert story.names == ["STARTED", "CANCELLED", "MODEL_CALL", "FINISHED"]
    assert story.only("CANCELLED")["cause"] == "CLIENT_REQUEST"
    assert story.only("MODEL_CALL")["code"] == "RUN_CANCELLED"
    finished = story.only("FINISHED")
    assert finished["elapsed"] >= finished["cancelling"] >= story.only("CANCELLED")["waited"] >= 0


def _execute(world: World, *statements: str) -> None:
    with world.database.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


async def _chat_that_dies(world: World, **message: Any) -> None:
    """As far as its row can tell: the process is one here, so the store refuses every end but one from outside."""
    _execute(
        world,
        "CREATE TRIGGER dead BEFORE UPDATE OF status ON diagnosis_run"
        " WHEN NEW.failure_code IS NOT 'RUN_ABANDONED' BEGIN SELECT RAISE(ABORT, 'canary-store'); END",
    )
    await world.chat(**message)
    _execute(world, "DROP TRIGGER dead", "UPDATE diagnosis_run SET deadline_at = '2026-01-01 00:00:00.000000'")


async def _sweep(world: World) -> None:
    await world.invoke("sweep", json.loads((EVENTS / "sweep.json").read_text()))


async def _ask_again(world: World) -> None:
    """The next question of the session."""
    await world.chat(request="g2", requestId="question-2", sessionId="s1")


@pytest.mark.spec("LIFE-7")
@pytest.mark.parametrize("ended_from_outside", [_sweep, _ask_again], ids=["by the sweep", "by the next question"])
async def test_the_story_of_an_abandoned_run_is_whole(
    world: World, written: io.StringIO, ended_from_outside: Callable[[World], Awaitable[None]]
) -> None:
    await world.connect()
    world.model.answer = script(LOOK, ("submit_draft", DRAFT))
    await _chat_that_dies(world, sessionId="s1")
    model_calls = len(world.model.received)
    world.model.answer = world.answer_as_model
    await ended_from_outside(world)

    story = _told(world, written)
    calls = {"MODEL_CALL", "TOOL_CALL", "DRAFT_CHECKED"}
    assert [name for name in story.names if name not in calls] == [
        "STARTED",
        "ROUTED",
        "RELEASED",
        "NOT_STORED",
        "ABANDONED",
    ]
    assert (story.end["intent"], story.end["outcome"], story.end["code"]) == ("DIAGNOSIS", "FAILED", "RUN_ABANDONED")
    assert story.end["elapsed"] == story.end["seconds"]
    assert (story.used["model_calls"], story.used["tool_calls"]) == (model_calls, 1)


@pytest.mark.spec("LIFE-7")
async def test_a_run_that_makes_room_for_the_next_question_is_counted_like_a_swept_one(
    world: World, written: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    await world.connect()
    counted = []
    for number, ended_from_outside in enumerate((_sweep, _ask_again)):
        await _chat_that_dies(world, request=f"d{number}", requestId=f"dies-{number}", sessionId="s1")
        capfd.readouterr()
        await ended_from_outside(world)
        counted.append([datum for datum in _data(_blobs(capfd)) if datum.name in OF_AN_ABANDONED_RUN])
    assert _told(world, written, "question-2").end["outcome"] == "SUCCESS"
    swept, made_room = counted
    assert [datum.name for datum in swept] == ["RunsAbandoned", "Runs", "Runs", "RunFailures", "RunFailures"]
    # Besides, there is what counts the next question's own run.
    assert made_room[: len(swept)] == swept
    assert {datum.dimensions.get("code") for datum in swept if datum.name == "RunFailures"} == {None, "RUN_ABANDONED"}


async def test_a_run_whose_start_is_not_stored_is_told(world: World, written: io.StringIO) -> None:
    await world.connect()
    with world.database.engine.begin() as connection:
        connection.execute(text("DROP TABLE diagnosis_run"))
    await world.chat()
    [line] = [line for line in _lines(written) if line.get("step") == "NOT_STORED"]
    assert (line["level"], line["code"], line["request_id"]) == ("ERROR", "STORE_UNAVAILABLE", "question-1")


async def test_a_client_that_is_gone_is_told_once(world: World, written: io.StringIO) -> None:
    await world.connect()
    world.gone.add(CONNECTION)
    await world.chat()
    told = [line["code"] for line in _lines(written) if line.get("step") == "POST_FAILED"]
    assert told == ["CLIENT_GONE"]


async def test_every_line_of_a_run_has_its_id_and_none_that_of_the_run_before(
    world: World, written: io.StringIO
) -> None:
    await world.connect()
    # No verdict twice, which is logged by the guard, far from where the run's id is known.
    world.model.answer = script(LOOK, ("submit_draft", DRAFT), verdict={"verdicts": []})
    await world.chat(request="g1")
    [row] = world.rows("SELECT run_id FROM diagnosis_run")
    unlucky = [line for line in _lines(written) if line["message"] == "no verdict"]
    assert [line["run_id"] for line in unlucky] == [row["run_id"]] * 2
    before = len(_lines(written))
    await world.invoke("chat", event("chat", body='{"action":"chat"}'))
    refused = _lines(written)[before:]
    assert refused
    assert not [line for line in refused if "run_id" in line]


@pytest.mark.spec("SEC-4")
async def test_nothing_of_question_evidence_or_errors_is_in_a_line_or_a_metric(
    world: World, written: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    await world.connect()
    secret = {"source": "app", "contains": ["canary-argument"]}
    for number, turns in enumerate(
        (
            (
                LOOK,
                ("canary-tool", {"canary": 1}),
                ("query_mysql", {"statement": "canary-sql"}),
                ("submit_draft", DRAFT),
            ),
            (("query_logs", secret), ("submit_draft", DRAFT | {"conclusion": "canary-conclusion"})),
            (LOOK, Reply(b"canary-body", 500), Reply(b"canary-body", 500)),
        )
    ):
        world.model.answer = script(*turns)
        await world.chat(request=f"g{number}", requestId=f"q{number}", query=f"canary-query {number}")
    asked = "".join(json.dumps(call.json) for call in world.model.received)
    # Were they not on their way, the test would say nothing.
    assert {"canary-evidence", "canary-query", "canary-argument"} <= set(re.findall(r"canary-\w+", asked))
    output = written.getvalue() + "".join(capfd.readouterr())
    assert len(output.splitlines()) > 30
    assert not re.findall(r"canary-\w+", output)


@pytest.mark.spec("LIFE-5")
async def test_a_journal_that_fails_costs_a_run_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, written: io.StringIO
) -> None:
    await world.connect()
    # Powertools writes no metrics without a namespace.
    monkeypatch.delenv("POWERTOOLS_METRICS_NAMESPACE")
    await world.chat()
    assert world.rows("SELECT release_outcome FROM diagnosis_run") == [{"release_outcome": "SUCCESS"}]
    assert [line for line in _lines(written) if line["message"] == "step not recorded"]


# Metrics -------------------------------------------------------------------------------------------

OF_AN_ABANDONED_RUN = {"RunsAbandoned", "Runs", "RunFailures"}


@dataclass(frozen=True)
class Datum:
    """One value of one metric, as CloudWatch takes it out of a line of the embedded metric format."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    value: float


def _blobs(capfd: pytest.CaptureFixture[str]) -> list[Json]:
    """The lines of that format that were written since the last look."""
    return [json.loads(line) for line in capfd.readouterr().out.splitlines() if '"_aws"' in line]


def _data(blobs: Iterable[Json]) -> Iterator[Datum]:
    for blob in blobs:
        for directive in blob["_aws"]["CloudWatchMetrics"]:
            for dimensions, metric in itertools.product(directive["Dimensions"], directive["Metrics"]):
                named = {name: blob[name] for name in dimensions}
                for value in blob[metric["Name"]]:
                    yield Datum(directive["Namespace"], metric["Name"], named, value)


Metric = tuple[str, frozenset[str]]
"""Its name and the names of its dimensions."""
IDS = RunIds("id-of-run", "id-of-session", "id-of-request", "id-of-connection")
STEPS: tuple[Step, ...] = (
    Started(180.0),
    Routed(Intent.DIAGNOSIS),
    ModelCalled("intent", 1, 10, 0.5, "MODEL_TIMEOUT"),
    ToolCalled("query_logs", ObservationStatus.ERROR, 0.5, "EVIDENCE_TIMEOUT"),
    ToolCalled("query_logs", ObservationStatus.READY, cached=True, charged=False),
    DraftChecked("EVIDENCE", {"NO_CLAIMS": 1, "VALUE_NOT_FOUND": 2}),
    DraftChecked("MEANING"),
    Released(ReleaseOutcome.FALLBACK, "FALLBACK", FallbackReason.GUARD_REJECTED),
    Cancelled(CancelReason.SHUTDOWN, 0.25),
    NotStored("STORE_UNAVAILABLE"),
    Finished(None, ReleaseOutcome.FAILED, Usage(), 1.0, "INTERNAL_FAILURE"),
    Finished(Intent.DIAGNOSIS, ReleaseOutcome.FALLBACK, Usage(), 1.0, reason=FallbackReason.BUDGET_REACHED),
    Finished(Intent.DIAGNOSIS, ReleaseOutcome.CANCELLED, Usage(), 1.0, cause=CancelReason.SHUTDOWN, cancelling=0.5),
    Finished(Intent.DIAGNOSIS, ReleaseOutcome.SUCCESS, Usage(), 1.0, stored=False),
    Abandoned(Intent.DIAGNOSIS, 190.0),
    PostFailed("CLIENT_GONE"),
    PostFailed("CHANNEL_UNAVAILABLE"),
)
OF_HANDLERS = {"SignIns", "SignInsRefused", "SignInsUndecided", "MessagesRefused", "MessagesRepeated", "Sweeps"}
"""Counted by handlers: tests/integration/test_functions.py and test_sign_in.py see that they are."""
SERVICE = frozenset({"service"})


@pytest.fixture
def blobs(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[list[Json]]:
    """All that the journal writes of every kind of step, in the embedded metric format."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "stack")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "SuperBizAgent")
    assert {type(step) for step in STEPS} == set(Step.__args__)
    journal = CloudWatchJournal()
    for step in STEPS:
        journal.record(IDS, step, 1.0)
    yield _blobs(capfd)
    Logger(service="superbizagent").clear_state()


def test_metrics_keep_to_the_rules_of_their_format(blobs: list[Json]) -> None:
    """https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html"""
    assert blobs
    for blob in blobs:
        assert isinstance(blob["_aws"]["Timestamp"], int)
        for directive in blob["_aws"]["CloudWatchMetrics"]:
            assert directive["Namespace"] == "SuperBizAgent"
            assert 1 <= len(directive["Metrics"]) <= 100
            for dimensions in directive["Dimensions"]:
                assert len(dimensions) == len(set(dimensions)) <= 30
                assert all(isinstance(blob[name], str) and 1 <= len(blob[name]) <= 1024 for name in dimensions)
            for metric in directive["Metrics"]:
                values = blob[metric["Name"]]
                assert 1 <= len(values) <= 100
                assert all(isinstance(value, float) for value in values)
                assert metric["Unit"] == ("Seconds" if metric["Name"].endswith("Seconds") else "Count")


@pytest.mark.spec("SEC-4")
def test_no_id_is_in_a_metric(blobs: list[Json]) -> None:
    assert "id-of-" not in json.dumps(blobs)


def _emitted(blobs: Iterable[Json]) -> set[Metric]:
    directives = [directive for blob in blobs for directive in blob["_aws"]["CloudWatchMetrics"]]
    return {
        (metric["Name"], frozenset(dimensions))
        for directive in directives
        for metric, dimensions in itertools.product(directive["Metrics"], directive["Dimensions"])
    } | {(name, SERVICE) for name in OF_HANDLERS}


# The template --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def resources() -> Json:
    found: Json = read_document(TEMPLATE)["Resources"]
    return found


def _properties(resources: Json, kind: str) -> dict[str, Json]:
    return {name: one["Properties"] for name, one in resources.items() if one["Type"] == kind}


def _dashboard(resources: Json) -> list[Json]:
    body, _ = resources["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    widgets: list[Json] = json.loads(body)["widgets"]
    return widgets


def _rows(resources: Json) -> list[list[Any]]:
    return [row for widget in _dashboard(resources) for row in widget["properties"].get("metrics", [])]


def _shown(resources: Json) -> set[Metric]:
    found: set[Metric] = set()
    for row in _rows(resources):
        if isinstance(row[0], dict):
            [(names, metric)] = re.findall(r"\{SuperBizAgent,([\w,]+)\}.* MetricName=\"(\w+)\"", row[0]["expression"])
            found.add((metric, frozenset(names.split(","))))
        elif row[0] == "SuperBizAgent":
            found.add((row[1], frozenset(row[2:-1:2])))
    return found


def _watched(resources: Json) -> dict[str, list[Json]]:
    """Each alarm's metrics, in one form."""
    found: dict[str, list[Json]] = {}
    for name, alarm in _properties(resources, "AWS::CloudWatch::Alarm").items():
        several = [one["MetricStat"]["Metric"] for one in alarm.get("Metrics", []) if "MetricStat" in one]
        found[name] = several or [alarm]
    return found


def test_what_is_shown_is_emitted_and_what_is_emitted_is_shown(resources: Json, blobs: list[Json]) -> None:
    assert _shown(resources) == _emitted(blobs)


AWS_METRICS = {
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-websocket-api-logging.html
    ("AWS/ApiGateway", "ApiId", "AWS::ApiGatewayV2::Api"): {
        *("ConnectCount", "MessageCount", "IntegrationError", "ClientError", "ExecutionError", "IntegrationLatency")
    },
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    ("AWS/Lambda", "FunctionName", "AWS::Serverless::Function"): {
        *("ConcurrentExecutions", "Duration", "Errors", "Invocations", "Throttles")
    },
    # https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-metrics.html
    ("AWS/RDS", "DBInstanceIdentifier", "AWS::RDS::DBInstance"): {
        *("CPUUtilization", "DatabaseConnections", "FreeStorageSpace", "FreeableMemory")
    },
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    ("AWS/SQS", "QueueName", "AWS::SQS::Queue"): {"ApproximateNumberOfMessagesVisible"},
}
"""By namespace, dimension and the kind of resource that the dimension names: what AWS writes of it."""


async def _everything_that_alarms_are_for(world: World, patch: pytest.MonkeyPatch) -> None:
    """By the functions themselves: questions answered and not, a dead run, a sweep, a sign-in that nobody decides."""
    await world.connect()
    throttled = Reply({"error": {"message": "slow down"}}, 429)
    for number, turns in enumerate(((LOOK, ("submit_draft", DRAFT)), (LOOK, throttled, throttled))):
        world.model.answer = script(*turns)
        await world.chat(request=f"g{number}", requestId=f"q{number}")
    world.model.answer = world.answer_as_model
    await _chat_that_dies(world, request="dies", requestId="dies")
    await _sweep(world)
    patch.delenv("AUTH_ISSUER", raising=False)
    # A handler's metrics are named as the service was when it was imported, which may have been for another test.
    patch.delitem(sys.modules, "functions.authorizer.app", raising=False)
    authorizer = importlib.import_module("functions.authorizer.app")
    with pytest.raises(RuntimeError, match="CONFIGURATION_ERROR"):
        await asyncio.to_thread(authorizer.handler, json.loads((EVENTS / "authorizer.json").read_text()), Context())


async def test_every_alarm_watches_what_is_really_written(
    world: World,
    resources: Json,
    written: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """By this stack, to the letter of each dimension's value, or else by AWS of a resource of this stack."""
    await _everything_that_alarms_are_for(world, monkeypatch)
    # As Powertools names a service: two stacks of one account don't set off each other's alarms.
    stack = {"superbizagent": {"Ref": "AWS::StackName"}}
    seen = [
        (datum.namespace, datum.name, {name: stack.get(value, value) for name, value in datum.dimensions.items()})
        for datum in _data(_blobs(capfd))
    ]
    watched = _watched(resources)
    assert len(watched) == len(_properties(resources, "AWS::CloudWatch::Alarm")) > 10
    for alarm, metrics in watched.items():
        for metric in metrics:
            name, dimensions = metric["MetricName"], {one["Name"]: one["Value"] for one in metric["Dimensions"]}
            if metric["Namespace"] == "SuperBizAgent":
                assert ("SuperBizAgent", name, dimensions) in seen, alarm
            else:
                assert name in _of_aws(resources, metric["Namespace"], dimensions), alarm


def _of_aws(resources: Json, namespace: str, dimensions: Mapping[str, Json]) -> set[str]:
    """The metrics that AWS writes in that namespace of the resource that the one dimension names."""
    [(dimension, value)] = dimensions.items()
    resource = value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0]
    return AWS_METRICS[namespace, dimension, resources[resource]["Type"]]


def test_the_dashboard_shows_what_aws_writes(resources: Json) -> None:
    _, own = resources["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    assert own["DatabaseId"]["Fn::If"][1] == {"Ref": "Database"}
    of_aws = [row for row in _rows(resources) if isinstance(row[0], str) and row[0].startswith("AWS/")]
    assert len(of_aws) > 30
    for namespace, name, dimension, value, _ in of_aws:
        resource = {"DatabaseId": "Database"}.get(value[2:-1], value[2:-1]).removesuffix(f".{dimension}")
        assert name in AWS_METRICS[namespace, dimension, resources[resource]["Type"]], value


# Alarms that weigh one figure against another -------------------------------------------------------


def _goes_off(alarm: Json, data: Iterable[Datum]) -> bool:
    """On the values of one period. What has no value is missing, and nothing is known to stand in for it."""
    values = list(data)
    figures = {one["Id"]: _statistic(one["MetricStat"], values) for one in alarm["Metrics"] if "MetricStat" in one}
    missing = {name for name, figure in figures.items() if figure is None}
    if missing:
        # One that is missing alone would be for the expression to guess at.
        assert missing == set(figures)
        return bool(alarm["TreatMissingData"] == "breaching")
    [expression] = [one["Expression"] for one in alarm["Metrics"] if "Expression" in one]
    functions = {"IF": lambda condition, true, false: true if condition else false}
    result = eval(expression, {"__builtins__": {}}, {**figures, **functions})  # noqa: S307 - the template's own
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    return bool(result > alarm["Threshold"])


def _statistic(asked: Json, data: Iterable[Datum]) -> float | None:
    metric = asked["Metric"]
    dimensions = {one["Name"]: one["Value"] for one in metric["Dimensions"]} | {"service": "stack"}
    wanted = (metric["Namespace"], metric["MetricName"], dimensions)
    found = [datum.value for datum in data if (datum.namespace, datum.name, datum.dimensions) == wanted]
    of: dict[str, Callable[[list[float]], float]] = {"Sum": sum, "SampleCount": len}
    return of[asked["Stat"]](found) if found else None


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., list[Datum]]:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "stack")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "SuperBizAgent")
    journal = CloudWatchJournal()

    def record(*steps: Step) -> list[Datum]:
        for step in steps:
            journal.record(IDS, step, 1.0)
        return list(_data(_blobs(capfd)))

    return record


def _ended(outcome: ReleaseOutcome) -> Finished:
    code = "MODEL_TIMEOUT" if outcome is ReleaseOutcome.FAILED else None
    return Finished(Intent.DIAGNOSIS, outcome, Usage(), 1.0, code, cause=CancelReason.SHUTDOWN, cancelling=0.1)


FAILED, GOOD = _ended(ReleaseOutcome.FAILED), _ended(ReleaseOutcome.SUCCESS)
FALLBACK, CANCELLED = _ended(ReleaseOutcome.FALLBACK), _ended(ReleaseOutcome.CANCELLED)
DEAD, LATE = Abandoned(None, 190.0), Finished(None, ReleaseOutcome.FAILED, Usage(), 1.0, "X", stored=False)


@pytest.mark.parametrize(
    ("steps", "goes_off"),
    [
        # A quiet team, in half an hour.
        ([], False),
        ([FAILED] * 2, False),
        ([FAILED] * 3, True),
        ([FAILED, FAILED, DEAD], True),
        ([FAILED, *[GOOD] * 2], False),
        ([*[FAILED] * 3, *[GOOD] * 2], True),
        ([*[FAILED] * 3, *[FALLBACK] * 7], False),
        ([*[FAILED] * 4, *[GOOD] * 6], True),
        # Ends that nobody is to blame for, and one that was told before.
        ([*[FAILED] * 2, *[CANCELLED] * 9], False),
        ([*[FAILED] * 3, *[CANCELLED] * 99], True),
        ([*[FAILED] * 2, *[LATE] * 9], False),
        # A busy one.
        ([*[FAILED] * 20, *[GOOD] * 480], False),
        ([*[FAILED] * 50, *[GOOD] * 450], False),
        ([*[FAILED] * 60, *[GOOD] * 400, *[FALLBACK] * 40], True),
    ],
)
def test_failures_are_told_to_a_quiet_team_and_to_a_busy_one(
    resources: Json, recorded: Callable[..., list[Datum]], steps: list[Step], goes_off: bool
) -> None:
    alarm = resources["RunsFailedAlarm"]["Properties"]
    assert _goes_off(alarm, recorded(*steps)) == goes_off


UNFOUNDED, MEANT_OTHERWISE = DraftChecked("EVIDENCE", {"NO_CLAIMS": 1}), DraftChecked("MEANING", {"NOT_SHOWN": 1})
FOUNDED, PASSED = DraftChecked("EVIDENCE"), DraftChecked("MEANING")


@pytest.mark.parametrize(
    ("steps", "goes_off"),
    [
        ([], False),
        ([UNFOUNDED] * 4, False),
        ([UNFOUNDED] * 5, True),
        ([*[FOUNDED, PASSED] * 5], False),
        ([*[UNFOUNDED] * 3, *[FOUNDED, PASSED] * 3], False),
        ([*[UNFOUNDED] * 3, *[FOUNDED, PASSED] * 2], True),
        ([UNFOUNDED, *[FOUNDED, MEANT_OTHERWISE] * 2, *[FOUNDED, PASSED] * 2], True),
        # Cut off between the guards: known by neither verdict.
        ([FOUNDED] * 9, False),
    ],
)
def test_rejected_drafts_are_told_as_a_share_of_drafts(
    resources: Json, recorded: Callable[..., list[Datum]], steps: list[Step], goes_off: bool
) -> None:
    alarm = resources["DraftsRejectedAlarm"]["Properties"]
    assert _goes_off(alarm, recorded(*steps)) == goes_off


def test_figures_of_one_expression_are_of_one_period(resources: Json) -> None:
    """https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html"""
    for name, alarm in _properties(resources, "AWS::CloudWatch::Alarm").items():
        periods = {one["MetricStat"]["Period"] for one in alarm.get("Metrics", []) if "MetricStat" in one}
        assert len(periods) == (1 if "Metrics" in alarm else 0), name


def test_diagnoses_are_slow_at_five_sixths_of_what_a_run_may_take(resources: Json) -> None:
    given = resources["ChatFunction"]["Properties"]["Environment"]["Variables"]
    limit = settings.read(settings.RunSettings, {"RUN_SECONDS": given["RUN_SECONDS"]}).run_seconds
    alarm = resources["DiagnosesSlowAlarm"]["Properties"]
    assert alarm["Threshold"] == limit * 5 / 6
    assert f"{alarm['Threshold']} seconds, of the {limit:g} it may" in alarm["AlarmDescription"]


def test_every_alarm_says_what_to_do_tells_the_topic_and_is_documented(resources: Json) -> None:
    documented = (TEMPLATE.parent / "docs" / "observation.md").read_text()
    for name, alarm in _properties(resources, "AWS::CloudWatch::Alarm").items():
        assert alarm["AlarmActions"] == [{"Ref": "AlarmTopic"}], name
        assert alarm["AlarmDescription"].count(".") >= 2, name
        assert len(alarm["AlarmDescription"]) <= 1024, name
        assert f"`{name}`" in documented, name
    for metric, _ in _shown(resources):
        assert f"`{metric}`" in documented, metric


def test_the_dashboard_names_only_what_there_is(resources: Json) -> None:
    body, own = resources["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    names = {name.split(".")[0] for name in re.findall(r"\$\{([\w.:]+)\}", body)}
    assert {name for name in names if not name.startswith("AWS::")} <= set(resources) | set(own)
    for function in _properties(resources, "AWS::Serverless::Function"):
        assert f"${{{function}}}" in body


def test_no_two_widgets_overlap(resources: Json) -> None:
    cells = [
        (x, y)
        for widget in _dashboard(resources)
        for x in range(widget["x"], widget["x"] + widget["width"])
        for y in range(widget["y"], widget["y"] + widget["height"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


WORDS = {
    *("fields", "filter", "stats", "sort", "limit", "by", "as", "and", "or", "in", "asc", "desc"),
    *("count", "avg", "pct", "max", "latest", "coalesce"),
}


async def test_the_saved_queries_ask_for_fields_that_lines_have(
    world: World, written: io.StringIO, resources: Json
) -> None:
    assert world.handlers
    journal = CloudWatchJournal()
    for step in STEPS:
        journal.record(IDS, step, 1.0)
    Logger(service="superbizagent").clear_state()
    known = {name for line in _lines(written) for name in line} | {"timestamp"}
    for name, query in _properties(resources, "AWS::Logs::QueryDefinition").items():
        asked = re.sub(r'"[^"]*"', "", query["QueryString"])
        made = set(re.findall(r"\bas (\w+)", asked))
        used = set(re.findall(r"[a-z_]\w*", asked)) - WORDS - made
        assert used <= known, name
        steps = set(re.findall(r'"([A-Z_]+)"', query["QueryString"])) - set(ReleaseOutcome)
        assert steps <= {step.name for step in STEPS}, name
        assert all(group["Ref"] in resources for group in query["LogGroupNames"])
