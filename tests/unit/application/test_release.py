import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from superbizagent.application.agent import Investigation, Stop
from superbizagent.application.fence import Fence
from superbizagent.application.progress import Progress
from superbizagent.application.release import Released, release
from superbizagent.application.run_model import RunModel
from superbizagent.domain.budget import Budget, BudgetLimits
from superbizagent.domain.codes import ObservationStatus, ToolName, Unit
from superbizagent.domain.content import (
    MAX_CONTENT_BYTES,
    CheckedSource,
    CoverageView,
    DiagnosisContent,
    FallbackContent,
    FallbackReason,
    PublicClaim,
    Reference,
    VerifiedSource,
    encoded_size,
)
from superbizagent.domain.draft import Draft
from superbizagent.domain.evidence import Coverage, DocumentRef, Observation
from superbizagent.domain.previous_turn import PublishedResult, SourceDocument
from superbizagent.domain.run import ReleaseOutcome
from superbizagent.domain.run_context import Lifecycle, RunContext
from superbizagent.errors import BudgetExhausted, ModelRefused, ModelUnavailable
from tests.fakes.clock import START, FakeClock
from tests.fakes.model import HANG, FakeModel, answer, call, calls, draft, intent, text, verdicts
from tests.fakes.observer import FakeObserver
from tests.fakes.sources import END, LINES, document_evidence, sources
from tests.fakes.sources import START as WINDOW
from tests.unit.application.stage import Stage
from tests.unit.application.test_agent import CLAIM, GOOD, LOGS

GUARD_REJECTED = FallbackReason.GUARD_REJECTED


def context() -> RunContext:
    clock = FakeClock()
    return RunContext(
        session_id="s",
        run_id="r",
        query="why?",
        budget=Budget(BudgetLimits(tokens=10_000_000)),
        deadline=60.0,
        monotonic=clock.monotonic,
    )


async def released(
    model: FakeModel, investigation: Investigation, run: RunContext | None = None, verdict_timeout: float = 5.0
) -> Released:
    run = run or context()
    return await release(
        investigation,
        context=run,
        model=RunModel(model, run, 5.0),
        progress=Progress(FakeObserver(), run),
        verdict_timeout=verdict_timeout,
    )


def observation(number: int = 1, **changes: Any) -> Observation:
    fields: dict[str, Any] = {
        "evidence_id": f"E{number}",
        "tool": ToolName.QUERY_LOGS,
        "arguments": json.dumps({"source": "payment", "levels": ["ERROR"], "contains": ["timed out"]}),
        "status": ObservationStatus.READY,
        "title": "payment",
        "projection": "\n".join(("payment", *LINES)),
        "coverage": Coverage(unit=Unit.LINES, start=WINDOW, end=END, matched=3, shown=3, scanned=9),
        "digest": "d",
        "observed_at": START,
        **changes,
    }
    return Observation(**fields)


def good() -> Investigation:
    return Investigation(Stop.DRAFTED, Draft.model_validate(GOOD), (observation(),))


async def test_a_draft_that_passes_both_guards_is_published() -> None:
    result = await released(FakeModel(verdicts(True, True)), good())

    assert result.outcome is ReleaseOutcome.SUCCESS
    assert isinstance(result.content, DiagnosisContent)
    assert result.content.conclusion == GOOD["conclusion"]
    (source,) = result.content.sources
    assert (source.id, source.title) == ("S1", "payment")
    assert source.detail == "levels ERROR; contains timed out"
    assert LINES[0] in source.excerpt
    assert result.content.claims[0].source_ids == ("S1",)


# The semantic guard -----------------------------------------------------------------------------

NO_VERDICT = {
    "prose": text("Both are supported."),
    "nothing": text(""),
    "none": verdicts(),
    "one of two": verdicts(True),
    "three for two": verdicts(True, True, True),
    "one twice": answer({"verdicts": [{"claim": 0, "supported": True}, {"claim": 0, "supported": True}]}),
    "another number": answer({"verdicts": [{"claim": 0, "supported": True}, {"claim": 2, "supported": True}]}),
    "no boolean": answer({"verdicts": [{"claim": 0, "supported": "yes"}, {"claim": 1, "supported": 1}]}),
    "a field too many": answer({"verdicts": [{"claim": 0, "supported": True, "why": "x"}]}),
    "null": text("null"),
    "fenced": text('```json\n{"verdicts": []}\n```'),
    "cut": verdicts(True, True).model_copy(update={"cut": True}),
    "unavailable": ModelUnavailable(),
    "refused": ModelRefused(),
    "hanging": HANG,
}


