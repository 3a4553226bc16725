"""How times, numbers, number words and names are read out of a text, spelling by spelling (GUARD-1)."""

from datetime import date, timedelta

import pytest

from superbizagent.domain.identifiers import is_identifier, long_words, take_identifiers
from superbizagent.domain.moments import Moment, take_moments
from superbizagent.domain.numerals import in_digits
from superbizagent.domain.quantities import Number, claimed_numbers, numbers_of


def hours(offset: timedelta) -> str:
    return f"{offset / timedelta(hours=1):+g}h"


def spelled_moment(moment: Moment) -> str:
    """Such as `2026-11-30 14:02 +8h`; `?` for a year, `*` for a month that was not said."""
    parts = [] if moment.day is None else [moment.day.isoformat()]
    if moment.month_day is not None:
        parts.append("?-{:02}-{:02}".format(*moment.month_day))
    if moment.month is not None:
        parts.append(f"{moment.month[0]}-{moment.month[1] or '*'}")
    clock = [f"{part:02}" for part in (moment.hour, moment.minute, moment.second) if part is not None]
    if clock:
        parts.append(":".join(clock) + (f".{moment.fraction}" if moment.fraction else ""))
    parts += [hours(offset) for offset in (moment.offset, moment.other_offset) if offset is not None]
    return " ".join(parts if moment.rounding == "EXACT" else [*parts, moment.rounding])


def spelled_number(number: Number) -> str:
    """Such as `3 TIME*0.001`; a step other than one, and what else is known of it, after a semicolon each."""
    unit = f" {number.unit.dimension}*{'|'.join(map(str, number.unit.factors))}" if number.unit else ""
    known = [number.rounding.value] if number.rounding != "EXACT" else []
    known += [f"step {number.step}"] if number.step != 1 else []
    known += [name for name in ("naming", "counting", "measuring") if getattr(number, name)]
    known += ["of " + " + ".join(spelled_number(part) for part in number.parts)] if number.parts else []
    return "; ".join((f"{number.value}{unit}", *known))


