"""The port Redactor: stable placeholders for secrets, and no character that nobody sees."""

import hashlib
import hmac
import secrets
from collections.abc import Iterator, Sequence
from typing import Final

from superbizagent.adapters.redaction import (
    addresses,
    commands,
    encoded,
    fields,
    headers,
    manifests,
    private_keys,
    shapes,
    tables,
)
from superbizagent.adapters.redaction.invisible import without_invisible
from superbizagent.adapters.redaction.spans import PLACEHOLDER, Detector, Subject


def _holds_secret(text: str) -> bool:
    subject = Subject.of(text)
    return any(detector.concerns(subject) and any(detector.find(subject)) for detector in _DETECTORS)


# Those that know a secret by its own form come first: its kind must not depend on where it stands.
_DETECTORS: Final = (
    private_keys.DETECTOR,
    *encoded.DETECTORS,
    *shapes.DETECTORS,
    *addresses.DETECTORS,
    *headers.DETECTORS,
    *commands.DETECTORS,
    *fields.DETECTORS,
    tables.DETECTOR,
    manifests.DETECTOR,
)
_ALL: Final = (*_DETECTORS, encoded.decoded_text(_holds_secret))
_PASSES: Final = 4


class SecretRedactor:
    """Implements the port Redactor: a secret becomes `[secret:KIND:HASH8]`. May be called from any thread.

    The hash is keyed: nobody can try out passwords against a placeholder. Processes that share `key` give
    the same secret the same placeholder; without one, it is this object's own.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def __call__(self, text: str) -> str:
        # Invisible characters go first: one inside a secret must not hide it.
        text = without_invisible(text)
        for _ in range(_PASSES):
            redacted = self._redacted(text)
            if redacted == text:
                break
            text = redacted
        return text

    def placeholder(self, kind: str, secret: str) -> str:
        """What stands for `secret`, for as long as the key is the same."""
        digest = hmac.new(self._key, secret.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
        return f"[secret:{kind}:{digest[:8]}]"

    def _redacted(self, text: str) -> str:
        subject = Subject.of(text)
        for detector in _ALL:
            if detector.concerns(subject) and (replaced := "".join(self._pieces(detector, subject))) != subject.text:
                subject = Subject.of(replaced)
        return subject.text

    def _pieces(self, detector: Detector, subject: Subject) -> Iterator[str]:
        done = 0
        placeholders = [match.span() for match in PLACEHOLDER.finditer(subject.text)]
        for found, end, kind in detector.find(subject):
            begin = _behind(found, placeholders)
            secret = subject.text[begin:end]
            if begin < done or not secret or PLACEHOLDER.fullmatch(secret):
                continue
            yield subject.text[done:begin]
            yield self.placeholder(kind, secret)
            done = end
        yield subject.text[done:]


def _behind(begin: int, placeholders: Sequence[tuple[int, int]]) -> int:
    """`begin`, unless it is inside a placeholder: its colons look like those before a secret."""
    return next((end for start, end in placeholders if start < begin < end), begin)
