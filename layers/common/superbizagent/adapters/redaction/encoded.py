"""Secrets that only decoding tells: keys without their header lines, `user:password` in Base64."""

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import Final

from superbizagent.adapters.redaction.spans import Detector, Span, Subject
from superbizagent.domain.pattern import Pattern

# How private keys begin in Base64: OpenSSH's, and DER of PKCS#8, PKCS#1 and SEC 1, whose lengths vary.
_KEY: Final = Pattern(
    r"(?<![A-Za-z0-9+/])(?:b3BlbnNzaC1rZXktdjE|MI[A-Za-z0-9+/]{1,6}(?:IBAD|EAMB|CAQAw)[A-Za-z0-9+/]{8}"
    r"|MII[A-Za-z0-9+/]{3}IBAAK[BC]|MHcCAQEEI|MIGkAgEBBD|MIHcAgEBBE|MC4CAQAwBQYDK2V)[A-Za-z0-9+/]{8,}={0,2}"
    r"(?:(?:\\{1,7}[nr]|\r?\n[ \t]{0,40})[A-Za-z0-9+/]{16,}={0,2})*"
)
# PEM written in Base64 once more, as in kubeconfigs and Kubernetes' secrets; certificates stay.
_PEM: Final = Pattern(r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{16,}={0,2}")
_PRIVATE: Final = "PRIVATE KEY"
_LOGIN: Final = Pattern(
    r"\b_?auth(?:\\{0,7}[\"'])?\s{0,4}[:=]\s{0,4}(?:\\{0,7}[\"'])?(?P<secret>[a-z0-9+/]{8,1024}={0,2})(?![a-z0-9+/=])"
)
_USER: Final = Pattern(r"[\x21-\x39\x3b-\x7e]{1,128}:[\x20-\x7e]{1,512}")


# Any text in Base64 that is long enough for a name and a value. Every fourth sign tells whether it can be ASCII;
# the first one stands before what has to be before it, so that most places are passed by at once.
_WORD: Final = Pattern(
    r"[I-Za-f](?:(?<![A-Za-z0-9+/_-].)|(?<=\\[nrt].)|(?<=\\u[0-9a-fA-F]{4}.)|(?<=%[0-9A-F]{2}.))"
    r"[A-Za-z0-9+/_-]{3}(?:[I-Za-f][A-Za-z0-9+/_-]{3}){2}"
    r"[A-Za-z0-9+/_-]{12,65536}={0,2}(?![A-Za-z0-9+/_=-])"
)
_PRINTED: Final = Pattern(r"[\t\n\r\x20-\x7e\x80-\xff]*")
_TO_PLAIN: Final = str.maketrans("-_", "+/")


def decoded_text(holds_secret: Callable[[str], bool]) -> Detector:
    """Finds texts in Base64 in which `holds_secret` finds one."""

    def find(subject: Subject) -> Iterator[Span]:
        for match in _WORD.finditer(subject.text):
            word = match.group().translate(_TO_PLAIN)
            # Nearly all long words end here: they are no text once decoded.
            if not _is_ascii_text(_decoded(word[:16])):
                continue
            text = _decoded(word)
            if _PRINTED.fullmatch(text) and holds_secret(text.encode("latin-1").decode("utf-8", "replace")):
                yield Span(match.start(), match.end())

    return Detector(find)


def _is_ascii_text(text: str) -> bool:
    return bool(text) and text.isascii() and _PRINTED.fullmatch(text) is not None


def _keys(subject: Subject) -> Iterator[Span]:
    for match in _KEY.finditer(subject.text):
        yield Span(match.start(), match.end(), "private-key")


def _encoded_pem(subject: Subject) -> Iterator[Span]:
    for match in _PEM.finditer(subject.text):
        if _PRIVATE in _decoded(match.group()[:80]):
            yield Span(match.start(), match.end(), "private-key")


def _logins(subject: Subject) -> Iterator[Span]:
    """`"auth": "Ym9iOnBhc3M="` of Docker, `_auth=…` of npm."""
    for match in _LOGIN.finditer(subject.lowered):
        begin, end = match.span("secret")
        if _USER.fullmatch(_decoded(subject.text[begin:end])):
            yield Span(begin, end)


def _decoded(text: str) -> str:
    """A character a byte; nothing where it is no Base64."""
    plain = text.rstrip("=")
    padded = plain[: len(plain) - (len(plain) % 4 == 1)] + "=" * (-len(plain) % 4)
    try:
        return base64.b64decode(padded, validate=True).decode("latin-1")
    except (binascii.Error, ValueError):
        return ""


DETECTORS: Final = (
    Detector(_keys, ("b3blbnn", "ibad", "eamb", "caqa", "ibaa", "aqee", "mihc", "migk")),
    Detector(_encoded_pem, ("ls0tls1crudjti",)),
    Detector(_logins, ("auth",)),
)
