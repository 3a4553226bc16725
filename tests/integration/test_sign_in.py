"""The authorizer: real keys, tokens made by them, and an issuer that serves its keys over HTTP."""

import asyncio
import base64
import hashlib
import hmac
import importlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from superbizagent import bootstrap
from superbizagent.adapters.sign_in import Issuer, SigningKeys
from superbizagent.adapters.sign_in.issuer import MAX_BYTES
from superbizagent.adapters.sign_in.signing_keys import FRESH, PAUSE, USABLE
from superbizagent.adapters.sign_in.tokens import principal_name
from superbizagent.adapters.store.tables import chat_session, ws_connection
from superbizagent.errors import ConfigurationError, IssuerUnavailable, TokenUntrusted
from tests.fakes.clock import FakeClock
from tests.http_stub import Received, Reply, read_request_head, tcp_stub
from tests.oidc_issuer import CLIENT, Key, OidcIssuer, new_key, now, oidc_issuer

EVENT = json.loads((Path(__file__).parents[2] / "events" / "authorizer.json").read_text(encoding="utf-8"))
ARN = EVENT["methodArn"]
SKEW = 30
pytestmark = pytest.mark.spec("SEC-5")

Make = Callable[[OidcIssuer], str]


@dataclass(frozen=True)
class Context:
    function_name: str = "authorizer"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:eu-central-1:123456789012:function:authorizer"
    aws_request_id: str = "88888888-4444-4444-4444-121212121212"


@pytest.fixture(scope="module")
def key() -> Key:
    return new_key("k1")


@pytest.fixture(scope="module")
def other_key() -> Key:
    return new_key("k2")


@pytest.fixture(scope="module")
def curve_key() -> Key:
    return new_key("e1", "ES256")


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POWERTOOLS_METRICS_NAMESPACE", "SuperBizAgent")
        patch.setenv("POWERTOOLS_LOG_DEDUPLICATION_DISABLED", "true")
        # Even where an operator asks for events in the log.
        patch.setenv("POWERTOOLS_LOGGER_LOG_EVENT", "true")
        yield importlib.import_module("functions.authorizer.app")


@pytest.fixture(autouse=True)
def fresh_process() -> Iterator[None]:
    yield
    if bootstrap._runner.cache_info().currsize:
        bootstrap._runner().close()
    for cached in (bootstrap.services, bootstrap._runner):
        cached.cache_clear()


@pytest.fixture
async def issuer(key: Key, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OidcIssuer]:
    async with oidc_issuer(key) as issuer:
        monkeypatch.setenv("AUTH_ISSUER", issuer.url)
        monkeypatch.setenv("AUTH_AUDIENCE", f"another, {CLIENT}")
        monkeypatch.setenv("AUTH_CLOCK_SKEW_SECONDS", str(SKEW))
        yield issuer


@dataclass(frozen=True)
class Authorizer:
    module: ModuleType

    async def decide(self, *offered: str, query: list[str] | None = None) -> Any:
        """401, 403, 500, or who was let in."""
        headers = {"Host": ["x"], **({"sec-websocket-protocol": list(offered)} if offered else {})}
        parameters = {"token": query} if query is not None else None
        event = {**EVENT, "multiValueHeaders": headers, "multiValueQueryStringParameters": parameters}
        try:
            answer = await asyncio.to_thread(self.module.handler, event, Context())
        except RuntimeError as error:
            return 401 if str(error) == "Unauthorized" else 500
        (statement,) = answer["policyDocument"]["Statement"]
        assert statement["Action"] == "execute-api:Invoke"
        assert statement["Resource"] == ARN
        return answer["principalId"] if statement["Effect"] == "Allow" else 403

    async def sign_in(self, token: str) -> Any:
        return await self.decide("superbizagent, bearer." + token)


@pytest.fixture
def authorizer(module: ModuleType) -> Authorizer:
    return Authorizer(module)


# Who is let in -------------------------------------------------------------------------------------


