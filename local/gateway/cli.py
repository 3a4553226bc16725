"""python -m local.gateway: the command line."""

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from local.gateway.config import GatewayConfig, StaticSite, read_env_vars, read_static_headers
from local.gateway.errors import ConfigurationError, GatewayError
from local.gateway.gateway import Gateway

Number = TypeVar("Number", int, float)
EPILOG = """\
Functions run in their own processes with the interpreter of --python and see only the variables that the
template and these options give them. Stop with Ctrl-C: open sockets get their $disconnect first.
"""


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="python -m local.gateway",
        description="Serves the WebSocket API of a SAM template on this machine, functions included.",
        epilog=EPILOG,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = options.add_argument
    add("--template", type=Path, default=Path("template.yaml"), metavar="FILE", help="SAM template")
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, default=0, help="of the WebSocket; 0 takes a free one")
    add("--http-port", type=int, default=0, help="of @connections, Lambda's Invoke API and static files")
    add("--api", metavar="LOGICAL_ID", help="which API, if the template has several WebSocket APIs")
    add("--stage", help="name of the stage instead of the template's")
    add("--region", help="AWS::Region, else AWS_REGION, else us-east-1")
    add("--parameter-overrides", nargs="+", action="extend", default=[], metavar="KEY=VALUE")
    add("--env-vars", type=Path, metavar="FILE", help="variables in the JSON form of `sam local`")
    add(
        "--env",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a variable of all functions; repeatable",
    )
    add("--max-concurrency", type=int, default=10, metavar="N", help="processes a function")
    add("--no-freeze", action="store_true", help="do not stop processes between events")
    add("--snap-start", action="store_true", help="fork processes from one that has imported the handler; Linux only")
    add("--no-schedules", action="store_true", help="do not fire rate(…) schedules")
    add("--principal", metavar="NAME", help="connects everybody as NAME; the template's authorizer is not asked")
    add("--integration-timeout", type=float, default=29.0, metavar="SECONDS")
    add("--python", default=sys.executable, metavar="PATH", help="interpreter that runs the functions")
    add("--static", type=Path, metavar="DIR", help="folder to serve at / of the HTTP port, with /config.json")
    add("--static-headers", type=Path, metavar="FILE", help="JSON of headers that replace the default ones")
    add("--quiet", action="store_true", help="no line for each invocation")
    return options


def configuration(arguments: argparse.Namespace) -> GatewayConfig:
    shared, by_function = read_env_vars(arguments.env_vars) if arguments.env_vars else ({}, {})
    command_line = _pairs(arguments.env, "--env")
    headers = read_static_headers(arguments.static_headers) if arguments.static_headers else {}
    return GatewayConfig(
        template=arguments.template,
        host=arguments.host,
        port=arguments.port,
        http_port=arguments.http_port,
        api=arguments.api,
        stage=arguments.stage,
        region=arguments.region,
        parameter_overrides=_pairs(arguments.parameter_overrides, "--parameter-overrides"),
        environment={**shared, **command_line},
        # The command line has the last word.
        function_environment={name: {**own, **command_line} for name, own in by_function.items()},
        max_concurrency=_positive(arguments.max_concurrency, "--max-concurrency"),
        freeze=not arguments.no_freeze,
        snapshots=arguments.snap_start,
        schedules=not arguments.no_schedules,
        python=arguments.python,
        principal=arguments.principal,
        integration_timeout=_positive(arguments.integration_timeout, "--integration-timeout"),
        static=StaticSite(folder=arguments.static, headers=headers) if arguments.static else None,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    if parsed.quiet:
        logging.getLogger("local.gateway.invocation").setLevel(logging.WARNING)
    # A client that leaves in the middle of a handshake is no news.
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    try:
        asyncio.run(_serve(configuration(parsed)))
    except GatewayError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


async def _serve(config: GatewayConfig) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Gateway.start(config) as gateway:
        sys.stdout.write(f"WebSocket   {gateway.websocket_url}\nManagement  {gateway.management_url}\n")
        if config.static:
            sys.stdout.write(f"Page        {gateway.http_url}/\n")
        sys.stdout.flush()
        await stop.wait()


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise ConfigurationError(f"{option} takes KEY=VALUE, not {text!r}.")
        pairs[name] = value
    return pairs


def _positive(value: Number, option: str) -> Number:
    if value <= 0:
        raise ConfigurationError(f"{option} must be more than 0, not {value}.")
    return value
