"""When evidence shows the time, number, name or quotation of a claim (GUARD-1)."""

import pytest

from superbizagent.domain.identifiers import misspells, names_in, occurs
from superbizagent.domain.moments import take_moments
from superbizagent.domain.quantities import claimed_numbers, numbers_of
from superbizagent.domain.quotations import code_words, holds, take_quotations

TIMES = [
    ("14:02", "14:02:11", True),
    ("14:02:11", "14:02", False),
    ("14:02:11.5", "14:02:11.512", True),
    ("14:02:11.6", "14:02:11.512", False),
    ("14:02:11.5", "14:02:11", False),
    ("2 pm", "14:59", True),
    ("2 pm", "15:00", False),
    ("2026-11-30", "2026-11-30 14:02", True),
    ("2026-11-30", "14:02", False),
    ("2026-11-30 14:02", "2026-11-30", False),
    ("Nov 30", "2026-11-30", True),
    ("Nov 29", "2026-11-30", False),
    ("Oct 30", "2026-11-30", False),
    ("2026-11-30", "Nov 30 14:02", True),
    ("2025-11-30", "2026-11-30", False),
    ("2026-11-30 14:02", "2026-11-29 14:02", False),
    ("November 2026", "2026-11-30", True),
    ("November 2026", "2026年11月", True),
    ("November 2025", "2026-11-30", False),
    ("October 2026", "2026-11-30", False),
    ("November 2026", "14:02", False),
    ("in 2026", "2026-11-30", True),
    ("in 2025", "2026-11-30", False),
    ("22:02 +08:00", "14:02 UTC", True),
    ("22:02 UTC", "14:02 UTC", False),
    ("14:02 UTC", "22:02 +08:00", True),
    ("14:02", "22:02 +08:00", True),
    ("22:02", "22:02 +08:00", True),
    ("15:02", "22:02 +08:00", False),
    ("19:32 +05:30", "14:02 UTC", True),
    ("14:02:11 UTC", "22:02:11 +08:00", True),
    ("2026-12-01 06:02 +08:00", "2026-11-30 22:02 UTC", True),
    ("2026-11-30 06:02 +08:00", "2026-11-30 22:02 UTC", False),
    ("Dec 1 06:02 +08:00", "Nov 30 22:02 UTC", True),
    ("22:02 CST", "14:02 UTC", True),
    ("8:02 CST", "14:02 UTC", True),
    ("9:02 CST", "14:02 UTC", False),
    ("about 14:00", "14:10", True),
    ("about 14:00", "13:50", True),
    ("about 14:00", "14:10:01", False),
    ("about 2 pm", "14:10", True),
    ("about 14:30", "14:35", True),
    ("about 14:30", "14:35:01", False),
    ("about 14:45", "14:50", True),
    ("about 14:15", "14:20:01", False),
    ("about 14:05", "14:08", True),
    ("about 14:05", "14:08:01", False),
    ("about 14:02", "14:03", True),
    ("about 14:02", "14:03:01", False),
    ("about 14:02:10", "14:02:11", True),
    ("about 14:02:10", "14:02:12", False),
    ("about 00:00", "23:55", True),
    ("about 00:00", "23:50", True),
    ("about 00:00", "23:49:59", False),
    ("about 23:55", "00:00", False),
    ("nearly 14:00", "13:55", True),
    ("nearly 14:00", "14:05", False),
    ("just after 14:00", "14:05", True),
    ("just after 14:00", "13:55", False),
    ("just after 14:00", "14:10", True),
    ("just after 14:00", "14:10:01", False),
    ("14:02 UTC", "14:02", True),
    ("22:01 +08:00", "2 pm UTC", False),
    ("10 pm +08:00", "2 pm UTC", True),
    ("about 14:00", "2026-11-30", False),
]


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(("claim", "evidence", "shown"), TIMES)
def test_times(claim: str, evidence: str, shown: bool) -> None:
    (stated,), (found,) = take_moments(claim)[1], take_moments(evidence)[1]

    assert stated.agrees_with(found) is shown


NUMBERS = [
    ("3 s", "3000 ms", True),
    ("3 s", "3000", True),
    ("3 s", "3001", False),
    ("0.3 s", "300", False),
    ("1 s", "1000", True),
    ("64 MB", "67108864", True),
    ("67 MB", "67108864", False),
    ("3 KB", "3000 bytes", True),
    ("3 KB", "3072 bytes", True),
    ("3 KB", "3100 bytes", False),
    ("3 KiB", "3000 bytes", False),
    ("5 s", "5 bytes", False),
    ("5 s", "5%", False),
    ("5", "5%", False),
    ("5", "5 s", True),
    ("5%", "5", False),
    ("5%", "rate=5", True),
    ("5%", "rate=0.05", True),
    ("5%", "rate=0.06", False),
    ("5%", "count=5", False),
    ("5 s", "active: 5", False),
    ("5 s", "timeout: 5", True),
    ("5", "active: 5", True),
    ("104952", "ORD-104952", True),
    ("about 105000", "ORD-104952", False),
    ("about 105000", "104952", True),
    ("about 100", "120", True),
    ("about 100", "125", True),
    ("about 100", "126", False),
    ("about 100", "149", False),
    ("about 410", "414", True),
    ("about 410", "415", True),
    ("about 410", "416", False),
    ("about 3 s", "3400 ms", True),
    ("about 3 s", "3600 ms", False),
    ("nearly 420", "414", True),
    ("nearly 420", "426", False),
    ("nearly 420", "410", False),
    ("nearly 100", "87", True),
    ("nearly 100", "86", False),
    ("over 400", "414", True),
    ("over 400", "400", True),
    ("over 400", "399", False),
    ("over 400", "400.5", True),
    ("over 400", "499", True),
    ("over 400 ms", "0.45 s", True),
    ("over 400 ms", "0.5 s", False),
    ("over 400", "500", False),
    ("400", "401", False),
    ("5k", "5000", True),
    ("$5", "500 cents", True),
    ("-5", "5", False),
]


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(("claim", "evidence", "shown"), NUMBERS)
def test_numbers(claim: str, evidence: str, shown: bool) -> None:
    (stated,) = claimed_numbers(claim)

    assert any(stated.agrees_with(found) for found in numbers_of(evidence)) is shown


