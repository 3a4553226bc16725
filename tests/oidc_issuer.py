"""An OpenID Connect issuer on this machine, with keys made on the spot: discovery, keys, authorize and token."""

import base64
import contextlib
import hashlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.http_stub import HttpStub, Received, Reply, http_stub

CLIENT = "page"


def now() -> int:
    """The issuer's clock, which is none of the product's."""
    return int(time.time())  # noqa: TID251


PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
CORS = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "content-type"}


@dataclass(frozen=True)
class Key:
    """A key pair by its id."""

    id: str
    private: PrivateKey
    algorithm: str = "RS256"

    @property
    def published(self) -> dict[str, Any]:
        algorithm = jwt.get_algorithm_by_name(self.algorithm)
        jwk: dict[str, Any] = json.loads(algorithm.to_jwk(self.private.public_key()))
        return {"kid": self.id, "use": "sig", "alg": self.algorithm, **jwk, "key_ops": ["verify"]}


def new_key(key_id: str, algorithm: str = "RS256") -> Key:
    if algorithm.startswith("ES"):
        return Key(key_id, ec.generate_private_key(ec.SECP256R1()), algorithm)
    return Key(key_id, rsa.generate_private_key(public_exponent=65537, key_size=2048), algorithm)


@dataclass
class OidcIssuer:
    """`subject` is who signs in next; `answers` replaces what a path answers."""

    stub: HttpStub
    keys: list[Key]
    subject: str = "ada"
    lifetime: int = 3600
    answers: dict[str, Callable[[Received], Any]] = field(default_factory=dict)
    refuses_refresh: bool = False
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _refresh_tokens: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.stub.url

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/keys"

    @property
    def sign_in(self) -> dict[str, str]:
        """What config.json tells the page of it."""
        return {
            "authorizationEndpoint": f"{self.url}/authorize",
            "tokenEndpoint": f"{self.url}/token",
            "clientId": CLIENT,
            "scope": "openid offline_access",
        }

    def asked(self, path: str) -> list[Received]:
        return [received for received in self.stub.received if urlsplit(received.path).path == path]

    def token(self, key: Key | None = None, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """An access token; a claim of None is left out."""
        key = key or self.keys[0]
        given = {
            "iss": self.url,
            "sub": self.subject,
            "aud": CLIENT,
            "iat": now(),
            "exp": now() + self.lifetime,
            "jti": uuid.uuid4().hex,
            **claims,
        }
        payload = {name: value for name, value in given.items() if value is not None}
        return jwt.encode(payload, key.private, key.algorithm, {"kid": key.id, **(header or {})})

    def answer(self, received: Received) -> Any:
        path = urlsplit(received.path).path
        if path in self.answers:
            return self.answers[path](received)
        match path:
            case "/.well-known/openid-configuration":
                return Reply({"issuer": self.url, "jwks_uri": self.jwks_url})
            case "/keys":
                return Reply({"keys": [key.published for key in self.keys]})
            case "/authorize":
                return self._authorize(parse_qs(urlsplit(received.path).query))
            case "/token":
                return self._token(parse_qs(received.body.decode()))
        return Reply(status=404)

    def _authorize(self, asked: dict[str, list[str]]) -> Reply:
        """Signs in whoever comes: a real one would show a form here."""
        assert asked["response_type"] == ["code"]
        assert asked["client_id"] == [CLIENT]
        assert asked["code_challenge_method"] == ["S256"]
        code = uuid.uuid4().hex
        self._codes[code] = {
            "challenge": asked["code_challenge"][0],
            "redirect_uri": asked["redirect_uri"][0],
            "subject": self.subject,
        }
        back = urlencode({"code": code, "state": asked["state"][0], "iss": self.url})
        return Reply(status=302, headers={"Location": f"{asked['redirect_uri'][0]}?{back}"})

    def _token(self, asked: dict[str, list[str]]) -> Reply:
        subject = self._subject(asked)
        if subject is None or asked["client_id"] != [CLIENT]:
            return Reply({"error": "invalid_grant"}, status=400, headers=CORS)
        refresh = uuid.uuid4().hex
        self._refresh_tokens[refresh] = subject
        body = {
            "access_token": self.token(sub=subject),
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "refresh_token": refresh,
        }
        return Reply(body, headers=CORS)

    def _subject(self, asked: dict[str, list[str]]) -> str | None:
        if asked["grant_type"] == ["refresh_token"]:
            return None if self.refuses_refresh else self._refresh_tokens.pop(asked["refresh_token"][0], None)
        granted = self._codes.pop(asked["code"][0], None)
        if granted is None or granted["redirect_uri"] != asked["redirect_uri"][0]:
            return None
        return granted["subject"] if _challenge(asked["code_verifier"][0]) == granted["challenge"] else None


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


@contextlib.asynccontextmanager
async def oidc_issuer(*keys: Key) -> AsyncIterator[OidcIssuer]:
    async with http_stub() as stub:
        issuer = OidcIssuer(stub, list(keys) or [new_key("k1")])
        stub.answer = issuer.answer
        yield issuer