@pytest.mark.spec("GUARD-3", "SEC-3")
async def test_the_judge_gets_the_claims_the_conclusion_and_what_they_cite() -> None:
    claims = [CLAIM, {"text": "支付超时于 14:58:03。", "evidence_ids": ["E2", "E1"]}]
    proposal = Draft.model_validate({**GOOD, "claims": claims})
    seen = (observation(), observation(2), observation(3))
    model = FakeModel(verdicts(True, True, True))

    await released(model, Investigation(Stop.DRAFTED, proposal, seen))

    (request,) = model.requests
    system, user = request.messages
    assert (system.role, user.role) == ("system", "user")
    marker = user.content.split("\n")[0].removeprefix("<<<")
    fence = Fence(marker)
    assert fence.rule in system.content
    listed = [
        {"claim": 0, "text": CLAIM["text"], "evidence_ids": ["E1"]},
        {"claim": 1, "text": "支付超时于 14:58:03。", "evidence_ids": ["E2", "E1"]},
        {"claim": 2, "text": GOOD["conclusion"], "evidence_ids": ["E1", "E2"]},
    ]
    blocks = [fence.wrap(json.dumps({"claims": listed}, ensure_ascii=False)), *map(fence.observation, seen[:2])]
    assert user.content == "\n\n".join(blocks)
    assert request.output is not None
    assert set(request.output.definition["properties"]) == {"verdicts"}
    assert not request.tools


@pytest.mark.spec("GUARD-3", "RELEASE-2")
@pytest.mark.parametrize("reply", NO_VERDICT.values(), ids=NO_VERDICT.keys())
async def test_without_a_verdict_after_two_attempts_nothing_is_published(reply: Any) -> None:
    model = FakeModel(reply, reply, verdicts(True, True))

    result = await released(model, good(), verdict_timeout=0.01 if reply is HANG else 5.0)

    assert isinstance(result.content, FallbackContent)
    assert result.content.reason is GUARD_REJECTED
    assert len(model.requests) == 2
    assert model.cancelled == (2 if reply is HANG else 0), "a timed-out attempt is really cancelled"


@pytest.mark.spec("GUARD-3")
@pytest.mark.parametrize("reply", NO_VERDICT.values(), ids=NO_VERDICT.keys())
async def test_a_verdict_of_the_second_attempt_counts(reply: Any) -> None:
    model = FakeModel(reply, verdicts(True, True))
    seconds = 0.05 if reply is HANG else 5.0

    assert (await released(model, good(), verdict_timeout=seconds)).outcome is ReleaseOutcome.SUCCESS
    assert model.requests[0] == model.requests[1]


@pytest.mark.spec("GUARD-3", "RELEASE-1")
@pytest.mark.parametrize("given", [(False, True), (True, False), (False, False)])
async def test_each_claim_and_the_conclusion_need_a_yes(given: tuple[bool, bool]) -> None:
    model = FakeModel(verdicts(*given))

    result = await released(model, good())

    assert result.outcome is ReleaseOutcome.FALLBACK
    assert result.published_result is None
    assert len(model.requests) == 1, "a no is a verdict and is not asked again"


@pytest.mark.spec("GUARD-1", "GUARD-3", "RELEASE-2")
async def test_what_the_evidence_guard_rejects_reaches_no_model() -> None:
    claim = {**CLAIM, "text": "It timed out after 31000 ms."}
    model = FakeModel(verdicts(True, True))

    result = await released(
        model, Investigation(Stop.DRAFTED, Draft.model_validate({**GOOD, "claims": [claim]}), (observation(),))
    )

    assert isinstance(result.content, FallbackContent)
    assert result.content.reason is GUARD_REJECTED
    assert not model.requests


