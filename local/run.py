"""`make run`: the whole product on this machine. Prints what it does and the address to open.

Everything has an embedded default; these variables put real parts in their place:
DATABASE_URL, OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL, EVIDENCE_FILE, RUNBOOKS, EMBEDDINGS_MODEL,
EMBEDDINGS_BASE_URL, EMBEDDINGS_API_KEY.
"""

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from local.demo.make import make as make_demo
from local.gateway import Gateway, GatewayConfig, GatewayError, StaticSite
from local.model_server import MODEL, ScriptedModelServer
from migrations.run import upgrade
from superbizagent import ingest
from superbizagent.adapters.evidence_file import load_evidence_file
from superbizagent.adapters.store import Database
from superbizagent.errors import StoreError, SuperBizAgentError
from superbizagent.settings import (
    AccountSettings,
    DatabaseSettings,
    EvidenceSettings,
    KnowledgeSettings,
    ModelSettings,
    RedactionSettings,
    RunSettings,
    SignInSettings,
    environment,
)

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_PORT = 8090
PRINCIPAL = "local"
# The functions see only what the gateway gives them: the limits of a run, how documents are searched, who may sign in,
# and what evidence files refer to.
HANDED_ON = frozenset(
    {name.upper() for settings in (RunSettings, KnowledgeSettings, SignInSettings) for name in settings.model_fields}
    | {"BUSINESS_DATABASE_CA_FILE", "BUSINESS_DATABASE_URL", "DATABASE_CA_FILE"}
)


# What the template says of an AWS account's databases, secrets and sign-in is nothing here.
DEPLOYED_ONLY = {
    name.upper(): ""
    for settings in (
        AccountSettings,
        DatabaseSettings,
        EvidenceSettings,
        ModelSettings,
        RedactionSettings,
        SignInSettings,
    )
    for name in settings.model_fields
}


@dataclass(frozen=True)
class Parts:
    """What this installation runs on; each either given by its variable or embedded."""

    database_url: str
    evidence_file: Path
    runbooks: Path
    demo: bool

    @classmethod
    def of(cls, variables: Mapping[str, str], data: Path) -> "Parts":
        demo = data / "demo"
        evidence = variables.get("EVIDENCE_FILE")
        return cls(
            database_url=variables.get("DATABASE_URL") or f"sqlite:///{data / 'superbizagent.db'}",
            evidence_file=Path(evidence).resolve() if evidence else demo / "evidence.toml",
            runbooks=Path(variables.get("RUNBOOKS") or demo / "runbooks").resolve(),
            demo=not evidence or not variables.get("RUNBOOKS"),
        )


def prepare(parts: Parts, data: Path) -> None:
    """Demo files, migrations and runbooks; raises SuperBizAgentError or SystemExit with a sentence."""
    data.mkdir(parents=True, exist_ok=True)
    if parts.demo:
        say(f"writing the demo incident to {data / 'demo'}")
        make_demo(data / "demo")
    load_evidence_file(parts.evidence_file, environment())
    say("migrating the database")
    with contextlib.closing(Database(parts.database_url)) as database:
        upgrade(database.engine)
    say(f"ingesting runbooks from {parts.runbooks}")
    # Status 1 is a file that was skipped, which the command has named: no reason not to start.
    if ingest.main([str(parts.runbooks), "--url", parts.database_url, "--collection", "runbooks"]) > 1:
        raise SystemExit("Set RUNBOOKS to a folder of Markdown files.")


