"""Secrets in addresses: user information of URLs and data source names, parameters of a query."""

from collections.abc import Iterator
from typing import Final

from superbizagent.adapters.redaction.spans import PLACEHOLDER_TEXT, Detector, Span, Subject, matching
from superbizagent.adapters.redaction.values import is_long_secret, is_secret
from superbizagent.domain.pattern import Pattern

_SLASHES: Final = r":(?:\\{0,3}/){2}"
# A password may hold slashes; a port with a path that holds an at sign is none.
_USER: Final = Pattern(rf"{_SLASHES}[^\s:/?#@\"'<>\\]{{0,256}}:")
_PASSWORD: Final = Pattern(
    rf"(?:{PLACEHOLDER_TEXT}|[^\s/\"'<>\\]{{1,512}}|(?!\d{{1,5}}[/?#])[^\s\"'<>@\\]{{1,512}})(?=@)"
)
_LONGEST: Final = 512
_TOKEN: Final = Pattern(rf"{_SLASHES}(?P<secret>[A-Za-z0-9_~+.=%-]{{16,512}})(?=:?(?:x-oauth-basic)?@)")
# Go's `user:password@tcp(host)`, Oracle's `user/password@//host` and `thin:user/password@host`.
_NAMED: Final = Pattern(r"(?<![\w.-])[\w.-]{1,64}:(?P<secret>[^\s\"'@]{1,256})@(?=(?:tcp|unix|udp)\()")
_ORACLE: Final = Pattern(r"(?:thin:|sqlplus\s{1,4}(?:-\w\s{1,4}){0,3})[\w.-]{1,64}/(?P<secret>[^\s\"'@/]{1,256})@")
_PARAMETER: Final = Pattern(
    r"[?&;](?:x-(?:amz|goog|oss|cos|tos)-)?(?P<name>sig|signature|key|auth|code|pass|pw|pwd|ticket|jwt|sid|hmac|credential"
    r"|st|sp_key|appkey|app_key|ak|sk|secret|token)=(?P<secret>[^\s&#\"'<>\\]{8,})"
)
_PARAMETER_HINTS: Final = ("?", "&", ";")


def _passwords(subject: Subject) -> Iterator[Span]:
    text, sign = subject.text, 0
    for user in _USER.finditer(text):
        # The next at sign is looked for once, not once for each address before it.
        if 0 <= sign < user.end():
            sign = text.find("@", user.end())
        if sign < 0:
            return
        if sign - user.end() > _LONGEST:
            continue
        password = _PASSWORD.match(text, user.end())
        if password and is_secret(password.group()):
            yield Span(*password.span())


def _random(value: str) -> bool:
    """A name of a user may be long too; it has no digits among its letters."""
    return is_long_secret(value) and any(map(str.isdigit, value))


DETECTORS: Final = (
    Detector(_passwords, ("://", ":\\/")),
    Detector(matching(_TOKEN, _random), ("://", ":\\/")),
    Detector(matching(_NAMED, is_secret), ("@tcp(", "@unix(", "@udp(")),
    Detector(matching(_ORACLE, is_secret, lowered=True), ("thin:", "sqlplus")),
    Detector(matching(_PARAMETER, is_long_secret, lowered=True), _PARAMETER_HINTS),
)
