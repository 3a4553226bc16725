"""The issuer's public keys, kept: fetched again as they age or a new one is asked for, but never at a client's pace."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from superbizagent.errors import IssuerUnavailable, TokenUntrusted
from superbizagent.ports import Clock

FRESH = timedelta(minutes=10)
USABLE = timedelta(hours=6)
"""How long known keys are trusted while the issuer can't be asked: an outage of its key server locks nobody out,
and a key that was withdrawn meanwhile lives no longer than this."""
PAUSE = timedelta(seconds=10)
"""Between two requests, whatever came of the first: tokens with made-up key ids are free to send."""


class Jwk(BaseModel):
    """A public key as published (RFC 7517); the numbers it is made of stay as they came."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kid: str
    kty: str
    use: str | None = None
    alg: str | None = None


def _readable(entries: object) -> object:
    """Issuers also publish keys of kinds that a reader doesn't know: those are passed over (RFC 7517, 5)."""
    return [entry for entry in entries if _is_signing_key(entry)] if isinstance(entries, list) else entries


def _is_signing_key(entry: Any) -> bool:
    try:
        return Jwk.model_validate(entry).use in (None, "sig")
    except ValidationError:
        return False


class KeySet(BaseModel):
    keys: Annotated[tuple[Jwk, ...], BeforeValidator(_readable), Field(min_length=1)]


Fetch = Callable[[], Awaitable[KeySet]]


class SigningKeys:
    """`fetch` raises IssuerUnavailable. Ages are of the day's clock: the other stands still in a frozen process."""

    def __init__(self, fetch: Fetch, clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keys: dict[str, Jwk] = {}
        self._fetched_at: datetime | None = None
        self._asked_at: datetime | None = None
        self._failure: IssuerUnavailable | None = None

    async def find(self, key_id: str) -> Jwk:
        """Raises TokenUntrusted for a key that the issuer doesn't have, IssuerUnavailable if that can't be known."""
        if not self._younger_than(FRESH, self._fetched_at) or key_id not in self._keys:
            await self._refresh()
        if key_id in self._keys and self._younger_than(USABLE, self._fetched_at):
            return self._keys[key_id]
        if self._failure is not None:
            raise self._failure
        raise TokenUntrusted("the issuer has no key of that id")

    async def _refresh(self) -> None:
        if self._younger_than(PAUSE, self._asked_at):
            return
        self._asked_at = self._clock.now()
        try:
            found = await self._fetch()
        except IssuerUnavailable as error:
            self._failure = error
            return
        self._failure = None
        self._fetched_at = self._clock.now()
        self._keys = {key.kid: key for key in found.keys}

    def _younger_than(self, age: timedelta, since: datetime | None) -> bool:
        return since is not None and self._clock.now() - since < age
