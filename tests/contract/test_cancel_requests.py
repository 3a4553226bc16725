import asyncio

import pytest

from superbizagent.domain.run import CancelReason, CancelRequest, ReleaseOutcome
from superbizagent.errors import RunNotFound
from tests.contract.conftest import Stores
from tests.stored_values import NOW, at, new_run, run_end


@pytest.mark.spec("CANCEL-1")
async def test_nothing_is_pending_until_somebody_asks(stores: Stores) -> None:
    assert await stores.cancels.pending("run", "connection") is None


@pytest.mark.spec("CANCEL-1")
async def test_a_gone_connection_cancels_its_present_and_future_runs(stores: Stores) -> None:
    present = new_run(connection_id="c1")
    await stores.runs.start(present)
    await stores.cancels.cancel_connection("c1", NOW)
    assert await stores.cancels.pending(present.run_id, "c1") == CancelRequest(CancelReason.CLIENT_DISCONNECT, NOW)
    future = new_run(connection_id="c1")
    await stores.runs.start(future)
    assert await stores.cancels.pending(future.run_id, "c1") == CancelRequest(CancelReason.CLIENT_DISCONNECT, NOW)
    assert await stores.cancels.pending(new_run().run_id, "c2") is None


@pytest.mark.spec("CANCEL-1")
async def test_connection_ids_differ_by_case(stores: Stores) -> None:
    await stores.cancels.cancel_connection("AbC=", NOW)
    assert await stores.cancels.pending("run", "aBc=") is None


@pytest.mark.spec("CANCEL-1")
async def test_a_connection_cancelled_often_is_cancelled(stores: Stores) -> None:
    await asyncio.gather(*(stores.cancels.cancel_connection("c1", at(n)) for n in range(4)))
    found = await stores.cancels.pending("run", "c1")
    assert found is not None
    assert found.reason is CancelReason.CLIENT_DISCONNECT


@pytest.mark.spec("CANCEL-3")
async def test_the_owner_cancels_one_run_only(stores: Stores) -> None:
    run, other = new_run(connection_id="c1"), new_run(connection_id="c1")
    await stores.runs.start(run)
    await stores.runs.start(other)
    await stores.cancels.cancel_run(run.run_id, "ada", NOW)
    await stores.cancels.cancel_run(run.run_id, "ada", at(1))
    assert await stores.cancels.pending(run.run_id, "c1") == CancelRequest(CancelReason.CLIENT_REQUEST, NOW)
    assert await stores.cancels.pending(other.run_id, "c1") is None


@pytest.mark.spec("CANCEL-3", "ISO-2")
async def test_nobody_else_can_cancel_a_run_or_learn_that_it_exists(stores: Stores) -> None:
    run = new_run(run_id="r1", owner="ada")
    await stores.runs.start(run)
    for run_id, owner in (("r1", "bob"), ("r1", "Ada"), ("r1", "ada "), ("R1", "ada"), ("r2", "ada")):
        with pytest.raises(RunNotFound):
            await stores.cancels.cancel_run(run_id, owner, NOW)
    assert await stores.cancels.pending("r1", run.connection_id) is None


@pytest.mark.spec("CANCEL-3", "LIFE-3")
async def test_nothing_happens_to_an_ended_run(stores: Stores) -> None:
    run = new_run()
    await stores.runs.start(run)
    await stores.runs.finish(run.run_id, run_end(ReleaseOutcome.SUCCESS))
    await stores.cancels.cancel_run(run.run_id, "ada", NOW)
    assert await stores.cancels.pending(run.run_id, run.connection_id) is None


@pytest.mark.spec("CANCEL-1", "CANCEL-3")
async def test_of_two_requests_the_first_is_the_reason(stores: Stores) -> None:
    run = new_run(connection_id="c1")
    await stores.runs.start(run)
    await stores.cancels.cancel_run(run.run_id, "ada", at(5))
    await stores.cancels.cancel_connection("c1", at(6))
    assert await stores.cancels.pending(run.run_id, "c1") == CancelRequest(CancelReason.CLIENT_REQUEST, at(5))
