"""Secrets that are known by the name before them: `password=…`, `"apiKey": "…"`, `密码：…`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from superbizagent.adapters.redaction.spans import PLACEHOLDER_TEXT, Detector, Span, Subject
from superbizagent.adapters.redaction.values import has_digit_and_letter, is_long_secret, is_secret
from superbizagent.domain.pattern import Pattern

_CHINESE: Final = (
    *("密码", "密碼", "口令", "密钥", "密鑰", "金鑰", "私钥", "私鑰", "令牌", "權杖", "凭证", "凭据"),
    *("授权码", "验证码", "动态码", "助记词"),
)


def _escaped(word: str) -> str:
    return "".join(character if character.isascii() else _escapes(character) for character in word)


def _escapes(character: str) -> str:
    """Of the letter, large or small: what is in lower case is the escape, not the letter."""
    codes = sorted({f"u{ord(letter):04x}" for letter in (character, character.upper()) if len(letter) == 1})
    return rf"\\{{1,7}}(?:{'|'.join(codes)})"


def _ascii_letters(word: str) -> int:
    """How many letters of ASCII it begins with."""
    return next(place for place, letter in enumerate(word) if not letter.isascii())


def _written(word: str) -> str:
    """Also as JSON writes it for readers of ASCII."""
    return f"{word}|{_escaped(word)}"


# Passwords as other languages call them, in lower case; a name in ASCII stands by itself only.
_FOREIGN: Final = (
    *("contraseña", "пароль", "пароля", "паролем", "パスワード", "暗証番号", "비밀번호", "암호", "hasło", "hasła"),
    *("lösenord", "jelszó", "şifre", "mật khẩu", "รหัสผ่าน", "पासवर्ड", "كلمة المرور", "كلمة السر", "סיסמה", "סיסמא"),
    "κωδικός πρόσβασης",
)
_FOREIGN_ASCII: Final = (
    "parola|wachtwoord|adgangskode|salasana|heslo|kata sandi|palavra[ -]passe|contrasenya|haslo|sifre"
)


# Names are looked for in lower case, wherever they stand in a longer one: `spring.datasource.dbPassword`.
_STRONG: Final = (
    r"pass[_-]?w(?:or)?d|passcode|passwort|kennwort|contrasena|mot de passe|senha"
    rf"|(?<![a-z])(?:{_FOREIGN_ASCII})(?![a-z])"
    r"|secret[_-]?(?:access[_-]?)?key|secret[_-]?(?:token|string|text)|shared[_-]?access[_-]?signature"
    r"|(?<![a-z])(?:otp|cvv2?|cvc|psk)(?![a-z])|(?<![a-z])(?:ext|access|git(?:hub|lab)?)_pat(?![a-z])|(?:sdk|cloud|api)_sk(?![a-z])|jsessionid|phpsessid|asp\.net_sessionid|connect\.sid|laravel_session"
    rf"|{'|'.join(map(_written, (*_CHINESE, *_FOREIGN)))}"
)
# Secrets after these words only, or surer ones: `primary_key`, `error code`, `Unexpected token:`.
_QUALIFIED: Final = r"key|code|pwd?|pass|token|secret"
_QUALIFIERS: Final = {
    "key": Pattern(
        r"(?:private|api(?:[_-]?v[0-9])?|access|account|encrypt(?:ion)?|decrypt(?:ion)?|sign(?:ing)?|master|storage|auth|licen[sc]e|service"
        r"|subscription|session|deploy|ssh|hmac|cipher|crypto|function|client|security|vault|unseal|recovery|consumer"
        r"|application|integration|write|ingest(?:ion)?|functions|fernet|shared|symmetric|wrapping"
        r"|webhook|admin|root|database|cookie|secure|pre[_-]?shared|openai|azure|google|stripe|anthropic|sendgrid"
        r"|datadog|fastly|algolia|cloudflare|sentry|segment|dashscope|new[_-]?relic"
        r"|mailgun|twilio|(?<![a-z])(?:app|aes|des|rsa|db|dd|jwt|stream|bot))[ _-]?$"
    ),
    "code": Pattern(r"(?:otp|mfa|2fa|totp|verification|verify|auth|authorization|backup|recovery|sms|pin)[ _-]?$"),
    "pwd": Pattern(r"(?:^|[^a-z])(?:db|user|smtp|root|admin|mysql|sa|old|new|my|login)?$"),
    "pw": Pattern(r"(?:^|[^a-z])(?:db|user|smtp|root|admin|mysql|sa|bind|ldap|old|new|my|login)?[_.-]?$"),
    "pass": Pattern(
        r"(?:db|user|smtp|root|admin|mysql|postgres|pg|ftp|ssh|ldap|redis|mail|key|auth|login|my|sudo)[_.-]?$"
    ),
    "token": Pattern(r"[a-z0-9][_.-]?$"),
    "secret": Pattern(r"[a-z0-9][_.-]?$"),
}
_WEAK: Final = r"credentials?|creds?|signature|authorization|(?<![a-z])(?:jwt|sig|hmac)"
_NEVER_WEAK: Final = ("key", "code", "pw", "pwd")
# Tokens that open nothing: they tell where to read on. A secret of an ARN is its name.
_NO_SECRETS: Final = {
    "token": Pattern(
        r"(?:pagination|page|next|continuation|continue|cursor|resume|sync|fencing|idempotency|cancellation|change"
        r"|marker)[ _-]?$"
    ),
    "secret": Pattern(r"\barn:[\w:*/-]{1,100}:$"),
}
_SENTENCES: Final = r"pass[_-]?phrase|mnemonic(?:[_ -]?(?:code|words?|phrase))?|(?:seed|recovery)[ _-]?phrase"
_SUFFIX: Final = (
    r"(?:[_.-]?(?:hash|hashed|digest|encrypted|enc|plain|plaintext|value|text|b64|base64|prod|production|dev|test|staging"
    r"|new|old|current|previous|confirm|confirmation|again|repeat|base"
    r"|primary|secondary|main|default|md5|sha1|sha256|[0-9]{1,3})| [0-9])?"
)
# After the name: the end of its quotes or emphasis, a remark in brackets.
_ENTITY: Final = r"&(?:amp;)?(?:quot|apos|#0?3[49]|#x2[27]);|%2[27]"
_CLOSE: Final = rf"(?:\\{{0,15}}[\"'`”’」]\]?|{_ENTITY}|[*_]{{1,3}}|\]|\))?(?:\s?[(（][^()（）\n]{{0,30}}[)）])?"
_EQUALS: Final = r"\s{0,8}(?:=>|->|:=|={1,3}|!=|＝|%3d|\\{1,7}u(?:003d|ff1d))\s{0,4}"
_COLON: Final = (
    r"\s{0,8}(?:::?|：|%3a|\\{1,7}u(?:003a|ff1a))(?:\*{1,3}|</[a-z]{1,10}>)?(?:\s|\\{1,7}[nrt]){0,8}"
    r"(?:(?:!![a-z]{1,12}|&[\w-]{1,40})[ \t]{1,4})?"
)
_BLOCK: Final = r"\s{0,4}:\s{0,4}[|>][+-]?[ \t]{0,4}\n\s{1,40}"
_XML: Final = r"(?:\s[^<>\n]{0,100})?(?:>|&gt;)\s{0,4}(?=[^\s<])"
_NAMED_VALUE: Final = (
    r"(?:[\s,;{>]|\\{1,7}[nrt]){0,40}(?:(?:type|description|sensitive)\s{0,8}=\s{0,4}[^\n\\]{1,100}(?:\s|\\{1,7}[nrt]){1,20}){0,3}"
    r"(?:(?:<|\\{0,15}[\"'])?(?:value|default|val)|\\{0,15}[\"'](?:(?:new|old)(?:[_-]?value)?|after|before))"
    r"(?:\\{0,15}[\"'])?\s{0,8}(?:[:=>])\s{0,4}"
)
_LIST: Final = r"(?:\[\s{0,4}(?=\\{0,15}[\"'`]))?"
_CELL: Final = r"\s{0,40}\|\s{0,40}|\s{0,4},\s{0,4}(?=\\{0,7}[\"'])|(?:\t|\\{1,7}t)\s{0,8}|\s{1,4}[–—-]\s{1,4}"
_VERBS: Final = (
    "为",
    "是",
    "改为",
    "改成",
    "重置为",
    "设为",
    "设置为",
    "变更为",
    "更新为",
    "は",
    "는",
    "은",
    "è",
    "é",
    "это",
)
_PROSE: Final = (
    r"(?:\s(?:for|of|для|für|para|pour|per)\s\S{1,60}?\s?[:=：]\s?|(?:\s(?:for|of)\s\S{1,60})?"
    r"(?:\s(?:has been|have been|was|is|got))?(?:\s(?:changed|set|reset|updated|rotated))?"
    rf"\s?(?:(?:is now|is|was|are|became|to|of|lautet|es)\b|{'|'.join(map(_written, _VERBS))})"
    r"\s?(?:(?:[:：=]|\\{1,7}uff1a)\s?)?)"
)
_CALL: Final = r"\s{1,4}(?=')|\s{0,4}\(\s{0,4}(?=\\{0,15}[\"'])"
_QUOTED: Final = r"\s{1,4}(?=\\{0,15}[\"`])"
# A directive of a configuration: `insecure-password …`, `ENV DB_PASS …`. In prose the name is one word.
_DIRECTIVE: Final = r"[ \t]{1,8}(?:reg_sz[ \t]{1,8})?(?=\S)"
# CloudFormation's reference to a secret holds such names, and no secret.
_REFERENCES: Final = r"\{\{resolve:[^{}\n]{0,300}\}\}"
_FIELD: Final = Pattern(
    rf"{PLACEHOLDER_TEXT}|{_REFERENCES}|(?:(?P<strong>{_STRONG})|(?P<sentence>{_SENTENCES})|(?P<weak>{_WEAK})"
    rf"|(?P<qualified>{_QUALIFIED})){_SUFFIX}{_CLOSE}"
    rf"(?:(?P<block>{_BLOCK})|(?P<equals>{_EQUALS}{_LIST})|(?P<colon>{_COLON}{_LIST})|(?P<value>{_NAMED_VALUE})|(?P<xml>{_XML})"
    rf"|(?P<cell>{_CELL})|(?P<prose>{_PROSE})|(?P<call>{_CALL})|(?P<quoted>{_QUOTED})|(?P<directive>{_DIRECTIVE}))"
)
_SEPARATORS: Final = ("block", "equals", "colon", "xml", "value", "cell", "prose", "call", "quoted", "directive")
_SCHEME: Final = Pattern(r"(?:bearer|basic|token|apikey|digest|negotiate|ntlm)(?:\s{1,4}|$)", re.IGNORECASE)
# Before its quotes a string may have what kind it is: N'…' of SQL, b'…' of Python, SecretStr('…').
_OPENING: Final = Pattern(
    rf"(?:(?:new )?(?:SecretStr|SecureString|Secret|Password|String|Some|Just|Ok|str|quote|bytes|Buffer\.from)"
    rf"\(\s{{0,2}}(?=\\{{0,15}}[\"'])|(?i:[nrbuf]|rb|br|_utf8(?:mb4)?)(?=\\{{0,15}}[\"']))?(?P<escapes>\\{{0,15}})(?P<quote>[\"'`“‘「]|{_ENTITY})"
)
_CLOSING: Final = {"“": "”", "‘": "’", "「": "」"}
# A mark that ends a value only where another field begins after it, or none of its characters.
_BARE: Final = Pattern(
    r"(?:[^\s\"'`<>\\,;&|()\[\]{}，。；、！？：“”‘’（）《》【】「」…]++"
    r"|[,;&|](?=[\w$%^!@#*~+/-])(?![\w.-]{1,60}\s?[=:])"
    r"|[()\[\]{}](?!secret:)(?=[\w$%^!@#*~+])"
    r"|\\(?![nrtbfux\"'\\/]|\Z)|&(?=amp;))++"
)
_PROSE_AFTER: Final = Pattern(r"[a-z]+ (?:must|should|is|was|has|cannot|can|may|needs|does|did|will|not)\b")
_ASCII: Final = Pattern(r"[\x00-\x7f]*")
_LINE: Final = Pattern(r"[^\n\"',;<>\\]+")
_LINE_BREAK: Final = Pattern(r"\n|\\{1,7}n")
_NEXT_FIELD: Final = Pattern(r"[\w.-]{1,80}(?::\Z|=(?=[^=\s]))")
_LONGEST: Final = 65_536
_JUDGED: Final = 200
"""Characters of a bare value that are looked at first: text that looks like a value everywhere takes linear time."""


# How every name begins. Each is plain text: places without one are passed by much faster than _FIELD could.
_BEGINNINGS: Final = (
    *("pass", "pw", "psk", "key", "code", "token", "secret", "shared", "cred", "author", "jwt", "sig", "hmac", "otp"),
    *("cvv", "cvc", "jsess", "phpsess", "asp.net_s", "connect.sid", "laravel_s", "mnemonic", "seed", "recovery"),
    *("ext_pat", "access_pat", "git", "sdk_sk", "cloud_sk", "api_sk", "kennw", "contrase", "mot de", "senha"),
    *("parola", "wachtw", "adgangs", "salasana", "heslo", "haslo", "kata sandi", "sifre", "palavra"),
    *_CHINESE,
    *_FOREIGN,
    # As JSON writes these for readers of ASCII.
    "\\u",
    *(f"{word[:letters]}\\" for word in _FOREIGN if (letters := _ascii_letters(word))),
)
_BEGINNING: Final = Pattern("|".join(map(re.escape, (*_BEGINNINGS, "[secret:", "{{resolve:"))))


def _field(lowered: str, at: int) -> re.Match[str] | None:
    """The next name and what leads from it to its value."""
    while begin := _BEGINNING.search(lowered, at):
        if match := _FIELD.match(lowered, begin.start()):
            return match
        at = begin.start() + 1
    return None


def _find(subject: Subject) -> Iterator[Span]:
    at = 0
    while match := _field(subject.lowered, at):
        at = match.end()
        if match.lastgroup is None:
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
    joined: bool = False
    arrow: bool = False
    """With a word before it, as in a configuration."""


def _name(subject: Subject, match: re.Match[str]) -> _Name | None:
    word = match.group("qualified") or match.group("weak")
    weak = match.group("weak") is not None
    if qualified := match.group("qualified"):
        before = subject.lowered[max(match.start() - 120, 0) : match.start()]
        if (other := _NO_SECRETS.get(qualified)) and other.search(before):
            return None
        weak = not _QUALIFIERS[qualified].search(before)
        if weak and (qualified in _NEVER_WEAK or (qualified == "pass" and before[-1:].isalpha())):
            return None
    separator = next(name for name in _SEPARATORS if match.group(name) is not None)
    return _Name(
        word or match.group("strong") or "",
        weak,
        match.group("sentence") is not None,
        separator,
        _is_joined(subject, match),
        "->" in match.group(),
    )


_JOINT: Final = Pattern(r"[_-].\Z|[a-z0-9][A-Z]\Z|(?i:bind|auth).\Z")


def _is_joined(subject: Subject, match: re.Match[str]) -> bool:
    name = match.group("strong") or match.group("qualified") or match.group("weak") or ""
    before = subject.text[max(match.start() - 12, 0) : match.start() + 1]
    return "_" in name or _JOINT.search(before) is not None


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
        if _NEXT_FIELD.match(text, begin, end) and _LINE_BREAK.search(match.group()):
            # On the next line there is another field: this one is empty.
            return None
        if name.separator == "prose":
            # Other scripts go on without a space.
            end = begin + len(_ASCII.match(text, begin, end).group())  # type: ignore[union-attr]
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
    if not opening and _PROSE_AFTER.match(text, begin, end + 12) and text[begin:end].islower():
        # `password: size must be between 8 and 64`
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
        # `/account/change-password -> 302`
        return len(value) > (6 if name.weak else 2) and name.separator != "cell" and not name.arrow
    if name.separator in _LOOSE:
        return _accepted_loosely(name, value)
    if name.separator == "colon" and not quoted and not value.isascii() and not name.word.isascii():
        # 密码：… goes on in prose more often than with a password in Chinese.
        return is_long_secret(value)
    if not name.weak or name.separator == "equals" or quoted:
        return True
    return is_long_secret(value) and (len(value) >= 16 or name.word not in ("signature", "sig"))


_LOOSE: Final = ("cell", "prose", "call", "quoted", "directive")


def _accepted_loosely(name: _Name, value: str) -> bool:
    """Where no sign says that the name has a value: much else stands behind it."""
    if name.weak:
        return (
            name.separator == "prose"
            and name.word in ("token", "secret")
            and len(value) >= 20
            and has_digit_and_letter(value)
        )
    if name.separator == "directive":
        return (name.joined or not name.word.isascii()) and has_digit_and_letter(value)
    if name.separator == "quoted":
        return has_digit_and_letter(value)
    return name.separator == "call" or (value.isascii() and is_long_secret(value))


# The value before its name, as some write environments.
_MARK: Final = r"(?:\\{0,15}[\"'])?"
_VALUE_FIRST: Final = Pattern(
    rf"\bvalue{_MARK}\s{{0,4}}:\s{{0,4}}{_MARK}(?P<secret>[^\s\"'\\,{{}}]{{1,1024}}){_MARK}(?:[\s,]|\\{{1,7}}[nrt]){{1,40}}"
    rf"{_MARK}(?:name|key){_MARK}\s{{0,4}}:\s{{0,4}}{_MARK}(?P<name>[\w.-]{{1,100}})"
)


def _values_first(subject: Subject) -> Iterator[Span]:
    for match in _VALUE_FIRST.finditer(subject.lowered):
        name, value = match.group("name", "secret")
        if is_secret(value) and any(_find(Subject.of(f"{name}={value}"))):
            yield Span(*match.span("secret"))


DETECTORS: Final = (
    Detector(_find, _BEGINNINGS),
    Detector(_values_first, ("value",)),
)