@pytest.mark.spec("BUDGET-2")
async def test_no_budget_for_a_verdict_is_a_budget_end() -> None:
    run = context()
    for _ in range(run.budget.limits.model_calls):
        run.budget.reserve_model_call(1)

    result = await released(FakeModel(), good(), run)

    assert isinstance(result.content, FallbackContent)
    assert result.content.reason is FallbackReason.BUDGET_REACHED
    assert run.state is Lifecycle.BUDGET_EXHAUSTED


@pytest.mark.spec("BUDGET-2", "BUDGET-3")
@pytest.mark.parametrize("status", list(ObservationStatus))
async def test_a_budget_end_needs_a_safe_observation(status: ObservationStatus) -> None:
    seen = observation(status=status, error_code="EVIDENCE_TIMEOUT" if status == "ERROR" else None)
    model = FakeModel()

    if status is ObservationStatus.ERROR:
        with pytest.raises(BudgetExhausted):
            await released(model, Investigation(Stop.BUDGET, None, (seen,)))
    else:
        result = await released(model, Investigation(Stop.BUDGET, None, (seen,)))
        assert isinstance(result.content, FallbackContent)
        assert result.content.reason is FallbackReason.BUDGET_REACHED
    assert not model.requests


# The whole of it --------------------------------------------------------------------------------

LOOKUP = observation(
    2,
    tool=ToolName.LOOKUP_KNOWLEDGE,
    arguments=json.dumps({"query": "gateway timeouts", "limit": 5}),
    title="",
    projection="document D1: Gateway > Pool (runbooks/D1.md)\nRestart the gateway pool.\ndocument D2: Disk\nWait.",
    coverage=Coverage(unit=Unit.PASSAGES, matched=3, shown=3),
    documents=(
        DocumentRef(document_id="D1", title="Gateway", heading_path=("Pool",), source="runbooks/D1.md"),
        DocumentRef(document_id="D1", title="Gateway", heading_path=("Start",), source="runbooks/D1.md"),
        DocumentRef(document_id="D2", title="Disk", source="runbooks/D2.md"),
    ),
)
ROWS = observation(
    3,
    tool=ToolName.QUERY_MYSQL,
    arguments=json.dumps({"statement": "SELECT COUNT(*) AS failed FROM payments"}),
    title="database",
    projection='database\nrows: 1\n{"failed": 214}',
    coverage=Coverage(
        unit=Unit.ROWS, matched=1, shown=1, truncated=True, notes=tuple(f"note {number}" for number in range(7))
    ),
)
LOGS_COVERAGE = CoverageView(unit=Unit.LINES, start=WINDOW, end=END, scanned=9, matched=3, shown=3, complete=True)
LOOKUP_COVERAGE = CoverageView(unit=Unit.PASSAGES, matched=3, shown=3, complete=True)
ROWS_COVERAGE = CoverageView(
    unit=Unit.ROWS, matched=1, shown=1, complete=False, notes=("note 0", "note 1", "note 2", "note 3", "note 4")
)


