import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from superbizagent.domain.budget import Usage
from superbizagent.domain.content import PublicContent
from superbizagent.domain.run import Intent, ReleaseOutcome, RunIds, RunStatus
from superbizagent.domain.stored_run import AbandonedRun, StoredRun
from superbizagent.errors import RequestConflict, SessionBusy, SessionNotFound
from superbizagent.ports import NewRun, PriorContext, StartResult
from tests.contract.conftest import GRACE, Stores
from tests.stored_values import (
    NOW,
    TRICKY,
    at,
    chat_content,
    diagnosis_content,
    fallback_content,
    new_run,
    published,
    run_end,
    run_ids,
)

OUTCOMES = list(ReleaseOutcome)


async def _started(stores: Stores, **fields: Any) -> NewRun:
    run = new_run(**fields)
    assert await stores.runs.start(run) == StartResult()
    return run


async def _ended(
    stores: Stores,
    outcome: ReleaseOutcome = ReleaseOutcome.SUCCESS,
    intent: Intent = Intent.DIAGNOSIS,
    *,
    result: Any = None,
    **fields: Any,
) -> NewRun:
    run = await _started(stores, **fields)
    await stores.runs.set_intent(run.run_id, intent)
    assert await stores.runs.finish(run.run_id, run_end(outcome, published_result=result))
    return run


async def _found(stores: Stores, run_id: str) -> StoredRun:
    found = await stores.runs.find(run_id)
    assert found is not None
    return found