OCCURRENCES = [
    ("ORD-7", "order ord-7 failed", True),
    ("ORD-7", "ORD-71", False),
    ("ORD-7", "XORD-7", False),
    ("ORD-7", "A-ORD-7", False),
    ("10.0.0.1", "10.0.0.1:80", True),
    ("10.0.0.1", "10.0.0.1.7", False),
    ("10.0.0.1", "110.0.0.1", False),
    ("0.0.1", "10.0.0.1", False),
    ("req-8a41", "req-8a41-0c", False),
    ("req-8a41", "req-8a41-c", False),
    ("req-8a", "req-8a.5 failed", True),
    ("release-bot", "release-bot-c", True),
    ("node7pods", "node7pod", False),
    ("V1.2", "version 1.2", True),
    ("v1", "v1.2", False),
    ("v1.2", "version 1.2", True),
    ("1.2.3", "v1.2.3", True),
    ("1.2.3", "v1.2.4", False),
    ("PaymentGateway", "payment gateway timed out", True),
    ("PaymentGateway", "payment_gateway", True),
    ("PaymentGateway", "payment gateways", False),
    ("PENDING", "status_pending", True),
    ("PENDING", "pendings", False),
    ("NullPointers", "NullPointer at x", True),
    ("pods", "pod", False),
    ("ab-1/cd-2", "cd-2 and ab-1", True),
    ("ab-1/cd-2", "ab-1", False),
    ("/var/log", "in /var/log.", True),
    ("/var/log", "/var/logs", False),
]


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(("name", "text", "found"), OCCURRENCES)
def test_names(name: str, text: str, found: bool) -> None:
    assert occurs(name, text) is found


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(
    ("word", "misspelled"),
    [
        ("release-bot", False),
        ("release-bots", False),
        ("paymentgateway", False),
        ("release-bat", True),
        ("release-bott", True),
        ("release-bo", True),
        ("relase-bot", True),
        ("release-b", True),
        ("release", False),
        ("pelease-bot", True),
        ("relesae-bot", False),
        ("rollback-job", False),
        ("paymentgatewax", True),
        ("xrelease-bot", True),
        ("relxase-bxt", False),
    ],
)
def test_a_name_that_is_almost_the_evidence_s(word: str, misspelled: bool) -> None:
    known = names_in("Release-Bot changed it; PaymentGateway failed")

    assert known == {"release-bot", "paymentgateway"}
    assert misspells(word, known) is misspelled


RECORD = "at 14:02 it took 3.5 s, then 1,200 ms for user_1 with x=7."


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(
    ("quotation", "held"),
    [
        (RECORD, True),
        ("took 3.5 s", True),
        ("took  3.5\ts", True),
        ("took 3", False),
        ("took 3.", False),
        ("5 s", False),
        (".5 s", False),
        ("1,200 ms", True),
        ("200 ms", False),
        (",200 ms", False),
        ("then 1", False),
        ("then 1,", False),
        ("user", False),
        ("ser_1", False),
        ("user_1 with", True),
        ("x=7", True),
        ("=7.", True),
        ("x=7!", True),
        ("x=7 !", True),
        ("x=8", False),
        ("then 1,200 ms.", True),
        ("t", False),
        ("", False),
        ("!", False),
    ],
)
def test_quotations(quotation: str, held: bool) -> None:
    assert holds(RECORD, quotation) is held


def test_a_quotation_cut_at_first_may_stand_whole_later() -> None:
    assert holds("error1 error", "error")
    assert holds("error error1", "error")
    assert holds("error1 error error2", "error")
    assert not holds("3.5 s", "3")
    assert holds("took 3", "took 3"), "nothing stands before its first word"
    assert holds("超时错误", "错误"), "Chinese words have no ends to see"


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(
    ("text", "rest", "quotations"),
    [
        ('It says "a b" and “c d”.', "It says   and  .", ("a b", "c d")),
        ("「甲乙」『丙丁』《戊己》«x y»", "    ", ("甲乙", "丙丁", "戊己", "x y")),
        ("the 'a b' of Ada's", "the   of Ada's", ("a b",)),
        ("`pool full` in `pool.py`", "  in  pool.py ", ("pool full",)),
        ("nothing", "nothing", ()),
    ],
)
def test_quotations_are_taken_out(text: str, rest: str, quotations: tuple[str, ...]) -> None:
    assert take_quotations(text) == (rest, quotations)


def test_words_in_code_ticks_are_names() -> None:
    assert code_words('`pool` and ` gate ` but not `pool full` nor "`x`"') == ("pool", "gate")