@pytest.mark.spec("RELEASE-1", "KNOW-5")
async def test_all_that_a_reader_of_a_diagnosis_gets() -> None:
    claims = [
        CLAIM,
        {"text": "214 payments failed.", "evidence_ids": ["E3", "E1", "E3"]},
        {"text": "The pool is restarted.", "evidence_ids": ["E2"], "document_ids": ["D1"]},
    ]
    proposal = Draft.model_validate(
        {**GOOD, "claims": claims, "limitations": ["Only payment."], "next_steps": ["Restart the gateway pool."]}
    )
    seen = (observation(), LOOKUP, ROWS, observation(4))

    result = await released(
        FakeModel(verdicts(True, True, True, True)), Investigation(Stop.DRAFTED, proposal, seen), context()
    )

    assert result.content == DiagnosisContent(
        conclusion="The payment gateway timed out.",
        claims=(
            PublicClaim(
                text=str(CLAIM["text"]), source_ids=("S1",), quotes=("Payment gateway timed out after 30000 ms",)
            ),
            PublicClaim(text="214 payments failed.", source_ids=("S3", "S1")),
            PublicClaim(text="The pool is restarted.", source_ids=("S2",)),
        ),
        scope="payment, 14:00 to 15:00 UTC",
        limitations=("Only payment.",),
        next_steps=("Restart the gateway pool.",),
        sources=(
            VerifiedSource(
                id="S1",
                kind=ToolName.QUERY_LOGS,
                title="payment",
                detail="levels ERROR; contains timed out",
                coverage=LOGS_COVERAGE,
                excerpt=("payment", *LINES),
                fetched_at=START,
            ),
            VerifiedSource(
                id="S2",
                kind=ToolName.LOOKUP_KNOWLEDGE,
                title="lookup_knowledge",
                detail="gateway timeouts",
                coverage=LOOKUP_COVERAGE,
                excerpt=tuple(LOOKUP.projection.splitlines()),
                references=tuple(
                    Reference(document_id="D1", title="Gateway", heading_path=(heading,), source="runbooks/D1.md")
                    for heading in ("Pool", "Start")
                ),
                fetched_at=START,
            ),
            VerifiedSource(
                id="S3",
                kind=ToolName.QUERY_MYSQL,
                title="database",
                detail="SELECT COUNT(*) AS failed FROM payments",
                coverage=ROWS_COVERAGE,
                excerpt=('{"failed": 214}',),
                fetched_at=START,
            ),
        ),
    )
    assert result.published_result == PublishedResult(
        user_query="why?",
        published_conclusion="The payment gateway timed out.",
        scope="payment, 14:00 to 15:00 UTC",
        limitations=("Only payment.",),
        source_documents=(SourceDocument(document_id="D1", title="Gateway", source="runbooks/D1.md"),),
    )


@pytest.mark.spec("RELEASE-2")
async def test_all_that_a_reader_of_a_fallback_gets() -> None:
    bare = json.dumps({"source": "payment"})
    filtered = json.dumps({"source": "payment", "levels": ["ERROR", "WARN"], "contains": ["a", "b"], "excludes": ["c"]})
    seen = (
        observation(arguments=filtered),
        LOOKUP,
        ROWS,
        observation(4, arguments=bare, status="NO_EVIDENCE"),
        LOOKUP.model_copy(update={"documents": ()}),
        observation(6, status="ERROR", error_code="EVIDENCE_TIMEOUT", title="", coverage=None, arguments="x"),
        observation(7, tool="restart_service"),
    )

    result = await released(FakeModel(), Investigation(Stop.NO_DRAFT, None, seen))

    logs, lookup, rows = ToolName.QUERY_LOGS, ToolName.LOOKUP_KNOWLEDGE, ToolName.QUERY_MYSQL
    ready, none, error = ObservationStatus.READY, ObservationStatus.NO_EVIDENCE, ObservationStatus.ERROR

    def checked(kind: ToolName, title: str, detail: str, status: ObservationStatus, **fields: Any) -> CheckedSource:
        return CheckedSource(kind=kind, title=title, detail=detail, status=status, **fields)

    assert result.content == FallbackContent(
        reason=FallbackReason.INSUFFICIENT_EVIDENCE,
        text="The evidence that was found does not establish a cause.",
        checked=(
            checked(logs, "payment", "ERROR, WARN, 3 text filters", ready, coverage=LOGS_COVERAGE),
            checked(lookup, "lookup_knowledge", "Gateway; Disk", ready, coverage=LOOKUP_COVERAGE),
            checked(rows, "database", "one SELECT statement", ready, coverage=ROWS_COVERAGE),
            checked(logs, "payment", "all levels", none, coverage=LOGS_COVERAGE),
            checked(lookup, "lookup_knowledge", "one search", ready, coverage=LOOKUP_COVERAGE),
            checked(logs, "query_logs", "all levels", error, error_code="EVIDENCE_TIMEOUT"),
        ),
        next_steps=(
            "Look at what was checked below: a source or time range may be missing.",
            "Ask again with the service, the symptom and the time range.",
        ),
    )


@pytest.mark.spec("RELEASE-1")
@pytest.mark.parametrize(
    ("asked", "detail"),
    [
        ({}, "all records"),
        ({"levels": ["ERROR", "WARN"]}, "levels ERROR, WARN"),
        ({"contains": ["a", "b"], "excludes": ["c"]}, "contains a, b; excludes c"),
    ],
)
async def test_a_source_says_what_was_asked_of_the_logs(asked: dict[str, Any], detail: str) -> None:
    seen = observation(arguments=json.dumps({"source": "payment", **asked}))

    result = await released(
        FakeModel(verdicts(True, True)), Investigation(Stop.DRAFTED, Draft.model_validate(GOOD), (seen,))
    )

    assert isinstance(result.content, DiagnosisContent)
    assert result.content.sources[0].detail == detail