MOMENTS = {
    "2026-11-30": ["2026-11-30"],
    "2026/11/30": ["2026-11-30"],
    "2026.11.30": ["2026-11-30"],
    "2026年11月30日": ["2026-11-30"],
    "2026-11-30T14:02:11.512Z": ["2026-11-30 14:02:11.512 +0h"],
    "2026-11-30 14:02:11,512": ["2026-11-30 14:02:11.512"],
    "2026-11-30T14:02-05:00": ["2026-11-30 14:02 -5h"],
    "2026-11-30 14:02-05:00": ["2026-11-30 14:02", "05:00"],
    "2026-11-30 14:02:11-05:00": ["2026-11-30 14:02:11 -5h"],
    "2026-11-30T14:02:11+0530": ["2026-11-30 14:02:11 +5.5h"],
    "2026-02-30": [],
    "11月30日14:02": ["?-11-30 14:02"],
    "11月30日下午2点": ["?-11-30 14"],
    "30 Nov 2026 14:02": ["2026-11-30 14:02"],
    "30/Nov/2026:14:02:11": ["2026-11-30 14:02:11"],
    "Nov 30, 2026 at 2:02 pm": ["2026-11-30 14:02"],
    "Nov 30 14:02:11": ["?-11-30 14:02:11"],
    "Nov 30 14:02:11 2026": ["2026-11-30 14:02:11"],
    "on Nov 30": ["?-11-30"],
    "30 of November": ["?-11-30"],
    "11/30/2026": ["2026-11-30"],
    "30/11/2026": ["2026-11-30"],
    "on 11/30": ["?-11-30"],
    "2026年11月": ["2026-11"],
    "November 2026": ["2026-11"],
    "in 2026": ["2026-*"],
    "2026年": ["2026-*"],
    "2026年内": [],
    "261130 140211 INFO": ["2026-11-30 14:02:11"],
    "14:02": ["14:02"],
    "14:02:11.5": ["14:02:11.5"],
    "2 pm": ["14"],
    "12 am": ["00"],
    "12 AM": ["00"],
    "2 PM": ["14"],
    "12 pm": ["12"],
    "12:30 am": ["00:30"],
    "1:30 pm": ["13:30"],
    "下午2点半": ["14:30"],
    "傍晚6点": ["18"],
    "今晚8点": ["20"],
    "夜里11点": ["23"],
    "夜间10点": ["22"],
    "中午12点": ["12"],
    "中午1点": ["13"],
    "凌晨12点": ["00"],
    "14点整": ["14:00"],
    "14点05分09秒": ["14:05:09"],
    "3点原因": [],
    "14:02 UTC": ["14:02 +0h"],
    "14:02 (UTC+8)": ["14:02 +8h"],
    "14:02 UTC-3:30": ["14:02 -3.5h"],
    "14:02 CST": ["14:02 +8h -6h"],
    "14:02 cst": ["14:02 +8h -6h"],
    "北京时间14:02": ["14:02 +8h"],
    "UTC 14:02": ["14:02 +0h"],
    "14:02 EST": ["14:02 -5h"],
    "14:02 (EST)": ["14:02 -5h"],
    "14:02 est": ["14:02 -5h"],
    "14:02 asia/shanghai": ["14:02 +8h"],
    "14:02 世界时": ["14:02 +0h"],
    "14:02 Coordinated Universal Time": ["14:02 +0h"],
    "14:02 UTC+24": ["14:02 +0h"],
    "14:02 IST": ["14:02 +5.5h"],
    "14:02 Z": ["14:02 +0h"],
    "at 14:02+99:99": ["14:02"],
    "14:00-14:30": ["14:00", "14:30"],
    "2:00 pm to 2:30": ["14:00", "14:30"],
    "11 pm to 1 am": ["23", "01"],
    "14:00 UTC to 14:30": ["14:00 +0h", "14:30 +0h"],
    "14:00 CST to 14:30": ["14:00 +8h -6h", "14:30 +8h -6h"],
    "14:00 to 14:30 CST": ["14:00 +8h -6h", "14:30 +8h -6h"],
    "14:00-14:30, 15:00": ["14:00", "14:30", "15:00"],
    "14:02, all times UTC+08:00": ["14:02"],
    "2026-11-30 to 2026-12-01 14:00 UTC": ["2026-11-30", "2026-12-01 14:00 +0h"],
    "2026-11-30 14:00 to 14:00": ["2026-11-30 14:00", "2026-11-30 14:00"],
    "2:00-2:30 pm": ["02:00", "14:30"],
    "14:00 to 14:30 UTC": ["14:00 +0h", "14:30 +0h"],
    "2026-11-30 23:50 to 00:10": ["2026-11-30 23:50", "00:10"],
    "2026-11-30 13:50 to 14:10": ["2026-11-30 13:50", "2026-11-30 14:10"],
    "Nov 30 13:50 - 14:10 +08:00": ["?-11-30 13:50 +8h", "?-11-30 14:10 +8h"],
    "about 14:00": ["14:00 NEAR"],
    "nearly 14:00": ["14:00 BELOW"],
    "around UTC 14:02": ["14:02 +0h NEAR"],
    "nearly UTC 14:02": ["14:02 +0h BELOW"],
    "晚上10点到11点": ["22", "23"],
    "from 22:15 CST 14:15": ["22:15 +8h -6h", "14:15"],
    "24:00": [],
    "14:60": [],
    "9:5": [],
    "feb 29": ["?-02-29"],
    "29 Feb 2027": ["?-02-29"],
    "2026-13-01": [],
    "14:02 Asia/Shanghai": ["14:02 +8h"],
    "10:15 pm China time": ["22:15 +8h"],
    "14:02:11 -0530": ["14:02:11 -5.5h"],
}


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize("text", MOMENTS)
def test_times_as_they_are_written(text: str) -> None:
    rest, moments = take_moments(text)

    assert [spelled_moment(moment) for moment in moments] == MOMENTS[text]
    assert len(rest) == len(text), "what follows keeps its place"


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(
    ("text", "offset", "there"),
    [
        ("2026-11-30 22:02 UTC", 8, "2026-12-01 06:02 +8h"),
        ("22:02:11 UTC", 8, "06:02:11 +8h"),
        ("Nov 30 22:02 UTC", 8, "?-12-01 06:02 +8h"),
        ("Feb 29 22:02 UTC", 8, "?-03-01 06:02 +8h"),
        ("2 pm UTC", 8, "22 +8h"),
        ("2 pm UTC", 5.5, "19:30 +5.5h"),
        ("2 pm IST", 0, "08:30 +0h"),
        ("14:30 IST", 0, "09:00 +0h"),
        ("23:59:60 UTC", 8, "07:59:59 +8h"),
        ("23:59:60 UTC", 0, "23:59:60 +0h"),
        ("14:02", 8, "14:02"),
        ("2026-11-30", 8, "2026-11-30"),
    ],
)
def test_times_in_another_zone(text: str, offset: float, there: str) -> None:
    (moment,) = take_moments(text)[1]

    assert spelled_moment(moment.at(timedelta(hours=offset))) == there


