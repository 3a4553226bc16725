from datetime import UTC, datetime, timedelta, timezone

import pytest

from superbizagent.domain.absence import says_absent, says_alone
from superbizagent.domain.draft import Draft
from superbizagent.domain.evidence import Observation
from superbizagent.domain.evidence_guard import Rule, check
from superbizagent.domain.evidence_text import text_of
from tests.fakes.clock import START as NOW
from tests.fakes.sources import END, LINES, START
from tests.unit.domain.observations import failed, logs, passages, rows, sample
from tests.unit.domain.test_evidence_guard import rules

EAST = timezone(timedelta(hours=8))
INFO = "2026-11-30T14:10:00Z INFO started"
ERRORS = {"levels": ["ERROR"]}

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
    "The payment service was healthy.",
    "The database remained stable between 14:00 and 15:00.",
    "The gateway looked fine.",
    "Checkout was unaffected.",
    "The service stayed available.",
    "The queue worked as expected.",
    "The cache is running normally.",
    "All orders were paid.",
    "All the orders have been paid.",
    "Every replica was ready.",
    "All jobs completed.",
    "服务正常。",
    "支付服务运行正常。",
    "数据库一直很稳定。",
    "系统正常运行。",
    "服务状态良好，无需处理。",
    "所有订单都已支付。",
    "订单均已完成。",
    "全部副本就绪。",
    "The service has not recovered.",
    "The gateway hasn't recovered yet.",
    "The service is not yet recovered.",
    "It did not recover.",
    "The incident has not been resolved.",
    "尚未恢复。",
    "服务仍未恢复。",
    "还没有恢复。",
    "至今未能恢复。",
    "故障未解决。",
    "服務尚未恢復。",
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
    "The service was unhealthy.",
    "The pod was not healthy.",
    "The service recovered at 14:20.",
    "The host name was not resolved.",
    "A normal request takes 10 ms.",
    "The gateway was up to 30 s late.",
    "All orders that were paid after 14:00 failed.",
    "All completed orders failed.",
    "All recently completed jobs failed.",
    "All orders were unpaid.",
    "All connections were timed out.",
    "服务不正常。",
    "服务非正常退出。",
    "正常请求也超时。",
    "14:20服务恢复正常。",
    "服务已恢复。",
    "服务无法恢复。",
    "所有已完成的订单都失败。",
    "所有请求都不成功。",
    "请求未全部成功。",
    "10笔订单未支付。",
    "系统不稳定。",
]


def at(day: int, hour: int = 0, minute: int = 0, second: int = 0, microsecond: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, second, microsecond, tzinfo=UTC)


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
def test_that_there_is_no_other_is_about_the_source_that_was_searched() -> None:
    error = "2026-11-30T14:05:00Z ERROR gateway failed"
    other = logs(number=2).model_copy(update={"arguments": '{"source": "inventory"}', "title": "inventory"})

    assert rules("Payment: only one error.", logs(error), other, cites=["E1"]) == set()
    assert rules("Inventory: only one error.", logs(error), other, cites=["E1"]) == {Rule.ABSENCE_NOT_COVERED}


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(
    "text",
    [
        "All requests succeeded.",
        "All orders were paid.",
        "The service was healthy.",
        "所有请求都成功。",
        "所有订单都已支付。",
        "服务正常。",
    ],
)
def test_that_all_went_well_needs_a_complete_observation_without_errors(text: str) -> None:
    assert rules(text, logs(INFO)) == set()
    assert rules(text, logs(asked=ERRORS)) == set()
    assert Rule.ABSENCE_NOT_COVERED in rules(text, logs(INFO, truncated=True))
    assert Rule.ABSENCE_NOT_COVERED in rules(text, logs(INFO, asked={"levels": ["INFO"]}))
    for level in ("ERROR", "FATAL"):
        assert Rule.ABSENCE_NOT_COVERED in rules(text, logs(INFO, f"2026-11-30T14:11:00Z {level} gateway failed"))


