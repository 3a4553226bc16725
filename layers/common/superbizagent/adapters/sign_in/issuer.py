"""The issuer's documents over HTTP: where its keys are, and the keys."""

import asyncio
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, Field, ValidationError

from superbizagent.adapters.sign_in.signing_keys import KeySet
from superbizagent.errors import ConfigurationError, IssuerUnavailable

DISCOVERY = "/.well-known/openid-configuration"
SECONDS = 3.0
"""For one whole document, however slowly it comes: a handshake waits for it."""
MAX_BYTES = 256 * 1024
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class _Discovered(BaseModel):
    issuer: str
    jwks_uri: str = Field(max_length=2_000)


class Issuer:
    """One OpenID provider. `jwks_url` None: its discovery document says where the keys are."""

    def __init__(self, issuer: str, jwks_url: str | None = None, *, seconds: float = SECONDS) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._seconds = seconds

    async def keys(self) -> KeySet:
        """Raises IssuerUnavailable, and ConfigurationError for an issuer that says it is another."""
        if self._jwks_url is None:
            self._jwks_url = await self._discover()
        try:
            return KeySet.model_validate_json(await self._get(self._jwks_url))
        except ValidationError as error:
            raise IssuerUnavailable("the key set is not one") from error

    async def _discover(self) -> str:
        try:
            found = _Discovered.model_validate_json(await self._get(self._issuer.rstrip("/") + DISCOVERY))
        except ValidationError as error:
            raise IssuerUnavailable("the discovery document is not one") from error
        if found.issuer != self._issuer:
            # To the letter: it is what tokens are compared with.
            raise ConfigurationError("AUTH_ISSUER is not what the discovery document found there calls its issuer")
        if not _secure(found.jwks_uri):
            raise IssuerUnavailable("the discovery document names keys that don't come over https")
        return found.jwks_uri

    async def _get(self, url: str) -> bytes:
        # A client for each document: there are few, and no connection outlives a freeze of the process.
        # Unpacked it could be any size, and a redirect could lead anywhere: neither is asked for.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Connection": "close"}
        try:
            async with (
                asyncio.timeout(self._seconds),
                httpx2.AsyncClient(follow_redirects=False, timeout=self._seconds, headers=headers) as client,
                client.stream("GET", url) as response,
            ):
                if response.status_code != httpx2.codes.OK:
                    raise IssuerUnavailable(f"the issuer answered {response.status_code}")
                return await _bounded(response)
        except (httpx2.HTTPError, TimeoutError) as error:
            raise IssuerUnavailable(f"the issuer gave no answer: {type(error).__name__}") from error


async def _bounded(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > MAX_BYTES:
            raise IssuerUnavailable(f"the issuer's document is larger than {MAX_BYTES} bytes")
    return bytes(body)


def _secure(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
