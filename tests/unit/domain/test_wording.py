"""How freely a true value may be worded, kind by kind, and what is a different value (GUARD-1)."""

from datetime import UTC, datetime

import pytest

from superbizagent.domain.codes import Unit
from superbizagent.domain.evidence import Coverage, Observation
from tests.unit.domain.observations import logs, passages, rows
from tests.unit.domain.test_evidence_guard import rules

PAYMENTS = logs(
    "per 10 min: 14:00 72, 14:10 75, 14:20 65",
    "pattern: 414x ERROR first 14:00:07 last 14:59:52: pool exhausted, gave up after <*> ms",
    '{"ts": "2026-11-30T14:00:07.636Z", "level": "ERROR", "logger": "gateway.pool", "msg": "pool exhausted, gave up'
    ' after 3000 ms", "active": 4, "max": 4, "waiting": 22, "order_id": "ORD-104952", "attempt": 2}',
    '{"ts": "2026-11-30T14:00:10.291Z", "level": "ERROR", "logger": "gateway.pool", "msg": "pool exhausted, gave up'
    ' after 3000 ms", "order_id": "ORD-104953", "delta": -12, "bytes": 2621440, "peer": "10.0.0.17:8443",'
    ' "status": 502}',
)
INVENTORY = logs().model_copy(
    update={
        "status": PAYMENTS.status,
        "projection": "logs inventory\nlines scanned: 612; matched: 2; shown: 2\n"
        "zone: the lines' own times are at UTC+08:00 (as configured; the lines carry no zone); the times in this"
        " summary are UTC\nfirst match: 2026-11-30T14:15:08Z\nrecords:\n"
        "2026/11/30 22:15:08.812 [WARN] storage: disk /var/lib/inventory 81% full\n"
        "2026/11/30 22:16:40.000 [WARN] reservations: expired after 900 s, took 1m30s, v2.8.1 RSV-504952",
    }
)
ROWS = rows(
    '{"status": "PENDING", "n": 330, "of": 1421, "amount_cents": 2492592}',
    '{"change_id": "CHG-3107", "setting": "gateway.pool.max_connections", "old_value": "40", "new_value": "4",'
    ' "changed_by": "release-bot", "changed_at": "2026-11-30 13:52:07"}',
    '{"pending_percent": 23.22, "paid_share": 0.7445, "name": "陶瓷茶壶", "requests": 1234567}',
)
HDFS = logs("081109 203615 148 INFO dfs.DataNode: Received block blk_-1608 of size 67108864", start=None, end=None)

