import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from superbizagent.domain.draft import Draft
from superbizagent.domain.evidence import Observation
from superbizagent.domain.evidence_guard import Finding, Rule, check, supported_steps, supporting_lines
from superbizagent.domain.evidence_text import asked_text
from tests.fakes.sources import LINES
from tests.unit.domain.observations import failed, logs, passages, rows, sample

QUERY = "Why do payments fail since 14:00?"


def rules(text: str, *observations: Observation, cites: list[str] | None = None, **fields: Any) -> set[Rule]:
    """What is wrong with one claim over these observations."""
    cites = [observation.evidence_id for observation in observations] if cites is None else cites
    claim = {"text": text, "evidence_ids": cites, **fields}
    draft = Draft.model_validate({"conclusion": "It failed.", "claims": [claim]})
    return {finding.rule for finding in check(draft, observations, QUERY)}


SUPPORTED = [
    "The gateway timed out after 30000 ms.",
    "The gateway timed out after 30,000 ms.",
    "The first time-out was at 14:02:11 UTC.",
    "The first time-out was at 14:02.",
    "The first time-out was at 2026-11-30T14:02:11.512Z.",
    "The first time-out was at 2026-11-30 14:02:11,512.",
    "The first time-out was at 14:02:11.5.",
    "It began on Nov 30 at 14:02.",
    "It began on 30 November 2026 at 2:02 pm.",
    "It began at 22:02:11+08:00.",
    "Between 14:02-14:58 the gateway timed out.",
    "Between 14:00 and 15:00 the gateway timed out.",
    "Order ORD-2026-0042 failed.",
    "Order ord-2026-0042 failed.",
    "Host 10.0.0.17:8443 was retried with attempt 2.",
    "The log says “Payment gateway timed out after 30000 ms”.",
    "The log says `Payment gateway   timed out`.",
    "支付网关在14:02:11超时，耗时30000毫秒。",
    "支付网关在14点02分11秒超时。",
    "支付网关在十四点零二分超时。",
    "11月30日14:02起，订单ORD-2026-0042失败。",
    "自2026年11月30日14时02分起超时。",
    "日志显示「Payment gateway timed out after 30000 ms」。",
    "４２１０行日志被扫描。",
    "Two of the lines are errors: ERROR 2.",
    "An unbroken series of failures.",
    "Seen:\n1) time-outs\n2) retries\n3) an end",
]

UNSUPPORTED = [
    "The gateway timed out after 30001 ms.",
    "The gateway timed out after 3000 ms.",
    "The gateway timed out after 300,00 ms.",
    "The first time-out was at 14:03.",
    "The first time-out was at 14:02:12.5.",
    "The first time-out was at 2026-11-29T14:02:11Z.",
    "The first time-out was at 2025-11-30 14:02.",
    "The first time-out was at 14:02:11.6.",
    "It began on Nov 29 at 14:02.",
    "It began at 14:02:11+08:00.",
    "It began at 2:02 am.",
    "Between 14:02-14:59 the gateway timed out.",
    "Order ORD-2026-004 failed.",
    "Order ORD-2026-00421 failed.",
    "Order ORD-2026-0043 failed.",
    "Host 10.0.0.1 was retried.",
    "Host 0.0.17 was retried.",
    "42 orders failed.",
    "Service payment_api failed.",
    "PaymentGatewayException was thrown.",
    "See https://evil.test/x/y for more.",
    "See evidence E1.",
    "95% of the payments failed.",
    "214 errors occurred.",
    "2,026 errors occurred.",
    "The log says “Payment gateway gave up”.",
    "The log says “payment gateway timed out”.",
    "The log says “Payment gateway timed out retrying”.",
    "支付网关在14:03超时。",
    "支付网关在14点03分超时。",
    "支付网关在十四点零三分超时。",
    "错误共214次。",
    "11月29日开始失败。",
    "错误率达到95%。",
    "订单ORD-2026-0043失败。",
    "Failed:\n7) times.",
    "日志显示「支付网关超时」。",
]


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize("text", SUPPORTED)
def test_what_the_evidence_shows_may_be_said(text: str) -> None:
    assert rules(text, sample()) == set()


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize("text", UNSUPPORTED)
def test_what_the_evidence_does_not_show_may_not(text: str) -> None:
    assert rules(text, sample()) & {Rule.VALUE_NOT_FOUND, Rule.QUOTE_NOT_FOUND}


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize("value", ["30001", "ORD-2026-0043", "14:03:00", "“made up”"])
@pytest.mark.parametrize("part", ["conclusion", "scope", "limitations"])
def test_values_are_checked_in_every_published_text(part: str, value: str) -> None:
    fields: dict[str, Any] = {"conclusion": "It failed.", "claims": [{"text": "It failed.", "evidence_ids": ["E1"]}]}
    fields[part] = [f"It says {value}."] if part == "limitations" else f"It says {value}."

    findings = check(Draft.model_validate(fields), (sample(),), QUERY)

    assert findings == (Finding(part, Rule.QUOTE_NOT_FOUND if "“" in value else Rule.VALUE_NOT_FOUND),)


