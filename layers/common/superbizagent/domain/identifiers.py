"""Names that machines gave: ids, paths, hosts, versions, classes. They are compared whole."""

import re

from superbizagent.domain.pattern import Pattern

LONGEST_NUMBER = 15
"""Digits: what has more in a row is an id or a hash."""

_TOKEN = Pattern(r"[A-Za-z0-9_/$.][A-Za-z0-9_.:/@#$*-]*[A-Za-z0-9_*]|[A-Za-z]")
_QUANTITY = Pattern(
    r"[0-9][0-9,]*(?:\.[0-9]+)?(?:(?:[A-Za-z]{1,3}|%)(?:/[A-Za-z]{1,6})?|[eE][+-]?[0-9]{1,2}|-(?:second|minute|hour|day|fold|bit"
    r"|byte|way|node|line|row|milliseconds?)s?)?|[0-9]+(?:\.[0-9]+)?x?(?:-[a-z]+)?"
)
_NUMBER_LIST = Pattern(r"[0-9]+(?:\.[0-9]+)?%?(?:[-/][0-9]+(?:\.[0-9]+)?%?)+")
_CAMEL = Pattern(r"(?:[A-Z][a-z0-9]+){2,}|[A-Z]{2,}[a-z]+(?:[A-Z][a-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+")
_HUMP = Pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_SHOUTED = Pattern(r"[A-Z]{6,}|[A-Z]{2,}(?:-[A-Z]{2,})+")
_COMPOUND = Pattern(r"(?<![A-Za-z])[a-z]{2,40}(?:-[a-z]{2,40})+", re.IGNORECASE)
_LONG_WORD = Pattern(
    rf"{_COMPOUND.pattern}|(?<![A-Za-z0-9_.-])[A-Za-z]{{8,}}(?![A-Za-z0-9_-]|[.][A-Za-z0-9])", re.IGNORECASE
)
_LONG_CAMEL = Pattern(r"(?<![A-Za-z0-9_])(?:[A-Z]+[a-z]+){2,}(?![A-Za-z0-9_])")
_COMMON = frozenset(
    [
        "github",
        "gitlab",
        "devops",
        "k8s",
        "utf-8",
        "utf8",
        "utf-16",
        "ipv4",
        "ipv6",
        "base64",
        "md5",
        "sha-1",
        "sha1",
        "sha-256",
        "sha256",
        "oauth2",
        "http/1.1",
        "http/2",
        "http2",
        "p2p",
        "24/7",
        "i/o",
        "read/write",
        "and/or",
        "client/server",
        "tcp/ip",
        "ci/cd",
        "n/a",
        "e.g",
        "i.e",
        "a.m",
        "p.m",
        "etc.",
    ]
)
STATUS_CLASS = Pattern(r"(?<![A-Za-z0-9_])([1-5])xx(?![A-Za-z0-9_])", re.IGNORECASE)


def take_identifiers(text: str) -> tuple[str, tuple[str, ...]]:
    """The identifiers of a text, and the text with a blank for each."""
    found: list[str] = []

    def take(match: re.Match[str]) -> str:
        token = match.group().rstrip(".:/-*#@$").lstrip(".")
        if token.lower() in _COMMON:
            return " "
        if not is_identifier(token):
            return match.group()
        found.append(token)
        return " "

    return _TOKEN.sub(take, text), tuple(found)


def is_identifier(token: str) -> bool:
    if token.isdigit() and len(token) > LONGEST_NUMBER:
        return True
    if len(token) < 2 or _QUANTITY.fullmatch(token):
        return False
    letters = any(character.isalpha() for character in token)
    digits = any(character.isdigit() for character in token)
    if (letters and digits) or "_" in token.strip("_"):
        return True
    if not letters:
        if _NUMBER_LIST.fullmatch(token):
            return False
        # Dotted digit groups are addresses and versions; one dot is a decimal number.
        return token.count(".") > 1 or bool(re.search(r"[0-9][-:/][0-9]", token))
    return _is_name(token)


def _is_name(token: str) -> bool:
    """Whether letters alone look like a name: a path, a dotted or camel-case or capital one."""
    if token.startswith("/") or token.count("/") > 1 or _SHOUTED.fullmatch(token):
        return True
    if re.search(r"[a-z]{2}\.[a-z]|[a-z]\.[a-z]{3}|[a-z]{3}:[a-z]{3}", token, re.IGNORECASE):
        return True
    return len(token) >= 6 and _CAMEL.fullmatch(token) is not None


def identifier_pattern(identifier: str) -> re.Pattern[str]:
    """Finds `identifier` as a whole, in any case; a camel-case one also spelled as separate words.

    Whole means: not inside a longer word, and one with digits at its end has neither digits nor another
    part next to it (10.0.0.1 is not in 10.0.0.1.7, nor v1 in v1.2, nor req-8a41 in req-8a41-0c).
    """
    body = r"[\s_.-]?".join(re.escape(part) for part in _HUMP.split(identifier))
    # A hyphen inside a name with digits joins the parts of one id.
    joined = r"|-[A-Za-z0-9]" if re.search(r"[0-9]", identifier) else ""
    after = rf"(?![A-Za-z0-9_]|[.-][0-9]{joined})" if identifier[-1].isdigit() else rf"(?![A-Za-z0-9_]{joined})"
    before = r"(?<![A-Za-z0-9_])"
    if identifier[0].isdigit():
        before += r"(?<![0-9][.-])"
    before += r"(?<![A-Za-z0-9]-)"
    return re.compile(rf"{before}{body}{after}", re.IGNORECASE)


def occurs(identifier: str, text: str) -> bool:
    """Whether the text has the identifier, or what people make of one: its plural, or several joined by a slash."""
    if identifier_pattern(identifier).search(text):
        return True
    if identifier.isalpha() and identifier.isupper():
        # A status may be part of a column's name.
        return bool(re.search(rf"(?<![A-Za-z0-9]){identifier}(?![A-Za-z0-9])", text, re.IGNORECASE))
    if identifier[-1] == "s" and identifier[:-1].isalpha() and len(identifier) > 8:
        return bool(identifier_pattern(identifier[:-1]).search(text))
    if re.fullmatch(r"v[0-9][0-9.]*", identifier, re.IGNORECASE):
        return bool(identifier_pattern(identifier[1:]).search(text))
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)+", identifier):
        return bool(identifier_pattern(f"v{identifier}").search(text))
    parts = identifier.split("/")
    return len(parts) > 1 and all(parts) and all(is_identifier(part) and occurs(part, text) for part in parts)


def long_words(text: str) -> tuple[str, ...]:
    """Hyphenated and long words, in lower case: names such as release-bot cannot be told from such as time-out."""
    return tuple(dict.fromkeys(match.group().lower() for match in _LONG_WORD.finditer(text)))


def names_in(text: str) -> frozenset[str]:
    """An evidence text's hyphenated and camel-case names, in lower case."""
    return frozenset(word.lower() for word in _COMPOUND.findall(text) + _LONG_CAMEL.findall(text))


def misspells(word: str, known: frozenset[str]) -> bool:
    """Whether a word is one of the evidence's names but for a letter changed, added or left out."""
    if word in known or word.removesuffix("s") in known or f"{word}s" in known:
        return False
    return any(_one_edit_apart(word, other) or _cut_short(word, other) for other in known)


def _cut_short(word: str, name: str) -> bool:
    return name.startswith(word) and len(name) - len(word) < 4


def _one_edit_apart(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    if len(one) == len(other):
        return one[start + 1 :] == other[start + 1 :]
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer[start + 1 :] == shorter[start:]
