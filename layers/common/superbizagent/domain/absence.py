"""Claims that something is not there, and what it takes to show them (GUARD-2)."""

import re
from calendar import isleap
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

from superbizagent.domain.codes import ToolName
from superbizagent.domain.evidence import Coverage, Observation
from superbizagent.domain.evidence_text import EvidenceText
from superbizagent.domain.pattern import Pattern
from superbizagent.domain.places import looks_where_said
from superbizagent.domain.values import Moment, normalise, values_in

_ABSENCE = Pattern(
    r"\b(?<!non-)(?:no(?!\s+(?:longer|more\s+than|less\s+than|fewer\s+than|later\s+than|sooner|matter|doubt)\b|\.\s?[0-9])"
    r"|without(?!\s+exception\b|\s+(?!logg|record|report|show|see|caus|rais|throw|emit|produc)\w+ing\b)(?:\s+any)?|zero(?!-)|(?<![0-9.,])0(?=\s+(?!ms\b|s\b|seconds?\b|bytes?\b|[kmg]i?b\b|percent\b|at\b|in\b|to\b|and\b|or\b|of\b)[a-z])|none(?:\s+of)?|not\s+a\s+single|not\s+any|free\s+of"
    r"|(?:lack|absence)\s+of|never(?!\s+\w+\s+(?:below|above|under|over|beyond)\b)|nothing(?!\s+but\b)|nobody|neither)\b[\s,]*(?:[\w-]+\s*){0,3}"
    r"|\b(?:(?:is|are|was|were|has|have)\s+(?:been\s+)?(?:absent|missing|none)"
    r"|(?:do|does|did)\s+not\s+(?:occur|appear|happen|show|contain|exist|include|have|see|find|log|record|report)"
    r"|(?:is|are|was|were|has|have)\s+not\s+(?:been\s+)?(?:seen|found|logged|recorded|observed|present|reported|any)"
    r"|(?:could|can)\s*not\s+(?:be\s+)?(?:found|find|seen|see))\b"
    r"|(?:没有|沒有|并无|並無|毫无|毫無|未见|未見|不存在|不含|从未|從未|(?<![一二三四五六七八九十百千万亿0-9])零(?![点點时時下售部一二三四五六七八九十]))[\u4e00-\u9fff]{0,4}"
    r"|(?:没|沒|未|从未|從未)(?:曾)?(?:再)?(?:发现|發現|出现|出現|记录|記錄|发生|發生|产生|產生|观察到|觀察到|检测到|檢測到|检出|看到|找到|收到|报|報|有)"
    r"[\u4e00-\u9fff]{0,4}"
    r"|(?:[无無](?=任何|异常|異常|错误|錯誤|报错|報錯|告警|警告|失败|失敗|记录|記錄|日志|超时|超時|请求|請求|数据|故障)"
    r"|(?<![\u4e00-\u9fff])[无無])[\u4e00-\u9fff]{0,4}"
    r"|(?:为|為)(?:空|零)|(?<![0-9.,])0\s?(?=[次条條个個笔筆起])"
    # Things that are counted to nothing, and texts or tables that hold none.
    r"|\b(?:errors?|failures?|exceptions?|warnings?|restarts?|timeouts?|count|number\s+of\s+[\w-]+(?:\s+[\w-]+)?)"
    r"\s*(?:is|was|are|were|=|:)\s*(?:0|zero)(?![0-9.,]*[0-9])"
    r"|\b(?:errors?|failures?|faults?|incidents?)[- ]free\b|\b(?:devoid|clear)\s+of\b|\buneventful\b|\bnot\s+one\b"
    r"|\b(?:hardly|barely|scarcely)\s+any\b|\black(?:s|ed)?\b|\bfail(?:s|ed)?\s+to\s+(?:appear|occur|happen|show)\b"
    r"|\b(?:logs?|tables?|results?|output|result\s+sets?)\s+(?:is|are|was|were)\s+(?:clean|empty|silent|quiet)\b"
    # Events that did not happen.
    r"|\b(?:is|are|was|were|has|have|had|do|does|did)\s+(?:still\s+)?not\s+(?:yet\s+)?(?:been\s+|be\s+)?(?:fully\s+)?"
    r"(?:restart|fail|crash|trigger|alert|interrupt|affect|recover|reconnect|subside)\w*"
    r"|\bnot\s+yet\s+(?:been\s+)?(?:fully\s+)?(?:recover|reconnect|restart|resolved|subside)\w*|\b(?:has|have|had)\s+(?:still\s+)?not\s+been\s+resolved\b"
    r"|(?:尚|仍|仍然|依然|至今|还|還)?(?:未|没|沒|不曾|未曾|从未|並未|并未)(?:有)?(?:能)?(?:完全)?"
    r"(?:重启|重啟|失败|失敗|崩溃|崩潰|触发|觸發|中断|中斷|受影响|受影響|恢复|恢復|重连|重連|解决|解決|停止|结束|結束)"
    r"|不曾|未曾|查无|查無|空表|(?:没|沒)(?:出过|出過|有过|有過|人)"
    r"|(?:错误|錯誤|失败|失敗|异常|異常|告警|超时|超時)(?:总|總)?(?:数|數|量)?(?:为|為|是|=|：|:)\s?0(?![0-9.,]*[0-9])",
    re.IGNORECASE,
)
# That all went well is that nothing went wrong.
_DONE = (
    r"paid|complet(?:e|ed)|processed|delivered|shipped|finished|acknowledged|confirmed|committed|synchroni[sz]ed|replicated"
    r"|refunded|settled|answered|served|accepted|available|ready|reachable|online|running|up|ok|okay|intact"
)
_SUCCESS = Pattern(
    r"\b(?:all|every|each|everything|100\s?%\s+of)\b[^.;]{0,40}?\b(?:succeed(?:ed|s)?|successful(?:ly)?|pass(?:ed|es)"
    r"|healthy|fine|returned\s+(?:HTTP\s+)?2[0-9]{2})\b"
    # Of "all orders that were paid" something else is said.
    r"|\b(?:all|every|each|everything|100\s?%\s+of)\b(?:(?!\b(?:that|which|who|when)\b)[^.;]){0,40}?"
    rf"\b(?:is|are|was|were|been|got)\s+(?:(?:now|all|fully|successfully)\s+)?(?:{_DONE})\b(?!\s+(?:out|to)\b)"
    r"|\b(?:all|every|each)\s+(?!the\b|of\b|\w+ly\b)[\w-]+\s+(?:completed|finished|arrived)\b"
    r"|(?<![未没沒不非])(?:所有|全部|每[个個次条條笔筆]|一切|均|都)(?:(?![未没沒不非])[\u4e00-\u9fff]){0,8}?"
    r"(?:(?:成功|正常|支付|付款|完成|处理完|處理完|送达|送達|到账|到賬|发货|發貨|就绪|就緒|可用|通过|通過|健康)(?!的)|返回\s?2[0-9]{2})"
    r"|成功率(?:为|為|是|达|達)?\s?100\s?%",
    re.IGNORECASE,
)
# That something was well is that nothing was wrong with it. Its group is the word for how it was.
_WELL = Pattern(
    r"\b(?:is|are|was|were|been|remain(?:s|ed)?|stay(?:s|ed)|look(?:s|ed)|appear(?:s|ed)|seem(?:s|ed))\s+"
    r"(?:(?:always|completely|entirely|fully|otherwise|perfectly|still|all)\s+)?"
    r"(?P<state>healthy|fine|normal|stable|nominal|unaffected|unharmed|intact)\b(?!-)"
    r"|\b(?:remain|stay)(?:s|ed)\s+(?:fully\s+)?(?P<kept>available|up|online|reachable|responsive)\b"
    r"|\b(?:ran|runs|running|work(?:s|ed|ing)|operat(?:es|ed|ing)|behav(?:es|ed|ing)|function(?:s|ed|ing))\s+"
    r"(?P<way>normally|smoothly|fine|flawlessly|correctly|as\s+expected)\b"
    # What has become normal again was not before; and a normal request is one of a kind.
    r"|(?<![不非未反恢复復])(?P<good>正常|健康|稳定|穩定|良好)(?:运行|運行|工作|响应|響應)?(?=$|[^\u4e00-\u9fff])",
    re.IGNORECASE,
)
# That something is the only one, or the last, says that there is no other.
_ALONE = Pattern(
    r"\bonly\s+(?:one\s+|a\s+single\s+|[0-9]+\s+)?(?:[A-Z]+\s+)?(?:error|failure|warning|exception|restart|timeout|line|record|event)s?\b"
    r"|\bexclusively\b|\b(?:errors?|failures?|warnings?|exceptions?|restarts?|timeouts?)\s+(?:then\s+)?(?:stopped|ceased|ended|disappeared|subsided)\b"
    r"|(?:只有|仅有|僅有|唯一)[^，。；,;]{0,8}(?:错误|錯誤|失败|失敗|异常|異常|记录|記錄|日志|日誌|告警|超时|超時)"
    r"|(?:错误|錯誤|异常|異常|超时|超時|失败|失敗|告警)[\u4e00-\u9fff]{0,3}(?:消失|停止|不再)|不再(?:报错|報錯|失败|失敗|超时|超時)",
    re.IGNORECASE,
)
_CONTRACTED = Pattern(r"\b(\w+)n['’]t\b", re.IGNORECASE)
_ABOUT_DOCUMENTS = Pattern(
    r"document|runbook|knowledge|playbook|passage|手册|手冊|文档|文檔|知识|知識|预案|預案", re.IGNORECASE
)
_ALL_DAY = Pattern(
    r"\ball\sday\b|\bthroughout\sthe\sday\b|\b(?:whole|entire)\sday\b|\b(?:today|yesterday)\b|全天|整天|整日|今天|昨天|今日|昨日",
    re.IGNORECASE,
)
_LEVEL_WORDS = {
    "ERROR": Pattern(r"error|exception|failure|fail(?:ed|s)?\b|错误|錯誤|异常|異常|报错|失败", re.IGNORECASE),
    "WARN": Pattern(r"warn|警告|告警", re.IGNORECASE),
    "FATAL": Pattern(r"fatal|critical|致命", re.IGNORECASE),
}


