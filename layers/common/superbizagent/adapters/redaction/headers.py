"""Secrets in HTTP headers: credentials after their scheme, cookies."""

import re
from collections.abc import Iterator
from typing import Final

from superbizagent.adapters.redaction.spans import Detector, Span, Subject, matching
from superbizagent.adapters.redaction.values import is_secret, looks_random
from superbizagent.domain.pattern import Pattern

_SCHEME: Final = Pattern(
    r"(?<![\w/.-])(?:bearer|basic|negotiate|ntlm|apikey|token)(?:\s|%20|\+|:\s?){1,4}(?!\w{2,30}=(?:\w|\\{0,15}[\"'][\w/]))"
    r"(?P<secret>[a-z0-9+/_.~|-]{8,}={0,2})(?![a-z(])"
)
# Whatever scheme a vendor made up: `Authorization: GenieKey …`, `Authorization: Token token=…`.
_AUTHORIZATION: Final = Pattern(
    r"authorization(?:\\{0,15}[\"'])?\s{0,4}[:=]\s{0,4}(?:\[\s?)?(?:\\{0,15}[\"'])?[a-z][\w-]{1,30}(?:\s|%20){1,4}"
    r"(?:(?:token|key|api[_-]?key|secret|password)=(?:\\{0,15}[\"'])?)?(?P<secret>[^\s\"'\\,;]{8,4096})"
)
_DIGEST: Final = Pattern(r"\b(?:response|cnonce|nonce|opaque)=\\{0,3}\"?(?P<secret>[0-9a-z+/=]{16,256})")
_COOKIES: Final = Pattern(
    r"cookies?2?(?:\\{0,7}[\"'])?\s{0,3}(?:=>|[:=])\s{0,3}(?:\[\s?)?(?:\\{0,7}[\"'])?(?P<pairs>[^\n\"'\\]{1,16384})"
)
_PAIR: Final = Pattern(r"(?P<name>[\w.$%*+^`|~!#&-]{1,200})=(?P<secret>[^\s;,]{1,8192})")
_ATTRIBUTES: Final = frozenset(
    ("path", "domain", "expires", "max-age", "samesite", "secure", "httponly", "version", "comment", "priority")
)


def _credential(value: str) -> bool:
    """Prose goes on after these words too: basic authentication, bearer tokens."""
    return is_secret(value) and (looks_random(value) or re.search(r"[0-9=+/]", value) is not None)


def _opaque(value: str) -> bool:
    """An unknown scheme may also be the first word of a sentence; `name=value` pairs have rules of their own."""
    return _credential(value) and any(map(str.isdigit, value)) and not re.match(r"\w+=.", value)


def _cookies(subject: Subject) -> Iterator[Span]:
    for header in _COOKIES.finditer(subject.lowered):
        begin, end = header.span("pairs")
        for pair in _PAIR.finditer(subject.text, begin, end):
            value = pair.group("secret")
            # Short values are settings: a language, a theme.
            if pair.group("name").lower() in _ATTRIBUTES or len(value) < 6 or not is_secret(value):
                continue
            yield Span(*pair.span("secret"))


DETECTORS: Final = (
    Detector(matching(_SCHEME, _credential, lowered=True), ("bearer", "basic", "negotiate", "ntlm", "apikey", "token")),
    Detector(matching(_AUTHORIZATION, _opaque, lowered=True), ("authorization",)),
    Detector(matching(_DIGEST, is_secret, lowered=True), ("digest",)),
    Detector(_cookies, ("cookie",)),
)