def _abandoned(run: NewRun, intent: Intent | None, when: datetime) -> AbandonedRun:
    ids = RunIds(run.run_id, run.session_id, run.request_id, run.connection_id)
    return AbandonedRun(ids, intent, (when - run.created_at) // timedelta(milliseconds=1))


class TestStart:
    @pytest.mark.spec("LIFE-1", "LIFE-2", "STORE-4")
    async def test_a_new_run_is_stored_as_running_with_all_it_was_given(self, stores: Stores) -> None:
        run = await _started(stores, query=TRICKY)
        assert await stores.runs.find(run.run_id) == StoredRun(
            run_id=run.run_id,
            session_id=run.session_id,
            request_id=run.request_id,
            gateway_request_id=run.gateway_request_id,
            query=TRICKY,
            status=RunStatus.RUNNING,
            intent=None,
            outcome=None,
            failure_code=None,
            content=None,
            created_at=NOW,
            finished_at=None,
        )

    async def test_an_unknown_run_is_not_found(self, stores: Stores) -> None:
        assert await stores.runs.find("nothing") is None

    @pytest.mark.spec("STORE-4")
    async def test_the_longest_query_comes_back_whole(self, stores: Stores) -> None:
        query = "𠮷" * (24 * 1024 // 4)
        run = await _started(stores, query=query)
        assert (await _found(stores, run.run_id)).query == query

    @pytest.mark.spec("LIFE-6")
    async def test_the_same_request_again_gets_the_first_run(self, stores: Stores) -> None:
        first = await _started(stores, request_id="r1")
        again = new_run(request_id="r1", session_id=first.session_id, created_at=at(1))
        earlier = (await stores.runs.start(again)).earlier
        assert earlier is not None
        assert (earlier.run_id, earlier.gateway_request_id) == (first.run_id, first.gateway_request_id)
        assert earlier.status is RunStatus.RUNNING
        assert await stores.runs.find(again.run_id) is None

    @pytest.mark.spec("LIFE-6")
    async def test_the_very_same_run_again_is_a_second_delivery_too(self, stores: Stores) -> None:
        run = await _started(stores)
        earlier = (await stores.runs.start(run)).earlier
        assert earlier is not None
        assert earlier.run_id == run.run_id

    @pytest.mark.spec("LIFE-6")
    async def test_a_resend_after_the_end_gets_the_stored_content(self, stores: Stores) -> None:
        first = await _started(stores, request_id="r1")
        await stores.runs.finish(first.run_id, run_end(content=chat_content()))
        # Without a session id of its own the resend brings a new one; nothing may be left of that.
        again = new_run(request_id="r1", created_at=at(60))
        earlier = (await stores.runs.start(again)).earlier
        assert earlier is not None
        assert (earlier.run_id, earlier.session_id) == (first.run_id, first.session_id)
        assert earlier.content == chat_content()
        assert [row.session_id for row in await stores.history.sessions("ada", 10)] == [first.session_id]

    @pytest.mark.spec("LIFE-6")
    async def test_the_same_request_id_with_another_query_is_refused(self, stores: Stores) -> None:
        first = await _started(stores, request_id="r1", query="café")
        for other in ("cafe", "Café", "café ", "cafe\u0301"):
            with pytest.raises(RequestConflict):
                await stores.runs.start(new_run(request_id="r1", session_id=first.session_id, query=other))

    @pytest.mark.spec("LIFE-6", "ISO-2")
    async def test_request_ids_belong_to_their_owner(self, stores: Stores) -> None:
        await _started(stores, request_id="r1", owner="ada", query="one")
        await _started(stores, request_id="r1", owner="bob", query="two")
        await _started(stores, request_id="R1", owner="ada", query="three")

    @pytest.mark.spec("ISO-2")
    async def test_another_owners_session_is_not_found_and_nothing_is_stored(self, stores: Stores) -> None:
        ours = await _started(stores, owner="ada")
        for owner in ("bob", "Ada", "ada ", ""):
            intruder = new_run(owner=owner, session_id=ours.session_id, created_at=at(1))
            with pytest.raises(SessionNotFound):
                await stores.runs.start(intruder)
            assert await stores.runs.find(intruder.run_id) is None

    @pytest.mark.spec("ISO-2")
    async def test_another_owner_does_not_end_an_overdue_run(self, stores: Stores) -> None:
        ours = await _started(stores)
        with pytest.raises(SessionNotFound):
            await stores.runs.start(new_run(owner="bob", session_id=ours.session_id, created_at=at(10_000)))
        assert (await _found(stores, ours.run_id)).status is RunStatus.RUNNING

    async def test_a_session_answers_one_question_at_a_time(self, stores: Stores) -> None:
        first = await _started(stores)
        with pytest.raises(SessionBusy):
            await stores.runs.start(new_run(session_id=first.session_id, created_at=at(1)))
        await stores.runs.finish(first.run_id, run_end())
        await _started(stores, session_id=first.session_id, created_at=at(5))

    async def test_sessions_that_differ_by_case_are_two(self, stores: Stores) -> None:
        await _started(stores, session_id="abc")
        await _started(stores, session_id="ABC", owner="bob")

    @pytest.mark.spec("LIFE-7")
    async def test_an_overdue_run_no_longer_blocks_its_session(self, stores: Stores) -> None:
        stuck = await _started(stores)
        overdue = stuck.deadline_at + GRACE + timedelta(microseconds=1)
        with pytest.raises(SessionBusy):
            await stores.runs.start(
                new_run(session_id=stuck.session_id, created_at=overdue - timedelta(microseconds=1))
            )
        await stores.runs.set_intent(stuck.run_id, Intent.DIAGNOSIS)
        started = await stores.runs.start(new_run(session_id=stuck.session_id, created_at=overdue))
        assert started == StartResult(abandoned=(_abandoned(stuck, Intent.DIAGNOSIS, overdue),))
        ended = await _found(stores, stuck.run_id)
        assert (ended.status, ended.outcome, ended.failure_code, ended.finished_at) == (
            RunStatus.FAILED,
            ReleaseOutcome.FAILED,
            "RUN_ABANDONED",
            overdue,
        )
        assert not await stores.runs.finish(stuck.run_id, run_end())

    @pytest.mark.spec("LIFE-6")
    async def test_equal_requests_at_once_make_one_run(self, stores: Stores) -> None:
        runs = [new_run(request_id="r1", session_id="s1", gateway_request_id="g1") for _ in range(4)]
        answers = await asyncio.gather(*map(stores.runs.start, runs))
        winners = [run.run_id for run, answer in zip(runs, answers, strict=True) if answer.earlier is None]
        assert len(winners) == 1
        assert {answer.earlier.run_id for answer in answers if answer.earlier} == set(winners)

    @pytest.mark.spec("LIFE-6")
    async def test_equal_requests_at_once_without_a_session_make_one_run(self, stores: Stores) -> None:
        runs = [new_run(request_id="r1") for _ in range(4)]
        answers = await asyncio.gather(*map(stores.runs.start, runs))
        winners = [run for run, answer in zip(runs, answers, strict=True) if answer.earlier is None]
        assert len(winners) == 1
        assert {answer.earlier.run_id for answer in answers if answer.earlier} == {winners[0].run_id}
        sessions = await stores.history.sessions("ada", 10)
        assert [row.session_id for row in sessions] == [winners[0].session_id]

    async def test_different_requests_at_once_in_one_session_make_one_run(self, stores: Stores) -> None:
        runs = [new_run(session_id="s1") for _ in range(4)]
        answers = await asyncio.gather(*map(stores.runs.start, runs), return_exceptions=True)
        assert answers.count(StartResult()) == 1
        assert sum(isinstance(answer, SessionBusy) for answer in answers) == 3

    @pytest.mark.spec("ISO-2")
    async def test_one_new_session_claimed_by_two_owners_at_once_goes_to_one(self, stores: Stores) -> None:
        runs = [new_run(session_id="s1", owner=owner) for owner in ("ada", "bob")]
        answers = await asyncio.gather(*map(stores.runs.start, runs), return_exceptions=True)
        assert answers.count(StartResult()) == 1
        assert sum(isinstance(answer, SessionNotFound) for answer in answers) == 1


class TestIntent:
    @pytest.mark.spec("LIFE-2", "STORE-1")
    @pytest.mark.parametrize("intent", list(Intent))
    async def test_the_intent_is_stored_while_the_run_goes_on(self, stores: Stores, intent: Intent) -> None:
        run = await _started(stores)
        await stores.runs.set_intent(run.run_id, intent)
        assert (await _found(stores, run.run_id)).intent is intent

    @pytest.mark.spec("LIFE-3")
    async def test_an_ended_run_keeps_the_intent_it_had(self, stores: Stores) -> None:
        run = await _started(stores)
        await stores.runs.finish(run.run_id, run_end(ReleaseOutcome.CANCELLED))
        await stores.runs.set_intent(run.run_id, Intent.DIAGNOSIS)
        assert (await _found(stores, run.run_id)).intent is None
        await stores.runs.set_intent("nothing", Intent.DIAGNOSIS)


class TestFinish:
    @pytest.mark.spec("STORE-2", "STORE-3", "LIFE-3")
    @pytest.mark.parametrize(
        ("outcome", "status", "pairs"),
        [
            (ReleaseOutcome.SUCCESS, "SUCCESS", 1),
            (ReleaseOutcome.FALLBACK, "SUCCESS", 1),
            (ReleaseOutcome.FAILED, "FAILED", 0),
            (ReleaseOutcome.CANCELLED, "CANCELLED", 0),
        ],
    )
    async def test_each_outcome_stores_its_status_and_counts_answers_only(
        self, stores: Stores, outcome: ReleaseOutcome, status: str, pairs: int
    ) -> None:
        run = await _started(stores)
        assert await stores.runs.finish(run.run_id, run_end(outcome, failure_code="X"))
        ended = await _found(stores, run.run_id)
        assert (ended.status, ended.outcome, ended.failure_code) == (status, outcome, "X")
        assert ended.finished_at == at(4.2)
        assert stores.message_pairs(run.session_id) == pairs

    @pytest.mark.spec("LIFE-4", "STORE-4", "WIRE-5")
    @pytest.mark.parametrize(
        "content", [chat_content(TRICKY), diagnosis_content(TRICKY), fallback_content()], ids=lambda c: c.type
    )
    async def test_content_comes_back_as_it_was_published(self, stores: Stores, content: PublicContent) -> None:
        run = await _started(stores)
        await stores.runs.finish(run.run_id, run_end(content=content))
        assert (await _found(stores, run.run_id)).content == content

    @pytest.mark.spec("STORE-3")
    async def test_the_end_is_the_sessions_last_activity(self, stores: Stores) -> None:
        run = await _started(stores)
        await stores.runs.finish(run.run_id, run_end(finished_at=at(77.000001)))
        (summary,) = await stores.history.sessions("ada", 1)
        assert summary.last_active_at == at(77.000001)

    async def test_the_last_activity_never_goes_back(self, stores: Stores) -> None:
        run = await _started(stores)
        await stores.runs.finish(run.run_id, run_end(finished_at=at(-60)))
        (summary,) = await stores.history.sessions("ada", 1)
        assert summary.last_active_at == NOW

    @pytest.mark.spec("LIFE-3", "STORE-3")
    @pytest.mark.parametrize("first", OUTCOMES)
    @pytest.mark.parametrize("second", OUTCOMES)
    async def test_the_first_end_stands(self, stores: Stores, first: ReleaseOutcome, second: ReleaseOutcome) -> None:
        run = await _started(stores)
        assert await stores.runs.finish(run.run_id, run_end(first, content=chat_content("first")))
        before = await _found(stores, run.run_id), stores.message_pairs(run.session_id)
        late = run_end(second, content=chat_content("second"), finished_at=at(99), usage=Usage(tokens=9))
        assert not await stores.runs.finish(run.run_id, late)
        assert (await _found(stores, run.run_id), stores.message_pairs(run.session_id)) == before

    @pytest.mark.spec("LIFE-3")
    async def test_the_same_end_twice_is_won_once(self, stores: Stores) -> None:
        run = await _started(stores)
        assert await stores.runs.finish(run.run_id, run_end())
        assert not await stores.runs.finish(run.run_id, run_end())
        assert stores.message_pairs(run.session_id) == 1

    @pytest.mark.spec("LIFE-3")
    async def test_of_ends_at_once_one_wins(self, stores: Stores) -> None:
        run = await _started(stores)
        ends = [run_end(outcome) for outcome in OUTCOMES]
        won = await asyncio.gather(*(stores.runs.finish(run.run_id, end) for end in ends))
        assert won.count(True) == 1
        assert (await _found(stores, run.run_id)).outcome is OUTCOMES[won.index(True)]

    async def test_an_unknown_run_cannot_be_ended(self, stores: Stores) -> None:
        assert not await stores.runs.finish("nothing", run_end())

    @pytest.mark.parametrize(
        "damaged", ['{"type":"DIAGNOSIS"}', '{"type":"NEWER"}', "[]", '"text"', "null", "12", "{}"]
    )
    async def test_unreadable_content_is_none_and_the_run_stays_readable(self, stores: Stores, damaged: str) -> None:
        run = await _started(stores)
        await stores.runs.finish(run.run_id, run_end(content=chat_content()))
        stores.tamper(run.run_id, "content", damaged)
        found = await _found(stores, run.run_id)
        assert (found.content, found.outcome) == (None, ReleaseOutcome.SUCCESS)


class TestAbandonOverdue:
    @pytest.mark.spec("LIFE-7")
    async def test_runs_past_their_deadline_are_ended_once(self, stores: Stores) -> None:
        overdue = await _started(stores, deadline_at=at(-0.000001))
        on_time = await _started(stores, deadline_at=NOW)
        ended = await _started(stores, deadline_at=at(-60))
        await stores.runs.finish(ended.run_id, run_end(ReleaseOutcome.CANCELLED))
        assert list(await stores.runs.abandon_overdue(NOW, at(7))) == [_abandoned(overdue, None, at(7))]
        found = await _found(stores, overdue.run_id)
        assert (found.status, found.outcome) == (RunStatus.FAILED, ReleaseOutcome.FAILED)
        assert (found.failure_code, found.finished_at) == ("RUN_ABANDONED", at(7))
        assert (await _found(stores, on_time.run_id)).status is RunStatus.RUNNING
        assert (await _found(stores, ended.run_id)).outcome is ReleaseOutcome.CANCELLED
        assert run_ids(await stores.runs.abandon_overdue(NOW, at(8))) == []

    @pytest.mark.spec("LIFE-7", "LIFE-3")
    async def test_a_late_survivor_loses(self, stores: Stores) -> None:
        run = await _started(stores)
        await stores.runs.abandon_overdue(at(10_000), at(10_000))
        assert not await stores.runs.finish(run.run_id, run_end(content=chat_content()))
        found = await _found(stores, run.run_id)
        assert (found.failure_code, found.content) == ("RUN_ABANDONED", None)
        assert stores.message_pairs(run.session_id) == 0

    @pytest.mark.spec("LIFE-7")
    async def test_of_sweeps_at_once_each_run_is_ended_by_one(self, stores: Stores) -> None:
        runs = {(await _started(stores)).run_id for _ in range(5)}
        sweeps = await asyncio.gather(*(stores.runs.abandon_overdue(at(10_000), at(10_000)) for _ in range(3)))
        swept = [run_id for sweep in sweeps for run_id in run_ids(sweep)]
        # What one sweep had locked another passed over; the next one finds nothing left.
        assert sorted(swept) == sorted(runs)
        assert run_ids(await stores.runs.abandon_overdue(at(10_000), at(10_000))) == []


class TestPriorContext:
    @pytest.mark.spec("LIFE-2", "PREV-1")
    async def test_a_new_session_has_none(self, stores: Stores) -> None:
        assert await stores.runs.prior_context("unknown", "ada") == PriorContext()

    @pytest.mark.spec("ISO-2")
    async def test_another_owners_session_is_not_found(self, stores: Stores) -> None:
        run = await _started(stores)
        for owner in ("bob", "ADA", "ada "):
            with pytest.raises(SessionNotFound):
                await stores.runs.prior_context(run.session_id, owner)

    @pytest.mark.spec("ROUTE-1")
    async def test_last_intent_and_query_are_those_of_the_latest_routed_run(self, stores: Stores) -> None:
        await _ended(stores, session_id="s1", intent=Intent.DIAGNOSIS, query="one")
        await _ended(
            stores,
            ReleaseOutcome.FAILED,
            session_id="s1",
            intent=Intent.KNOWLEDGE_QUERY,
            query=TRICKY,
            created_at=at(10),
        )
        unrouted = await _started(stores, session_id="s1", query="three", created_at=at(20))
        prior = await stores.runs.prior_context("s1", "ada")
        assert (prior.last_intent, prior.last_query) == (Intent.KNOWLEDGE_QUERY, TRICKY)
        await stores.runs.set_intent(unrouted.run_id, Intent.SYSTEM_CHAT)
        prior = await stores.runs.prior_context("s1", "ada")
        assert (prior.last_intent, prior.last_query) == (Intent.SYSTEM_CHAT, "three")

    @pytest.mark.spec("PREV-1", "PREV-2")
    async def test_the_latest_published_diagnosis_is_the_previous_turn(self, stores: Stores) -> None:
        await _ended(stores, session_id="s1", result=published("older"))
        await _ended(stores, session_id="s1", result=published(TRICKY), created_at=at(10))
        turn = (await stores.runs.prior_context("s1", "ada")).previous_turn
        assert turn is not None
        assert (turn.conclusion, turn.scope, turn.limitations) == (TRICKY, TRICKY, (TRICKY,))
        assert [document.document_id for document in turn.source_documents] == ["D1"]

    @pytest.mark.spec("PREV-1")
    @pytest.mark.parametrize(
        ("outcome", "intent"),
        [
            (ReleaseOutcome.FALLBACK, Intent.DIAGNOSIS),
            (ReleaseOutcome.FAILED, Intent.DIAGNOSIS),
            (ReleaseOutcome.CANCELLED, Intent.DIAGNOSIS),
            (ReleaseOutcome.SUCCESS, Intent.KNOWLEDGE_QUERY),
            (ReleaseOutcome.SUCCESS, Intent.SYSTEM_CHAT),
            (ReleaseOutcome.SUCCESS, Intent.DIAGNOSIS),
        ],
    )
    async def test_newer_runs_that_published_no_diagnosis_do_not_hide_it(
        self, stores: Stores, outcome: ReleaseOutcome, intent: Intent
    ) -> None:
        await _ended(stores, session_id="s1", result=published("kept"))
        # Only a successful diagnosis may bring a result; this one (the last case) brought none.
        bring = None if (outcome, intent) == ("SUCCESS", "DIAGNOSIS") else published("wrong")
        await _ended(stores, outcome, intent, session_id="s1", result=bring, created_at=at(10))
        turn = (await stores.runs.prior_context("s1", "ada")).previous_turn
        assert turn is not None
        assert turn.conclusion == "kept"

    @pytest.mark.spec("PREV-1")
    async def test_a_running_run_is_not_its_own_predecessor(self, stores: Stores) -> None:
        run = await _started(stores)
        await stores.runs.set_intent(run.run_id, Intent.DIAGNOSIS)
        assert (await stores.runs.prior_context(run.session_id, "ada")).previous_turn is None

    @pytest.mark.spec("PREV-1")
    async def test_order_is_by_time_and_then_by_storing(self, stores: Stores) -> None:
        await _ended(stores, session_id="s1", result=published("first"), created_at=at(1))
        await _ended(stores, session_id="s1", result=published("same time, later"), created_at=at(1))
        await _ended(stores, session_id="s1", result=published("stored last"), created_at=at(0.999999))
        turn = (await stores.runs.prior_context("s1", "ada")).previous_turn
        assert turn is not None
        assert turn.conclusion == "same time, later"

    @pytest.mark.spec("PREV-1", "ISO-2")
    async def test_other_sessions_do_not_count(self, stores: Stores) -> None:
        await _ended(stores, session_id="s1", result=published())
        await _ended(stores, ReleaseOutcome.FAILED, session_id="S1")
        assert (await stores.runs.prior_context("S1", "ada")).previous_turn is None

    @pytest.mark.spec("PREV-3")
    @pytest.mark.parametrize(
        "damaged",
        [
            "{}",
            "[]",
            "null",
            "7",
            '"secret stored text"',
            '{"user_query":"q"}',
            '{"user_query":"q","published_conclusion":""}',
            '{"user_query":"q","published_conclusion":"c","evidence":"raw"}',
            '{"user_query":"q","published_conclusion":["c"]}',
        ],
    )
    async def test_a_corrupt_result_is_no_previous_turn_and_the_older_one_is_not_used(
        self, stores: Stores, damaged: str
    ) -> None:
        await _ended(stores, session_id="s1", query="older", result=published("older"))
        corrupt = await _ended(stores, session_id="s1", result=published(), created_at=at(10))
        stores.tamper(corrupt.run_id, "published_result", damaged)
        prior = await stores.runs.prior_context("s1", "ada")
        assert prior == PriorContext(Intent.DIAGNOSIS, corrupt.query, None)
