from datetime import UTC, datetime, timedelta

import pytest

from superbizagent.domain.absence import says_absent, says_alone
from superbizagent.domain.draft import Draft
from superbizagent.domain.evidence import Observation
from superbizagent.domain.evidence_guard import Rule, check
from tests.fakes.sources import END, LINES, START
from tests.unit.domain.observations import failed, logs, passages, rows, sample
from tests.unit.domain.test_evidence_guard import rules

INFO = "2026-11-30T14:10:00Z INFO started"

ABSENT = [
    "There were no errors between 14:00 and 15:00.",
    "No errors.",
    "0 errors were logged.",
    "Zero errors were logged.",
    "None of the hosts restarted.",
    "The log shows nothing.",
    "The service never restarted.",
    "It ran without errors.",
    "It ran without any restart.",
    "Errors were not logged.",
    "Errors weren't logged.",
    "Errors have not been seen.",
    "The log does not contain errors.",
    "The log doesn't contain errors.",
    "Errors did not occur.",
    "Errors didn’t occur.",
    "Errors are absent.",
    "Errors could not be found.",
    "There is a lack of errors.",
    "Not a single error was logged.",
    "There aren't any errors.",
    "没有错误。",
    "没有发现任何异常。",
    "期间无错误。",
    "无异常。",
    "未发现错误。",
    "未出现超时。",
    "从未重启。",
    "没出现错误。",
    "日志中不存在错误。",
    "错误数为零。",
    "0条错误。",
    "沒有錯誤。",
    "Errors: 0",
    "The error count was zero.",
    "The number of failed requests is 0.",
    "It was an error-free hour.",
    "The log is devoid of errors.",
    "Not one request failed.",
    "Hardly any errors were seen.",
    "The logs lack errors.",
    "Errors failed to appear.",
    "The result set is empty.",
    "The log was clean.",
    "The pod was not restarted.",
    "It hasn't restarted.",
    "The deploy didn't fail.",
    "All requests succeeded.",
    "Every job completed and passed.",
    "100% of requests were successful.",
    "Each request returned 200.",
    "未重启。",
    "服务未曾重启。",
    "没有失败。",
    "没人重启过。",
    "查无此记录。",
    "错误数为0。",
    "不曾出现错误。",
    "所有请求都成功。",
    "一切正常。",
    "成功率为100%。",
]
ALONE = [
    "The only error was at 14:05.",
    "Only one error occurred.",
    "It logged exclusively INFO lines.",
    "The errors stopped after 14:05.",
    "The timeouts then ceased.",
    "只有一个错误。",
    "仅有INFO日志。",
    "错误已消失。",
    "14:05之后不再报错。",
]
PRESENT = [
    "The gateway timed out.",
    "It took 5.0 seconds and 10 errors.",
    "The pool is no longer available.",
    "No doubt the gateway failed.",
    "It was not until 14:02 that it failed.",
    "服务无法连接。",
    "支付网关超时。",
    "10条错误。",
    "All 20 connections were in use.",
    "Only 2 of 5 replicas were ready.",
    "The requests succeeded after the retry.",
    "All requests failed with 504.",
    "Errors: 10",
    "The error rate is 0.5%.",
    "所有请求都超时。",
    "每个连接都被占用。",
    "错误数为10。",
    "The north node failed.",
]


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize("text", ABSENT)
def test_absence_is_recognised(text: str) -> None:
    assert says_absent(text)


@pytest.mark.parametrize("text", PRESENT)
def test_presence_is_not_taken_for_absence(text: str) -> None:
    assert not says_absent(text)
    assert not says_alone(text)


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize("text", ALONE)
def test_that_there_is_no_other_needs_a_complete_observation(text: str) -> None:
    error = "2026-11-30T14:05:00Z ERROR gateway failed"

    assert says_alone(text)
    assert Rule.ABSENCE_NOT_COVERED not in rules(text, logs(error))
    assert Rule.ABSENCE_NOT_COVERED in rules(text, logs(error, truncated=True))
    assert Rule.ABSENCE_NOT_COVERED in rules(text, logs(error, partial=True))


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize("text", ["All requests succeeded.", "所有请求都成功。"])
def test_that_all_went_well_needs_a_complete_observation_without_errors(text: str) -> None:
    assert rules(text, logs(INFO)) == set()
    assert Rule.ABSENCE_NOT_COVERED in rules(text, logs(INFO, truncated=True))
    assert Rule.ABSENCE_NOT_COVERED in rules(text, logs(INFO, "2026-11-30T14:11:00Z ERROR gateway failed"))


def test_what_the_evidence_itself_says_is_a_report() -> None:
    election = logs("2026-11-30T14:10:00Z WARN no leader elected")

    assert rules("There was no leader elected.", election) == set()


