"""`python -m local.model_server --port 0`: serves the scripted model and prints its address."""

import argparse
import asyncio
from collections.abc import Sequence

from local.model_server.server import DEFAULT_LATENCY, MODEL, ScriptedModelServer


async def _serve(host: str, port: int, latency: float) -> None:
    async with ScriptedModelServer.start(host=host, port=port, latency=latency) as server:
        print(f"{MODEL} at {server.base_url}", flush=True)
        await asyncio.Event().wait()


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError("has to be between 0 and 3600 seconds")
    return value


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m local.model_server", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--latency", type=_seconds, default=DEFAULT_LATENCY, help="seconds before each answer")
    options = parser.parse_args(arguments)
    try:
        asyncio.run(_serve(options.host, options.port, options.latency))
    except KeyboardInterrupt:
        print("stopped")


if __name__ == "__main__":
    main()