@pytest.mark.spec("GUARD-2")
def test_a_fatal_line_is_an_error_and_no_warning() -> None:
    fatal = logs(INFO, "2026-11-30T14:11:00Z FATAL gateway failed")

    assert rules("There were no warnings.", fatal) == set()
    assert Rule.ABSENCE_NOT_COVERED in rules("There were no errors.", fatal)


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize("text", ["The service has not recovered.", "服务尚未恢复。"])
def test_that_it_lasts_needs_a_search_that_would_have_found_the_end(text: str) -> None:
    error = "2026-11-30T14:05:00Z ERROR gateway failed"

    assert rules(text, logs(error)) == set()
    assert Rule.ABSENCE_NOT_COVERED in rules(text, logs(error, truncated=True))
    assert Rule.ABSENCE_NOT_COVERED in rules(text, logs(error, asked=ERRORS))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("The gateway was healthy at 14:10:00.", "2026-11-30T14:10:00Z INFO check gateway=healthy"),
        ("14:10:00 网关正常。", "2026-11-30T14:10:00Z INFO 网关检查：正常"),
        ("14:10:00 服务尚未恢复。", "2026-11-30T14:10:00Z WARN 服务尚未恢复"),
        ("It was the only error at 14:10:00.", "2026-11-30T14:10:00Z INFO this was the only error"),
    ],
)
def test_a_state_that_the_evidence_names_is_a_report(text: str, line: str) -> None:
    assert rules(text, logs(line, truncated=True)) == set()


@pytest.mark.spec("GUARD-2")
def test_what_names_the_opposite_of_a_state_reports_nothing_good() -> None:
    unhealthy = logs("2026-11-30T14:10:00Z INFO check gateway=unhealthy", truncated=True)

    assert rules("The gateway was healthy.", unhealthy) == {Rule.ABSENCE_NOT_COVERED}


@pytest.mark.parametrize("quoted", ['"no route to host"', "“no route to host”", "「没有路由」", "`no route to host`"])
def test_what_is_quoted_is_not_said(quoted: str) -> None:
    assert not says_absent(f"The log says {quoted}.")
    assert says_absent(f"The log says {quoted} and no errors.")


def test_what_the_evidence_itself_says_is_a_report() -> None:
    election = logs("2026-11-30T14:10:00Z WARN No leader elected")

    assert rules("There was no leader elected.", election) == set()
    assert not says_absent("There was no leader for that shard.", [text_of("no leader")])
    assert not says_absent("没有错误。", [text_of("检查结果：没有错误")])


def test_a_report_beside_a_claim_of_absence_excuses_only_itself() -> None:
    evidence = [text_of("no leader elected; 无异常")]

    assert says_absent("There was no leader elected and no errors were logged.", evidence)
    assert says_absent("The gateway was not restarted.", [text_of("the pool was not full")])
    assert says_absent("无异常。", evidence), "so short a phrase may stand anywhere"


