"""The end of a run against the sweep, against duplicates of its request and against its deadline."""

import asyncio
from datetime import timedelta

import pytest

from tests.fakes.clock import START, FakeClock
from tests.fakes.model import FakeModel, call, calls, draft, intent, text
from tests.integration.races.conftest import NewProcess
from tests.integration.races.schedule import HeldModel, Moment, Process, assert_one_outcome, crossed, running
from tests.stored_values import run_ids

MOMENTS: tuple[Moment, ...] = ("before", "inside", "after")
LATE = START + timedelta(hours=1)


async def sweep(process: Process) -> list[str]:
    return run_ids(await process.runs.abandon_overdue(LATE, LATE))


class TestAgainstSweep:
    @pytest.mark.spec("LIFE-3", "LIFE-4", "LIFE-7")
    @pytest.mark.parametrize("moment", MOMENTS)
    async def test_a_sweep_at_the_end_of_a_run(self, new_process: NewProcess, moment: Moment) -> None:
        process, other = new_process(), new_process()
        stop = process.runs.hold("finish", moment)
        async with running(process.ask()) as asking:
            await stop.reached()
            async with running(sweep(other)) as sweeping:
                if other.database.engine.dialect.name != "sqlite" or moment != "inside":
                    await sweeping
                stop.release()
                await asyncio.gather(asking, sweeping)
        if moment == "before":
            assert sweeping.result() == [process.frames[0]["runId"]]
            await assert_one_outcome(process, "FAILED", "RUN_ABANDONED")
        else:
            assert sweeping.result() == []
            await assert_one_outcome(process, "SUCCESS")


class TestAgainstDuplicate:
    """A client that asks the same again while, or after, its first request ends."""

    @pytest.mark.spec("LIFE-6", "WIRE-2")
    @pytest.mark.parametrize("moment", MOMENTS)
    async def test_a_resend_hears_the_end_that_was_stored_by_then(
        self, new_process: NewProcess, moment: Moment
    ) -> None:
        process, other = new_process(), new_process()
        await crossed(process, process.runs.hold("finish", moment), moment, other.ask("c2", "g2"))
        await assert_one_outcome(process, "SUCCESS")
        assert other.types == (["started"] if moment == "before" else ["started", "content", "done"])
        assert {frame["runId"] for frame in other.frames} == {(await process.row())["run_id"]}
        assert all(frame["replayed"] for frame in other.frames)
        assert other.model.fake.requests == []

    @pytest.mark.spec("LIFE-6", "WIRE-2")
    @pytest.mark.parametrize("moment", MOMENTS)
    async def test_a_redelivery_is_silent(self, new_process: NewProcess, moment: Moment) -> None:
        process, other = new_process(), new_process()
        await crossed(process, process.runs.hold("finish", moment), moment, other.ask("c1", "g1"))
        await assert_one_outcome(process, "SUCCESS")
        assert (other.frames, other.model.fake.requests) == ([], [])


class TestTwoDuplicates:
    @pytest.mark.spec("LIFE-6", "LIFE-3")
    @pytest.mark.parametrize("moment", MOMENTS)
    async def test_one_of_two_equal_requests_claims_the_run(self, new_process: NewProcess, moment: Moment) -> None:
        first, second = new_process(), new_process()
        await crossed(first, first.runs.hold("start", moment), moment, second.ask("c2", "g2"))
        winner, loser = (second, first) if moment == "before" else (first, second)
        await assert_one_outcome(winner, "SUCCESS")
        assert len(winner.model.fake.requests) == 2
        assert loser.model.fake.requests == []
        # The winner had ended before the loser asked, or hadn't: the loser repeats what was stored by then.
        assert loser.types[0] == "started"
        assert all(frame["replayed"] for frame in loser.frames)


class TestAgainstDeadline:
    BEFORE, AT = 179.999, 180.0

    @pytest.mark.spec("LIFE-8", "BUDGET-3", "BUDGET-4")
    @pytest.mark.parametrize("seconds", [BEFORE, AT])
    async def test_an_answer_around_the_deadline(self, new_process: NewProcess, seconds: float) -> None:
        model = HeldModel(FakeModel(intent("SYSTEM_CHAT"), text("Hello.")), at=2)
        process = new_process(model)
        async with running(process.ask()) as asking:
            await model.gate.reached()
            process.clock.advance(seconds)
            model.gate.release()
            await asking
        if seconds < self.AT:
            await assert_one_outcome(process, "SUCCESS")
        else:
            await assert_one_outcome(process, "FAILED", "BUDGET_EXHAUSTED")

    @pytest.mark.spec("LIFE-8", "BUDGET-2")
    async def test_a_draft_after_the_deadline_is_no_more_than_a_fallback(self, new_process: NewProcess) -> None:
        script = FakeModel(
            intent("DIAGNOSIS"), calls(call("query_logs", {"source": "payment"})), draft(conclusion="Late.")
        )
        model = HeldModel(script, at=3)
        process = new_process(model)
        async with running(process.ask()) as asking:
            await model.gate.reached()
            process.clock.advance(self.AT)
            model.gate.release()
            await asking
        await assert_one_outcome(process, "FALLBACK")
        assert process.frames[-2]["content"]["reason"] == "BUDGET_REACHED"

    @pytest.mark.spec("LIFE-7", "LIFE-8", "LIFE-3")
    @pytest.mark.parametrize("first", ["sweep", "survivor"])
    async def test_a_survivor_past_its_deadline_and_the_sweep(self, new_process: NewProcess, first: str) -> None:
        process, other = new_process(clock=FakeClock()), new_process()
        stop = process.runs.hold("finish", "before")
        async with running(process.ask()) as asking:
            await stop.reached()
            process.clock.advance(3_600)
            if first == "sweep":
                swept = await sweep(other)
                stop.release()
                await asking
            else:
                stop.release()
                await asking
                swept = await sweep(other)
        if first == "sweep":
            assert swept == [process.frames[0]["runId"]]
            await assert_one_outcome(process, "FAILED", "RUN_ABANDONED")
        else:
            assert swept == []
            await assert_one_outcome(process, "SUCCESS")
