"""Words, sentences, numbers and identifiers of English and Chinese text, without any model."""

import re
from collections.abc import Iterable

_LATIN = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_CJK = re.compile(r"[\u3400-\u9fff]+")
_SPACE = re.compile(r"\s+")

# Words that say nothing about what is asked for.
_STOP = frozenset(
    [
        "a",
        "about",
        "after",
        "all",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "before",
        "being",
        "between",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "each",
        "else",
        "ever",
        "every",
        "for",
        "from",
        "get",
        "had",
        "happen",
        "happened",
        "happening",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "just",
        "know",
        "let",
        "like",
        "many",
        "me",
        "more",
        "most",
        "much",
        "my",
        "need",
        "of",
        "off",
        "on",
        "or",
        "our",
        "out",
        "over",
        "please",
        "reason",
        "s",
        "say",
        "see",
        "shall",
        "she",
        "should",
        "show",
        "since",
        "so",
        "some",
        "still",
        "suddenly",
        "t",
        "tell",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "thing",
        "this",
        "those",
        "to",
        "too",
        "under",
        "until",
        "up",
        "us",
        "very",
        "want",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
# Words about trouble or time as such: they name no service, table or topic.
_GENERIC = frozenset(
    [
        "today",
        "yesterday",
        "tomorrow",
        "now",
        "last",
        "past",
        "recent",
        "recently",
        "hour",
        "minute",
        "day",
        "week",
        "morning",
        "afternoon",
        "evening",
        "night",
        "noon",
        "midnight",
        "utc",
        "am",
        "pm",
        "ago",
        "fail",
        "failure",
        "failing",
        "error",
        "errors",
        "issue",
        "problem",
        "wrong",
        "broken",
        "break",
        "slow",
        "slowly",
        "down",
        "bad",
        "trouble",
        "incident",
        "outage",
        "exception",
        "warn",
        "warning",
        "log",
        "logs",
        "cause",
        "root",
        "look",
        "find",
        "check",
        "investigate",
        "explain",
        "everything",
        "anything",
        "something",
        "system",
        "service",
        "services",
        "production",
        "prod",
        "current",
        "currently",
        "go",
        "going",
        "run",
        "running",
        "work",
        "working",
        "start",
        "started",
        "number",
        "count",
        "report",
        "give",
        "happen",
        "look",
        "diagnose",
        "debug",
        "analyse",
        "analyze",
        "analysis",
        "whole",
        "thing",
        "stuck",
        "lately",
        "there",
        "status",
        "state",
        "new",
        "no",
        "not",
        "any",
        "log",
        "line",
        "lines",
        "message",
        "messages",
        "first",
        "around",
    ]
)

# General vocabulary of operations and shops, so that a question in one language meets evidence in another.
_CHINESE = {
    "订单": "order",
    "下单": "order checkout",
    "结账": "checkout",
    "结算": "checkout",
    "支付": "payment",
    "付款": "payment",
    "扣款": "payment",
    "退款": "refund",
    "库存": "inventory stock",
    "仓库": "warehouse inventory",
    "预留": "reservation",
    "网关": "gateway",
    "超时": "timeout timed",
    "数据库": "database",
    "连接池": "pool connection",
    "连接": "connection",
    "配置": "config configuration",
    "变更": "change",
    "发布": "deploy release",
    "部署": "deploy",
    "回滚": "rollback revert",
    "证书": "certificate",
    "磁盘": "disk",
    "内存": "memory",
    "网络": "network",
    "缓存": "cache",
    "队列": "queue",
    "用户": "user customer",
    "登录": "login",
    "集群": "cluster",
    "节点": "node",
    "副本": "replica",
    "延迟": "latency lag slow",
    "地址": "address",
    "服务器": "server",
    "重启": "restart",
    "选举": "election leader",
    "优惠券": "coupon",
    "故障": "incident",
    "告警": "alert",
}
_ALIKE = (
    {"db", "database", "mysql", "sql"},
    {"stock", "inventory", "warehouse"},
    {"timeout", "timed"},
    {"pay", "paid", "payment"},
    {"config", "configuration", "setting"},
    {"deploy", "deployment", "release", "rollout"},
    {"cert", "certificate"},
    {"k8s", "kubernetes"},
    {"auth", "authentication", "login"},
    {"conn", "connection"},
    {"rollback", "revert"},
)
_GENERIC_CHINESE = re.compile(
    "为什么|为何|怎么样|怎么|什么|失败|报错|错误|异常|出错|问题|原因|多少|哪些|哪个|有没有|是否|最近|今天|昨天|前天|"
    "上午|下午|晚上|凌晨|中午|早上|以来|以后|之后|之前|开始|小时|分钟|现在|一直|服务|系统|日志|情况|发生|帮我|请问|"
    "查看|查一下|看一下|分析|排查|诊断|很慢|变慢|缓慢|无法|不能|了|的|吗|呢|都|在|从|到|至|有|是|和|点|半|后|前|起"
)
_ENDINGS = (("ies", "y"), ("ings", ""), ("ing", ""), ("sses", "ss"), ("ches", "ch"), ("ed", ""), ("s", ""))


def fold(text: str) -> str:
    """`text` with every run of white space made one space."""
    return _SPACE.sub(" ", text).strip()


def has_chinese(text: str) -> bool:
    return _CJK.search(text) is not None


def stem(word: str) -> str:
    """The word without its most common English endings: enough to match plurals and verbs."""
    if word.endswith("ss"):
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: len(word) - len(ending)] + instead
    return word


_STOP_STEMS = _STOP | {stem(word) for word in _STOP}
_GENERIC_STEMS = _GENERIC | {stem(word) for word in _GENERIC}
_GROUPS = {stem(word): frozenset(map(stem, group)) for group in _ALIKE for word in group}


def terms(text: str) -> frozenset[str]:
    """What `text` is about: stems of its words, pairs of its Chinese characters, and their English words."""
    found = {stem(word.lower()) for word in _LATIN.findall(text) if len(word) > 1 and not word.isdigit()}
    for run in _CJK.findall(text):
        found.update(run[i : i + 2] for i in range(len(run) - 1))
        found.update(stem(word) for key, words in _CHINESE.items() if key in run for word in words.split())
    return frozenset(found - _STOP_STEMS)


def topic(text: str) -> frozenset[str]:
    """The terms of a question that name what it is about, with words that mean the same."""
    latin = {term for term in terms(text) if not has_chinese(term)} - _GENERIC_STEMS
    alike = {word for term in latin for word in _GROUPS.get(term, ())}
    rest = _GENERIC_CHINESE.sub(" ", text)
    chinese = {run[i : i + 2] for run in _CJK.findall(rest) for i in range(len(run) - 1)}
    return frozenset(latin | alike | chinese)


def unknown_topic(text: str) -> frozenset[str]:
    """The topic's terms that could name something, in one form each: no synonyms, no stray pairs."""
    named = frozenset(stem(w) for key, words in _CHINESE.items() if key in text for w in words.split())
    latin = frozenset(term for term in topic(text) if not has_chinese(term))
    return latin | named or topic(text)


def overlap(wanted: frozenset[str], text: str) -> int:
    return len(wanted & terms(text))


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"(])|(?<=[。！？；])")
_BULLET = re.compile(r"^\s*(?:[-*+]|\d{1,2}[.)、])\s+")