# Kind of value: over which observation, what may be said, what may not.
KINDS: dict[str, tuple[Observation, list[str], list[str]]] = {
    "units of time": (
        PAYMENTS,
        [
            "after 3000 ms",
            "after 3 s",
            "after 3s",
            "after three seconds",
            "after 0.05 minutes",
            "3秒后",
            "三秒后",
            "三千毫秒",
        ],
        ["after 3000 s", "after 4 s", "after 3 minutes", "after four seconds", "五秒后", "3毫秒后", "22 s", "22秒"],
    ),
    "durations": (
        INVENTORY,
        ["after 15 minutes", "15分钟", "十五分钟", "a quarter of an hour", "took 90 s", "took 1 min 30 s", "1分30秒"],
        ["after 16 minutes", "20分钟", "half an hour", "took 1m31s", "1分40秒", "90 minutes"],
    ),
    "units of size": (
        PAYMENTS,
        ["2621440 bytes", "2.5 MB", "2,560 KB", "2.5 MiB", "2560KB", "2.5兆"],
        ["2.6 MB", "2.5 GB", "2,561 KB", "25 MB"],
    ),
    "size without a unit": (
        HDFS,
        ["64 MB", "67,108,864 bytes", "block blk_-1608"],
        ["63 MB", "64 GB", "block blk_-160"],
    ),
    "thousands": (
        ROWS,
        [
            "1,421 orders",
            "1 421 orders",
            "1421 orders",
            "1421个",
            "１４２１个",
            "1,234,567 requests",
            "about 1.2 million",
            "约123万",
        ],
        ["1,422 orders", "14,21 orders", "1 422 orders", "1422个", "约133万", "1.2 million requests", "123万"],
    ),
    "rounding": (
        PAYMENTS,
        [
            "about 400",
            "~410",
            "more than 400 errors",
            "400多次",
            "约410次",
            "近420次",
            "410次左右",
            "400+ errors",
            "over 400",
        ],
        [
            "400 errors",
            "about 700",
            "nearly 400 errors",
            "more than 600",
            "约700次",
            "410次",
            "about 430",
            "about 1000",
        ],
    ),
    "number words": (
        PAYMENTS,
        [
            "four connections",
            "twenty-two requests",
            "four hundred and fourteen errors",
            "the second attempt",
            "第二次",
            "四个连接",
        ],
        [
            "five connections",
            "twenty-one requests",
            "four hundred errors",
            "the fifth attempt",
            "第五次",
            "五个连接",
            "四百条",
        ],
    ),
    "counts of what is listed": (
        PAYMENTS,
        ["Three values: ORD-104952, ORD-104953 and gateway.pool", "三项：ORD-104952、ORD-104953、gateway.pool"],
        ["Five orders, ORD-104952 and ORD-104953", "五个订单：ORD-104952、ORD-104953"],
    ),
    "shares": (
        ROWS,
        [
            "23.22%",
            "23.22 percent",
            "百分之二十三点二二",
            "about 23 %",
            "74.45% are paid",
            "330 of 1421 (about 23%)",
            "约七成四",
        ],
        ["24.22%", "23%", "百分之三十", "about 33%", "330%", "5%", "330 of 1421 (about 33%)", "三成"],
    ),
    "money": (
        ROWS,
        ["€24,925.92", "24925.92 EUR", "about 25 thousand euros", "约2.5万欧元"],
        ["€24,925.93", "约3.5万欧元"],
    ),
    "signs and powers": (PAYMENTS, ["by -12", "minus 12", "3e3 ms", "3×10^3 ms"], ["by 12 units", "-22", "3e4 ms"]),
    "status classes": (PAYMENTS, ["HTTP 502", "5xx answers"], ["HTTP 503", "4xx answers"]),
    "clock": (
        PAYMENTS,
        [
            "at 14:00:07",
            "at 2:00:07 pm",
            "at 2 p.m.",
            "下午2:00",
            "下午两点",
            "14点00分07秒",
            "十四时整",
            "in the 14:10–14:20 bucket",
        ],
        [
            "at 14:00:08",
            "at 2:00:07 am",
            "at 4 p.m.",
            "下午3:30",
            "上午两点",
            "14点00分08秒",
            "14:15–14:20",
            "at 14:01",
        ],
    ),
    "clock, rounded": (
        ROWS,
        ["around 13:50", "nearly 14:00", "13:50左右", "约13:50", "shortly before 14:00", "将近14点"],
        ["around 13:40", "nearly 13:50", "13:30左右", "13:50", "shortly after 14:00", "约14:30"],
    ),
    "zones": (
        INVENTORY,
        [
            "14:15 UTC",
            "22:15 +08:00",
            "22:15 (UTC+8)",
            "北京时间22:15",
            "22:15（北京时间）",
            "10:15 pm China time",
            "9:15 EST",
            "22:15",
        ],
        [
            "22:15 UTC",
            "14:15 +08:00",
            "北京时间14:15",
            "22:15 (UTC+9)",
            "10:15 pm UTC",
            "14:15（北京时间）",
            "15:15 UTC",
            "22:15 JST",
        ],
    ),
    "zones of ranges": (
        INVENTORY,
        [
            "22:15–22:16 Beijing time",
            "between 10:15 and 10:16 pm +08:00",
            "北京时间22:15至22:16",
            "晚上10点15分到10点16分",
        ],
        ["22:15–22:16 UTC", "北京时间22:15至22:26", "晚上10点15分到11点16分"],
    ),
    "dates": (
        ROWS,
        [
            "on Nov 30.",
            "on November 30th",
            "on the 30 Nov 2026",
            "11月30日",
            "2026年11月30日13:52",
            "十一月三十日",
            "in November 2026",
            "2026年",
        ],
        [
            "on Nov 29.",
            "on November 31st",
            "30 Dec 2026",
            "11月29日",
            "2025年11月30日13:52",
            "in October 2026",
            "2025年",
        ],
    ),
    "compact dates": (HDFS, ["at 20:36:15 on 9 November 2008"], ["at 20:36:16", "on 10 November 2008"]),
    "identifiers": (
        PAYMENTS,
        [
            "ORD-104952",
            "ord-104952",
            "`ORD-104952`",
            "（ORD-104952）",
            "order 104952",
            "10.0.0.17",
            "10.0.0.17:8443",
            "gateway.pool",
        ],
        [
            "ORD-10495",
            "ORD-1049522",
            "ORD-104954",
            "10.0.0.1",
            "0.0.17",
            "gateway.poo",
            "gateway.pools2",
            "`gateway_pool`",
        ],
    ),
    "names": (
        ROWS,
        [
            "release-bot did it",
            "max_connections",
            "gateway.pool.max_connections",
            "`release-bot`",
            "PENDING",
            "time-out",
        ],
        [
            "release-bat did it",
            "release-bo",
            "max_connection",
            "gateway.pool.max",
            "`release-both`",
            "PENDNG",
            "CANCELLED",
        ],
    ),
    "versions": (INVENTORY, ["v2.8.1", "version 2.8.1", "2.8.1版"], ["v2.8", "version 2.8", "2.8.2", "version 8.1"]),
    "paths": (
        INVENTORY,
        ["/var/lib/inventory", "disk at 81%", "磁盘81%"],
        ["/var/lib/inventor", "/var/lib/inventory2", "disk at 91%"],
    ),
    "quotation marks": (
        PAYMENTS,
        [
            "“pool exhausted, gave up after 3000 ms”",
            "「pool exhausted」",
            "'pool exhausted'",
            '"gave up after 3000 ms."',
        ],
        [
            "“pool exhausted, gave up after 300”",
            "「pool exhauste」",
            "'ool exhausted'",
            '"gave up after 3000 s"',
            "《pool full》",
        ],
    ),
    "list items": (
        PAYMENTS,
        [
            "this: 1. 414 errors; 2. four connections",
            "\n1) ORD-104952\n2) 414 errors\n",
            "①414次；②4个",
            "：1、414次；2、4个",
        ],
        ["this: 1. 415 errors; 2. four connections", "\n1) ORD-104952\n2) 415 errors\n", "①415次"],
    ),
    "CJK names": (ROWS, ["「陶瓷茶壶」", "《陶瓷茶壶》"], ["「陶瓷茶杯」", "《陶瓷茶壶套装》"]),
}


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize("kind", KINDS)
def test_true_wordings_pass(kind: str) -> None:
    observation, true, _ = KINDS[kind]

    assert {text: found for text in true if (found := rules(f"It says {text} here.", observation))} == {}


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize("kind", KINDS)
def test_other_values_do_not(kind: str) -> None:
    observation, _, false = KINDS[kind]

    assert [text for text in false if not rules(f"It says {text} here.", observation)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Not one of the requests got through, one by one, at one point.",
        "情况十分严重，万一连接池耗尽，一些请求会一直等待。",
        "The k8s node speaks HTTP/1.1 and UTF-8, 24/7.",
        "A well-known, long-running, three-tier service.",
        "The first and the last request failed twice.",
    ],
)
@pytest.mark.spec("GUARD-1")
def test_words_that_only_look_like_numbers_are_not_checked(text: str) -> None:
    assert rules(text, PAYMENTS) == set()


