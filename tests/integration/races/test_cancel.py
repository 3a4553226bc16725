"""Cancellation against the claim of a run, its work and its end: each before, in and after the other."""

import asyncio

import pytest

from superbizagent.errors import RunNotFound
from tests.fakes.clock import START
from tests.integration.races.conftest import NewProcess, greeting
from tests.integration.races.schedule import Gate, Moment, Process, Stop, assert_one_outcome, running

MOMENTS: tuple[Moment, ...] = ("before", "inside", "after")
BOTH_WAYS = pytest.mark.parametrize("way", ["disconnect", "message"])


async def cancel(other: Process, way: str, run_id: str) -> None:
    if way == "disconnect":
        await other.cancels.cancel_connection("c1", START)
    else:
        await other.cancels.cancel_run(run_id, "ada", START)


class TestAgainstFinish:
    @pytest.mark.spec("CANCEL-1", "CANCEL-3", "LIFE-3")
    @BOTH_WAYS
    @pytest.mark.parametrize("moment", MOMENTS)
    async def test_an_end_that_was_reached_stands(self, new_process: NewProcess, way: str, moment: Moment) -> None:
        process, other = new_process(), new_process()
        stop = process.runs.hold("finish", moment)
        async with running(process.ask()) as asking:
            await stop.reached()
            run_id = process.frames[0]["runId"]
            async with running(cancel(other, way, run_id)) as cancelling:
                # SQLite lets one process write at a time; elsewhere nobody waits for anybody.
                if other.database.engine.dialect.name != "sqlite" or moment != "inside":
                    await cancelling
                stop.release()
                await asyncio.gather(asking, cancelling)
        await assert_one_outcome(process, "SUCCESS")

    @pytest.mark.spec("CANCEL-1", "LIFE-3", "LIFE-8")
    async def test_a_cancel_seen_before_the_last_answer_wins(self, new_process: NewProcess) -> None:
        process, other = new_process(greeting(at=2), poll_seconds=0.01), new_process()
        process.cancels.seen = Gate()
        async with running(process.ask()) as asking:
            await process.model.gate.reached()
            await cancel(other, "message", process.frames[0]["runId"])
            await process.cancels.seen.reached()
            process.cancels.seen.release()
            await asking
            # The answer that was on its way all the while.
            process.model.gate.release()
        await assert_one_outcome(process, "CANCELLED")

    @pytest.mark.spec("CANCEL-1", "LIFE-3")
    async def test_an_answer_that_comes_before_the_cancel_is_seen_wins(self, new_process: NewProcess) -> None:
        process, other = new_process(greeting(at=2), poll_seconds=0.01), new_process()
        process.cancels.seen = Gate()
        async with running(process.ask()) as asking:
            await process.model.gate.reached()
            await cancel(other, "message", process.frames[0]["runId"])
            await process.cancels.seen.reached()
            process.model.gate.release()
            await asking
            process.cancels.seen.release()
        await assert_one_outcome(process, "SUCCESS")


class TestAgainstClaim:
    @pytest.mark.spec("CANCEL-1", "LIFE-3")
    @pytest.mark.parametrize("moment", MOMENTS)
    async def test_a_disconnect_around_the_claim_prevents_all_work(
        self, new_process: NewProcess, moment: Moment
    ) -> None:
        process, other = new_process(), new_process()
        stop = process.runs.hold("start", moment)
        # The run looks for cancel rows only once this one is stored: on SQLite it has to wait for the claim.
        claimed = process.runs.hold("start", "after") if moment == "inside" else stop
        async with running(process.ask()) as asking, running(self._disconnected(other, stop)) as cancelling:
            if moment == "inside":
                await stop.reached()
                if other.database.engine.dialect.name != "sqlite":
                    await cancelling
                stop.release()
            await cancelling
            claimed.release()
            await asking
        await assert_one_outcome(process, "CANCELLED")
        assert process.model.fake.requests == []

    @staticmethod
    async def _disconnected(other: Process, stop: Stop) -> None:
        await stop.reached()
        await cancel(other, "disconnect", "")

    @pytest.mark.spec("CANCEL-3", "LIFE-3")
    @pytest.mark.parametrize("moment", MOMENTS)
    async def test_a_message_finds_a_run_once_it_is_claimed(self, new_process: NewProcess, moment: Moment) -> None:
        process, other = new_process(), new_process()
        stop = process.runs.hold("start", moment)
        async with running(process.ask()) as asking:
            await stop.reached()
            if moment == "after":
                await cancel(other, "message", (await other.row())["run_id"])
            elif moment == "before" or other.database.engine.dialect.name != "sqlite":
                with pytest.raises(RunNotFound):
                    await cancel(other, "message", "not-there-yet")
            stop.release()
            await asking
        await assert_one_outcome(process, "CANCELLED" if moment == "after" else "SUCCESS")
        assert len(process.model.fake.requests) == (0 if moment == "after" else 2)
