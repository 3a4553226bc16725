"""Text to search terms, the same for every database engine.

Engines disagree about words: their stop lists, shortest word, accents, and scripts without spaces.
So documents and queries are cut into terms here, and an engine only ever sees those: a prefix and
ASCII letters and digits, longer than any engine's minimum and on no stop list. A term is therefore
neither a syntax error nor an operator, whatever text it came from.
"""

import base64
import hashlib
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from superbizagent.adapters.knowledge.glossary import in_english
from superbizagent.adapters.knowledge.stemming import SAME_WORD, SPELLED_OUT, stem
from superbizagent.domain.pattern import Pattern

# MySQL ignores words over 84 characters; FTS5 has no such limit.
LONGEST_TERM = 80

# Scripts written without spaces between words: Thai to Khmer, kana, Han, hangul. Hangul has spaces,
# but glues particles to its words.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = Pattern(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}_])\w)+(?:['’_.\-]+(?:(?![{_UNSPACED}_])\w)+)*")
_UNSPACED_START = Pattern(rf"[{_UNSPACED}]")
_SEPARATORS = Pattern(r"[’'_.\-]+")
_CONTRACTION = Pattern(r"(?:n['’]t|['’][a-z]{1,2})$")
_POSSESSIVE = Pattern(r"['’][sS]$")
# KubeAPIDown: Kube API Down; PVCs: PVCs; node3: node 3.
_PARTS = Pattern(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been before being both but by can cannot
    could did do does doing done for from get gets getting give go goes going got had has have having he
    her here him his how i if in into is it its itself just know let like ll make may me might mine more
    most much must my need no nor not now of off on one only or other our ours out over own please re
    same say see seem shall she should so some such tell than that the their them then there these they
    thing things this those through to too up us ve very want was way we were what when where which
    while who whom whose why will with would you your yours
    """.split()  # noqa: SIM905 - a list of words reads better as words
)

_CONTRACTED = _STOP_WORDS | {
    "are",
    "do",
    "does",
    "did",
    "is",
    "was",
    "were",
    "would",
    "wo",
    "ca",
    "ai",
    "let",
}


def document_terms(text: str) -> list[str]:
    """Every term `text` can be found by, as often as it occurs."""
    return [_encoded(word) for run in _runs(text) for word in _words(run, singles=True)]


def query_terms(text: str) -> list[str]:
    """The distinct terms to look for, in order; none where `text` has only stop words or punctuation."""
    found = {
        _encoded(word): None
        for run in _runs(text)
        if not _is_stop_word(run)
        for word in _words(run, singles=len(run) == 1)
        if word not in _STOP_WORDS
    }
    return list(found)


def compound_terms(text: str) -> list[str]:
    """Terms for neighbouring words written as one: a query for crash loop means CrashLoop too."""
    found = {
        _encoded(f"{stem(_folded(first))}{stem(_folded(second))}"): None
        for first, second in pairwise(_runs(text))
        if first.isascii()
        and second.isascii()
        and first.isalpha()
        and second.isalpha()
        and not (_is_stop_word(first) and _is_stop_word(second))
    }
    return list(found)


def translated_terms(text: str) -> list[str]:
    """Terms of the English for what `text` says in Chinese."""
    return query_terms(", ".join(in_english(unicodedata.normalize("NFKC", text))))


def has_unspaced(text: str) -> bool:
    """Whether any of it is in a script without spaces, such as Chinese."""
    return any(_UNSPACED_START.match(run) for run in _runs(text))


def _is_stop_word(run: str) -> bool:
    """Also don't, isn't, what's, we've."""
    word = run.casefold()
    return word in _STOP_WORDS or (_CONTRACTION.sub("", word) in _CONTRACTED and not word.isalpha())


def _runs(text: str) -> Iterator[str]:
    return (match[0] for match in _RUN.finditer(unicodedata.normalize("NFKC", text)))


def _words(run: str, *, singles: bool) -> list[str]:
    if _UNSPACED_START.match(run):
        return _grams(run, singles=singles)
    return list(_identifier_words(_POSSESSIVE.sub("", run)))


def _grams(run: str, *, singles: bool) -> list[str]:
    """Pairs of neighbouring characters; single ones only so that a query of one character finds them."""
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return [*run, *pairs] if singles else pairs


@lru_cache(maxsize=20_000)
def _identifier_words(run: str) -> tuple[str, ...]:
    """The run as one word and, where it is made of several, each of them."""
    pieces = [piece for piece in _SEPARATORS.split(run) if piece]
    whole = _folded("".join(pieces))
    words = [stem(_folded(word)) for piece in pieces for part in _parts(piece) for word in _spelled_out(part)]
    if len(words) < 2 or whole in SAME_WORD:
        return (stem(whole),)
    # CrashLoop is looked for in KubePodCrashLooping too.
    return (stem(whole), *words, *map("".join, pairwise(words)))


def _parts(piece: str) -> list[str]:
    # Where a word of another alphabet changes case says nothing about its parts.
    if not piece.isascii() or (piece.islower() and piece.isalpha()):
        return [piece]
    parts = _PARTS.findall(piece)
    # p99, v1, 5m: one letter and a number are one word; so is 4xx.
    if len(parts) == 2 and any(part.isdigit() for part in parts) and min(map(_letters, parts)) < 2:
        return [piece] if _letters(piece) < 2 else parts
    return parts


def _spelled_out(part: str) -> list[str]:
    """A PVC is found by persistent volume, and the other way round."""
    short = _folded(part)
    long = SPELLED_OUT.get(short) or SPELLED_OUT.get(short.removesuffix("s"))
    return _PARTS.findall(long) if long else [part]


def _letters(part: str) -> int:
    return sum(character.isalpha() for character in part)


def _folded(word: str) -> str:
    """Without case and accents."""
    word = word.casefold()
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word)
    bare = "".join(character for character in decomposed if not unicodedata.combining(character))
    return bare or word


def _encoded(word: str) -> str:
    if word.isascii() and word.isalnum():
        term = f"kwd{word}"
    else:
        encoded = base64.b32encode(word.encode("utf-8", "replace")).decode()
        term = f"kwu{encoded.rstrip('=').lower()}"
    if len(term) <= LONGEST_TERM:
        return term
    return f"kwh{hashlib.sha256(word.encode('utf-8', 'replace')).hexdigest()[:40]}"