def test_a_time_before_the_first_day_stays_in_its_zone() -> None:
    first = Moment(day=date.min, hour=0, offset=timedelta())

    assert first.at(timedelta(hours=-8)) == first


# In evidence; in claims the same unless the second list says otherwise.
NUMBERS: dict[str, tuple[list[str], list[str] | None]] = {
    "42": (["42"], None),
    "1,200": (["1200; step 100"], None),
    "1 200": (["1200; step 100; of 1 + 200", "1", "200", "1200; step 100; of 1 + 200"], ["1200; step 100"]),
    "1’200": (["1200; step 100"], None),
    "12,34": (["12"], None),
    "3.50": (["3.50; step 0.01; measuring"], None),
    "-5": (["-5"], None),
    "a-5": (["5; naming"], None),
    "10-20": (["10; step 10", "20; step 10"], None),
    "1e3": (["1000; step 1000"], None),
    "2.5e-3": (["0.0025; step 0.0001; measuring"], None),
    "3x10^4": (["30000; step 10000"], None),
    "3 × 10^3 ms": (["3000 TIME*0.001; step 1000"], None),
    "5k": (["5000; step 1000"], None),
    "5 thousand": (["5000; step 1000"], None),
    "2M": (["2000000; step 1000000"], None),
    "3 million": (["3000000; step 1000000"], None),
    "1.5bn": (["1500000000.0; step 100000000.0"], None),
    "5百": (["500; step 100"], None),
    "3万": (["30000; step 10000"], None),
    "2.5万": (["25000.0; step 1000.0"], None),
    "10百万": (["10000000; step 10000000"], None),
    "3百克": (["3"], None),
    "1st": (["1"], None),
    "2nd": (["2"], None),
    "3 ms": (["3 TIME*0.001"], None),
    "3ms": (["3 TIME*0.001"], None),
    "3-second": (["3 TIME*1"], None),
    "3s": (["3 TIME*1"], None),
    "5 m": (["5"], None),
    "5m": (["5 TIME*60"], None),
    "2 min": (["2 TIME*60"], None),
    "2h": (["2 TIME*3600"], None),
    "1 day": (["1 TIME*86400"], None),
    "2 weeks": (["2 TIME*604800"], None),
    "5B": (["5 SIZE*1"], None),
    "3 KB": (["3 SIZE*1000|1024"], None),
    "3KiB": (["3 SIZE*1024"], None),
    "5G": (["5 SIZE*1000000000|1073741824"], None),
    "5%": (["5 RATIO*0.01"], None),
    "5 percent": (["5 RATIO*0.01"], None),
    "5 pct": (["5 RATIO*0.01"], None),
    "$5": (["5 MONEY*1"], None),
    "€ 5": (["5 MONEY*1"], None),
    "5 cents": (["5 MONEY*0.01"], None),
    "5元": (["5 MONEY*1"], None),
    "5多次": (["5; ABOVE"], None),
    "5多秒": (["5 TIME*1; ABOVE"], None),
    "about 5 ms": (["5 TIME*0.001; NEAR"], None),
    "5 ms or so": (["5 TIME*0.001; NEAR"], None),
    "latency_ms=30": (["30 TIME*0.001; step 10; measuring"], None),
    "latency_ms: 30": (["30 TIME*0.001; step 10; measuring"], None),
    '"took_ms": "30"': (["30 TIME*0.001; step 10; measuring"], None),
    "amount_cents=5": (["5 MONEY*0.01; measuring"], None),
    "count=5": (["5; counting"], None),
    "active: 4": (["4; counting"], None),
    "avg=4": (["4; measuring"], None),
    "x=0.5": (["0.5; step 0.1; measuring"], None),
    "0.5": (["0.5; step 0.1; measuring"], None),
    "5 x": (["5"], None),
    "5x": (["5; counting"], None),
    "0": (["0"], None),
    "2e3 thousand": (["2000000; step 1000000"], None),
    "3-5 % at 7": (["3 RATIO*0.01", "5 RATIO*0.01", "7"], None),
    "1 234 thousand": (
        ["1234000; step 1000; of 1 + 234000", "1", "234000", "1234000; step 1000; of 1 + 234000"],
        ["1234000; step 1000"],
    ),
    "5x y": (["5; counting"], None),
    "3.5 ms": (["3.5 TIME*0.001; step 0.1"], None),
    "ERROR 5": (["5; counting"], None),
    "WARN 12": (["12; counting"], None),
    "3-5 %": (["3 RATIO*0.01", "5 RATIO*0.01"], None),
    "3 to 5 ms": (["3 TIME*0.001", "5 TIME*0.001"], None),
    "1 min 30 s": (
        ["1 TIME*60", "30 TIME*1; step 10", "90 TIME*1; step 10; of 1 TIME*60 + 30 TIME*1; step 10"],
        ["90 TIME*1; step 10; of 1 TIME*60 + 30 TIME*1; step 10"],
    ),
    "1min30s": ([], ["1"]),
    "1 h and 5 min": (
        ["1 TIME*3600", "5 TIME*60", "65 TIME*60; of 1 TIME*3600 + 5 TIME*60"],
        ["65 TIME*60; of 1 TIME*3600 + 5 TIME*60"],
    ),
    "1 h, 5 min 3 s": (
        ["1 TIME*3600", "5 TIME*60", "3 TIME*1", "3903 TIME*1; of 1 TIME*3600 + 5 TIME*60 + 3 TIME*1"],
        ["3903 TIME*1; of 1 TIME*3600 + 5 TIME*60 + 3 TIME*1"],
    ),
    "about 1 min 30 s": (
        ["1 TIME*60; NEAR", "30 TIME*1; step 10", "90 TIME*1; NEAR; step 10; of 1 TIME*60; NEAR + 30 TIME*1; step 10"],
        ["90 TIME*1; NEAR; step 10; of 1 TIME*60; NEAR + 30 TIME*1; step 10"],
    ),
    "5 s, 3%": (["5 TIME*1", "3 RATIO*0.01"], None),
    "30 s 1 min": (["30 TIME*1; step 10", "1 TIME*60"], None),
    "5 ms 3 ms": (["5 TIME*0.001", "3 TIME*0.001"], None),
    "ORD-104952": (["104952; naming"], None),
    "1 234 567 ms": (
        [
            "1234567 TIME*0.001; of 1 + 234 + 567 TIME*0.001",
            "1",
            "234",
            "567 TIME*0.001",
            "1234567 TIME*0.001; of 1 + 234 + 567 TIME*0.001",
        ],
        ["1234567 TIME*0.001"],
    ),
    "1 234.5": (
        ["1234.5; step 0.1; measuring; of 1 + 234.5", "1", "234.5", "1234.5; step 0.1; measuring; of 1 + 234.5"],
        ["1234.5; step 0.1; measuring"],
    ),
    "7f3a": ([], ["7"]),
    "5abc": (["5"], None),
    "9" * 41: ([], None),
    "3.4.5": ([], None),
    "2:3": (["2", "3"], None),
    "5分": (["5 TIME*60"], None),
    "5分类": (["5"], None),
    "5分钟": (["5 TIME*60"], None),
    "3个小时": (["3 TIME*3600"], None),
    "2周": (["2 TIME*604800"], None),
    "5 µs": (["5 TIME*0.000001"], None),
    "7 us": (["7 TIME*0.000001"], None),
    "3 ns": (["3 TIME*1E-9"], None),
    "5 Mi": (["5"], None),
    "3TB": (["3 SIZE*1000000000000|1099511627776"], None),
}


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_as_they_are_written(text: str) -> None:
    evidence, claim = NUMBERS[text]

    assert [spelled_number(number) for number in numbers_of(text)] == evidence
    assert [spelled_number(number) for number in claimed_numbers(text)] == (evidence if claim is None else claim)


