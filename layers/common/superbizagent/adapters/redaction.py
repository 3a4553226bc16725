"""Secrets out of text, and characters that nobody sees (SEC-3).

A secret becomes `[secret:KIND:HASH8]`; the hash is of the secret itself, so that the same one can be
recognised again without being known. Every expression here takes linear time: none nests or
overlaps repetitions.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_PLACEHOLDER_TEXT: Final = r"\[secret:[a-z-]{1,20}:[0-9a-f]{8}\]"
_PLACEHOLDER: Final = re.compile(_PLACEHOLDER_TEXT)

# What the words after which a value is a secret may be part of: `db_password`, `X-Api-Key`.
_FIELD_WORDS: Final = (
    r"password|passwd|passphrase|passcode|pwd|secret|api[_-]?key|apikey|access[_-]?key|secret[_-]?key"
    r"|private[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|id[_-]?token|session[_-]?token"
    r"|security[_-]?token|client[_-]?secret|credential|credentials|token|signature|authorization"
)
_NAME: Final = (
    rf"(?<![A-Za-z0-9])(?P<name>(?:[A-Za-z0-9]{{1,30}}[_.-]){{0,4}}(?:{_FIELD_WORDS})"
    rf"|[a-z]{{1,30}}(?:Password|Secret|Token|ApiKey|AccessKey|SecretKey|PrivateKey|Passphrase))"
    r"(?![A-Za-z0-9_-])"
)


@dataclass(frozen=True)
class _Rule:
    """`pattern` has a group `secret`; what else it matches stays as it is, placeholders too."""

    kind: str
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = bool


def _pattern(text: str) -> re.Pattern[str]:
    # A placeholder is eaten whole, for its own words would look like a field.
    return re.compile(f"{_PLACEHOLDER_TEXT}|{text}")


def _looks_secret(value: str) -> bool:
    """Not what stands in such fields without being a secret: null, masks, placeholders, counts of tokens."""
    plain = value.strip("\"'").lower()
    if plain in _NO_SECRETS or _PLACEHOLDER.fullmatch(value):
        return False
    return bool(plain.strip("*x.•-_<>"))


_NO_SECRETS: Final = frozenset(
    (
        "",
        "null",
        "none",
        "nil",
        "true",
        "false",
        "undefined",
        "redacted",
        "[redacted]",
        "<redacted>",
        "hidden",
    )
)


def _not_a_number(value: str) -> bool:
    return _looks_secret(value) and not re.fullmatch(r"[0-9]{1,6}", value)


_RULES: Final = (
    _Rule(
        "private-key",
        _pattern(
            r"(?P<secret>-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
            # A body ends before the next five hyphens, so that no text is gone through twice.
            r"(?:[\sA-Za-z0-9+/=:,.\\]|-(?!----)){0,20000}"
            r"(?:-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----)?)"
        ),
    ),
    _Rule(
        "url-password",
        _pattern(r"(?i:\b[a-z][a-z0-9+.-]{1,30}://[^\s:/?#@\"'<>\[\]]{0,256}:(?P<secret>[^\s/\"'<>]{1,256})@)"),
        _looks_secret,
    ),
    _Rule(
        "aws-key",
        _pattern(r"(?<![A-Za-z0-9])(?P<secret>(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16})(?![A-Za-z0-9])"),
    ),
    _Rule(
        "jwt",
        _pattern(
            r"(?<![A-Za-z0-9_-])(?P<secret>eyJ[A-Za-z0-9_-]{5,8192}\.[A-Za-z0-9_-]{2,8192}(?:\.[A-Za-z0-9_-]{0,8192})?)"
        ),
    ),
    _Rule(
        "api-key",
        _pattern(
            r"(?<![A-Za-z0-9_-])(?P<secret>"
            r"gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}|glpat-[A-Za-z0-9_-]{16,255}"
            r"|xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255}"
            r"|sk-[A-Za-z0-9_-]{16,255}|(?:sk|pk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,255}"
            r"|AIza[A-Za-z0-9_-]{30,60}|ya29\.[A-Za-z0-9_-]{20,2048}|npm_[A-Za-z0-9]{30,60}"
            r"|pypi-[A-Za-z0-9_-]{30,255}|hf_[A-Za-z0-9]{20,100}|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"
            r"|dop_v1_[a-f0-9]{64}|LTAI[A-Za-z0-9]{12,26})"
        ),
    ),
    _Rule(
        "slack-hook",
        _pattern(r"(?P<secret>(?<=hooks\.slack\.com/services/)[A-Za-z0-9/]{20,100})"),
    ),
    _Rule(
        "bearer",
        _pattern(
            r"(?i:\b(?:bearer|basic|digest|negotiate))\s{1,4}(?P<secret>[A-Za-z0-9+/_.~-]{8,8192}={0,2})(?![A-Za-z])"
        ),
        lambda value: _looks_secret(value) and bool(re.search(r"[0-9=_.+/~]|[a-z][A-Z]", value)),
    ),
    # key=value, key: value, "key": "value", also with the quotes escaped in a JSON string.
    _Rule(
        "field",
        _pattern(
            r"(?i:" + _NAME + r")"
            r"(?:\\{0,3}[\"'])?\s{0,4}(?:=>|:=|=|:)\s{0,4}"
            r"(?:(?i:bearer|basic)\s{1,4})?(?!(?i:bearer|basic|digest|negotiate)\b)"
            r"(?:\\{0,3}\"(?P<double>[^\"\\\n]{1,4096})|\\{0,3}'(?P<single>[^'\\\n]{1,4096})"
            r"|(?P<secret>[^\s\"'&,;|<>(){}\[\]\\]{1,4096}))"
        ),
        _not_a_number,
    ),
    _Rule(
        "option",
        _pattern(r"(?<!\S)--?(?i:password|passwd|token|secret|api-key)\s{1,4}(?P<secret>[^\s\"'-][^\s\"']{0,1023})"),
        _looks_secret,
    ),
)

_SECRET_GROUPS: Final = ("secret", "double", "single")

# Cheap proof that a rule has nothing to do: none of its words is in the text.
_HINT: Final = re.compile(
    r"(?i)passw|passph|passcode|pwd|secret|key|token|credential|signature|authorization|bearer|basic|digest|negotiate"
    r"|://|eyJ|gh[pousr]_|github_pat|glpat|xox|xapp-|sk-|[spr]k_|whsec|AIza|ya29|npm_|pypi-|hf_|SG\.|dop_v1"
    r"|LTAI|A(?:KIA|SIA|ROA|IDA|BIA|CCA)|slack"
)

# Control characters but for line feed and tab; carriage returns with them.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Zero-width, bidirectional, tag and filler characters; variation selectors and joiners are judged
# by their neighbours.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
_EMOJI: Final = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,1024}(?:\x07|\x1b\\)|[@-Z\\-_])")
# A joiner between two emoji (a skin tone or selector may follow the first), and a selector after one
# or in a keycap.
_JOINER: Final = re.compile(f"(?<!{_EMOJI})(?<!{_EMOJI}\ufe0f)\u200d|\u200d(?!{_EMOJI})")
_SELECTOR: Final = re.compile(f"(?<![0-9#*])(?<!{_EMOJI})[\ufe00-\ufe0f]|(?<=[0-9#*])[\ufe00-\ufe0f](?!\u20e3)")


class SecretRedactor:
    """Implements the port Redactor; holds no state, so that it may be called from any thread."""

    def __call__(self, text: str) -> str:
        # Invisible characters go first: one inside a secret must not hide it.
        text = without_invisible(text)
        if not _HINT.search(text):
            return text
        for rule in _RULES:
            text = _applied(rule, text)
        return text


def without_invisible(text: str) -> str:
    """`text` without control, zero-width, bidirectional and tag characters; emoji stay whole."""
    if text.isascii():
        return _CONTROL.sub("", _ANSI.sub("", text)) if not text.isprintable() else text
    text = _CONTROL.sub("", _ANSI.sub("", text))
    text = _INVISIBLE.sub("", text)
    return _JOINER.sub("", _SELECTOR.sub("", text))


def placeholder(kind: str, secret: str) -> str:
    """What stands for `secret` in evidence; equal for equal secrets of any kind but for the kind."""
    digest = hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
    return f"[secret:{kind}:{digest[:8]}]"


def _applied(rule: _Rule, text: str) -> str:
    groups = [name for name in _SECRET_GROUPS if name in rule.pattern.groupindex]

    def replaced(match: re.Match[str]) -> str:
        group = next((name for name in groups if match.group(name) is not None), None)
        if group is None or not rule.accept(match.group(group)) or _PLACEHOLDER.search(match.group(group)):
            return match.group()
        begin, end = match.span(group)
        whole = match.group()
        offset = match.start()
        return whole[: begin - offset] + placeholder(rule.kind, match.group(group)) + whole[end - offset :]

    return rule.pattern.sub(replaced, text)
