"""Secrets of many kinds, each in a line as systems write it. Made up at run time: no scanner finds one in this file."""

import base64
import json
import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

_UPPER: Final = string.ascii_uppercase + string.digits
_ALNUM: Final = string.ascii_letters + string.digits
_HEX: Final = "0123456789abcdef"
_URL: Final = _ALNUM + "-_"


@dataclass(frozen=True)
class Planted:
    """`secret` stands in `text`; none of `parts` may be left of it."""

    kind: str
    secret: str
    text: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The secret itself, and pieces of it that would be as bad to show."""
        if len(self.secret) < 24:
            return (self.secret,)
        lines = [
            line for line in self.secret.replace("\\n", "\n").split("\n") if "-----" not in line and len(line) >= 16
        ]
        return (self.secret, *(line[len(line) // 2 :][:24] for line in lines))


class _Dice:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def of(self, alphabet: str, length: int) -> str:
        """With a digit, and a letter where there are any: what is random nearly always has both."""
        body = [self._random.choice(alphabet) for _ in range(length)]
        body[length // 2] = self._random.choice("23456789")
        body[length // 3] = self._random.choice([character for character in alphabet if character.isalpha()])
        return "".join(body)

    def password(self) -> str:
        return self.of(_ALNUM, 7) + self._random.choice("!$%*+") + self.of(_ALNUM, 4)

    def pick(self, *choices: str) -> str:
        return self._random.choice(choices)


Shape = Callable[[_Dice], str]
_SHAPES: Final[dict[str, Shape]] = {
    "aws access key": lambda d: d.pick("AKIA", "ASIA") + d.of(_UPPER, 16),
    "aws secret key": lambda d: d.of(_ALNUM + "/+", 40),
    "google api key": lambda d: "AIza" + d.of(_URL, 35),
    "google oauth": lambda d: "ya29." + d.of(_URL, 60),
    "azure account key": lambda d: base64.b64encode(d.of(_ALNUM, 64).encode()).decode(),
    "aliyun access key": lambda d: "LTAI" + d.of(_ALNUM, 20),
    "github token": lambda d: d.pick("ghp_", "gho_", "ghs_") + d.of(_ALNUM, 36),
    "github fine-grained": lambda d: "github_pat_" + d.of(_ALNUM, 22) + "_" + d.of(_ALNUM, 59),
    "gitlab token": lambda d: d.pick("glpat-", "glrt-", "gldt-") + d.of(_ALNUM, 20),
    "slack token": lambda d: f"xoxb-{d.of(string.digits + 'a', 12)}-{d.of(_ALNUM, 24)}",
    "slack hook": lambda d: f"T{d.of(_UPPER, 8)}/B{d.of(_UPPER, 8)}/{d.of(_ALNUM, 24)}",
    "stripe key": lambda d: "sk_" + d.pick("live_", "test_") + d.of(_ALNUM, 24),
    "model key": lambda d: d.pick("sk-proj-", "sk-ant-api03-", "sk-or-v1-") + d.of(_ALNUM, 40),
    "groq key": lambda d: "gsk_" + d.of(_ALNUM, 52),
    "hugging face token": lambda d: "hf_" + d.of(string.ascii_letters + "1", 34),
    "sendgrid key": lambda d: f"SG.{d.of(_URL, 22)}.{d.of(_URL, 43)}",
    "twilio key": lambda d: "SK" + d.of(_HEX, 32),
    "npm token": lambda d: "npm_" + d.of(_ALNUM, 36),
    "pypi token": lambda d: "pypi-" + d.of(_URL, 80),
    "docker token": lambda d: "dckr_pat_" + d.of(_URL, 27),
    "vault token": lambda d: "hvs." + d.of(_URL, 90),
    "digital ocean token": lambda d: "dop_v1_" + d.of(_HEX, 64),
    "databricks token": lambda d: "dapi" + d.of(_HEX, 32),
    "grafana token": lambda d: f"glsa_{d.of(_ALNUM, 32)}_{d.of(_HEX, 8)}",
    "shopify token": lambda d: "shpat_" + d.of(_HEX, 32),
    "mailchimp key": lambda d: d.of(_HEX, 32) + "-us12",
    "telegram token": lambda d: "1234567890:AA" + d.of(_URL, 33),
    "new relic key": lambda d: "NRAK-" + d.of(_UPPER, 27),
    "linear key": lambda d: "lin_api_" + d.of(_ALNUM, 40),
    "postman key": lambda d: f"PMAK-{d.of(_HEX, 24)}-{d.of(_HEX, 34)}",
    "jwt": lambda d: ".".join(
        (_encoded({"alg": "HS256", "typ": "JWT"}), _encoded({"sub": d.of(_ALNUM, 12)}), d.of(_URL, 43))
    ),
    "bcrypt hash": lambda d: "$2b$12$" + d.of(_ALNUM + "./", 53),
    "private key": lambda d: _pem(d, "RSA PRIVATE KEY"),
    "openssh key": lambda d: _pem(d, "OPENSSH PRIVATE KEY"),
    "password": lambda d: d.password(),
    "session cookie": lambda d: d.of(_HEX, 32),
    "basic credentials": lambda d: base64.b64encode(f"svc:{d.password()}".encode()).decode(),
    "opaque token": lambda d: d.of(_ALNUM, 32),
    "pinecone key": lambda d: f"pcsk_{d.of(_ALNUM, 6)}_{d.of(_ALNUM, 63)}",
    "tavily key": lambda d: "tvly-" + d.of(_ALNUM, 32),
    "nvidia key": lambda d: "nvapi-" + d.of(_URL, 64),
    "langsmith key": lambda d: f"lsv2_pt_{d.of(_HEX, 32)}_{d.of(_HEX, 10)}",
    "posthog key": lambda d: "phx_" + d.of(_ALNUM, 43),
    "slack session": lambda d: "xoxd-" + d.of(_ALNUM, 60),
    "text in base64": lambda d: base64.b64encode(f"export DB_PASSWORD={d.password()}".encode()).decode(),
}


def _encoded(value: dict[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")


def _pem(dice: _Dice, name: str) -> str:
    lines = [dice.of(_ALNUM + "+/", 64) for _ in range(4)] + [dice.of(_ALNUM, 30) + "=="]
    return "\n".join((f"-----BEGIN {name}-----", *lines, f"-----END {name}-----"))


# What needs a name or a place to be known, and the places; all others stand anywhere.
_PASSWORD_PLACES: Final = (
    "retrying with password={s} after 3 attempts",
    "password: {s}",
    '{{"user": "svc", "password": "{s}", "attempt": 3}}',
    '{{"msg": "{{\\"db_password\\":\\"{s}\\",\\"n\\":1}}"}}',
    "spring.datasource.dbPassword={s}",
    "connecting to mysql://shop:{s}@db-1.internal:3306/shop",
    "dsn shop:{s}@tcp(10.0.0.7:3306)/shop?parseTime=true",
    "Server=db-1;Database=shop;User Id=svc;Password={s};Encrypt=true",
    "amqp connect failed amqps://worker:{s}@mq.internal/%2f",
    "管理员登录 密码：{s}，来源 10.0.0.9",
    "数据库口令为 {s}",
    "mysqldump -u root -p{s} shop",
    "curl -u deploy:{s} https://repo.internal/artifact",
    "CREATE USER svc IDENTIFIED BY '{s}'",
    "the admin password is {s} until Friday",
    "| DB_PASSWORD | {s} |",
    '- name: DB_PASSWORD\n  value: "{s}"',
    "**Password:** `{s}`",
    "export PGPASSWORD='{s}'",
    "<password>{s}</password>",
    "redis://:{s}@cache:6379/0",
    "login svc password {s}",
    "{{'user': 'svc', 'password': '{s}'}}",
    "jdbc:mysql://db-1/shop?user=svc&password={s}&useSSL=false",
)
_PLACES: Final[dict[str, tuple[str, ...]]] = {
    "password": _PASSWORD_PLACES,
    "aws secret key": ("aws_secret_access_key = {s}", '{{"SecretAccessKey": "{s}"}}', "AWS_SECRET_ACCESS_KEY={s}"),
    "azure account key": ("AccountName=shop;AccountKey={s};EndpointSuffix=core.windows.net", '"accountKey": "{s}"'),
    "slack hook": ("posting to https://hooks.slack.com/services/{s}",),
    "session cookie": ("Cookie: theme=dark; sid={s}; lang=en", "Set-Cookie: JSESSIONID={s}; Path=/; HttpOnly"),
    "basic credentials": ("Authorization: Basic {s}", '"authorization": "Basic {s}"'),
    "opaque token": (
        "Authorization: Bearer {s}",
        "GET /export?access_token={s}&page=2 HTTP/1.1",
        "X-Api-Key: {s}",
        "令牌：{s}",
        "client_secret={s}",
        "GET /blob?sv=2022-11-02&sig={s} 403",
        'headers={{"x-auth-token": "{s}"}}',
    ),
}
_ANYWHERE: Final = ("used credential {s} for upload", 'value="{s}"', '{{"detail": "got {s}."}}', "（{s}）", "k={s}&x=1")


def planted(count: int = 100, seed: int = 7) -> Sequence[Planted]:
    """`count` different secrets, every kind at least once where `count` allows."""
    dice = _Dice(seed)
    kinds = list(_SHAPES)
    # Passwords have the most places to stand in.
    order = [
        *kinds,
        *["password"] * (len(_PASSWORD_PLACES) - 1),
        *["opaque token"] * 6,
        *kinds * (count // len(kinds) + 1),
    ]
    used: dict[str, int] = {}
    found = []
    for kind in order[:count]:
        places = _PLACES.get(kind, _ANYWHERE)
        number = used[kind] = used.get(kind, -1) + 1
        secret = _SHAPES[kind](dice)
        found.append(Planted(kind, secret, places[number % len(places)].format(s=secret)))
    return found