def says_absent(prose: str, texts: Sequence[EvidenceText] = ()) -> bool:
    """Whether `prose` says that something is not there.

    A phrase that the evidence itself uses ("no leader") is a report of what was found, not of absence.
    """
    rest = re.sub(r'"[^"]*"|“[^”]*”|「[^」]*」|`[^`]*`', " ", prose)
    rest = _CONTRACTED.sub(r"\1 not", rest)
    for match in _ABSENCE.finditer(rest):
        phrase = normalise(match.group()).casefold()
        words = phrase.split()
        # Of "was not restarted" the first words are in many lines.
        said = phrase if "not" in words[1:] else " ".join(words[:2])
        if len(said) > 3 and any(said in text.folded.casefold() for text in texts):
            continue
        return True
    return _said(_SUCCESS, rest, texts) or _says_well(rest, texts)


def says_alone(prose: str, texts: Sequence[EvidenceText] = ()) -> bool:
    """Whether `prose` says that what was found is all there is; as above, but for what the evidence says itself."""
    return _said(_ALONE, prose, texts)


def _said(pattern: Pattern, prose: str, texts: Sequence[EvidenceText]) -> bool:
    phrases = (normalise(match.group()).casefold() for match in pattern.finditer(prose))
    return any(not any(phrase in text.folded.casefold() for text in texts) for phrase in phrases)