IN_DIGITS = {
    "only one error": "only 1 error",
    "exactly one": "exactly 1",
    "just one": "just 1",
    "two": "2",
    "nineteen": "19",
    "twenty": "20",
    "twenty-one": "21",
    "ninety-nine": "99",
    "a hundred": "100",
    "two hundred": "200",
    "two hundred and five": "205",
    "a thousand": "1000",
    "two thousand and twenty-six": "2026",
    "one million": "1000000",
    "three hundred thousand": "300000",
    "a million": "1000000",
    "one hundred twenty-two thousand three hundred": "122300",
    "two billion": "2000000000",
    "five-second wait": "5-second wait",
    "the second attempt": "the 2 attempt",
    "the tenth retry": "the 10 retry",
    "half an hour": "0.5 hours",
    "a half hour": "0.5 hours",
    "half a minute": "0.5 minute",
    "a quarter of an hour": "0.25 hours",
    "an hour and a half": "1.5 hours",
    "one and a half hours": "1.5 hours",
    "2 and a half": "2.5",
    "half past 3": "3:30",
    "quarter past 4": "4:15",
    "a quarter past 4": "4:15",
    "14h30": "14:30",
    "a dozen": "12",
    "minus 5": "-5",
    "negative 5": "-5",
    "5 o'clock": "5:00",
    "at noon": " at 12:00",
    "since midnight": " at 00:00",
    "2-4 pm": "2 pm - 4 pm",
    "2 to 4 p.m.": "2 p.m - 4 p.m.",
    "between 2 and 4 pm": "between 2 pm and 4 pm",
    "2:30-4:00 pm": "2:30 pm - 4:00 pm",
    "8 in the morning": "8 am",
    "8 in the evening": "8 pm",
    "8 at night": "8 pm",
    "三次": "3次",
    "三十次": "30次",
    "十次": "10次",
    "十二次": "12次",
    "二十次": "20次",
    "二十一次": "21次",
    "一百次": "100次",
    "一百零五次": "105次",
    "三百二十次": "320次",
    "三百二十一次": "321次",
    "三百二次": "320次",
    "三千零五次": "3005次",
    "一千二百次": "1200次",
    "三万次": "30000次",
    "三万五次": "35000次",
    "三万五千次": "35000次",
    "十万次": "100000次",
    "一亿次": "100000000次",
    "二亿三千万次": "230000000次",
    "两次": "2次",
    "二〇二六年": "2026年",
    "二〇二六": "2026",
    "百分之二十": "20%",
    "百分之二十三点五": "23.5%",
    "三点五秒": "3.5秒",
    "三点五": "3点五",
    "三成": "30%",
    "七成半": "75%",
    "三成功": "3成功",
    "半小时": "0.5小时",
    "三个半小时": "3.5小时",
    "一个半小时": "1.5小时",
    "一小时半": "1.5小时",
    "一分钟半": "1.5分钟",
    "三小时半": "3.5小时",
    "三点一刻": "3点15分",
    "三点三刻": "3点45分",
    "正午": "12:00",
    "到午夜": "到00:00",
    "三点钟": "3点整",
    "十分钟": "10分钟",
    "仅一次": "仅1次",
    "只有一次": "只有1次",
    "共一次": "共1次",
    "第一次": "第1次",
    "第三次": "第3次",
    "零时": "0时",
    "零点": "0点",
    "一点整": "1点整",
    "一点三十分": "1点30分",
    "凌晨一点": "凌晨1点",
    "下午一点": "下午1点",
    "一月二日": "1月2日",
    "一刻": "1刻",
    "三点一分": "3点1分",
    "为三": "为3",
    "共三": "共3",
    "达到五。": "达到5。",
    "1m30s": "1min 30s",
    "2h5m": "2h 5min",
    "1d2h3m4.5s": "1d 2h 3min 4.5s",
    "三人": "3人",
    "十%": "10%",
    "三%": "3%",
    "三分": "3分",
    "an hundred": "100",
    "三点一四秒": "3.14秒",
    "七八点五秒": "七八点5秒",
    "百分之三": "3%",
    "是三。": "是3。",
    "计三。": "计3。",
    "达三。": "达3。",
    "升至三。": "升至3。",
    "仅三。": "仅3。",
    "了三。": "了3。",
    "有三。": "有3。",
    "十二位": "12位",
    "十分钟后": "10分钟后",
    "凌晨一點": "凌晨1點",
    "凌晨一時": "凌晨1時",
    "早上一点": "早上1点",
    "深夜一点": "深夜1点",
    "夜间一点": "夜间1点",
    "三点一分。": "3点1分。",
    "在三点一分": "在3点1分",
    "三點一分": "3點1分",
    "三时一分": "3时1分",
    "三時一分": "3時1分",
    "一刻钟": "15分钟",
    "只一次": "只1次",
    "仅一次失败": "仅1次失败",
    "三〇五次": "305次",
    "三点零五分": "3点5分",
    "十四点〇五分": "14点5分",
    "三点零分": "3点0分",
    "十二节点": "12节点",
    "三千亿次": "300000000000次",
    "三百十次": "310次",
    "一千零十五次": "1015次",
    "三万亿次": "3000000000000次",
    "重试次数三次": "重试次数3次",
    "系统三次重启": "系统3次重启",
    "合同三份": "合同3份",
}
NO_NUMBERS = [
    "one of them",
    "hundred",
    "two three",
    "twenty twelve",
    "five-star",
    "the second thing",
    "noon",
    "三",
    "两三次",
    "七八次",
    "万一",
    "十分严重",
    "一些",
    "一次",
    "周三",
    "星期三",
    "几十次",
    "十几次",
    "三几次",
    "数十次",
    "一点",
    "一月",
    "同一",
    "统一",
    "一致",
    "一直",
    "千万别",
    "同一刻",
    "唯一条件",
    "周三日志",
    "星期三日志",
    "两三百次",
    "为三者，",
    "零次",
    "为零",
    "一分",
    "每小时一次",
    "百货",
    "十分,",
    "x1m30s",
    "90s",
    "5m",
    "thousand",
    "million",
    "billion",
    "twenty ten",
    "two one",
]


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize(("text", "digits"), IN_DIGITS.items())
def test_number_words_in_digits(text: str, digits: str) -> None:
    assert in_digits(text) == digits
    assert in_digits(text.capitalize()).casefold() == digits.casefold()


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_words_that_only_look_like_numbers(text: str) -> None:
    assert in_digits(text) == text