@contextlib.asynccontextmanager
async def model(variables: Mapping[str, str], latency: float) -> AsyncIterator[Mapping[str, str]]:
    """The variables that lead to the model: the real one where one is named, else the scripted server."""
    if variables.get("OPENAI_API_KEY") or variables.get("OPENAI_BASE_URL"):
        name = variables.get("OPENAI_MODEL")
        if not name:
            raise SystemExit("Set OPENAI_MODEL too: it names the model to ask.")
        say(f"using model {name} at {variables.get('OPENAI_BASE_URL') or 'the default endpoint'}")
        yield {
            "OPENAI_API_KEY": variables.get("OPENAI_API_KEY") or "none",
            "OPENAI_BASE_URL": variables.get("OPENAI_BASE_URL") or "",
            "OPENAI_MODEL": name,
        }
        return
    async with ScriptedModelServer.start(latency=latency) as server:
        say(f"no OPENAI_API_KEY is set: the scripted demo model answers, at {server.base_url}")
        yield {"OPENAI_API_KEY": "scripted", "OPENAI_BASE_URL": server.base_url, "OPENAI_MODEL": MODEL}


@contextlib.asynccontextmanager
async def product(
    parts: Parts,
    variables: Mapping[str, str],
    *,
    port: int = 0,
    websocket_port: int = 0,
    latency: float = 0.0,
    processes: int = GatewayConfig.max_concurrency,
    snapshots: bool = False,
    sign_in: Mapping[str, str] | None = None,
) -> AsyncIterator[Gateway]:
    """The running product: model, gateway with its functions and schedules, page.

    `sign_in` is how the page signs in (docs/sign-in.md). Without it nobody does, and everybody is one principal.
    """
    async with model(variables, latency) as model_variables:
        config = GatewayConfig(
            template=ROOT / "template.yaml",
            port=websocket_port,
            http_port=port,
            max_concurrency=processes,
            snapshots=snapshots,
            environment={
                **DEPLOYED_ONLY,
                **{name: value for name, value in variables.items() if name in HANDED_ON},
                "DATABASE_URL": parts.database_url,
                "EVIDENCE_FILE": str(parts.evidence_file),
                **model_variables,
            },
            # It is the gateway's to say who connects, here as on AWS: the functions know no principal but the one they
            # are told, and have no switch for another.
            principal=PRINCIPAL if sign_in is None else None,
            static=_page(model_variables["OPENAI_MODEL"], sign_in),
        )
        async with Gateway.start(config) as gateway:
            yield gateway


def _page(model_name: str, sign_in: Mapping[str, str] | None) -> StaticSite:
    if sign_in is None:
        return StaticSite(folder=ROOT / "web", config={"model": model_name})
    provider = "{0.scheme}://{0.netloc}".format(urlsplit(sign_in["tokenEndpoint"]))
    return StaticSite(folder=ROOT / "web", config={"model": model_name, "signIn": dict(sign_in)}, connect=(provider,))


async def serve(parts: Parts, options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    served = product(
        parts,
        environment(),
        port=options.port,
        websocket_port=options.websocket_port,
        latency=options.latency,
        processes=options.processes,
        snapshots=options.snap_start,
    )
    async with served as gateway:
        say(f"open {gateway.http_url}/  (Ctrl-C stops)")
        await stop.wait()
        say("stopping")


def say(sentence: str) -> None:
    print(sentence, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m local.run", description=__doc__)
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="of the page; 0 takes a free one")
    parser.add_argument("--websocket-port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--data", type=Path, default=ROOT / ".data", help="where the embedded parts keep their files")
    parser.add_argument("--latency", type=float, default=0.3, help="seconds the scripted model takes for an answer")
    parser.add_argument(
        "--processes",
        type=int,
        default=GatewayConfig.max_concurrency,
        help="of one function at most: so many runs at once",
    )
    parser.add_argument(
        "--snap-start", action="store_true", help="fork processes from one that has imported its handler"
    )
    parser.add_argument("--verbose", action="store_true", help="show each invocation and what the functions log")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING, format="%(message)s")
    data = options.data.resolve()
    parts = Parts.of(environment(), data)
    try:
        prepare(parts, data)
        asyncio.run(serve(parts, options))
    except StoreError as error:
        print(f"{error}. Is the database of DATABASE_URL there, and running?", file=sys.stderr)
    except GatewayError as error:
        print(f"{error}\n`make run PORT=0` takes a free port.", file=sys.stderr)
    except SuperBizAgentError as error:
        print(error, file=sys.stderr)
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
