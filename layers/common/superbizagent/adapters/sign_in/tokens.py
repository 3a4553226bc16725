"""Access tokens as signed JWTs (RFC 7519, RFC 8725), checked with PyJWT."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from superbizagent.adapters.sign_in.signing_keys import Jwk, SigningKeys
from superbizagent.domain.pattern import Pattern
from superbizagent.errors import (
    TokenExpired,
    TokenMalformed,
    TokenNotForUs,
    TokenNotYetValid,
    TokenUntrusted,
)

MAX_BYTES = 8 * 1024
"""API Gateway takes 10,240 bytes of headers altogether."""
_JWS = Pattern(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_MAX_KEY_ID = 256


@dataclass(frozen=True)
class TokenRules:
    """What a token has to say. `clock_skew` in seconds."""

    issuer: str
    audience: frozenset[str]
    algorithms: frozenset[str]
    clock_skew: float


class AccessTokens:
    def __init__(self, rules: TokenRules, keys: SigningKeys) -> None:
        self._rules = rules
        self._keys = keys

    async def principal(self, token: str) -> str:
        """Whose token this is, by a name that is the same for every token of theirs; raises SignInError.

        The errors' texts are ours alone: PyJWT's quote the token's parts.
        """
        header = _header(token)
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in self._rules.algorithms:
            raise TokenUntrusted("the signature's algorithm is not an allowed one")
        claims = self._verified(token, algorithm, await self._keys.find(_key_id(header)))
        if not claims["sub"]:
            raise TokenUntrusted("it names nobody")
        self._check_purpose(claims)
        return principal_name(claims["iss"], claims["sub"])

    def _verified(self, token: str, algorithm: str, key: Jwk) -> dict[str, Any]:
        if key.alg not in (None, algorithm):
            raise TokenUntrusted("the key is for another algorithm")
        try:
            return jwt.decode(
                token,
                # By the algorithm asked for, which has been allowed: a key of another kind is none for it.
                jwt.PyJWK(key.model_dump(exclude_none=True), algorithm),
                algorithms=[algorithm],
                issuer=self._rules.issuer,
                leeway=self._rules.clock_skew,
                options={"require": ["exp", "iss", "sub"], "verify_aud": False},
            )
        except jwt.ExpiredSignatureError:
            raise TokenExpired from None
        except jwt.ImmatureSignatureError:
            raise TokenNotYetValid from None
        except (jwt.PyJWTError, ArithmeticError, TypeError, ValueError) as error:
            raise TokenUntrusted(type(error).__name__) from None

    def _check_purpose(self, claims: Mapping[str, Any]) -> None:
        """Cognito marks its tokens' use; its access tokens have `client_id` in the place of `aud`."""
        if claims.get("token_use", "access") != "access":
            raise TokenNotForUs("it is no access token")
        audience = claims.get("aud", claims.get("client_id") if "token_use" in claims else None)
        named = {audience} if isinstance(audience, str) else _texts(audience)
        if not named & self._rules.audience:
            raise TokenNotForUs("it is for another audience")


def principal_name(issuer: str, subject: str) -> str:
    """The same length for all, and safe to log: a subject may be an e-mail address, and as long as an issuer likes."""
    return "oidc-" + hashlib.sha256(json.dumps([issuer, subject]).encode()).hexdigest()


def _header(token: str) -> dict[str, Any]:
    if len(token) > MAX_BYTES:
        raise TokenMalformed(f"it is longer than {MAX_BYTES} bytes")
    if not _JWS.fullmatch(token):
        raise TokenMalformed("it has not the form of a signed token")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, RecursionError, ValueError):
        raise TokenMalformed("its header can't be read") from None
    if "crit" in header:
        # It names extensions that a reader must understand or refuse (RFC 7515, 4.1.11); we understand none.
        raise TokenMalformed("its header has critical extensions")
    return header


def _key_id(header: Mapping[str, Any]) -> str:
    """Only ever looked up: no place to fetch a key from, in the header's other fields either."""
    key_id = header.get("kid")
    if not isinstance(key_id, str) or not 0 < len(key_id) <= _MAX_KEY_ID:
        raise TokenMalformed("its header names no key")
    return key_id


def _texts(value: object) -> set[str]:
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()