def sentences(line: str) -> list[str]:
    """The sentences of one line of Markdown, as they are written, without list marks and heading signs."""
    plain = _BULLET.sub("", line.strip()).strip()
    if not plain or plain.startswith(("#", "|", "```", "<", "![")):
        return []
    return [part.strip() for part in _SENTENCE_END.split(plain) if part and part.strip()]


def is_step(line: str) -> bool:
    """Whether the line is an item of a list."""
    return _BULLET.match(line) is not None


_QUOTATION_MARKS = re.compile(r"[\"“”‘’「」『』`]")


def has_quotation_mark(text: str) -> bool:
    return _QUOTATION_MARKS.search(text) is not None


def cut(text: str, limit: int) -> str:
    """A beginning of `text` of at most `limit` characters, ended at a space where there is one."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    at = head.rfind(" ")
    return head[:at].rstrip() if at > limit // 2 else head


_TOKEN = re.compile(r"[A-Za-z0-9_](?:[\w.:/+@%#-]*[A-Za-z0-9_%])?", re.ASCII)
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|「([^」]+)」|`([^`]+)`")


def literals(text: str) -> list[str]:
    """What must occur letter by letter where it comes from: numbers, times, identifiers."""
    tokens = (match.group() for match in _TOKEN.finditer(text))
    return [token for token in tokens if any(character.isdigit() for character in token)]


def quotations(text: str) -> list[str]:
    """The passages that `text` puts in quotation marks."""
    return [fold(next(filter(None, groups))) for groups in _QUOTED.findall(text)]


_IDENTIFIER = re.compile(
    r"(?<![\w.:/-])(?:[A-Za-z]{2,12}[-_]\d{3,}[\w-]*|[A-Za-z]{2,12}[-_][0-9a-f]{8}-[0-9a-f-]{13,}"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:blk|job|task|attempt|container|application)_[\w-]+)"
    r"(?![\w:/-])"
)


def identifiers(text: str) -> list[str]:
    """Names of single things in `text`, such as ORD-104952 or a UUID, in order, each once."""
    return list(dict.fromkeys(_IDENTIFIER.findall(text)))


def unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