@pytest.mark.spec("GUARD-1")
def test_scope_may_say_what_the_question_says() -> None:
    claim = {"text": "It failed.", "evidence_ids": ["E1"]}
    draft = Draft.model_validate({"conclusion": "It failed.", "claims": [claim], "scope": "payment since 09:13"})

    assert check(draft, (sample(),), "What happens since 09:13?") == ()
    assert check(draft, (sample(),), QUERY) != ()


@pytest.mark.spec("GUARD-1")
def test_citations() -> None:
    text = "The gateway timed out."
    assert rules(text, sample(), cites=[]) == {Rule.NOTHING_CITED}
    assert rules(text, sample(), cites=["E2"]) == {Rule.UNKNOWN_EVIDENCE}
    assert rules(text, sample(), cites=["e1"]) == {Rule.UNKNOWN_EVIDENCE}
    assert rules(text, sample(), cites=["E1", "E9"]) == {Rule.UNKNOWN_EVIDENCE}
    assert rules(text, failed()) == {Rule.EVIDENCE_NOT_READY}
    assert rules(text, sample(), failed(2)) == {Rule.EVIDENCE_NOT_READY}
    assert rules(text, logs()) == {Rule.EVIDENCE_NOT_READY}
    assert rules(text, sample(), logs(number=2)) == set()
    no_claims = Draft.model_validate({"conclusion": "It failed."})
    assert check(no_claims, (sample(),), QUERY) == (Finding("claims", Rule.NO_CLAIMS),)


@pytest.mark.spec("GUARD-1")
def test_a_value_of_an_observation_that_is_not_cited_shows_nothing() -> None:
    other = rows('{"failed": 214}', number=2)

    assert rules("214 payments failed.", sample(), other, cites=["E1"]) == {Rule.VALUE_NOT_FOUND}
    assert rules("214 payments failed.", sample(), other) == set()


@pytest.mark.spec("GUARD-1", "KNOW-2")
def test_documents_are_among_those_returned() -> None:
    found = passages("Restart the pool.", number=2)
    assert rules("Restart the pool.", found, document_ids=["D1"]) == set()
    assert rules("Restart the pool.", found, document_ids=["D2"]) == {Rule.UNKNOWN_DOCUMENT}
    assert rules("Restart the pool.", found, document_ids=["D1", "D2"]) == {Rule.UNKNOWN_DOCUMENT}
    assert rules("It failed.", sample(), found, cites=["E1"], document_ids=["D1"]) == {Rule.UNKNOWN_DOCUMENT}


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("Payment gateway timed out after 30000 ms", True),
        ("Payment  gateway\ttimed out", True),
        (LINES[0], True),
        (f"{LINES[0]}\n{LINES[1]}", True),
        (f"{LINES[0]} {LINES[1]}", False),
        (f"{LINES[0]}\n{LINES[2]}", False),
        ("Payment gateway order=ORD-2026-0042", False),
        ("Payment gateway … ms", False),
        ("payment Gateway timed out", False),
        ("order=ORD-2026-0042\n2026-11-30T14:02:12.100Z WARN", True),
        (" ", False),
    ],
)
def test_quotations_are_verbatim(quote: str, found: bool) -> None:
    if not quote.strip():
        with pytest.raises(ValueError, match="at least 1 character"):
            rules("It failed.", sample(), quotes=[quote])
        return
    assert rules("It failed.", sample(), quotes=[quote]) == (set() if found else {Rule.QUOTE_NOT_FOUND})