@pytest.mark.spec("GUARD-1")
def test_a_quotation_does_not_join_two_items_of_a_document() -> None:
    steps = passages("1. Stop the pool.", "2. Start the pool", "again.", "- Tell the owner.")

    assert rules("Do it.", steps, quotes=["Start the pool again."]) == set()
    assert rules("Do it.", steps, quotes=["Stop the pool. 2. Start the pool"]) != set()
    assert rules("Do it.", steps, quotes=["again. - Tell the owner."]) != set()


@pytest.mark.spec("GUARD-1")
def test_a_quotation_does_not_join_two_documents() -> None:
    two = passages("Restart the pool", "document D2: Other > Causes (other.md)", "of the database")

    assert rules("Do it.", two, quotes=["Restart the pool of the database"]) != set()
    assert rules("Do it.", two, quotes=["(other.md) of the database"]) != set()
    assert rules("Do it.", two, quotes=["Restart the pool", "Other > Causes (other.md)", "of the database"]) == set()


@pytest.mark.spec("GUARD-2")
@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("No errors in payment between 14:00 and 15:00.", True),
        ("The payment service logged no errors from 14:00 to 15:00.", True),
        ("22:00–23:00（北京时间）payment没有错误。", True),
        ("No errors in payment, 10–11 pm +08:00.", True),
        ("No errors in payments between 14:00 and 15:00.", True),
        ("Nothing unexpected was logged between 14:00 and 15:00.", True),
        ("Nothing concerning was logged between 14:00 and 15:00.", True),
        ("No errors in inventory between 14:00 and 15:00.", False),
        ("The ledger service logged no errors from 14:00 to 15:00.", False),
        ("ledger服务在14:00至15:00没有错误。", False),
        ("No errors in payment between 14:00 and 15:00 +08:00.", False),
        ("No errors all day.", False),
        ("payment全天没有错误。", False),
        ("昨天payment没有错误。", False),
    ],
)
def test_absence_names_the_source_and_the_time_that_were_searched(text: str, covered: bool) -> None:
    found = rules(text, logs())

    assert (found == set()) is covered