def _says_well(prose: str, texts: Sequence[EvidenceText]) -> bool:
    """Whether the prose says so and the evidence has not the word for it ("status: healthy")."""
    states = (normalise(match[match.lastgroup or 0]).casefold() for match in _WELL.finditer(prose))
    return any(
        not any(re.search(rf"(?<![a-z不非未]){re.escape(state)}(?![a-z])", text.folded.casefold()) for text in texts)
        for state in states
    )


def covers_absence(prose: str, observation: Observation, sources: Collection[str] = ()) -> bool:
    """Whether the observation looked completely at what `prose` says is not there (GUARD-2).

    `sources` are the log sources that are known by name.
    """
    if not covers_window(prose, observation, sources):
        return False
    if observation.tool == ToolName.QUERY_LOGS:
        return _log_search_covers(prose, observation)
    if observation.tool == ToolName.LOOKUP_KNOWLEDGE:
        # Documents don't tell what happened; their silence is only about themselves.
        return bool(_ABOUT_DOCUMENTS.search(prose)) and not values_in(prose).moments
    return True


def covers_window(prose: str, observation: Observation, sources: Collection[str] = ()) -> bool:
    """Whether the observation looked completely where and when `prose` says."""
    coverage = observation.coverage
    if coverage is None or not observation.safe or not coverage.complete:
        return False
    moments = values_in(prose).moments
    if not all(_inside(moment, observation, coverage) for moment in moments):
        return False
    if not all(_whole_day(moment, moments, observation) for moment in moments):
        return False
    if _ALL_DAY.search(prose) and not _covers_a_day(moments, observation):
        return False
    return looks_where_said(prose, observation, sources)