NAMES = [
    "10.0.0.17:8443",
    "v2.8.1",
    "2.8.1",
    "1:30",
    "PaymentGateway",
    "paymentGateway",
    "gateway.pool",
    "ab.c",
    "abc:def",
    "/var/log",
    "a/b/c",
    "TIMEOUTS",
    "HTTP-API",
    "snake_case",
    "7f3a",
    "ORD-1",
    "12.5-rc1",
    "node-7",
    "AbCdef",
    "10.5.1",
    "x9",
    "/metrics",
    "GW.POOL",
    "1234567890123456",
]
NO_NAMES = [
    "3.14",
    "3/4",
    "3/4/5",
    "24/7",
    "5-10",
    "Payment",
    "a.b",
    "e.g",
    "a/b",
    "ERROR",
    "_private_",
    "x_",
    "30s",
    "15ms",
    "95%",
    "10MB/s",
    "3-minute",
    "2x",
    "1e3",
    "x",
    "5",
    "1,200",
    "3.5x",
    "2-fold",
    "12-34",
    "5%-6%",
    "aB",
    "AbCd",
    "10.5*2",
    "123456789012345",
]


@pytest.mark.spec("GUARD-1")
@pytest.mark.parametrize("name", NAMES)
def test_names_that_machines_gave(name: str) -> None:
    assert is_identifier(name)
    assert take_identifiers(f"see {name}.") == ("see  .", (name,))


@pytest.mark.parametrize("word", NO_NAMES)
def test_words_and_quantities_are_no_names(word: str) -> None:
    assert not is_identifier(word)
    assert take_identifiers(f"see {word}.")[1] == ()


def test_long_and_hyphenated_words_are_read_once_each() -> None:
    assert long_words("Release-Bot and release-bot restart PaymentGateway, not pool") == (
        "release-bot",
        "paymentgateway",
    )


def test_what_stands_around_a_name_is_no_part_of_it() -> None:
    assert take_identifiers("see ...node-7* and .10.0.0.7")[1] == ("node-7", "10.0.0.7")


def test_common_technical_words_are_neither_names_nor_numbers() -> None:
    assert take_identifiers("UTF-8 over HTTP/1.1, 24/7, on k8s") == ("  over  ,  , on  ", ())