@pytest.mark.spec("ISO-2")
async def test_a_token_is_one_principal_whichever_token_it_is(authorizer: Authorizer, issuer: OidcIssuer) -> None:
    first = await authorizer.sign_in(issuer.token())
    assert first == await authorizer.sign_in(issuer.token(scope="more", exp=now() + 9_000))
    assert first == principal_name(issuer.url, "ada")
    others = [await authorizer.sign_in(issuer.token(sub=name)) for name in ("bob", "Ada", "ada ", "x" * 3_000)]
    assert len({first, *others}) == 5
    columns = [ws_connection.c.principal, chat_session.c.owner]
    assert all(len(name) <= column.type.length for name in (first, *others) for column in columns)  # type: ignore[attr-defined]
    # Keys and discovery were asked for once for all of them.
    assert len(issuer.stub.received) == 2


def test_no_two_people_share_a_name() -> None:
    assert principal_name("https://a.example/", "b") != principal_name("https://a.example", "/b")
    assert principal_name('https://a"', "b") != principal_name("https://a", '"b')


async def test_a_token_comes_as_a_subprotocol_or_in_the_query(authorizer: Authorizer, issuer: OidcIssuer) -> None:
    token = issuer.token()
    ada = principal_name(issuer.url, "ada")
    assert await authorizer.decide(f"superbizagent, bearer.{token}") == ada
    assert await authorizer.decide(f"bearer.{token},superbizagent") == ada
    assert await authorizer.decide("superbizagent", f"bearer.{token}") == ada
    assert await authorizer.decide("superbizagent", query=[token]) == ada
    assert await authorizer.decide(query=[token]) == ada


@pytest.mark.parametrize("use", ["none", "several", "same"])
async def test_a_cognito_access_token_has_its_client_id_for_an_audience(
    authorizer: Authorizer, issuer: OidcIssuer, use: str
) -> None:
    uses: dict[str, dict[str, Any]] = {
        "none": {"aud": None},
        "several": {"aud": ["x", CLIENT]},
        "same": {"aud": CLIENT},
    }
    claims = uses[use]
    token = issuer.token(token_use="access", client_id=CLIENT, **claims)
    assert await authorizer.sign_in(token) == principal_name(issuer.url, "ada")


