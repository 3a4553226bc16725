"""Mapping templates: Velocity with API Gateway's $input, $context, $util and $stageVariables.

What the client sends is only ever a value that a template puts out; it is never parsed as a template.
"""

import base64
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote_plus, unquote_plus

import airspeed

from local.gateway.errors import GatewayError

SURROGATE = re.compile("[\ud800-\udfff]")
STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]|\[['\"]([^'\"]*)['\"]\]")


class MappingError(GatewayError):
    """The template of an integration failed."""


def render(template: str, *, body: str, context: Mapping[str, Any], stage_variables: Mapping[str, str]) -> str:
    try:
        names = {
            "context": _visible(context),
            "input": _Input(body),
            "stageVariables": _visible(stage_variables),
            "util": _Util(),
        }
        rendered = _compiled(template).merge(names)
    except airspeed.TemplateError as error:
        raise MappingError(f"A mapping template failed: {error}") from error
    return str(rendered)


@lru_cache(maxsize=64)
def _compiled(template: str) -> Any:
    compiled = airspeed.Template(template)
    compiled.ensure_compiled()
    return compiled


class _Nothing(str):
    """An unknown variable is the empty text, and so is everything in it."""

    __slots__ = ()

    def __getitem__(self, name: Any) -> "_Nothing":
        return self


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> _Nothing:
        return _Nothing()


class _Boolean(int):
    """Written the way JSON does."""

    def __str__(self) -> str:
        return "true" if self else "false"


def _visible(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _Names({str(name): _visible(item) for name, item in value.items()})
    if isinstance(value, list):
        return [_visible(item) for item in value]
    if isinstance(value, bool):
        return _Boolean(value)
    return _Nothing() if value is None else value


class _Input:
    def __init__(self, body: str) -> None:
        self.body = body

    def json(self, path: str) -> str:
        text = json.dumps(self._find(path), ensure_ascii=False, separators=(",", ":"))
        return SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)

    def path(self, path: str) -> Any:
        return _visible(self._find(path))

    def params(self, *_: str) -> _Names:
        """Messages have no parameters."""
        return _Names()

    def _find(self, path: str) -> Any:
        value = json.loads(self.body)
        rest = path.removeprefix("$")
        if STEP.sub("", rest):
            raise MappingError(f"The path {path} is not followed; use names and indexes.")
        for name, index, quoted in STEP.findall(rest):
            value = _step(value, int(index) if index else name or quoted)
        return value


def _step(value: Any, step: str | int) -> Any:
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        return None


class _Util:
    def base64Encode(self, text: Any) -> str:  # noqa: N802 - the names are API Gateway's
        return base64.b64encode(str(text).encode()).decode()

    def base64Decode(self, text: Any) -> str:  # noqa: N802
        return base64.b64decode(str(text)).decode()

    def escapeJavaScript(self, text: Any) -> str:  # noqa: N802
        """Also makes valid JSON of most texts; like API Gateway's it escapes the single quote too."""
        return json.dumps(str(text), ensure_ascii=True)[1:-1].replace("'", "\\'").replace("/", "\\/")

    def urlEncode(self, text: Any) -> str:  # noqa: N802
        return quote_plus(str(text))

    def urlDecode(self, text: Any) -> str:  # noqa: N802
        return unquote_plus(str(text))

    def parseJson(self, text: Any) -> Any:  # noqa: N802
        return _visible(json.loads(str(text)))