def _log_search_covers(prose: str, observation: Observation) -> bool:
    """A filtered search proves the absence of what it searched for, and of nothing else."""
    arguments = observation.asked()
    if arguments is None or arguments.get("excludes"):
        return False
    folded = normalise(prose).casefold()
    contains = arguments.get("contains") or ()
    if any(_unspaced(text) not in _unspaced(folded) for text in contains):
        return False
    named = {level for level, words in _LEVEL_WORDS.items() if words.search(prose)}
    if _SUCCESS.search(prose) or _WELL.search(prose):
        named.add("ERROR")
    levels = set(arguments.get("levels") or ())
    if levels and not (named and named <= levels):
        return False
    if not observation.ready:
        return True
    # Something was found: only of another level than those that are said to be absent.
    if named:
        # Where it was fatal it was no less than an error.
        worse = {"FATAL"} if "ERROR" in named else set()
        return not any(_count_of_level(level, observation.projection) for level in named | worse)
    return not contains


def _unspaced(text: str) -> str:
    """Time-out, time out and timeout are one word here."""
    return re.sub(r"[\s_-]", "", normalise(text).casefold())


def _count_of_level(level: str, projection: str) -> int:
    """How many matched lines have that level; where the source doesn't count them, how many lines name it."""
    line = re.search(r"^levels: (.*)$", projection, re.MULTILINE)
    if line is None:
        return len(re.findall(rf"\b{level}", projection))
    count = re.search(rf"\b{level} ([0-9]+)", line[1])
    return int(count[1]) if count else 0


def _inside(moment: Moment, observation: Observation, coverage: Coverage) -> bool:
    """Whether the moment lies in the covered window; without a date, on some day of it."""
    bounds = [bound for bound in (coverage.start, coverage.end) if bound is not None]
    if not bounds:
        return True
    zone = timezone(moment.offset) if moment.offset is not None else bounds[0].tzinfo
    first, last = _local(coverage.start, zone), _local(coverage.end, zone)
    days = _days(moment, [bound.date() for bound in (first, last) if bound is not None])
    if moment.hour is None:
        return any((first is None or first.date() <= day) and (last is None or day <= last.date()) for day in days)
    instants = [_instant(day, moment, zone) for day in days]
    if first is not None and moment.second is None and not (observation.asked() or {}).get("start"):
        # Nobody asked for a start: where the source begins is said to the minute as well.
        first = first.replace(second=0, microsecond=0)
    return any((first is None or first <= instant) and (last is None or instant <= last) for instant in instants)


def _whole_day(moment: Moment, all_moments: Sequence[Moment], observation: Observation) -> bool:
    """A day that is named without any time of day has to be covered from its start to its end, or to now."""
    coverage = observation.coverage
    if coverage is None or any(other.hour is not None for other in all_moments):
        return True
    zone = next((bound.tzinfo for bound in (coverage.start, coverage.end) if bound is not None), None)
    for day in _days(moment, [bound.date() for bound in (coverage.start, coverage.end) if bound is not None]):
        midnight = datetime(day.year, day.month, day.day, tzinfo=zone or UTC)
        end = min(midnight + timedelta(days=1), max(observation.observed_at, midnight))
        # A window may be written to end in the last second of the day.
        covered = coverage.end is None or coverage.end >= end - timedelta(seconds=1)
        if covered and (coverage.start is None or coverage.start <= midnight):
            return True
    return False


def _covers_a_day(moments: Sequence[Moment], observation: Observation) -> bool:
    """Whether a claim about a day, without any time of it, rests on a day's search, or on that of a day up to now."""
    coverage = observation.coverage
    if coverage is None or any(moment.hour is not None for moment in moments):
        return coverage is not None
    if coverage.start is None or coverage.end is None:
        return True
    so_far = (
        coverage.end >= observation.observed_at - timedelta(minutes=5) and coverage.start.date() < coverage.end.date()
    )
    since_midnight = coverage.start == coverage.start.replace(hour=0, minute=0, second=0, microsecond=0)
    reaches_now = coverage.end >= observation.observed_at - timedelta(minutes=5)
    return coverage.end - coverage.start >= timedelta(days=1, seconds=-1) or so_far or (since_midnight and reaches_now)


def _local(bound: datetime | None, zone: tzinfo | None) -> datetime | None:
    if bound is None:
        return None
    try:
        return bound.astimezone(zone)
    except OverflowError:
        return bound


def _days(moment: Moment, window: Sequence[date]) -> list[date]:
    """The day that is meant; without a date or year, those of the window's ends that it can be."""
    if moment.day is not None:
        return [moment.day]
    if moment.month_day is None:
        return list(window)
    years = dict.fromkeys(day.year for day in window)
    if moment.month_day == (2, 29):
        years = {year: None for year in years if isleap(year)}
    return [date(year, *moment.month_day) for year in years]


def _instant(day: date, moment: Moment, zone: tzinfo | None) -> datetime:
    second = min(moment.second or 0, 59)
    return datetime(day.year, day.month, day.day, moment.hour or 0, moment.minute or 0, second, tzinfo=zone)
