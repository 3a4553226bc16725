"""Times and levels as services write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from superbizagent.adapters.log_files.records import RecordReader
from superbizagent.adapters.log_files.timestamps import TimestampReader
from superbizagent.adapters.log_projection import instant_of
from superbizagent.domain.evidence import LogLevel


def read(line: str, zone: timezone = UTC, year: int | None = 2026) -> tuple[datetime | None, LogLevel | None]:
    reader = RecordReader(TimestampReader(zone, year), dated=True)
    (record,) = [*reader.feed([line]), *reader.finish()]
    return (instant_of(record.stamp.micros) if record.stamp else None), record.level


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


NOON = at(2026, 11, 30, 14, 2, 11)


@pytest.mark.parametrize(
    ("line", "instant", "level"),
    [
        ("2026-11-30T14:02:11Z ERROR boom", NOON, "ERROR"),
        ("2026-11-30 14:02:11,500 - WARN  [main] slow", NOON + timedelta(milliseconds=500), "WARN"),
        ("2026-11-30 14:02:11.123456789 INFO ok", at(2026, 11, 30, 14, 2, 11, 123456), "INFO"),
        ("2026-11-30T22:02:11+08:00 [main] DEBUG x", NOON, "DEBUG"),
        ("2026-11-30T22:02:11+0800 TRACE x", NOON, "TRACE"),
        ("2026-11-30 14:02:11 UTC [12] FATAL:  out of memory", NOON, "FATAL"),
        ("2026-11-30 14:02 SEVERE x", at(2026, 11, 30, 14, 2), "ERROR"),
        ("[2026-11-30 09:02:11 -0500] [7] [CRITICAL] x", NOON, "FATAL"),
        ("[Sun Dec 04 04:47:44 2005] [error] mod_jk", at(2005, 12, 4, 4, 47, 44), "ERROR"),
        ("[Wed Oct 11 14:32:52.123456 2000] [core:notice] x", at(2000, 10, 11, 14, 32, 52, 123456), "INFO"),
        ("081109 203615 148 INFO dfs.DataNode", at(2008, 11, 9, 20, 36, 15), "INFO"),
        ("17/06/09 20:10:40 WARN executor", at(2017, 6, 9, 20, 10, 40), "WARN"),
        ("2026/11/30 14:02:11 [error] 7#7: *1 upstream", NOON, "ERROR"),
        ("Dec 10 06:55:46 host sshd[1]: Failed password", at(2026, 12, 10, 6, 55, 46), None),
        ("<34>Oct  1 22:14:15 host su: x", at(2026, 10, 1, 22, 14, 15), None),
        ("<34>1 2003-10-11T22:14:15.003Z host su - x", at(2003, 10, 11, 22, 14, 15, 3000), None),
        (
            '10.0.0.1 - bob [10/Oct/2000:13:55:36 -0700] "GET /ERROR HTTP/1.0" 200',
            at(2000, 10, 10, 20, 55, 36),
            None,
        ),
        ("E1130 14:02:11.000000       1 main.go:5] boom", NOON, "ERROR"),
        ("W20261130 14:02:11.000000 7 x.cc:5] slow", NOON, "WARN"),
        (
            "nova-api.log.1.2017-05-16_13:53:08 2017-05-16 00:00:00.008 25746 INFO nova [-] x",
            at(2017, 5, 16, 0, 0, 0, 8000),
            "INFO",
        ),
        ("30-Nov-2026 14:02:11.000 WARNING [main] x", NOON, "WARN"),
        ("Nov 30, 2026 2:02:11 PM com.example.Main run", NOON, None),
        ("03-17 16:13:38.811  1702  2395 W WindowManager: x", at(2026, 3, 17, 16, 13, 38, 811000), "WARN"),
        ("20171223-22:15:29:606|Step|x", at(2017, 12, 23, 22, 15, 29, 606000), None),
        ("- 1117838570 2005.06.03 R02 RAS KERNEL INFO x", at(2005, 6, 3, 22, 42, 50), "INFO"),
        ("ERROR 2026-11-30 14:02:11 x", NOON, "ERROR"),
        ("web_1  | 2026-11-30T14:02:11Z error: x", NOON, "ERROR"),
        ('time="2026-11-30T14:02:11Z" level=warning msg=x', NOON, "WARN"),
        ("level=info ts=2026-11-30T14:02:11Z msg=error", NOON, "INFO"),
        ("2026-11-30T14:02:11Z stderr F [ERR] x", NOON, "ERROR"),
        ("2026-11-30T14:02:11Z nothing is an information here", NOON, None),
        ("2026-13-45T14:02:11Z ERROR x", None, "ERROR"),
        ("[2026-11-30 14:02:11,000: ERROR/MainProcess] consumer: x", NOON, "ERROR"),
        ("2026/11/30 14:02:11 main.go:12: error: dial tcp", NOON, "ERROR"),
        ("2026-11-30 14:02:11 UTC [12] LOG:  checkpoint", NOON, "INFO"),
        ("no time at all", None, None),
    ],
)
def test_plain_lines(line: str, instant: datetime | None, level: LogLevel | None) -> None:
    assert read(line) == (instant, level)


@pytest.mark.parametrize(
    ("line", "instant", "level"),
    [
        ('{"ts": 1796047331, "level": "error", "msg": "x"}', NOON, "ERROR"),
        ('{"ts": 1796047331.5, "lvl": "warn"}', NOON + timedelta(milliseconds=500), "WARN"),
        ('{"time": 1796047331000, "level": 50, "msg": "pino"}', NOON, "ERROR"),
        ('{"timestamp": 1796047331000000000, "severity": "CRITICAL"}', NOON, "FATAL"),
        ('{"@timestamp": "2026-11-30T14:02:11.000Z", "log.level": "INFO"}', NOON, "INFO"),
        ('{"timestamp": "1796047331", "level": 3, "version": "1.1"}', NOON, "ERROR"),
        (
            '{"timestamp": {"seconds": 1796047331, "nanos": 500000000}, "severity": "NOTICE"}',
            NOON + timedelta(milliseconds=500),
            "INFO",
        ),
        ('{"log": "ERROR boom\\n", "stream": "stderr", "time": "2026-11-30T14:02:11Z"}', NOON, "ERROR"),
        ('{"time": "30/Nov/2026:22:02:11 +0800", "status": 500}', NOON, None),
        ('{"t": 12, "level": true, "time": null, "ts": "2026-11-30 14:02:11"}', NOON, None),
    ],
)
def test_json_lines(line: str, instant: datetime | None, level: LogLevel | None) -> None:
    assert read(line) == (instant, level)


@pytest.mark.parametrize(
    "line",
    [
        '{"ts": 1e400}',
        '{"ts": -5}',
        '{"ts": NaN}',
        "{" * 5_000,
        '{"a":' * 3_000,
        '{"ts": ' + "9" * 5_000 + "}",
        "{",
    ],
)
def test_odd_json_has_no_time_and_does_no_harm(line: str) -> None:
    assert read(line)[0] is None


@pytest.mark.spec("GUARD-2")
def test_lines_without_a_zone_are_read_in_the_given_one() -> None:
    """P126: 14:30 at +08:00 is 06:30 UTC; a line's own zone stands."""
    zone = timezone(timedelta(hours=8))

    assert read("2024-06-10 14:30:00.000 x", zone)[0] == at(2024, 6, 10, 6, 30)
    assert read("2024-06-10T06:30:00Z x", zone)[0] == at(2024, 6, 10, 6, 30)


def test_december_passes_into_january_in_lines_without_a_year() -> None:
    times = TimestampReader(UTC, 2025)
    stamps = [times.read(line) for line in ("Dec 31 23:59:59 a b", "Jan  1 00:00:00 a b", "Dec 31 23:59:58 a b")]

    assert [instant_of(stamp.micros).year for stamp in stamps if stamp] == [2025, 2026, 2025]


def test_a_time_inside_a_continuing_line_begins_no_record() -> None:
    reader = RecordReader(TimestampReader(), dated=True)
    lines = [
        "2026-11-30T14:02:11Z ERROR boom",
        "Caused by: timeout at 2026-11-30T13:00:00Z",
        "  at 2026-11-30T13:00:00Z",
        "",
        "2026-11-30T14:02:12Z INFO fine",
    ]

    records = [*reader.feed(lines), *reader.finish()]

    assert [record.text.count("\n") for record in records] == [2, 0]
