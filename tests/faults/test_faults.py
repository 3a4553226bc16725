"""A spread of the matrix; `make faults` plays all of it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.cases import spread
from tests.faults.lane import Lane
from tests.faults.peers import FOR_PEERS, peer_cases
from tests.faults.stage import AnyCase, judged, recording, stage

# Every process starts cold here, some of them again and again; a busy machine takes minutes over what takes seconds.
pytestmark = pytest.mark.timeout(900)
SEED = 7
LANES = 3


async def _what_did_not_hold(lanes: Sequence[Lane], cases: Sequence[AnyCase]) -> list[str]:
    return [verdict.line async for verdict in judged(lanes, cases, SEED) if verdict.problems]


@pytest.mark.spec(
    "LIFE-3", "LIFE-4", "LIFE-5", "LIFE-6", "LIFE-7", "LIFE-8", "CANCEL-1", "CANCEL-2", "CANCEL-4", "STORE-3", "WIRE-5"
)
async def test_whatever_happens_at_a_boundary_there_is_one_outcome_and_nothing_is_left(demo: Path) -> None:
    async with stage(demo, LANES) as lanes:
        cases = spread(await recording(lanes[0]), SEED)
        assert await _what_did_not_hold(lanes, cases) == []


@pytest.mark.spec("OBS-2", "WIRE-2", "LIFE-5", "ROUTE-4")
async def test_bad_peers_cost_statuses_and_time_but_no_outcome(demo: Path) -> None:
    async with stage(demo, LANES, **FOR_PEERS) as lanes:
        assert await _what_did_not_hold(lanes, spread(peer_cases(), SEED)) == []