async def test_algorithms_are_the_configured_ones(
    authorizer: Authorizer, issuer: OidcIssuer, curve_key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.keys.append(curve_key)
    assert await authorizer.sign_in(issuer.token(curve_key)) == 401
    bootstrap.services.cache_clear()
    monkeypatch.setenv("AUTH_ALGORITHMS", "ES256 PS256")
    assert await authorizer.sign_in(issuer.token(curve_key)) == principal_name(issuer.url, "ada")
    assert await authorizer.sign_in(issuer.token()) == 401


@pytest.mark.parametrize(
    ("claim", "offset", "let_in"),
    [
        ("exp", -SKEW + 15, True),
        ("exp", -SKEW - 15, False),
        ("nbf", SKEW - 15, True),
        ("nbf", SKEW + 15, False),
        ("iat", SKEW - 15, True),
        ("iat", SKEW + 15, False),
    ],
)
async def test_clocks_may_differ_by_the_configured_skew(
    authorizer: Authorizer, issuer: OidcIssuer, claim: str, offset: int, let_in: bool
) -> None:
    claims: dict[str, Any] = {claim: now() + offset}
    token = issuer.token(**claims)
    assert await authorizer.sign_in(token) == (principal_name(issuer.url, "ada") if let_in else 401)


# Who is not ----------------------------------------------------------------------------------------


def _part(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


def _hmac_signed_with_the_public_key(issuer: OidcIssuer, algorithm: str = "HS256") -> str:
    public = (
        issuer.keys[0]
        .private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    signed = f"{_part({'alg': algorithm, 'kid': 'k1', 'typ': 'JWT'})}.{_part(_claims(issuer.token()))}"
    return f"{signed}.{_part(hmac.digest(public, signed.encode(), hashlib.sha256))}"


def _with_header(issuer: OidcIssuer, **changes: Any) -> str:
    _, claims, signature = issuer.token().split(".")
    return f"{_part({'alg': 'RS256', 'kid': 'k1', **changes})}.{claims}.{signature}"


def _signed_with_header(issuer: OidcIssuer, **changes: Any) -> str:
    """With a good signature, for what PyJWT itself would not put in a header."""
    key = issuer.keys[0]
    signed = f"{_part({'alg': key.algorithm, 'kid': key.id, **changes})}.{issuer.token().split('.')[1]}"
    return f"{signed}.{_part(jwt.get_algorithm_by_name(key.algorithm).sign(signed.encode(), key.private))}"


def _unsigned(issuer: OidcIssuer, algorithm: str) -> str:
    return f"{_part({'alg': algorithm, 'kid': 'k1'})}.{issuer.token().split('.')[1]}."


def _tampered(issuer: OidcIssuer) -> str:
    header, _, signature = issuer.token().split(".")
    return f"{header}.{_part(_claims(issuer.token()) | {'sub': 'root'})}.{signature}"


STRANGER = new_key("k1")
REFUSED: dict[str, Make] = {
    "hs256_signed_with_the_public_key": _hmac_signed_with_the_public_key,
    "hmac_under_the_name_of_rsa": lambda issuer: _hmac_signed_with_the_public_key(issuer, "RS256"),
    "none": lambda issuer: _unsigned(issuer, "none"),
    "None": lambda issuer: _unsigned(issuer, "None"),
    "no_signature": lambda issuer: _unsigned(issuer, "RS256"),
    "two_parts": lambda issuer: issuer.token().rpartition(".")[0],
    "five_parts": lambda issuer: issuer.token() + ".a.b",
    "tampered": _tampered,
    "anothers_key_under_our_id": lambda issuer: issuer.token(STRANGER),
    "unknown_key": lambda issuer: issuer.token(Key("nobodys", STRANGER.private)),
    "no_key_id": lambda issuer: _with_header(issuer, kid=None),
    "key_id_is_a_number": lambda issuer: _with_header(issuer, kid=7),
    "key_id_is_a_path": lambda issuer: issuer.token(Key("../../../../dev/null", STRANGER.private)),
    "key_id_is_sql": lambda issuer: issuer.token(Key("' UNION SELECT 'k1", STRANGER.private)),
    "key_id_is_long": lambda issuer: issuer.token(Key("k" * 300, STRANGER.private)),
    "key_in_the_header": lambda issuer: issuer.token(
        Key("mine", STRANGER.private), {"jwk": STRANGER.published, "jku": f"{issuer.url}/mine", "x5u": issuer.url}
    ),
    "algorithm_is_a_list": lambda issuer: _with_header(issuer, alg=["RS256"]),
    "crit_that_the_library_knows": lambda issuer: _signed_with_header(issuer, crit=["b64"], b64=True),
    "crit_unknown": lambda issuer: _signed_with_header(issuer, crit=["exp"], exp=1),
    "crit_empty": lambda issuer: _with_header(issuer, crit=[]),
    "header_is_no_object": lambda issuer: f"{_part([])}.{issuer.token().split('.', 1)[1]}",
    "header_is_no_json": lambda issuer: f"{_part(b'{')}.{issuer.token().split('.', 1)[1]}",
    "header_is_deep": lambda issuer: f"{_part(b'[' * 4_000)}.{issuer.token().split('.', 1)[1]}",
    "header_is_no_utf8": lambda issuer: f"{_part(bytes([255, 254]))}.{issuer.token().split('.', 1)[1]}",
    "impossible_base64": lambda issuer: "A" + issuer.token(),
    "padded_base64": lambda issuer: issuer.token() + "==",
    "white_space_inside": lambda issuer: issuer.token().replace(".", ". "),
    "standard_base64": lambda issuer: issuer.token().replace(".", "+.", 1),
    "oversized": lambda issuer: issuer.token(filling="x" * 8_192),
    "not_a_token": lambda issuer: "hunter2",
    "empty": lambda issuer: "",
    "wrong_issuer": lambda issuer: issuer.token(iss="https://elsewhere.example.com"),
    "issuer_with_a_slash": lambda issuer: issuer.token(iss=issuer.url + "/"),
    "no_issuer": lambda issuer: issuer.token(iss=None),
    "no_subject": lambda issuer: issuer.token(sub=None),
    "empty_subject": lambda issuer: issuer.token(sub=""),
    "no_expiry": lambda issuer: issuer.token(exp=None),
    "expired": lambda issuer: issuer.token(exp=now() - 3_600),
    "expires_never": lambda issuer: issuer.token(exp="never"),
    "expires_at_infinity": lambda issuer: issuer.token(exp=float("inf")),
    "not_yet_valid": lambda issuer: issuer.token(nbf=now() + 3_600),
}
NOT_FOR_US: dict[str, Make] = {
    "wrong_audience": lambda issuer: issuer.token(aud="elsewhere"),
    "no_audience": lambda issuer: issuer.token(aud=None),
    "audience_is_an_object": lambda issuer: issuer.token(aud={CLIENT: CLIENT}),
    "part_of_our_audience": lambda issuer: issuer.token(aud=CLIENT[:-1]),
    "client_id_that_is_not_cognitos": lambda issuer: issuer.token(aud=None, client_id=CLIENT),
    "cognito_client_of_another": lambda issuer: issuer.token(aud=None, client_id="x", token_use="access"),
    "cognito_id_token": lambda issuer: issuer.token(token_use="id"),
    "cognito_unknown_use": lambda issuer: issuer.token(token_use=None) and issuer.token(token_use=["access"]),
}


@pytest.mark.spec("SEC-4")
@pytest.mark.parametrize(
    ("make", "status"),
    [
        *(pytest.param(make, 401, id=name) for name, make in REFUSED.items()),
        *(pytest.param(make, 403, id=name) for name, make in NOT_FOR_US.items()),
    ],
)
async def test_any_other_token_is_refused_and_never_logged(
    authorizer: Authorizer,
    issuer: OidcIssuer,
    make: Make,
    status: int,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    token = make(issuer)
    assert await authorizer.sign_in(token) == status
    assert await authorizer.decide(query=[token]) == status
    formatter = logging.Formatter()
    logged = "".join(f"{vars(record)} {formatter.format(record)}" for record in caplog.records)
    output = "".join(capfd.readouterr()) + logged
    assert "sign-in refused" in output
    assert [part for part in token.split(".") if len(part) > 6 and part in output] == []
    # Nothing in a token leads anywhere but to the issuer's own documents.
    assert {call.path for call in issuer.stub.received} <= {"/.well-known/openid-configuration", "/keys"}
    # And one that is good gets in after it.
    assert await authorizer.sign_in(issuer.token()) == principal_name(issuer.url, "ada")


async def test_no_token_and_several_are_refused(authorizer: Authorizer, issuer: OidcIssuer) -> None:
    token = issuer.token()
    assert await authorizer.decide() == 401
    assert await authorizer.decide("superbizagent") == 401
    assert await authorizer.decide("superbizagent", query=[]) == 401
    assert await authorizer.decide(f"bearer.{token}, bearer.{token}") == 401
    assert await authorizer.decide(f"bearer.{token}", f"bearer.{token}") == 401
    assert await authorizer.decide(f"bearer.{token}", query=[token]) == 401
    assert await authorizer.decide(query=[token, token]) == 401
    # Absent headers are null in some events.
    event = {**EVENT, "multiValueHeaders": None}
    with pytest.raises(RuntimeError, match=r"^Unauthorized$"):
        await asyncio.to_thread(authorizer.module.handler, event, Context())
    assert issuer.stub.received == []


# The issuer's keys ---------------------------------------------------------------------------------


async def test_a_rotated_key_is_fetched_once(
    authorizer: Authorizer, issuer: OidcIssuer, other_key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    monkeypatch.setattr(bootstrap.Services, "clock", clock)
    ada = principal_name(issuer.url, "ada")
    assert await authorizer.sign_in(issuer.token()) == ada
    issuer.keys[:] = [other_key, *issuer.keys]
    clock.advance(PAUSE.total_seconds())
    assert await authorizer.sign_in(issuer.token(other_key)) == ada
    assert await authorizer.sign_in(issuer.token(issuer.keys[1])) == ada
    assert len(issuer.asked("/keys")) == 2
    # The old one is withdrawn: it counts until the set is fetched anew.
    issuer.keys[:] = [other_key]
    clock.advance(FRESH.total_seconds())
    assert await authorizer.sign_in(issuer.token(other_key)) == ada
    assert await authorizer.sign_in(issuer.token(issuer.keys[0])) == ada
    assert len(issuer.asked("/.well-known/openid-configuration")) == 1


def _signing_keys(issuer: OidcIssuer, clock: FakeClock, seconds: float = 3.0) -> SigningKeys:
    return SigningKeys(Issuer(issuer.url, seconds=seconds).keys, clock)


async def test_made_up_key_ids_ask_the_issuer_at_its_pace(issuer: OidcIssuer) -> None:
    clock = FakeClock()
    keys = _signing_keys(issuer, clock)
    for number in range(300):
        with pytest.raises(TokenUntrusted):
            await keys.find(f"made-up-{number}")
        clock.advance(0.1)
    # 30 seconds of them: the first, and one after each pause.
    assert len(issuer.asked("/keys")) == 3
    assert (await keys.find("k1")).kid == "k1"


async def test_an_issuer_that_is_down_locks_nobody_out_while_its_keys_are_usable(issuer: OidcIssuer) -> None:
    clock = FakeClock()
    keys = _signing_keys(issuer, clock)
    await keys.find("k1")
    issuer.answers["/keys"] = lambda _: Reply(status=503)
    clock.advance(USABLE.total_seconds() - 1)
    for _ in range(50):
        assert (await keys.find("k1")).kid == "k1"
    assert len(issuer.asked("/keys")) == 2
    # Of an unknown key nothing can be said now: it may be a new one.
    with pytest.raises(IssuerUnavailable):
        await keys.find("k2")
    clock.advance(1)
    with pytest.raises(IssuerUnavailable):
        await keys.find("k1")
    assert len(issuer.asked("/keys")) == 2
    del issuer.answers["/keys"]
    clock.advance(PAUSE.total_seconds())
    assert (await keys.find("k1")).kid == "k1"


async def test_an_issuer_that_was_never_reached_is_asked_at_the_same_pace(issuer: OidcIssuer) -> None:
    issuer.answers["/.well-known/openid-configuration"] = lambda _: Reply(status=500)
    clock = FakeClock()
    keys = _signing_keys(issuer, clock)
    for _ in range(20):
        with pytest.raises(IssuerUnavailable):
            await keys.find("k1")
    assert len(issuer.stub.received) == 1
    issuer.answers.clear()
    clock.advance(PAUSE.total_seconds())
    assert (await keys.find("k1")).kid == "k1"


GARBAGE: dict[str, Callable[[Received], Any]] = {
    "no_json": lambda _: Reply(b"<html>", content_type="text/html"),
    "no_object": lambda _: Reply([]),
    "no_keys": lambda _: Reply({}),
    "empty": lambda _: Reply({"keys": []}),
    "unusable": lambda _: Reply({"keys": [None, {"kty": "RSA"}, {"kid": "k1", "kty": "RSA", "use": "enc"}]}),
    "deep": lambda _: Reply(b"[" * 100_000),
    "redirect": lambda call: Reply(status=302, headers={"Location": call.path}),
    "packed": lambda _: Reply(b"\x1f\x8b" + bytes(100), headers={"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_is_an_issuer_that_is_unavailable(
    authorizer: Authorizer, issuer: OidcIssuer, answer: Callable[[Received], Any]
) -> None:
    issuer.answers["/keys"] = answer
    assert await authorizer.sign_in(issuer.token()) == 500
    del issuer.answers["/keys"]
    clock = FakeClock()
    keys = _signing_keys(issuer, clock)
    await keys.find("k1")
    issuer.answers["/keys"] = answer
    clock.advance(FRESH.total_seconds())
    assert (await keys.find("k1")).kid == "k1"


async def test_a_key_set_of_any_size_is_not_read(authorizer: Authorizer, issuer: OidcIssuer) -> None:
    keys = [key.published for key in issuer.keys]
    filling = MAX_BYTES
    issuer.answers["/keys"] = lambda _: Reply({"keys": keys, "filling": "x" * filling})
    assert await authorizer.sign_in(issuer.token()) == 500
    bootstrap.services.cache_clear()
    filling = MAX_BYTES // 2
    assert await authorizer.sign_in(issuer.token()) == principal_name(issuer.url, "ada")


async def test_keys_that_cannot_be_used_are_no_keys(authorizer: Authorizer, issuer: OidcIssuer) -> None:
    """Among good ones: they cost nobody else the sign-in."""
    bad = {"kid": "k1", "kty": "RSA", "n": "AQAB", "e": "not a number!", "alg": "RS256"}
    oct_key = {"kid": "s1", "kty": "oct", "k": _part(b"x" * 32)}
    issuer.answers["/keys"] = lambda _: Reply({"keys": [oct_key, bad]})
    assert await authorizer.sign_in(issuer.token()) == 401
    assert await authorizer.sign_in(issuer.token(Key("s1", STRANGER.private))) == 401


async def test_a_slow_issuer_is_given_up_in_time() -> None:
    """One that drips its answer evades any time limit of a single read."""
    dripping = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X: y\r\n")
            await writer.drain()
            dripping.set()
            await asyncio.sleep(0.01)

    async with tcp_stub(drip) as url:
        with pytest.raises(IssuerUnavailable, match="TimeoutError"):
            await Issuer("https://x.example", f"{url}/keys", seconds=1.5).keys()
    assert dripping.is_set()


async def test_an_issuer_nobody_listens_for_is_unavailable() -> None:
    async def converse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with tcp_stub(converse) as url:
        pass
    with pytest.raises(IssuerUnavailable, match="ConnectError"):
        await Issuer("https://x.example", f"{url}/keys").keys()


async def test_a_discovery_document_of_another_issuer_is_a_configuration_error(
    issuer: OidcIssuer, authorizer: Authorizer
) -> None:
    issuer.answers["/.well-known/openid-configuration"] = lambda _: Reply(
        {"issuer": issuer.url + "/", "jwks_uri": issuer.jwks_url}
    )
    with pytest.raises(ConfigurationError, match="AUTH_ISSUER"):
        await Issuer(issuer.url).keys()
    assert await authorizer.sign_in(issuer.token()) == 500


async def test_keys_are_fetched_over_https_only(issuer: OidcIssuer) -> None:
    for address in ("http://keys.example.com/", "file:///etc/passwd", "ftp://127.0.0.1/", "//keys", "http://[::1"):
        answer = Reply({"issuer": issuer.url, "jwks_uri": address})
        issuer.stub.script(answer)
        with pytest.raises(IssuerUnavailable, match="https"):
            await Issuer(issuer.url).keys()


async def test_the_configured_address_of_the_keys_needs_no_discovery(
    authorizer: Authorizer, issuer: OidcIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTH_JWKS_URL", issuer.jwks_url)
    assert await authorizer.sign_in(issuer.token()) == principal_name(issuer.url, "ada")
    assert [call.path for call in issuer.stub.received] == ["/keys"]


async def test_without_configuration_nobody_is_let_in(
    authorizer: Authorizer, issuer: OidcIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AUTH_ISSUER")
    assert await authorizer.sign_in(issuer.token()) == 500


def test_the_pause_is_shorter_than_keys_are_fresh() -> None:
    assert PAUSE < FRESH < USABLE <= timedelta(hours=24)
