"""What the scripted model says about itself."""

from local.model_server.text import has_chinese

_ENGLISH = (
    "This is the scripted demo model: fixed rules, not a language model. Behind it, SuperBizAgent answers "
    "on-call questions: ask why something is failing and it looks at logs, the business database and "
    "runbooks and ties each claim to what it found; ask how something is done and it answers from the "
    'runbooks. It changes nothing. Try "Why are checkouts failing since 14:00?" Name the service, the '
    "symptom and the time."
)
_CHINESE = (
    "这是脚本化的演示模型：按固定规则回答，不是语言模型。SuperBizAgent 用于值班排障：问「为什么失败」，"
    "它会查看日志、业务数据库和手册，每条结论都对应实际查到的证据；问「怎么处理」，它会根据手册回答。"
    "它不会做任何修改。提问时请写明服务、现象和时间，例如：为什么从 14:00 开始结账失败？"
)


def reply(query: str) -> str:
    return _CHINESE if has_chinese(query) else _ENGLISH
