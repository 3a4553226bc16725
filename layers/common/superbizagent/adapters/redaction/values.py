"""Whether a value in a place for secrets is one: masks, variables and prose stand there too."""

import re
from typing import Final

from superbizagent.adapters.redaction.spans import PLACEHOLDER
from superbizagent.domain.pattern import Pattern

_WORDS: Final = frozenset(
    (  # noqa: SIM905
        "null none nil true false undefined redacted hidden masked empty blank unset n/a na yes no ok unknown"
        " required optional invalid incorrect expired missing wrong mismatch mismatched failed failure error denied"
        " rejected accepted success successful changed updated rotated reset enabled disabled unchanged set given"
        " string str text varchar char bytes blob int integer number boolean bool object any array list date datetime"
        " not is was are has must should cannot can't may for from and or the this that with without in on of to by"
        " authentication authorization refused revoked unauthorized forbidden absent found valid granted allowed"
        " include omit same-origin min max minimum maximum length size format"
        " prompt stdin file env vault valuefrom secretref bearer basic digest negotiate ntlm"
    ).split()
)
_CHINESE_WORDS: Final = (
    *("错误", "不正确", "不对", "不匹配", "不一致", "已过期", "过期", "无效", "失效", "为空", "失败", "正确"),
    *("必填", "缺失", "不能", "不存在", "未", "已", "请", "长度", "校验", "验证", "需要", "登录", "可以", "或", "和"),
)
# A variable, a template's or a format's field, a call that reads one.
_REFERENCE: Final = Pattern(
    r"\$\{[^}\n]{0,200}\}?|\$\([^\n]{0,200}|\$[A-Z_][A-Z0-9_]{0,80}|%[A-Z_]{2,80}%|%[-\d.]{0,4}[sdvqr]|\{\{.{0,200}|\{[\w.]{0,80}\}"
    r"|:[A-Za-z_]{1,80}|@[A-Za-z_]{1,80}|\$[0-9]{1,3}|%\([\w.]{1,80}\)[sdr]"
    r"|(?:vault|secretsmanager|ssm|awssm|azurekv|keyvault|gcpsm|op|file|env|sops|ref\+\w+|arn):\S.{0,500}|ENC\[.{0,500}"
    r"|!(?:Ref|Sub|GetAtt|ImportValue|Join|Select|FindInMap|reference|vault|env|secret)\b.{0,200}"
    r"|(?:os\.|process\.|System\.)?(?:environ|getenv|env)\b.{0,80}|<[^>\n]{0,80}>?"
)
_PATH: Final = Pattern(
    r"\.{0,2}/(?:home|var|etc|run|usr|opt|mnt|tmp|root|proc|srv|data|app|secrets?|vault|workspace|Users)(?:/[\w.@-]+)*/?"
)
_ALGORITHM: Final = Pattern(
    r"(?i:hmac-?)?(?i:sha-?[0-9]{1,3}|md5|[ehpr]s(?:256|384|512)|ed25519|x25519|aes(?:-?[0-9]{3})?(?:-[a-z]{3})?|rsa(?:-?[0-9]{4})?|base64|utf-?8)"
)
_MASK: Final = Pattern(r"[*x.•·…_#?-]+|\[?\(?(?i:redacted|masked|filtered|hidden|secret|removed)\)?\]?", re.ASCII)


# What a validator says of a field, in the field's place.
_SENTENCE: Final = Pattern(
    r"(?i:is|must|should|has|was|does|did|may|can|cannot|can't|can not|needs|too|not|at least|field)"
    r"(?: [A-Za-z0-9,.'-]+)+[.!]?"
)


def standing(value: str) -> str:
    """`value` without what stands around it: quotes, and the full stop that ends a sentence."""
    return value.strip("\"'`“”‘’「」*").rstrip(".:")


def is_secret(value: str) -> bool:
    """False for nothing, masks, placeholders, variables, paths, and words that say what became of a secret."""
    plain = standing(value)
    if not plain or plain.lower() in _WORDS or plain.startswith(_CHINESE_WORDS):
        return False
    if not any(character.isalnum() for character in PLACEHOLDER.sub("", value)):
        return False
    return not (
        _MASK.fullmatch(plain)
        or _SENTENCE.fullmatch(plain)
        or _REFERENCE.fullmatch(plain)
        or _ALGORITHM.fullmatch(plain)
        or _PATH.fullmatch(plain)
    )


def is_long_secret(value: str) -> bool:
    """In places that hold much else: what also looks like one."""
    return is_secret(value) and looks_random(value)


def looks_random(value: str) -> bool:
    """Digits among letters, symbols, odd capitals, or a length that no word has."""
    plain = standing(value)
    if len(plain) < 6:
        return False
    letters = any(character.isalpha() for character in plain)
    digits = any(character.isdigit() for character in plain)
    symbols = re.search(r"[!@#$%^&*+=~?]", plain) is not None
    capitals = re.search(r"[a-z][A-Z]{1,3}[a-z]|[A-Z]{2}[a-z]{1,3}[A-Z]|[a-z]{2}[A-Z]{2}", plain) is not None
    return (letters and (digits or symbols or capitals)) or (
        len(plain) >= 20 and plain.isalnum() and not plain.isdigit()
    )


_NO_WORD_OF_SECRET: Final = Pattern(r"v?[0-9][0-9.:TZ+_-]*|[a-z]{1,14}[-_]?[0-9]{1,8}", re.IGNORECASE)


def has_digit_and_letter(value: str) -> bool:
    """In the middle of prose; of dates, versions and names with a number none is a secret."""
    return (
        is_long_secret(value)
        and any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
        and not _NO_WORD_OF_SECRET.fullmatch(value)
    )