@pytest.mark.spec("RELEASE-1")
async def test_an_excerpt_shows_every_claim_that_rests_on_it() -> None:
    texts = ("10.0.0.17:8443 was retried.", "ORD-2026-0099 timed out.")
    claims = [{"text": text, "evidence_ids": ["E1"]} for text in texts]
    proposal = Draft.model_validate({"conclusion": "It timed out.", "claims": claims})

    result = await released(
        FakeModel(verdicts(True, True, True)), Investigation(Stop.DRAFTED, proposal, (observation(),))
    )

    assert isinstance(result.content, DiagnosisContent)
    assert result.content.sources[0].excerpt == LINES[1:]


@pytest.mark.spec("KNOW-5")
async def test_a_claim_that_names_no_document_refers_to_all_that_were_returned() -> None:
    claim = {"text": "The pool is restarted.", "evidence_ids": ["E2"]}
    proposal = Draft.model_validate({"conclusion": "Restart the gateway pool.", "claims": [claim]})

    result = await released(FakeModel(verdicts(True, True)), Investigation(Stop.DRAFTED, proposal, (LOOKUP,)))

    assert isinstance(result.content, DiagnosisContent)
    assert [reference.document_id for reference in result.content.sources[0].references] == ["D1", "D1", "D2"]
    assert result.published_result is not None
    assert result.published_result.source_documents == ()


@pytest.mark.spec("RELEASE-2", "BUDGET-2")
@pytest.mark.parametrize(
    ("stop", "fields", "reason"),
    [
        (Stop.NO_DRAFT, None, FallbackReason.INSUFFICIENT_EVIDENCE),
        (Stop.SATURATED, None, FallbackReason.INSUFFICIENT_EVIDENCE),
        (Stop.DRAFTED, {}, FallbackReason.INSUFFICIENT_EVIDENCE),
        (Stop.DRAFTED, {"missing_context": ["SERVICE"]}, FallbackReason.CONTEXT_MISSING),
        (Stop.BUDGET, {"missing_context": ["SERVICE"]}, FallbackReason.BUDGET_REACHED),
        (Stop.BUDGET, None, FallbackReason.BUDGET_REACHED),
    ],
)
async def test_why_nothing_was_concluded(stop: Stop, fields: dict[str, Any] | None, reason: FallbackReason) -> None:
    run = context()
    proposal = None if fields is None else Draft.model_validate(fields)

    result = await released(FakeModel(), Investigation(stop, proposal, (observation(),)), run)

    assert isinstance(result.content, FallbackContent)
    assert result.content.reason is reason
    assert (run.state is Lifecycle.BUDGET_EXHAUSTED) is (reason is FallbackReason.BUDGET_REACHED)


# What is public ---------------------------------------------------------------------------------

CANARY = "CANARY-prose-7"


@pytest.mark.spec("RELEASE-2", "PREV-4", "EXEC-5")
@pytest.mark.parametrize("stop", list(Stop))
@pytest.mark.parametrize("concluded", [True, False])
async def test_no_model_prose_is_in_a_fallback(stop: Stop, concluded: bool) -> None:
    proposal = Draft.model_validate(
        {
            "conclusion": CANARY if concluded else None,
            "claims": [{"text": CANARY, "evidence_ids": ["E1"], "quotes": [CANARY], "document_ids": [CANARY]}],
            "scope": CANARY,
            "limitations": [CANARY],
            "next_steps": [CANARY],
            "missing_context": ["SERVICE"],
        }
    )
    observations = (
        observation(arguments=json.dumps({"source": CANARY, "levels": ["ERROR"], "contains": [CANARY]})),
        observation(2, tool="query_mysql", arguments=json.dumps({"statement": f"SELECT '{CANARY}'"})),
        observation(3, tool="lookup_knowledge", arguments=json.dumps({"query": CANARY, "limit": 3})),
        observation(4, tool=CANARY, arguments=CANARY, status="ERROR", error_code="UNKNOWN_TOOL", coverage=None),
        observation(5, arguments=f'{{"source": "{CANARY}', status="ERROR", error_code="INVALID_ARGUMENTS", title=""),
        observation(6, arguments='["' + CANARY, status="NO_EVIDENCE"),
    )
    reply = verdicts(False, True)

    result = await released(FakeModel(reply), Investigation(stop, proposal, observations))

    assert isinstance(result.content, FallbackContent)
    assert result.published_result is None
    assert CANARY not in result.content.model_dump_json()
    assert [checked.error_code for checked in result.content.checked] == [None] * 3 + ["INVALID_ARGUMENTS", None]