@pytest.mark.spec("GUARD-1")
def test_a_quotation_may_run_over_the_wrapped_lines_of_a_document() -> None:
    wrapped = passages("Restart the pool", "of the gateway.")

    assert rules("Restart it.", wrapped, quotes=["Restart the pool of the gateway."]) == set()


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize("digits", [14, 15, 16, 17, 29, 41, 60])
def test_long_numbers_are_compared_to_the_last_digit(digits: int) -> None:
    batch = "1234567890" * 6
    evidence = logs(f"batch={batch[:digits]} failed")

    assert rules(f"Batch {batch[:digits]} failed.", evidence) == set()
    assert rules(f"Batch {batch[: digits - 1]}2 failed.", evidence) == {Rule.VALUE_NOT_FOUND}


def test_odd_offsets_and_days_in_evidence_raise_nothing() -> None:
    odd = logs("at 14:02+99:99, 2026-02-30 25:61:61, 9999-12-31T23:59:60-12:00, 0001-01-01, +15:00 Z UTC+99:99")

    assert rules("At 2026-11-30T14:02:11+14:00 and 14:02 UTC+99:99 it failed.", odd) == {Rule.VALUE_NOT_FOUND}


def test_steps_with_values_from_nowhere_are_dropped() -> None:
    draft = Draft.model_validate(
        {"conclusion": "x", "next_steps": ["Restart it.", "Call 555-0199.", "Check at 14:02."]}
    )

    assert supported_steps(draft, (sample(),), QUERY) == ("Restart it.", "Check at 14:02.")


def test_the_lines_that_show_a_claim_are_found() -> None:
    claim = Draft.model_validate(
        {"claims": [{"text": "ORD-2026-0099 timed out at 14:58:03.", "evidence_ids": ["E1"]}]}
    ).claims[0]

    assert supporting_lines(claim, sample(), 1) == (LINES[2],)


LONG = "the connection pool is exhausted, giving up"


@pytest.mark.parametrize(
    ("text", "lines", "limit", "shown"),
    [
        ("ORD-7 took 214 ms.", ["took 214 ms", "order ORD-7"], 1, [1]),
        ("At 14:02 it took 214 ms.", ["took 214 ms", "14:02:11 took 214 ms"], 1, [1]),
        ("It took 214 ms and 215 ms.", ["took 214 ms", "took 216 ms", "took 215 ms"], 3, [0, 2]),
        ("It took 215 ms for ORD-7.", ["ORD-7 took 215 ms", "other", "ORD-7 again"], 2, [0, 2]),
        ("It says “a b” of ORD-7.", ["ORD-7 at 14:02", "a b", "ORD-7"], 1, [1]),
        ("It failed.", ["one", " ", "two", "three"], 2, [0, 2]),
        ("It failed.", ["one"], 5, [0]),
        ("It failed.", [" "], 5, []),
    ],
)
def test_the_lines_that_show_most_of_a_claim_come_out_in_order(
    text: str, lines: list[str], limit: int, shown: list[int]
) -> None:
    claim = Draft.model_validate({"claims": [{"text": text, "evidence_ids": ["E1"]}]}).claims[0]
    observation = sample().model_copy(update={"projection": "\n".join(lines)})

    assert supporting_lines(claim, observation, limit) == tuple(lines[index] for index in shown)


def test_each_long_line_of_a_quotation_shows_it() -> None:
    quote = f"{LONG}\nafter 3 tries of the gateway"
    claim = Draft.model_validate(
        {"claims": [{"text": "It failed.", "evidence_ids": ["E1"], "quotes": [quote]}]}
    ).claims[0]
    observation = sample().model_copy(update={"projection": f"the\n{quote}\nother"})

    assert supporting_lines(claim, observation, 3) == tuple(quote.split("\n"))


