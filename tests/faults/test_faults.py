"""A spread of the matrix and of the bad peers; `make faults` plays them all."""

from pathlib import Path

import pytest

from tests.faults.cases import spread
from tests.faults.peers import FOR_PEERS, peer_cases
from tests.faults.stage import judged, recording, stage

SEED = 7
LANES = 3


# Every process starts cold here, some of them again and again; a busy machine takes minutes over what takes seconds.
@pytest.mark.timeout(900)
@pytest.mark.spec(
    "LIFE-3", "LIFE-4", "LIFE-5", "LIFE-6", "LIFE-7", "LIFE-8", "CANCEL-1", "CANCEL-2", "CANCEL-4", "STORE-3", "WIRE-5"
)
@pytest.mark.spec("OBS-2", "WIRE-2", "ROUTE-4")
async def test_whatever_happens_at_a_boundary_there_is_one_outcome_and_nothing_is_left(demo: Path) -> None:
    async with stage(demo, LANES, **FOR_PEERS) as lanes:
        cases = [*spread(await recording(lanes[0]), SEED), *spread(peer_cases(), SEED)]
        verdicts = [verdict async for verdict in judged(lanes, cases, SEED)]
    assert [(verdict.line, *verdict.log) for verdict in verdicts if verdict.problems] == []
