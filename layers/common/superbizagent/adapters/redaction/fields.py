"""Secrets that are known by the name before them: `password=…`, `"apiKey": "…"`, `密码：…`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from superbizagent.adapters.redaction.spans import PLACEHOLDER, PLACEHOLDER_TEXT, Detector, Span, Subject, matching
from superbizagent.adapters.redaction.values import is_long_secret, is_secret
from superbizagent.domain.pattern import Pattern

_CHINESE: Final = (
    *("密码", "密碼", "口令", "密钥", "密鑰", "金鑰", "私钥", "私鑰", "令牌", "權杖", "凭证", "凭据"),
    *("授权码", "验证码", "动态码", "助记词"),
)


def _escaped(word: str) -> str:
    return "".join(rf"\\{{1,7}}u{ord(character):04x}" for character in word)


def _written(word: str) -> str:
    """Also as JSON writes it for readers of ASCII."""
    return f"{word}|{_escaped(word)}"


# Names are looked for in lower case, wherever they stand in a longer one: `spring.datasource.dbPassword`.
_STRONG: Final = (
    r"passw(?:or)?d|passwd|passcode|passwort|kennwort|contrase[nñ]a|mot de passe|senha|пароль|パスワード|비밀번호"
    r"|secret[_-]?(?:access[_-]?)?key|secret[_-]?(?:token|string|text)|shared[_-]?access[_-]?signature"
    r"|(?<![a-z])(?:otp|cvv2?|cvc)|jsessionid|phpsessid|asp\.net_sessionid|connect\.sid|laravel_session"
    rf"|{'|'.join(map(_written, _CHINESE))}"
)
# Secrets after these words only, or surer ones: `primary_key`, `error code`, `Unexpected token:`.
_QUALIFIED: Final = r"key|code|pwd|pass|token|secret"
_QUALIFIERS: Final = {
    "key": Pattern(
        r"(?:private|api|access|account|encrypt(?:ion)?|decrypt(?:ion)?|sign(?:ing)?|master|storage|auth|licen[sc]e|service"
        r"|subscription|session|deploy|ssh|hmac|cipher|crypto|function|client|security|vault|unseal|recovery|consumer"
        r"|webhook|admin|root|database|cookie|secure|pre[_-]?shared|openai|azure|google|stripe|anthropic|sendgrid"
        r"|datadog|new[_-]?relic|mailgun|twilio|(?<![a-z])(?:app|aes|des|rsa|db|dd|jwt|stream|bot))[ _-]?$"
    ),
    "code": Pattern(r"(?:otp|mfa|2fa|totp|verification|verify|auth|authorization|backup|recovery|sms|pin)[ _-]?$"),
    "pwd": Pattern(r"(?:^|[^a-z])(?:db|user|smtp|root|admin|mysql|sa|old|new|my|login)?$"),
    "pass": Pattern(
        r"(?:db|user|smtp|root|admin|mysql|postgres|pg|ftp|ssh|ldap|redis|mail|key|auth|login|my|sudo)[_.-]?$"
    ),
    "token": Pattern(r"[a-z0-9][_.-]?$"),
    "secret": Pattern(r"[a-z0-9][_.-]?$"),
}
_WEAK: Final = r"credentials?|creds?|signature|authorization|(?<![a-z])(?:jwt|sig|hmac)"
_NEVER_WEAK: Final = ("key", "code", "pwd")
_SENTENCES: Final = r"pass[_-]?phrase|mnemonic|(?:seed|recovery)[ _-]?phrase"
_SUFFIX: Final = (
    r"(?:[_.-]?(?:hash|hashed|digest|encrypted|enc|plain|plaintext|value|text|b64|base64|prod|production|dev|test|staging"
    r"|new|old|current|previous|confirm|confirmation|again|repeat|base|primary|secondary|main|default|md5|sha1|sha256|[0-9]{1,3}))?"
)
# After the name: the end of its quotes or emphasis, a remark in brackets.
_CLOSE: Final = r"(?:\\{0,7}[\"'`”’」]|[*_]{1,3}|\]|\))?(?:\s?[(（][^()（）\n]{0,30}[)）])?"
_EQUALS: Final = r"\s{0,8}(?:=>|->|:=|={1,3}|!=|＝|%3d|\\{1,7}u(?:003d|ff1d))\s{0,4}"
_COLON: Final = r"\s{0,8}(?:::?|：|%3a|\\{1,7}u(?:003a|ff1a))(?:\*{1,3})?\s{0,8}"
_BLOCK: Final = r"\s{0,4}:\s{0,4}[|>][+-]?[ \t]{0,4}\n\s{1,40}"
_XML: Final = r"(?:\s[^<>\n]{0,100})?>\s{0,4}(?=[^\s<])"
_NAMED_VALUE: Final = (
    r"(?:[\s,;]|\\{1,7}[nrt]){0,40}(?:<|\\{0,7}[\"'])?(?:value|default|val)(?:\\{0,7}[\"'])?\s{0,4}(?:[:=>])\s{0,4}"
)
_LIST: Final = r"(?:\[\s{0,4}(?=\\{0,7}[\"'`]))?"
_CELL: Final = r"\s{0,40}\|\s{0,40}|\s{0,4},\s{0,4}(?=\\{0,7}[\"'])|\t\s{0,8}"
_VERBS: Final = ("为", "是", "改为", "改成", "重置为", "设为", "设置为", "变更为", "更新为")
_PROSE: Final = (
    r"(?:\s(?:for|of)\s\S{1,60})?(?:\s(?:has been|have been|was|is|got))?(?:\s(?:changed|set|reset|updated|rotated))?"
    rf"\s?(?:is now|is|was|are|became|to|of|{'|'.join(map(_written, _VERBS))})\s?(?:[:：=]\s?)?"
)
_CALL: Final = r"\s{1,4}(?=')|\s{0,4}\(\s{0,4}(?=[\"'])"
_FIELD: Final = Pattern(
    rf"{PLACEHOLDER_TEXT}|(?:(?P<strong>{_STRONG})|(?P<sentence>{_SENTENCES})|(?P<weak>{_WEAK})"
    rf"|(?P<qualified>{_QUALIFIED})){_SUFFIX}{_CLOSE}"
    rf"(?:(?P<block>{_BLOCK})|(?P<equals>{_EQUALS}{_LIST})|(?P<colon>{_COLON}{_LIST})|(?P<xml>{_XML})|(?P<value>{_NAMED_VALUE})"
    rf"|(?P<cell>{_CELL})|(?P<prose>{_PROSE})|(?P<call>{_CALL}))"
)
_SEPARATORS: Final = ("block", "equals", "colon", "xml", "value", "cell", "prose", "call")
_SCHEME: Final = Pattern(r"(?:bearer|basic|token|apikey|digest|negotiate|ntlm)(?:\s{1,4}|$)", re.IGNORECASE)
_OPENING: Final = Pattern(r"(?P<escapes>\\{0,7})(?P<quote>[\"'`“‘「])")
_CLOSING: Final = {"“": "”", "‘": "’", "「": "」"}
# A mark that ends a value only where another field begins after it, or none of its characters.
_BARE: Final = Pattern(
    r"(?:[^\s\"'`<>\\,;&|()\[\]{}，。；、！？：“”‘’（）《》【】「」…]++"
    r"|[,;&|](?=[\w$%^!@#*~+/-])(?![\w.-]{1,60}\s?[=:])"
    r"|[()\[\]{}](?!secret:)(?=[\w$%^!@#*~+])"
    r"|\\(?![nrtbfux\"'\\/]|\Z)|&(?=amp;))++"
)
_LINE: Final = Pattern(r"[^\n\"',;<>\\]+")
_LONGEST: Final = 65_536
_JUDGED: Final = 200
"""Characters of a bare value that are looked at first: text that looks like a value everywhere takes linear time."""


def _find(subject: Subject) -> Iterator[Span]:
    at = 0
    while match := _FIELD.search(subject.lowered, at):
        at = match.end()
        if PLACEHOLDER.fullmatch(match.group()):
            continue
        name = _name(subject, match)
        span = _value(subject.text, match, name) if name else None
        if span and name and _accepted(name, subject.text[span.begin : span.end], quoted=span.begin > match.end()):
            yield span
            at = max(at, span.end)


@dataclass(frozen=True)
class _Name:
    """A name for secrets, and how it goes on to its value. A weak one stands before much else too."""

    word: str
    weak: bool
    sentence: bool
    separator: str


def _name(subject: Subject, match: re.Match[str]) -> _Name | None:
    word = match.group("qualified") or match.group("weak")
    weak = match.group("weak") is not None
    if qualified := match.group("qualified"):
        before = subject.lowered[max(match.start() - 20, 0) : match.start()]
        weak = not _QUALIFIERS[qualified].search(before)
        if weak and (qualified in _NEVER_WEAK or (qualified == "pass" and before[-1:].isalpha())):
            return None
    separator = next(name for name in _SEPARATORS if match.group(name) is not None)
    return _Name(word or match.group("strong") or "", weak, match.group("sentence") is not None, separator)


def _value(text: str, match: re.Match[str], name: _Name) -> Span | None:
    """Where the value after the name stands, without its quotes and without the scheme it begins with."""
    at = match.end()
    if opening := _OPENING.match(text, at):
        begin = opening.end()
        end = _quoted_end(text, begin, opening.group("quote"), len(opening.group("escapes")))
    else:
        pattern = _LINE if name.sentence else _BARE
        bare = pattern.match(text, at, at + _JUDGED)
        if bare is None:
            return None
        begin, end = bare.span()
        if end == at + _JUDGED and _accepted(name, text[begin:end], quoted=False):
            bare = pattern.match(text, at) or bare
            end = bare.end()
        end -= len(text[begin:end]) - len(text[begin:end].rstrip(".: *"))
    if scheme := _SCHEME.match(text, begin, end):
        if scheme.end() < end:
            begin = scheme.end()
        elif not opening:
            # What follows a bare scheme is found by the rule for headers.
            return None
    return Span(begin, end) if end > begin else None


def _quoted_end(text: str, begin: int, quote: str, escapes: int) -> int:
    """Where a quoted value ends; at the line's end, where its quotes don't close.

    A value inside a JSON text that is itself inside one has each quote escaped once more: with `escapes`
    backslashes before the opening quote, each backslash of the value is written as `escapes` + 1.
    """
    closing = _CLOSING.get(quote, quote)
    line_end = text.find("\n", begin, begin + _LONGEST)
    limit = line_end if line_end >= 0 else min(len(text), begin + _LONGEST)
    at = begin
    while (at := text.find(closing, at, limit)) >= 0:
        slashes = 0
        while at - slashes > begin and text[at - slashes - 1] == "\\":
            slashes += 1
        own, rest = divmod(slashes - escapes, escapes + 1)
        if slashes == escapes or (rest == 0 and own % 2 == 0):
            return at - escapes
        if slashes < escapes:
            # The outer text's own quote: the value was cut.
            return at - slashes
        at += 1
    return limit


def _accepted(name: _Name, value: str, *, quoted: bool) -> bool:
    if not is_secret(value):
        return False
    if value.isdigit():
        return len(value) > (6 if name.weak else 2) and name.separator != "cell"
    if name.separator in ("cell", "prose"):
        return not name.weak and value.isascii() and is_long_secret(value)
    if name.separator == "call":
        return not name.weak
    if name.separator == "colon" and not quoted and not value.isascii() and not name.word.isascii():
        # 密码：… goes on in prose more often than with a password in Chinese.
        return is_long_secret(value)
    if not name.weak or name.separator == "equals" or quoted:
        return True
    return is_long_secret(value) and (len(value) >= 16 or name.word not in ("signature", "sig"))


_OPTION: Final = Pattern(
    r"(?<!\S)--?(?:[a-z-]{0,30}(?:password|passwd|passphrase|token|secret|api-key|apikey|access-key|secret-key))"
    r"\s{1,4}(?:\\{0,3}[\"'])?(?P<secret>[^\s\"'\\-][^\s\"'\\]{0,1023})"
)
_COMMANDS: Final = Pattern(
    r"\b(?i:mysql|mariadb)[a-z]{0,10}\b[^\n|;]{0,200}?\s-p(?:\\{0,3}[\"'])?(?P<secret>[^\s\"'\\-][^\s\"'\\]{0,255})"
)
_LOGIN: Final = Pattern(
    r"\b(?:curl|wget|http)\b[^\n|;]{0,400}?\s(?:-u|--user|-U|--proxy-user)[\s=]{1,4}(?:\\{0,3}[\"'])?[^\s:\"'\\]{1,64}"
    r":(?P<secret>[^\s\"'\\]{1,256})"
)
_SHORT: Final = Pattern(
    r"(?:\bopenssl\b[^\n|;]{0,200}?\s(?:-k\s{1,4}|-pass(?:in|out)?\s{1,4}pass:)|\bldap[a-z]{3,8}\b[^\n|;]{0,200}?\s-w\s"
    r"|\bnet use\b[^\n|;]{0,200}?/user:\S{1,64}\s)\s{0,4}(?:\\{0,3}[\"'])?(?P<secret>[^\s\"'\\-][^\s\"'\\]{0,255})"
)
_FILE: Final = Pattern(
    r"\bhtpasswd\s{1,4}(?:-[a-z]{1,6}\s{1,4}){1,3}\S{1,200}\s{1,4}\S{1,100}\s{1,4}(?P<secret>\S{1,256})"
)
# Numbers sent to telephones and their like.
_CODES: Final = Pattern(
    r"(?:验证码|校验码|动态码|(?<![a-z])(?:otp|pin(?: code)?|(?:verification|security|one-time) code))"
    r"(?:\s|[:：=]|is|为|是){1,8}(?P<secret>[0-9]{4,8})(?![0-9a-z.:])"
)
_SHELL: Final = Pattern(
    r"\b(?:sshpass\s{1,4}-p|redis-cli\b[^\n|;]{0,100}?\s-a|(?:docker|podman|helm|az)\b[^\n|;]{0,60}?\slogin\b[^\n|;]{0,200}?\s-p)"
    r"\s{0,4}(?:\\{0,3}[\"'])?(?P<secret>[^\s\"'\\]{1,256})"
)
_NETRC: Final = Pattern(r"\blogin\s{1,8}\S{1,100}\s{1,8}password\s{1,8}(?P<secret>\S{1,256})")
_SQL: Final = Pattern(
    r"\bidentified\s{1,4}(?:with\s{1,4}\S{1,60}\s{1,4})?(?:by|as)\s{1,4}(?:password\s{1,4})?\\{0,3}[\"'](?P<secret>[^\"'\n\\]{1,256})"
)

_HINTS: Final = (
    *("pass", "pwd", "key", "secret", "token", "cred", "authorization", "jwt", "sig", "hmac", "code"),
    *("otp", "cvv", "cvc", "sessid", "sessionid", "connect.sid", "laravel_session", "phrase", "mnemonic"),
    *("contrase", "kennwort", "senha", "пароль", "パスワード", "비밀번호"),
    *_CHINESE,
    # As JSON writes the Chinese ones for readers of ASCII.
    "\\u",
)

DETECTORS: Final = (
    Detector(_find, _HINTS),
    Detector(matching(_OPTION, is_secret, lowered=True), ("--", " -p", " -t", " -s")),
    Detector(matching(_COMMANDS, is_secret), ("mysql", "mariadb")),
    Detector(matching(_LOGIN, is_secret), ("curl", "wget", "http ")),
    Detector(matching(_SHELL, is_secret, lowered=True), ("sshpass", "redis-cli", "login")),
    Detector(matching(_SHORT, is_secret, lowered=True), ("openssl", "ldap", "net use")),
    Detector(matching(_FILE, is_secret, lowered=True), ("htpasswd",)),
    Detector(matching(_CODES, lowered=True), ("码", "otp", "pin", " code")),
    Detector(matching(_NETRC, is_secret, lowered=True), ("login",)),
    Detector(matching(_SQL, is_secret, lowered=True), ("identified",)),
)
