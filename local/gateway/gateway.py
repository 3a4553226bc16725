"""Puts the parts together. The only place that knows all of them."""

import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from local.gateway.clock import Clock, SystemClock
from local.gateway.config import MESSAGE_LIMIT, GatewayConfig
from local.gateway.connections import Connections
from local.gateway.errors import ConfigurationError
from local.gateway.events import Addresses, Events
from local.gateway.integrations import Integrations
from local.gateway.management import Management
from local.gateway.model import Function, Stack
from local.gateway.runtime import ChildInfo, Functions, Invocation, Result
from local.gateway.runtime.environment import machine_region
from local.gateway.runtime.service import RuntimeSettings
from local.gateway.schedules import Schedules
from local.gateway.static import StaticFiles
from local.gateway.template import load_stack
from local.gateway.websocket import WebSocketSide

log = logging.getLogger("local.gateway")


class Gateway:
    """A running gateway: `async with Gateway.start(config) as gateway: …`."""

    def __init__(self, stack: Stack, addresses: Addresses, functions: Functions, connections: Connections) -> None:
        self.stack = stack
        self._addresses = addresses
        self._functions = functions
        self._connections = connections

    @property
    def websocket_url(self) -> str:
        return f"ws://{self._addresses.websocket}/{self.stack.api.stage}"

    @property
    def http_url(self) -> str:
        return f"http://{self._addresses.http}"

    @property
    def management_url(self) -> str:
        """The endpoint_url of an apigatewaymanagementapi client."""
        return f"{self.http_url}/{self.stack.api.stage}"

    @property
    def children(self) -> list[ChildInfo]:
        """The processes that run now."""
        return self._functions.children

    @property
    def connection_ids(self) -> list[str]:
        return [connection.id for connection in self._connections.all()]

    async def invoke(self, function: str, payload: bytes) -> Result:
        """Calls a function by logical id, name or ARN and waits for its answer."""
        return await self._functions.invoke(self._functions.find(function), Invocation(payload=payload))

    async def send_event(self, function: str, payload: bytes) -> str:
        """Invokes a function asynchronously; the id of the request."""
        invocation = Invocation(payload=payload)
        self._functions.submit(self._functions.find(function), invocation)
        return invocation.request_id

    @staticmethod
    @asynccontextmanager
    async def start(config: GatewayConfig, clock: Clock | None = None) -> AsyncIterator["Gateway"]:
        clock = clock or SystemClock()
        region = config.region or machine_region()
        stack = load_stack(
            config.template,
            overrides=config.parameter_overrides,
            region=region,
            stack_name=config.stack_name,
            api=config.api,
            stage=config.stage,
            given=config.environment,
        )
        _check_function_names(config, stack)
        for notice in stack.notices:
            log.warning("%s", notice)
        async with AsyncExitStack() as cleanup:
            yield await _start(stack, config, clock, region, cleanup)


async def _start(stack: Stack, config: GatewayConfig, clock: Clock, region: str, cleanup: AsyncExitStack) -> Gateway:
    # Events, variables and headers carry the addresses, so the ports are taken first and served last:
    # a client that comes early waits in the backlog instead of meeting half a gateway.
    websocket_listener = cleanup.enter_context(_listen(config.host, config.port, "--port"))
    http_listener = cleanup.enter_context(_listen(config.host, config.http_port, "--http-port"))
    addresses = Addresses(
        websocket=_address(config.host, websocket_listener), http=_address(config.host, http_listener)
    )
    connections = Connections(MESSAGE_LIMIT)
    functions = Functions(clock)
    integrations = Integrations(stack.api, functions, clock, config.integration_timeout)
    gateway = Gateway(stack, addresses, functions, connections)
    websocket = WebSocketSide(
        stack,
        config,
        clock,
        events=Events(stack.api, addresses),
        connections=connections,
        functions=functions,
        integrations=integrations,
    )
    app = Management(stack.api, connections, functions).application()
    if config.static:
        StaticFiles(config.static, gateway.websocket_url, gateway.http_url).add_to(app)

    # Closing goes backwards: say good-bye to clients, end the processes, then close the ports that the
    # processes and the last handlers use.
    local = {name: _localized(function, stack, gateway) for name, function in stack.functions.items()}
    await functions.start(local, _runtime_settings(config, region, gateway))
    await _serve_http(app, http_listener, cleanup)
    await websocket.start(websocket_listener)
    cleanup.push_async_callback(websocket.closed)
    cleanup.push_async_callback(functions.close)
    cleanup.push_async_callback(integrations.close)
    cleanup.push_async_callback(websocket.close)
    if config.schedules:
        schedules = Schedules(stack, functions, clock)
        schedules.start()
        cleanup.push_async_callback(schedules.close)
    return gateway


def _listen(host: str, port: int, option: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(
            f"{host}:{port} cannot be listened on ({error}); choose another with {option} or --host."
        ) from error


async def _serve_http(app: web.Application, listener: socket.socket, cleanup: AsyncExitStack) -> None:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    cleanup.push_async_callback(runner.cleanup)
    await web.SockSite(runner, listener).start()


def _runtime_settings(config: GatewayConfig, region: str, gateway: Gateway) -> RuntimeSettings:
    # boto3 takes these for clients that are made without an endpoint.
    endpoints = {
        "AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI": gateway.management_url,
        "AWS_ENDPOINT_URL_LAMBDA": gateway.http_url,
    }
    return RuntimeSettings(
        python=_absolute(config.python),
        region=region,
        max_concurrency=config.max_concurrency,
        freeze=config.freeze,
        own_runtime=config.own_runtime,
        snapshots=config.snapshots,
        environment={**endpoints, **config.environment},
        function_environment=config.function_environment,
    )


def _localized(function: Function, stack: Stack, gateway: Gateway) -> Function:
    """Variables with the API's address on AWS get the local one, so that handlers come here unchanged."""
    host = stack.api.host
    websocket = gateway.websocket_url.rpartition("/")[0]
    environment = {
        name: value.replace(f"https://{host}", gateway.http_url).replace(f"wss://{host}", websocket)
        for name, value in function.environment.items()
    }
    return replace(function, environment=environment)


def _check_function_names(config: GatewayConfig, stack: Stack) -> None:
    unknown = sorted(set(config.function_environment) - set(stack.functions))
    if unknown:
        raise ConfigurationError(
            f"There is no function {', '.join(unknown)} to set variables of; "
            f"the template has {', '.join(sorted(stack.functions)) or 'none'}."
        )


def _absolute(python: str) -> str:
    """Processes start in their function's folder. Links stay: a virtual environment is one."""
    return str(Path(python).absolute()) if os.sep in python else python


def _address(host: str, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
