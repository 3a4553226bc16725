"""pytest plugin of `make mutation`: the quickest tests first, so that most mutants are noticed at once."""

import json
from pathlib import Path

import pytest

STATISTICS = Path("mutmut-stats.json")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorted by the seconds that mutmut measured; before it has measured anything, left as they are."""
    if STATISTICS.exists():
        seconds: dict[str, float] = json.loads(STATISTICS.read_text())["duration_by_test"]
        items.sort(key=lambda item: seconds.get(item.nodeid, 0.0))