@pytest.mark.spec("RELEASE-2")
async def test_prose_of_every_model_field_stays_out_of_a_fallback_end_to_end() -> None:
    turn = calls(
        call("query_logs", {"source": "payment", "contains": [CANARY]}, CANARY),
        call(CANARY, {CANARY: CANARY}),
        call("query_mysql", {"statement": f"SELECT 1 -- {CANARY}"}),
        call("query_logs", CANARY),
        content=CANARY,
    )
    proposal = draft(**{**GOOD, "claims": [{**CLAIM, "text": CANARY}], "limitations": [CANARY], "next_steps": [CANARY]})
    stage = Stage(FakeModel(intent("DIAGNOSIS"), turn, proposal, answer({"verdicts": [], "why": CANARY}), text(CANARY)))

    result = await stage.run()

    assert result.outcome is ReleaseOutcome.FALLBACK
    assert stage.row.content is not None
    assert CANARY not in stage.row.content
    assert stage.row.published_result is None
    assert CANARY not in repr(stage.observer.events)


@pytest.mark.spec("RELEASE-1", "PREV-4", "DIAG-2")
async def test_no_internal_id_is_published() -> None:
    lookup = call("lookup_knowledge", {"query": "gateway"}, "call_lookup")
    claims = [
        CLAIM,
        {"text": "Restart the gateway pool.", "evidence_ids": ["E2"], "document_ids": ["D1"], "quotes": []},
    ]
    stage = Stage(
        FakeModel(
            intent("DIAGNOSIS"),
            calls(call("query_logs", LOGS, "call_logs")),
            calls(lookup),
            draft(**{**GOOD, "claims": claims, "next_steps": ["Restart the gateway pool.", "Roll back to v9.9.9."]}),
            verdicts(True, True, True),
        ),
        sources=sources(
            knowledge=document_evidence(
                ("D1", "Payment gateway", "Restart the gateway pool."), ("D2", "Other", "Nothing here.")
            )
        ),
    )

    result = await stage.run()

    assert isinstance(result.content, DiagnosisContent)
    row = stage.row
    assert row.content is not None
    assert row.published_result is not None
    for stored in (row.content, row.published_result):
        for secret in ("call_logs", "call_lookup", '"E1"', '"E2"', "evidence", "digest", "supported"):
            assert secret not in stored
    assert set(json.loads(row.published_result)) == {
        "user_query",
        "published_conclusion",
        "scope",
        "limitations",
        "source_documents",
    }
    documents = json.loads(row.published_result)["source_documents"]
    assert documents == [{"document_id": "D1", "title": "Payment gateway", "source": "runbooks/D1.md"}]
    assert result.content.next_steps == ("Restart the gateway pool.",), "a step with a value from nowhere is dropped"
    assert [reference.document_id for reference in result.content.sources[1].references] == ["D1"]


@pytest.mark.spec("SEC-3")
async def test_published_prose_links_to_verified_sources_only() -> None:
    url = "https://evil.test/login"
    line = f"2026-11-30T14:02:11Z ERROR see {url} now"
    claim = {"text": f"The log says see {url} now.", "evidence_ids": ["E1"]}
    proposal = Draft.model_validate({"conclusion": f"See [it]({url}).", "claims": [claim]})

    result = await released(
        FakeModel(verdicts(True, True)),
        Investigation(Stop.DRAFTED, proposal, (observation(projection=line),)),
    )

    assert isinstance(result.content, DiagnosisContent)
    prose = result.content.conclusion + result.content.claims[0].text
    assert "https://" not in prose
    assert "evil.test/login" in result.content.claims[0].text, "what was seen stays readable"