NO_ERRORS = "There were no errors between 14:00 and 15:00."
COVERING: list[Observation] = [
    logs(),
    logs(asked=ERRORS),
    logs(INFO),
    logs(start=START - timedelta(hours=9), end=END + timedelta(hours=9)),
    logs(start=None, end=None),
    logs(start=None),
    logs(end=None),
    logs(asked={"levels": ["ERROR", "WARN"]}),
    logs(start=datetime.min.replace(tzinfo=UTC), end=datetime.max.replace(tzinfo=UTC)),
]
NOT_COVERING: list[Observation] = [
    logs(truncated=True),
    logs(partial=True),
    logs(INFO, truncated=True),
    logs(*LINES),
    logs(*LINES, asked=ERRORS),
    logs(start=START + timedelta(seconds=1), asked={"start": "2026-11-30T14:00:01Z"}),
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
    assert rules("It never restarted.", logs(INFO)) == set(), "all was looked at, and nothing of the kind is there"
    assert rules("No time out was logged.", logs(asked={"contains": ["Time-out"]})) == set()


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(
    ("text", "levels", "covered"),
    [
        ("No errors or warnings.", ["ERROR", "WARN"], True),
        ("No errors or warnings.", ["ERROR"], False),
        ("No warnings.", ["WARN"], True),
        ("没有告警。", ["WARN"], True),
        ("Nothing fatal.", ["FATAL"], True),
        ("It never restarted.", ["ERROR"], False),
    ],
)
def test_a_search_by_level_shows_the_absence_of_that_level(text: str, levels: list[str], covered: bool) -> None:
    assert (rules(text, logs(asked={"levels": levels})) == set()) is covered


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("No errors on 30 November between 14:00 and 15:00.", True),
        ("No errors on 29 November between 14:00 and 15:00.", False),
        ("No errors between 14:00:00 and 14:59:59.", True),
        ("No errors between 14:00:00 and 15:00:01.", False),
        ("No errors between 13:59:59 and 15:00.", False),
        ("No errors between 14:30 and 14:45.", True),
        ("No errors between 14:30:00 and 14:45:60.", True),
        ("No errors between 06:30 and 06:45 UTC-8.", True),
        ("No errors between 14:30 and 14:45 UTC-8.", False),
    ],
)
def test_the_window_that_is_named_lies_in_the_one_searched(text: str, covered: bool) -> None:
    assert (Rule.ABSENCE_NOT_COVERED not in rules(text, logs())) is covered


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(
    ("text", "start", "end", "covered"),
    [
        ("between 14:00 and 14:45", at(30, 14), at(30, 14, 30), False),
        ("between 00:00 and 00:30", at(30, 0, 30), at(30, 2), False),
        ("between 23:00 and 23:30 UTC-8", None, datetime(2026, 12, 1, 7, 59, tzinfo=UTC), True),
        ("between 05:00 and 06:00 +08:00", at(30, 20), None, True),
    ],
)
def test_a_time_without_a_date_is_one_of_the_window_s_own_day(
    text: str, start: datetime | None, end: datetime | None, covered: bool
) -> None:
    assert (Rule.ABSENCE_NOT_COVERED not in rules(f"No errors {text}.", logs(start=start, end=end))) is covered


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(("year", "covered"), [(2028, True), (2027, False)])
def test_a_leap_day_is_a_day_of_leap_years_only(year: int, covered: bool) -> None:
    end = datetime(year, 12, 31, tzinfo=UTC)
    past = logs(start=datetime(year, 1, 1, tzinfo=UTC), end=end).model_copy(update={"observed_at": end})

    assert (Rule.ABSENCE_NOT_COVERED not in rules("No errors on 29 February.", past)) is covered