NO_ERRORS = "There were no errors between 14:00 and 15:00."
ERRORS = {"levels": ["ERROR"]}
COVERING: list[Observation] = [
    logs(),
    logs(asked=ERRORS),
    logs(INFO),
    logs(start=START - timedelta(hours=9), end=END + timedelta(hours=9)),
    logs(start=None, end=None),
]
NOT_COVERING: list[Observation] = [
    logs(truncated=True),
    logs(partial=True),
    logs(INFO, truncated=True),
    logs(*LINES),
    logs(*LINES, asked=ERRORS),
    logs(start=START + timedelta(seconds=1)),
    logs(end=END - timedelta(seconds=1)),
    logs(start=None, end=START),
    logs(start=END, end=None),
    logs(end=START + timedelta(minutes=30)),
    logs(asked={"levels": ["WARN"]}),
    logs(asked={"contains": ["deadlock"]}),
    logs(asked={"excludes": ["timed out"]}),
    logs(asked={"levels": ["ERROR"], "contains": ["deadlock"]}),
    logs().model_copy(update={"arguments": "{"}),
    logs().model_copy(update={"coverage": None}),
    failed(),
    passages(),
    passages("Everything is fine."),
]


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize("observation", COVERING)
def test_a_complete_search_of_the_window_shows_absence(observation: Observation) -> None:
    assert rules(NO_ERRORS, observation) == set()


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize("observation", NOT_COVERING)
def test_anything_less_does_not(observation: Observation) -> None:
    assert rules(NO_ERRORS, observation) & {Rule.ABSENCE_NOT_COVERED, Rule.EVIDENCE_NOT_READY}


@pytest.mark.spec("GUARD-2")
def test_a_filtered_search_shows_the_absence_of_what_it_looked_for() -> None:
    deadlock = {"contains": ["Deadlock"]}
    assert rules("No deadlock was logged.", logs(asked=deadlock)) == set()
    assert rules("No deadlock was logged.", logs("a Deadlock", asked=deadlock)) == {Rule.ABSENCE_NOT_COVERED}
    assert rules("没有出现deadlock。", logs(asked=deadlock)) == set()
    assert rules("No restart was logged.", logs(asked=deadlock)) & {Rule.ABSENCE_NOT_COVERED}


@pytest.mark.spec("GUARD-2")
def test_the_conclusion_may_not_claim_an_absence_that_nothing_covers() -> None:
    claim = {"text": "The gateway timed out.", "evidence_ids": ["E1"]}
    draft = Draft.model_validate({"conclusion": "The database had no errors.", "claims": [claim]})

    findings = check(draft, (sample(truncated=True),), "why?")

    assert [(finding.part, finding.rule) for finding in findings] == [("conclusion", Rule.ABSENCE_NOT_COVERED)]


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(
    ("start", "end", "covered"),
    [
        (datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC), True),
        (datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 29, 23, 59, 59, tzinfo=UTC), True),
        (datetime(2026, 11, 28, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC), True),
        (datetime(2026, 11, 29, 14, tzinfo=UTC), datetime(2026, 11, 29, 15, tzinfo=UTC), False),
        (datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 29, 15, tzinfo=UTC), False),
        (datetime(2026, 11, 29, 1, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC), False),
    ],
)
def test_a_day_without_a_time_means_the_whole_day(start: datetime, end: datetime, covered: bool) -> None:
    found = rules("No errors were logged on 2026-11-29.", logs(start=start, end=end))

    assert (Rule.ABSENCE_NOT_COVERED not in found) is covered


@pytest.mark.spec("GUARD-2")
def test_today_is_covered_up_to_now() -> None:
    today = logs(start=datetime(2026, 11, 30, tzinfo=UTC), end=datetime(2026, 11, 30, 15, 5, tzinfo=UTC))

    assert Rule.ABSENCE_NOT_COVERED not in rules("No errors were logged on 2026-11-30.", today)


@pytest.mark.spec("GUARD-2")
def test_a_window_of_another_day_covers_nothing() -> None:
    text = "On 2026-11-30 there were no errors between 2026-11-30 14:00 and 2026-11-30 15:00."
    other = logs(start=START + timedelta(days=1), end=END + timedelta(days=1))

    assert rules(text, logs()) == set()
    assert rules(text, other) & {Rule.ABSENCE_NOT_COVERED}


@pytest.mark.spec("GUARD-1", "GUARD-2")
def test_a_single_time_in_a_claim_of_absence_has_to_be_shown() -> None:
    assert rules("There were no errors until 14:37.", logs()) == {Rule.VALUE_NOT_FOUND}


@pytest.mark.spec("GUARD-2")
def test_documents_and_rows() -> None:
    assert rules("No runbook describes this alert.", passages()) == set()
    assert rules("No order failed.", rows()) == set()
    assert rules("No order failed.", rows(truncated=True)) & {Rule.ABSENCE_NOT_COVERED}
    assert rules("No order failed.", rows(partial=True)) & {Rule.ABSENCE_NOT_COVERED}