# Size -------------------------------------------------------------------------------------------

CHARACTERS = ["x", "界", "🫠", '"', "\\", "\x01", "é"]


def widest(character: str, count: int, tool: str) -> tuple[Draft, tuple[Observation, ...]]:
    """A draft as long as drafts may be, over `count` observations with everything long."""
    ids = [f"E{number}" for number in range(1, count + 1)]
    filler = max(1, 600 // len(character.encode()))
    claims = [
        {"text": character * 60, "evidence_ids": ids[start : start + 8], "document_ids": []}
        for start in range(0, count, 8)
    ]
    long = character * 3_000
    observations = tuple(
        observation(
            number,
            tool=tool,
            title=long,
            arguments=json.dumps({"source": long, "contains": [long], "statement": long, "query": long}),
            projection="\n".join([long[:300]] * 3),
            coverage=Coverage(unit=Unit.LINES, matched=9, shown=9, start=START, end=START, notes=(long,) * 9),
            documents=tuple(
                DocumentRef(document_id=f"D{n}", title=long, heading_path=(long,) * 5, source=long) for n in range(10)
            ),
        )
        for number in range(1, count + 1)
    )
    best = Draft.model_validate({"conclusion": character, "claims": claims})
    for limitations in range(9):
        texts = {"conclusion": character * filler, "limitations": [character * filler] * limitations}
        try:
            best = Draft.model_validate({"claims": claims, **texts})
        except ValueError:
            break
    return best, observations


@pytest.mark.spec("WIRE-4", "RELEASE-1")
@pytest.mark.parametrize("tool", list(ToolName))
@pytest.mark.parametrize("character", CHARACTERS)
@pytest.mark.parametrize("count", [1, 8, 16, 40])
async def test_the_longest_draft_and_its_sources_fit(character: str, count: int, tool: str) -> None:
    proposal, observations = widest(character, count, tool)
    model = FakeModel(verdicts(*[True] * (len(proposal.claims) + 1)))

    result = await released(model, Investigation(Stop.DRAFTED, proposal, observations))

    assert isinstance(result.content, DiagnosisContent)
    assert encoded_size(result.content) <= MAX_CONTENT_BYTES
    assert len(result.content.sources) == count
    assert result.content.conclusion == proposal.conclusion, "what was checked is never cut"
    for source in result.content.sources:
        assert set(source.title + "".join(source.excerpt)) <= {character, "…"}
        assert source.title
        assert source.coverage is not None or not source.excerpt
        assert source.coverage is None or bool(source.coverage.notes) is bool(source.excerpt)


@pytest.mark.spec("WIRE-4", "RELEASE-2")
@pytest.mark.parametrize("character", CHARACTERS)
@pytest.mark.parametrize("count", [0, 1, 60])
async def test_the_longest_fallback_fits(character: str, count: int) -> None:
    _, observations = widest(character, max(count, 1), "lookup_knowledge")

    result = await released(FakeModel(), Investigation(Stop.NO_DRAFT, None, observations[:count]))

    assert isinstance(result.content, FallbackContent)
    assert encoded_size(result.content) <= MAX_CONTENT_BYTES
    assert len(result.content.checked) >= min(count, 6), "no more is left out than has to be"


@pytest.mark.spec("WIRE-4")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    titles=st.lists(st.text(max_size=400), min_size=1, max_size=12),
    lines=st.lists(st.text(alphabet=st.characters(codec="utf-8"), max_size=1_500), max_size=20),
)
async def test_odd_characters_fit_too(titles: list[str], lines: list[str]) -> None:
    observations = tuple(
        observation(number, title=title, projection="\n".join(lines)) for number, title in enumerate(titles, start=1)
    )
    proposal = Draft.model_validate(
        {"conclusion": "It failed.", "claims": [{"text": "It failed.", "evidence_ids": ["E1"]}]}
    )

    result = await released(FakeModel(verdicts(True, True)), Investigation(Stop.DRAFTED, proposal, observations))

    assert encoded_size(result.content) <= MAX_CONTENT_BYTES