@pytest.mark.spec("GUARD-2")
def test_the_conclusion_may_not_claim_an_absence_that_nothing_covers() -> None:
    claim = {"text": "The gateway timed out.", "evidence_ids": ["E1"]}
    draft = Draft.model_validate({"conclusion": "The database had no errors.", "claims": [claim]})

    findings = check(draft, (sample(truncated=True),), "why?")

    assert [(finding.part, finding.rule) for finding in findings] == [("conclusion", Rule.ABSENCE_NOT_COVERED)]


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(("source", "covered"), [("payment", True), ("inventory", False)])
def test_a_conclusion_of_absence_is_about_the_source_that_was_searched(source: str, covered: bool) -> None:
    other = logs(number=2).model_copy(update={"arguments": '{"source": "inventory"}', "title": "inventory"})
    claim = {"text": "No errors were logged by payment.", "evidence_ids": ["E1"]}
    draft = Draft.model_validate({"conclusion": f"No errors were logged by {source}.", "claims": [claim]})

    assert (check(draft, (logs(), other), "why?") == ()) is covered


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(
    ("start", "end", "covered"),
    [
        (datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC), True),
        (datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 29, 23, 59, 59, tzinfo=UTC), True),
        (datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 29, 23, 59, 58, tzinfo=UTC), False),
        (datetime(2026, 11, 28, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC), True),
        (datetime(2026, 11, 29, tzinfo=EAST), datetime(2026, 11, 30, tzinfo=EAST), True),
        (None, None, True),
        (None, datetime(2026, 11, 30, tzinfo=UTC), True),
        (None, datetime(2026, 11, 29, 12, tzinfo=UTC), False),
        (datetime(2026, 11, 29, tzinfo=UTC), None, True),
        (datetime(2026, 11, 29, 1, tzinfo=UTC), None, False),
        (datetime(2026, 11, 29, 14, tzinfo=UTC), datetime(2026, 11, 29, 15, tzinfo=UTC), False),
        (datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 29, 15, tzinfo=UTC), False),
        (datetime(2026, 11, 29, 1, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC), False),
    ],
)
def test_a_day_without_a_time_means_the_whole_day(start: datetime | None, end: datetime | None, covered: bool) -> None:
    found = rules("No errors were logged on 2026-11-29.", logs(start=start, end=end))

    assert (Rule.ABSENCE_NOT_COVERED not in found) is covered


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(
    ("start", "end", "covered"),
    [
        (at(30), NOW, True),
        (at(30), NOW - timedelta(minutes=5), True),
        (at(30), NOW - timedelta(minutes=5, seconds=1), False),
        (at(30), at(30, 12), False),
        (at(30, 1), NOW, False),
        (at(30, 0, 1), NOW, False),
        (at(30, 0, 0, 1), NOW, False),
        (at(30, 0, 0, 0, 1), NOW, False),
        (at(29, 22), NOW, True),
        (at(29, 22), NOW - timedelta(minutes=5), True),
        (at(29, 22), NOW - timedelta(minutes=5, seconds=1), False),
        (at(27, 10), at(28, 10), True),
        (at(27, 10), at(28, 9, 59, 59), True),
        (at(27, 10), at(28, 9, 59, 58), False),
        (None, at(30, 1), True),
        (at(30, 14), None, True),
        (None, None, True),
    ],
)
def test_all_day_means_a_day_or_today_up_to_now(start: datetime | None, end: datetime | None, covered: bool) -> None:
    found = rules("No errors all day.", logs(start=start, end=end))

    assert (found == set()) is covered


@pytest.mark.spec("GUARD-2")
def test_a_day_with_its_times_means_those_times() -> None:
    assert rules("Today there were no errors between 14:00 and 15:00.", logs()) == set()


@pytest.mark.spec("GUARD-2")
def test_the_source_s_own_counts_tell_what_level_was_found() -> None:
    beside = "2026-11-30T14:10:00Z INFO the level ERROR is now logged"
    counted = logs(beside).model_copy(update={"projection": f"payment\nlevels: INFO 1\nrecords:\n{beside}"})
    uncounted = logs(beside).model_copy(update={"projection": f"payment\nrecords:\n{beside}"})
    calm = logs(INFO).model_copy(update={"projection": f"payment\nrecords:\n{INFO}"})

    assert rules(NO_ERRORS, counted) == set()
    assert rules(NO_ERRORS, calm) == set()
    assert rules(NO_ERRORS, uncounted) == {Rule.ABSENCE_NOT_COVERED}


@pytest.mark.spec("GUARD-2")
def test_today_is_covered_up_to_now() -> None:
    for end, covered in ((at(30, 15, 5), True), (NOW, True), (at(30, 15, 4), False)):
        found = rules("No errors were logged on 2026-11-30.", logs(start=at(30), end=end))
        assert (Rule.ABSENCE_NOT_COVERED not in found) is covered


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
    assert rules("No runbook describes this alert of 2026-11-30.", passages()) & {Rule.ABSENCE_NOT_COVERED}
    assert rules("It never restarted.", passages()) & {Rule.ABSENCE_NOT_COVERED}
    assert rules("No order failed.", rows()) == set()
    assert rules("No order failed.", rows(truncated=True)) & {Rule.ABSENCE_NOT_COVERED}
    assert rules("No order failed.", rows(partial=True)) & {Rule.ABSENCE_NOT_COVERED}
