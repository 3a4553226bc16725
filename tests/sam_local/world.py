"""The real parts around the functions: a database, a model server, and servers for the connection API and sign-in.

Containers don't reach this machine's 127.0.0.1. So for as long as the command runs these parts listen on all of its
addresses, each on a free port; the database lets in one account that was made for it, by a random password.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from sqlalchemy import text
from sqlalchemy.engine import make_url

from local.model_server import MODEL, ScriptedModelServer
from local.run import DEPLOYED_ONLY
from superbizagent import ingest
from superbizagent.adapters.store import Database
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.adapters.system_clock import SystemClock
from superbizagent.ports import NewRun
from tests.certificates import new_authority, server_certificate
from tests.database_server import private_server
from tests.http_stub import HttpStub, http_stub
from tests.oidc_issuer import CLIENT, OidcIssuer, new_key
from tests.sam_local.build import AUTHORITY, DEMO, ROOT, TASK

EVERYWHERE = "0.0.0.0"

Json = dict[str, Any]


@dataclass
class World:
    """`host` is this machine's name in a container. `client` is the connection API, and hears deployments' answers."""

    host: str
    database: Database
    functions_database_url: str
    client: HttpStub
    model: ScriptedModelServer
    issuer: OidcIssuer

    @property
    def variables(self) -> Mapping[str, str]:
        """Of the functions, in the place of what a deployed stack has."""
        return {
            **DEPLOYED_ONLY,
            "DATABASE_URL": self.functions_database_url,
            "CONNECTIONS_ENDPOINT": f"{self.client.url}/live",
            "OPENAI_API_KEY": "scripted",
            "OPENAI_BASE_URL": str(make_url(self.model.base_url).set(host=self.host)),
            "OPENAI_MODEL": MODEL,
            "EVIDENCE_FILE": f"{TASK}/{DEMO}/evidence.toml",
            "AUTH_ISSUER": self.issuer.url,
            "AUTH_AUDIENCE": CLIENT,
            "SSL_CERT_FILE": f"{TASK}/{AUTHORITY}",
        }

    def forget(self) -> None:
        """What was said so far: each event is judged by what it causes."""
        self.client.received.clear()
        self.issuer.stub.received.clear()
        self.model.reset()

    def rows(self, statement: str) -> list[Json]:
        with self.database.engine.begin() as connection:
            return [dict(row._mapping) for row in connection.execute(text(statement))]

    def frames(self) -> list[Json]:
        return [received.json for received in self.client.received]

    def model_calls(self) -> list[str]:
        return [request.kind for request in self.model.requests]

    async def begin_overdue_run(self, run_id: str, owner: str) -> None:
        """A run that nobody runs any more, and that the sweep has not met yet."""
        now = SystemClock().now()
        run = NewRun(
            run_id=run_id,
            session_id=f"session-of-{run_id}",
            owner=owner,
            request_id=run_id,
            gateway_request_id=run_id,
            connection_id="elsewhere=",
            query="Why are checkouts slow?",
            created_at=now - timedelta(minutes=30),
            deadline_at=now - timedelta(minutes=10),
        )
        await SqlRunStore(self.database).start(run)

    async def ingest_runbooks(self) -> None:
        url = self.database.engine.url.render_as_string(hide_password=False)
        arguments = [str(ROOT / "local" / "demo" / "runbooks"), "--url", url, "--collection", "runbooks"]
        with contextlib.redirect_stdout(None):
            assert await asyncio.to_thread(ingest.main, arguments) == 0


@contextlib.asynccontextmanager
async def world(folder: Path, host: str) -> AsyncIterator[World]:
    """Everything has ended when the block ends. `new_certificate` comes first: the build takes its authority along."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "server.pem", folder / "server.key")
    async with contextlib.AsyncExitStack() as stack:
        server = await _in_thread(stack, private_server(f"--bind-address={EVERYWHERE}"))
        url = await _in_thread(stack, server.new_database())
        account = await _in_thread(stack, server.account(url))
        database = stack.enter_context(contextlib.closing(Database(url)))
        client = await stack.enter_async_context(http_stub(host=EVERYWHERE, known_as=host))
        provider = await stack.enter_async_context(http_stub(host=EVERYWHERE, known_as=host, tls=tls))
        model = await stack.enter_async_context(ScriptedModelServer.start(host=EVERYWHERE, latency=0.0))
        issuer = OidcIssuer(provider, [new_key("k1")])
        provider.answer = issuer.answer
        yield World(host, database, _at(account, host), client, model, issuer)


async def _in_thread(stack: contextlib.AsyncExitStack, part: contextlib.AbstractContextManager[Any]) -> Any:
    """Starting a database server takes seconds."""
    value = await asyncio.to_thread(part.__enter__)
    stack.push(part.__exit__)
    return value


def _at(url: str, host: str) -> str:
    return make_url(url).set(host=host).render_as_string(hide_password=False)


def new_certificate(folder: Path, host: str) -> None:
    """Tokens are checked with keys that come by https: the issuer's certificate, of an authority of its own."""
    authority = new_authority(folder / AUTHORITY, "ours")
    server_certificate(folder, authority, x509.DNSName(host))


def read_event(name: str) -> Json:
    loaded: Json = json.loads((ROOT / "events" / f"{name}.json").read_text(encoding="utf-8"))
    return loaded
