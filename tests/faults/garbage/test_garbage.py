"""Two thousand of the frames that `make faults` sends a hundred thousand of."""

from pathlib import Path

import pytest

from tests.faults.garbage.contract import judge
from tests.faults.garbage.rounds import bombard
from tests.product.running import running

# Every process starts cold here; a busy machine may take minutes over what takes seconds.
pytestmark = pytest.mark.timeout(600)
FLAT = 48 * 1024 * 1024
"""Bytes a process may grow by: of 100,000 frames that each left a kilobyte behind there would be twice as much."""


@pytest.mark.spec("WIRE-3", "SEC-4")
async def test_every_frame_has_the_one_outcome_that_the_contract_gives_it(sqlite_database: str, demo: Path) -> None:
    async with running(sqlite_database, demo) as product:
        report = await bombard(product, 2_000, seed=20_261_130)
        assert report.sent == 2_000
        assert {name: grown for name, grown in report.growth.items() if grown > FLAT} == {}
        # Of everything something, else the generator has lost a kind.
        kinds = {"MALFORMED_REQUEST", "UNKNOWN_ACTION", "INVALID_QUERY", "INVALID_SESSION_ID", "chat done"}
        assert {*kinds, "closed 1002", "closed 1003", "closed 1007", "closed 1009"} <= report.outcomes.keys()


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("hi", {"MALFORMED_REQUEST"}),
        ('{"action":"chat","requestId":"q","query":"why?"}', set()),
        ('{"action":"chat","requestId":"q\\n","query":"why?"}', {"MALFORMED_REQUEST"}),
        ('{"action":"chat","requestId":"q","query":" ","sessionId":"a b"}', {"INVALID_QUERY", "INVALID_SESSION_ID"}),
        ('{"action":"chat","requestId":"q","query":"' + "🫠" * 6_145 + '"}', {"INVALID_QUERY"}),
        ('{"action":"chat","action":"history"}', set()),
        ('{"action":"\\ud83d"}', {"MALFORMED_REQUEST"}),
        ('{"action":"history","limit":20.0}', set()),
        ('{"action":"nope","x":NaN}', {"MALFORMED_REQUEST"}),
        ('{"action":"nope","x":1e999}', {"MALFORMED_REQUEST", "UNKNOWN_ACTION"}),
        ('{"action":"nope"}', {"UNKNOWN_ACTION"}),
    ],
)
def test_the_judge_reads_the_published_contract(text: str, codes: set[str]) -> None:
    assert judge(text).codes == codes
