"""The bench of broken drafts, small: over what the adapters really return for the demo incident."""

from pathlib import Path

import pytest

from bench.evidence.guard_cases.observed import observe
from bench.evidence.guards import LEAST_KILLED, LEAST_PASSED, measure, report


@pytest.mark.spec("GUARD-1", "GUARD-2", "DIAG-2")
def test_broken_drafts_are_rejected_and_true_ones_pass(tmp_path: Path) -> None:
    result = measure(observe(tmp_path), per_wording=1)

    killed, passed = result.total(result.killed), result.total(result.passed)
    table = "\n".join(report(result, examples=3))
    assert killed.all > 500, table
    assert killed.share >= LEAST_KILLED, table
    assert passed.all > 150, table
    assert passed.share >= LEAST_PASSED, table