@pytest.mark.spec("GUARD-2")
def test_another_source_that_was_asked_is_not_this_one() -> None:
    other = logs(number=2).model_copy(update={"arguments": '{"source": "inventory"}', "title": "inventory"})
    text = "No errors between 14:00 and 15:00 were logged by {}."

    assert rules(text.format("inventory"), logs(), other, cites=["E2"]) == set()
    assert rules(text.format("inventory"), logs(), other, cites=["E1"]) != set()
    assert rules(text.format("payment"), logs(), other, cites=["E2"]) != set()
    assert rules("Inventory: no errors.", logs(), other, cites=["E2"]) == set()
    assert rules("Inventory: no errors.", logs(), other, cites=["E1"]) != set()


@pytest.mark.spec("GUARD-2")
def test_rows_do_not_show_that_nothing_was_logged() -> None:
    assert rules("No errors were logged.", ROWS) != set()
    assert rules("没有报错。", ROWS) != set()
    assert rules("There were no exceptions.", rows('{"exception": null}')) == set()


@pytest.mark.spec("GUARD-2")
def test_a_whole_day_is_shown_by_a_whole_days_search() -> None:
    day = Coverage(
        unit=Unit.LINES,
        start=datetime(2026, 11, 29, tzinfo=UTC),
        end=datetime(2026, 11, 30, tzinfo=UTC),
        matched=0,
        shown=0,
    )

    assert rules("No errors all day.", logs().model_copy(update={"coverage": day})) == set()


@pytest.mark.spec("GUARD-2")
def test_what_was_searched_for_may_be_named_as_absent() -> None:
    asked = {"contains": ["ORD-777", "time out"]}

    assert rules("There is no line with ORD-777 and a “time out”.", logs(asked=asked)) == set()
    assert rules("没有ORD-777的time-out记录。", logs(asked=asked)) == set()
    assert rules("There is no line with ORD-778 and a time-out.", logs(asked=asked)) != set()


@pytest.mark.parametrize("text", ["9" * 8_000, "1," * 4_000, "a-" * 4_000, "三" * 4_000, "12:" * 2_600, "one " * 2_000])
def test_odd_evidence_is_read_in_reasonable_time(text: str) -> None:
    assert rules("The gateway timed out.", logs(text, "gateway timed out")) == set()