@pytest.mark.spec("GUARD-1")
def test_a_finding_names_its_part() -> None:
    claims = [
        {"text": "The gateway timed out.", "evidence_ids": ["E1"]},
        {"text": "It took 31 s.", "evidence_ids": ["E1"], "quotes": ["not there"]},
        {"text": "It failed.", "evidence_ids": ["E9"]},
    ]
    draft = Draft.model_validate({"conclusion": "214 failed.", "claims": claims, "limitations": ["x", "215"]})

    assert [(finding.part, finding.rule) for finding in check(draft, (sample(),), QUERY)] == [
        ("claims[1]", Rule.QUOTE_NOT_FOUND),
        ("claims[1]", Rule.VALUE_NOT_FOUND),
        ("claims[2]", Rule.UNKNOWN_EVIDENCE),
        ("conclusion", Rule.VALUE_NOT_FOUND),
        ("limitations", Rule.VALUE_NOT_FOUND),
    ]


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Three names, ORD-2026-0042, ORD-2026-0099 and 10.0.0.17:8443, are there.", True),
        ("Three names, ORD-2026-0042, ORD-2026-0042 and 10.0.0.17:8443, are there.", False),
        ("5 orders, ORD-2026-0042 and ORD-2026-0099, timed out.", False),
        ("2.5 orders, ORD-2026-0042 and ORD-2026-0099, timed out.", False),
        ("Three messages, “timed out after”, “attempt 2” and “retrying”, repeat.", True),
        ("7 messages, “timed out after” and “attempt 2”, repeat.", False),
        ("ERROR 2 of 4210 (0.0475%).", True),
        ("ERROR 2 of 4210 (0.0485%).", False),
        ("ERROR 2 of 4210 (0.05%).", False),
        ("ERROR 2 of 4210 lines (about 0.05%).", True),
        ("ERROR 2 of 4210 lines (about 0.06%).", False),
        ("ERROR 2 of 2 lines (100%).", False),
        ("4210 lines of 2 (210500%).", False),
    ],
)
def test_counts_of_what_is_listed_and_shares_of_what_is_shown_follow(text: str, shown: bool) -> None:
    assert (rules(text, sample()) == set()) is shown


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2 pools, pool-a7 and pool-b8, failed.", True),
        ("1 pool, pool-a7, failed.", False),
        ("3 of 12 (25%) failed, then 1000 of 1600 (62.5%).", True),
        ("3 of 12 (26%) failed.", False),
        ("It took 7 s after 350 ms (2%).", False),
    ],
)
def test_one_name_is_no_list_and_seconds_are_no_share_of_milliseconds(text: str, shown: bool) -> None:
    evidence = logs("pool-a7 and pool-b8 failed, 3 of 12, 1000 of 1600, in 7 s after 350 ms")

    assert (rules(text, evidence) == set()) is shown


WINDOW_DAY: dict[str, Any] = {"start": datetime(2026, 11, 30, tzinfo=UTC), "end": datetime(2026, 12, 1, tzinfo=UTC)}


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(
    ("window", "dated"),
    [
        (WINDOW_DAY, True),
        ({**WINDOW_DAY, "end": datetime(2026, 12, 1, 0, 0, 0, 1, tzinfo=UTC)}, False),
        ({**WINDOW_DAY, "start": None}, False),
        ({**WINDOW_DAY, "end": None}, False),
        ({**WINDOW_DAY, "start": datetime(2026, 11, 29, 23, 59, tzinfo=UTC)}, False),
    ],
)
def test_a_time_of_day_is_of_the_day_that_was_searched(window: dict[str, Any], dated: bool) -> None:
    counted = logs("per 10 min: 14:10 75", **window)

    assert rules("At 14:10 there were 75.", counted) == set()
    assert (rules("At 2026-11-30 14:10 there were 75.", counted) == set()) is dated


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(
    "line", ["2026-11-29T14:02:11Z restarted", "Nov 29 14:02:11 restarted", "14:02:11 +08:00 again"]
)
def test_a_time_of_another_day_or_zone_is_not_of_the_day_that_was_searched(line: str) -> None:
    assert rules("At 2026-11-30 14:02:11 it was restarted.", logs(line, **WINDOW_DAY)) == {Rule.VALUE_NOT_FOUND}


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(("name", "shown"), [("pool", True), ("Pool", True), ("gate", False), ("GATE", False)])
def test_a_word_in_code_ticks_is_compared_as_a_name(name: str, shown: bool) -> None:
    assert (rules(f"The `{name}` is full.", logs("pool is full")) == set()) is shown


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(
    ("zone", "local", "utc"), [("+08:00", "22:15:08", "14:15:08"), ("-05:30", "08:45:08", "14:15:08")]
)
def test_the_lines_own_times_are_in_their_zone(zone: str, local: str, utc: str) -> None:
    head = f"payment\nzone: the lines' own times are at UTC{zone} (as configured)\nfirst match: 13:00:01\nrecords:"
    observation = logs("x", start=None, end=None).model_copy(
        update={"projection": f"{head}\n2026-11-30 {local} timed out\nrecords:\n2026-11-30T16:00:09Z done"}
    )

    assert rules(f"It timed out at {utc} UTC.", observation) == set()
    assert rules(f"It timed out at {local} {zone}.".replace("-05:30", "UTC-5:30"), observation) == set()
    assert rules(f"It timed out at {local} UTC.", observation) == {Rule.VALUE_NOT_FOUND}
    assert rules("The first was at 13:00:01 UTC.", observation) == set()
    assert rules("The first was at 13:00:01 +08:00.", observation) == {Rule.VALUE_NOT_FOUND}
    assert rules("It was done at 16:00:09 UTC.", observation) == set()


