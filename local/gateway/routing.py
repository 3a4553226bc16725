"""Which route a message takes."""

import json
from typing import Any

from local.gateway.model import CONNECT, DEFAULT, DISCONNECT, Api, Route

NOT_JSON = object()


def parse(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):  # too deeply nested is as good as not JSON
        return NOT_JSON


def select_route(api: Api, body: str) -> Route | None:
    """A message can't name $connect or $disconnect: nothing on a socket may pass for the life of a socket."""
    key = _at(parse(body), api.selection)
    if isinstance(key, str) and key not in (CONNECT, DISCONNECT) and key in api.routes:
        return api.routes[key]
    return api.routes.get(DEFAULT)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
