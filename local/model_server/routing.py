"""Which kind of question this is, by its wording."""

import re
from typing import Final

from local.model_server.prompt import instant
from local.model_server.text import has_chinese, topic
from local.model_server.times import window_of

CHAT: Final = "SYSTEM_CHAT"
KNOWLEDGE: Final = "KNOWLEDGE_QUERY"
DIAGNOSIS: Final = "DIAGNOSIS"

_INTENTS = {CHAT, KNOWLEDGE, DIAGNOSIS}
# Any moment does: only whether the question names a time counts here.
_SOME_TIME = instant("2026-01-15T12:00:00Z")

_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks?(?: you)?|thank you|bye|ok(?:ay)?|"
    r"cool|great|"
    r"你好|您好|嗨|哈喽|早上好|下午好|晚上好|谢谢|多谢|再见|"
    r"好的)(?:\s+(?:there|all|team|a lot|so much|very much))*[\s\W]*",
    re.I,
)
_ABOUT_US = re.compile(
    r"what (?:can|do|else can) you (?:do|offer|help)|who are you|what are you\b|"
    r"are you (?:a |an )?(?:bot|human|ai|real|model)|"
    r"your (?:name|purpose|capabilit\w+|features?)|how (?:do|can|should) (?:i|we) use (?:you|this)|"
    r"what is superbizagent|how do you work|introduce yourself|\bjoke\b|\bweather\b|\bpoem\b|^\W*help\W*$|"
    r"你能(?:做|干|帮)|你会(?:做|干)?什么|你可以(?:做|干|帮)|你是谁|你是什么|介绍一下(?:你|自己)|"
    r"怎么(?:使)?用你|"
    r"^\W*帮助\W*$|有(?:什么|哪些)功能|使用(?:这个|本)(?:系统|助手|工具)|天气|笑话",
    re.I,
)
_HOW_TO = re.compile(
    r"\bhow (?:do|can|should|would|must|to|does one)\b(?! (?:it|this|that) (?:happen|fail))|"
    r"\brunbooks?\b|\bplaybooks?\b|"
    r"\bprocedures?\b|\bsteps? (?:to|for)\b|"
    r"\bwhat (?:should|must|do|can) (?:i|we|one) (?:do|check|look|restart)\b|"
    r"\bwhat does\b.*\b(?:mean|do)\b|"
    r"\bwhat(?:'s| is| are) (?:an? |the )?(?:meaning|procedure|policy|process|standard|"
    r"recommended|usual|default|right way|best practice)|\bmeaning of\b|\bbest practi[cs]es?\b|"
    r"\bguidelines?\b|"
    r"\bdocument(?:s|ation|ed)?\b|\bmanual\b|\bpolic(?:y|ies)\b|\bdefin(?:e|ition)\b|\bwho owns\b|"
    r"\bmitigat\w+\b|\b(?:handling|escalation|review|approval|change) process\b|"
    r"怎么(?:处理|解决|办|做|配置|修复|恢复|回滚|重启|排查)|如何|手册|文档|步骤|流程|规范|是什么意思|"
    r"什么意思|含义|应急预案|预案|"
    r"应该(?:怎么|如何|做什么)|(?:处理|操作|解决)(?:方法|办法|方案)|谁负责",
    re.I,
)
_TROUBLE = re.compile(
    r"\b(?:why|fail\w*|errors?|exceptions?|slow\w*|broken?|crash\w*|down|outage|stuck|hang\w*|"
    r"time[sd]? ?-?out\w*|"
    r"timeouts?|root cause|caus(?:e[sd]?|ing)|investigat\w+|diagnos\w+|debug\w*|trouble\w*|wrong|"
    r"incident|spik\w+|latency|"
    r"drop(?:ped|s)?|missing|lost|unavailable|degraded|refused|leak\w*|5\d\d|happen\w*|logs?|"
    r"anomal\w+|problems?|issues?|warnings?|"
    r"unreachable|unhealthy|restart(?:ed|ing)|throttl\w+|pending|reject\w+)\b|"
    r"为什么|为何|失败|报错|错误|出错|异常|变慢|很慢|缓慢|太慢|超时|崩溃|挂了|宕机|不可用|原因|排查|"
    r"诊断|定位|无法|不能|卡住|"
    r"丢失|故障|怎么回事|怎么了|日志|抖动|积压|告警了",
    re.I,
)
_DATA = re.compile(
    r"\b(?:how many|how much|which|show|list|count|number of|what (?:happened|changed)|find|check|"
    r"look (?:at|into)|"
    r"status of|state of)\b|\bhow (?:is|are)\b.*\b(?:doing|going|performing|behaving)\b|\b(?:ok|okay|"
    r"up|healthy)\s*\?|多少|哪些|哪个|有没有|查一下|查看|查询|看一下|看看|分析",
    re.I,
)
# Asks about this very case: evidence decides, whatever else the sentence asks.
_THIS_CASE = re.compile(
    r"\bwhy (?:is|are|was|were|did|do|does|has|have|can't|won't|isn't|aren't)\b|\broot cause\b|"
    r"\bwhat (?:happened|went wrong)\b|"
    r"为什么|为何|怎么回事|根因|什么原因",
    re.I,
)
_FOLLOW_UP = re.compile(
    r"^\W*(?:and|but|so|then|also|what about|how about|why|more|continue|go on|again|really|"
    r"are you sure|still|same|"
    r"那|那么|还有|然后|继续|再|为什么呢|呢|接着|真的|确定)\b|呢[?？]?$|\b(?:it|that|this|those|them|"
    r"they)\b",
    re.I,
)


def route(query: str, last_intent: str | None = None) -> str:
    """SYSTEM_CHAT, KNOWLEDGE_QUERY or DIAGNOSIS. `last_intent` decides only where the wording doesn't."""
    rest = _GREETING.sub("", query, count=1).strip()
    if not rest:
        return CHAT
    trouble = _TROUBLE.search(rest) is not None
    timed = _SOME_TIME is not None and window_of(rest, _SOME_TIME) is not None
    if _ABOUT_US.search(rest) and not trouble:
        return CHAT
    if _HOW_TO.search(rest):
        return DIAGNOSIS if _THIS_CASE.search(rest) or (timed and trouble) else KNOWLEDGE
    if trouble or timed or _DATA.search(rest):
        return DIAGNOSIS
    return _ambiguous(rest, last_intent)


def follows_up(query: str) -> bool:
    """Whether the query reads like one that goes on from the turn before."""
    return _is_short(query) or _FOLLOW_UP.search(query) is not None


def _is_short(query: str) -> bool:
    return len(query) <= 12 if has_chinese(query) else len(query.split()) <= 6


def _ambiguous(query: str, last_intent: str | None) -> str:
    if last_intent in _INTENTS and follows_up(query):
        return str(last_intent)
    if query.rstrip().endswith(("?", "？")) and topic(query):
        return KNOWLEDGE
    return KNOWLEDGE if len(topic(query)) > 1 else CHAT