@pytest.mark.spec("GUARD-1")
def test_lines_without_a_zone_are_in_utc() -> None:
    assert rules("It failed at 14:15:08 UTC.", logs("2026-11-30 14:15:08 failed")) == set()
    assert rules("It failed at 14:15:08 +08:00.", logs("2026-11-30 14:15:08 failed")) == {Rule.VALUE_NOT_FOUND}


@pytest.mark.spec("GUARD-1")
def test_the_parts_of_a_duration_and_the_class_of_a_status_may_be_fields() -> None:
    assert rules("It took 1 min 30 s.", logs("run_minutes=1 run_seconds=30")) == set()
    assert rules("It took 1 min 31 s.", logs("run_minutes=1 run_seconds=30")) == {Rule.VALUE_NOT_FOUND}
    assert rules("It answered 5xx.", logs("HTTP 503")) == set()
    assert rules("It answered 4xx.", logs("HTTP 503")) == {Rule.VALUE_NOT_FOUND}


@pytest.mark.spec("GUARD-2")
def test_what_was_asked_may_be_named_as_absent() -> None:
    assert asked_text(logs(asked={"contains": ["dead lock"], "levels": ["WARN"]})).folded == "payment dead lock WARN"
    assert asked_text(rows()).folded == "SELECT 1"
    assert asked_text(passages()).folded == "gateway"


# Properties -------------------------------------------------------------------------------------

numbers = st.integers(min_value=100, max_value=10**7)
clocks = st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
identifiers = st.from_regex(r"(req|ord|node)-[a-f][0-9]{3,8}", fullmatch=True)


def line(clock: tuple[int, int, int], number: int, identifier: str) -> str:
    hour, minute, second = clock
    return f"2026-11-30T{hour:02}:{minute:02}:{second:02}Z ERROR {identifier} failed after {number} ms"


@pytest.mark.spec("GUARD-1")
@given(st.lists(st.tuples(clocks, numbers, identifiers), min_size=1, max_size=5), st.data())
def test_values_taken_from_the_evidence_pass(records: list[Any], data: st.DataObject) -> None:
    observation = logs(*(line(*record) for record in records))
    clock, number, identifier = data.draw(st.sampled_from(records))
    hour, minute, second = clock
    text = data.draw(
        st.sampled_from(
            [
                f"At {hour:02}:{minute:02}:{second:02} UTC {identifier} failed after {number} ms.",
                f"At {hour:02}:{minute:02}, {identifier} failed after {number:,} ms.",
                f"{identifier}在{hour:02}:{minute:02}失败，耗时{number}毫秒。",
                f"{identifier}在{hour}点{minute:02}分{second:02}秒失败，耗时{number}毫秒。",
                f"It says “{identifier} failed after {number} ms”.",
            ]
        )
    )

    assert rules(text, observation) == set()


@pytest.mark.spec("GUARD-1")
@given(clocks, numbers, identifiers, st.data())
def test_a_changed_digit_is_rejected(clock: Any, number: int, identifier: str, data: st.DataObject) -> None:
    observation = logs(line(clock, number, identifier), start=None, end=None)
    hour, minute, second = clock
    text = f"At {hour:02}:{minute:02}:{second:02} {identifier} failed after {number} ms."
    place = data.draw(st.sampled_from([match.start() for match in re.finditer("[0-9]", text)]))
    digit = data.draw(st.sampled_from([other for other in "0123456789" if other != text[place]]))
    changed = text[:place] + digit + text[place + 1 :]
    values = {value.lstrip("0") or "0" for value in re.findall(r"[0-9]+", observation.projection)}
    own = re.findall(r"[0-9]+", changed)
    assume(any((value.lstrip("0") or "0") not in values for value in own))

    assert rules(changed, observation) != set()
