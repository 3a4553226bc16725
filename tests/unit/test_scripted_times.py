"""Expressions of time, as the scripted model reads them."""

from datetime import UTC, datetime

import pytest

from local.model_server.times import Window, window_of

NOW = datetime(2026, 11, 30, 15, 4, tzinfo=UTC)  # a Monday


def at(text: str | None) -> datetime | None:
    return datetime.fromisoformat(f"2026-{text}:00+00:00") if text else None


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("Why are checkouts failing since 14:00?", "11-30T14:00", None),
        ("since 16:00", "11-29T16:00", None),
        ("after 2:30 pm yesterday", "11-29T14:30", None),
        ("since 14:00 UTC+8", "11-30T06:00", None),
        ("since 2026-11-30 14:00", "11-30T14:00", None),
        ("since 2026-11-30T22:00:00+08:00", "11-30T14:00", None),
        ("what broke between 13:30 and 15:00?", "11-30T13:30", "11-30T15:00"),
        ("errors 13:30-15:00", "11-30T13:30", "11-30T15:00"),
        ("from 2 to 3pm", "11-30T14:00", "11-30T15:00"),
        ("on 2026-11-28 between 23:00 and 01:00", "11-28T23:00", "11-29T01:00"),
        ("from 2026-11-30T13:00:00Z to 2026-11-30T14:00:00Z", "11-30T13:00", "11-30T14:00"),
        ("slow at 14:00", "11-30T13:30", "11-30T14:30"),
        ("around noon", "11-30T11:30", "11-30T12:30"),
        ("before 14:00", "11-30T00:00", "11-30T14:00"),
        ("yesterday", "11-29T00:00", "11-30T00:00"),
        ("the day before yesterday", "11-28T00:00", "11-29T00:00"),
        ("today", "11-30T00:00", "12-01T00:00"),
        ("since yesterday", "11-29T00:00", None),
        ("this morning", "11-30T06:00", "11-30T12:00"),
        ("last night", "11-29T18:00", "11-30T06:00"),
        ("in the last 2 hours", "11-30T13:04", None),
        ("last hour", "11-30T14:04", None),
        ("half an hour ago", "11-30T14:34", None),
        ("3 days ago", "11-27T00:00", "11-28T00:00"),
        ("on Friday", "11-27T00:00", "11-28T00:00"),
        ("on Nov 28", "11-28T00:00", "11-29T00:00"),
        ("2026-11-29", "11-29T00:00", "11-30T00:00"),
        ("下午两点以来", "11-30T14:00", None),
        ("为什么从14点开始下单失败？", "11-30T14:00", None),
        ("昨天下午两点以来", "11-29T14:00", None),
        ("下午2点半到3点", "11-30T14:30", "11-30T15:00"),
        ("从14:00到15:00", "11-30T14:00", "11-30T15:00"),
        ("最近2小时", "11-30T13:04", None),
        ("过去半小时", "11-30T14:34", None),
        ("昨天", "11-29T00:00", "11-30T00:00"),
        ("北京时间22点以来", "11-30T14:00", None),
        ("11月30日14:00到15:00", "11-30T14:00", "11-30T15:00"),
    ],
)
def test_a_time_is_read_as_a_window(question: str, start: str, end: str | None) -> None:
    assert window_of(question, NOW) == Window(at(start), at(end))


@pytest.mark.parametrize(
    "question",
    [
        "Why is checkout failing?",
        "port 8080, v1.2.3, ORD-20261130-0001, 10.0.0.1:9092, 30 s",
        "since 2026-13-45",
        "Feb 30",
        "支付为什么失败",
        "",
        "12:99 and 27:00",
    ],
)
def test_what_is_no_time_gives_no_window(question: str) -> None:
    assert window_of(question, NOW) is None


def test_a_time_still_to_come_is_todays_when_records_reach_to_it() -> None:
    latest = datetime(2026, 11, 30, 18, tzinfo=UTC)
    assert window_of("since 16:00", NOW, latest) == Window(at("11-30T16:00"), None)


def test_a_window_knows_what_it_overlaps() -> None:
    window = Window(at("11-30T14:00"), at("11-30T15:00"))
    assert window.overlaps(at("11-30T00:00"), at("11-30T14:30"))
    assert not window.overlaps(at("11-30T00:00"), at("11-30T13:59"))
    assert not window.overlaps(at("11-30T15:00"), at("11-30T16:00"))
    assert window.overlaps(None, None)
