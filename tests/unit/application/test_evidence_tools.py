"""What the model is told of its tools and of arguments that don't fit them (DIAG-1, DIAG-6)."""

from typing import Any

import pytest
from pydantic import ValidationError

from superbizagent.application.evidence_tools import explain, tool_specs
from superbizagent.domain.evidence import QueryLogs


@pytest.mark.spec("DIAG-1")
def test_each_tool_says_what_it_is_for() -> None:
    beginnings = {spec.name: spec.description.split()[0] for spec in tool_specs(evidence=True)}

    assert list(beginnings) == ["lookup_knowledge", "query_logs", "query_mysql", "submit_draft"]
    assert beginnings["lookup_knowledge"] == "Search"
    assert beginnings["query_logs"] == "Read"
    assert [spec.name for spec in tool_specs(evidence=False)] == ["submit_draft"]


@pytest.mark.spec("DIAG-6")
@pytest.mark.parametrize(
    ("arguments", "explained"),
    [
        ({"source": 5}, "source: Input should be a valid string"),
        ({"source": 5, "levels": [7]}, "source: Input should be a valid string; levels.0: Input should be 'TRACE',"),
        ("nothing", "arguments: Input should be a valid dictionary"),
        (
            {"source": "a", **{f"x{n}": 1 for n in range(9)}},
            "; ".join(f"x{n}: Extra inputs are not permitted" for n in range(5)),
        ),
        ({"source": "a", "x" * 700: 1}, "x" * 600),
    ],
)
def test_what_does_not_fit_is_told_in_a_bounded_sentence(arguments: Any, explained: str) -> None:
    with pytest.raises(ValidationError) as raised:
        QueryLogs.model_validate(arguments)

    told = explain(raised.value)

    assert told.startswith(explained)
    assert len(told) <= 600
