"""What follows from the values of a sentence passes; what contradicts its own list, its levels or its row does not."""

import pytest

from superbizagent.domain.draft import Draft
from superbizagent.domain.evidence import Observation
from superbizagent.domain.evidence_guard import check
from tests.unit.domain.observations import logs, passages, rows

LOG = logs(
    "2026-11-30T14:02:10Z WARN pool pool-a7 at 95%",
    "2026-11-30T14:02:16Z ERROR order ORD-11 failed after 18342.557 ms",
    '2026-11-30T14:08:40Z ERROR order ORD-12 failed {"latency": 51, "rt": 0.024, "throttled": 4417}',
)
ORDERS = rows(
    '{"id": "ORD-11", "state": "FAILED", "amount": 1899.0, "at": "2026-11-30 14:02:16", "all": 9817, "bad": 1264}',
    '{"id": "ORD-12", "state": "PENDING", "amount": 45.5, "at": "2026-11-30 14:08:40", "all": 12450, "bad": 33}',
    '{"id": "ORD-13", "state": "FAILED", "amount": 310.0, "at": "2026-11-30 14:09:00", "all": 11876, "bad": 29}',
)
RUNBOOK = passages("Raise maximumPoolSize to 60 and restart one pod at a time: a cold start takes up to 45 seconds.")

PASSING: list[tuple[str, Observation]] = [
    ("ORD-11 failed six seconds after the warning (14:02:10, 14:02:16).", LOG),
    ("From 14:02:16 to 14:08:40 about six minutes went by.", LOG),
    ("14:02:16 至 14:08:40，历时约 6 分钟。", LOG),
    ("It failed after 18.3 s.", LOG),
    ("In the hour from 14:00 to 15:00 two orders failed: ORD-11 and ORD-12.", LOG),
    ("In the 60 minutes searched ORD-11 failed.", LOG),
    ("The request took 24 ms (rt=0.024).", LOG),
    ("The counter of throttled requests stands at 4,417 requests.", LOG),
    ("Failures went from 33 to 1,264, an increase of 1,231.", ORDERS),
    ("失败数从 33 增至 1264，增加了 1231 笔。", ORDERS),
    ("1,264 of 9,817 orders failed (12.9%).", ORDERS),
    ("Two orders are FAILED.", ORDERS),
    ("ORD-12 over 45.50 is PENDING.", ORDERS),
    ("“Raise maximumPoolSize to 60 … a cold start takes up to 45 seconds.”", RUNBOOK),
    ("14 点 2 分 16 秒首次失败。", LOG),
    ("首次失败于：14:02:16。", LOG),
    ("2 ERROR and 1 WARN records were found.", LOG),
]
REJECTED: list[tuple[str, Observation]] = [
    ("ORD-11 failed 16 seconds after the warning (14:02:10, 14:02:16).", LOG),
    ("From 14:02:16 to 14:08:40 about 16 minutes went by.", LOG),
    ("From 14:02:16 to 14:08:40 nearly 10 minutes went by.", LOG),
    ("It failed after 18.4 s.", LOG),
    ("It failed three times (ORD-11, ORD-12).", LOG),
    ("共失败三次：14:02:16、14:08:40。", LOG),
    ("There were 51 errors.", LOG),
    ("The request took 24 s (rt=0.024).", LOG),
    ("首次为 14:02:16，5 分钟后恢复。", LOG),
    ("3 ERROR records were found.", LOG),
    ("A PANIC was logged.", LOG),
    ("Failures went from 33 to 1,264, an increase of 1,321.", ORDERS),
    ("1,264 of 9,817 orders failed (19.2%).", ORDERS),
    ("ORD-12 over 1,899.00 is PENDING.", ORDERS),
    ("ORD-12 is FAILED.", ORDERS),
    ("Wait for 60 minutes.", RUNBOOK),
    ("“Raise maximumPoolSize to 60 … a cold start takes up to 54 seconds.”", RUNBOOK),
    ("It began at 14:02:16 on 29 November 2026.", LOG),
]


def passes(text: str, observation: Observation) -> bool:
    claim = {"text": text, "evidence_ids": ["E1"]}
    draft = Draft.model_validate({"conclusion": "The service failed.", "claims": [claim]})
    return not check(draft, [observation], "why?")


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(("text", "observation"), PASSING)
def test_what_follows_from_what_is_shown_passes(text: str, observation: Observation) -> None:
    assert passes(text, observation)


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(("text", "observation"), REJECTED)
def test_what_contradicts_it_does_not(text: str, observation: Observation) -> None:
    assert not passes(text, observation)
