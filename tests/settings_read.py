"""What each function reads of its environment, by its code: from its handler through bootstrap to the settings."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from superbizagent import bootstrap, settings

FUNCTIONS = Path(__file__).parents[1] / "functions"
Shape = type[BaseModel]


@dataclass(frozen=True)
class Read:
    """One reading of settings; `field` alone where nothing else of them is looked at."""

    shape: Shape
    field: str | None = None

    @property
    def variables(self) -> set[str]:
        return {name.upper() for name in ([self.field] if self.field else self.shape.model_fields)}


@dataclass(frozen=True)
class Environment:
    """What one function may read, whichever way it goes."""

    reads: frozenset[Read]

    @property
    def shapes(self) -> set[Shape]:
        return {read.shape for read in self.reads}

    @property
    def variables(self) -> set[str]:
        return {name for read in self.reads for name in read.variables}


def environments() -> Mapping[str, Environment]:
    """By the name of the function's folder."""
    return {path.parent.name: environment_of(path.read_text(encoding="utf-8")) for path in FUNCTIONS.glob("*/app.py")}


def environment_of(handler: str) -> Environment:
    """Of a handler with this text. All that it has of the settings it has by `bootstrap.<name>`."""
    reached, left = set[str](), set(_of_bootstrap(ast.parse(handler)))
    while left:
        name = left.pop()
        reached.add(name)
        left |= set(_used_in(_PARTS[name])) - reached
    return Environment(frozenset(read for name in reached for read in _reads_in(_PARTS[name])))


def _functions(body: Sequence[ast.stmt]) -> dict[str, ast.AST]:
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


_BOOTSTRAP = ast.parse(Path(bootstrap.__file__).read_text(encoding="utf-8"))
[_SERVICES] = [node for node in _BOOTSTRAP.body if isinstance(node, ast.ClassDef)]
_OF_MODULE, _OF_SERVICES = _functions(_BOOTSTRAP.body), _functions(_SERVICES.body)
_PARTS = _OF_MODULE | _OF_SERVICES
assert len(_PARTS) == len(_OF_MODULE) + len(_OF_SERVICES), "a function is named like a part of Services"


def _of_bootstrap(handler: ast.AST) -> Iterator[str]:
    for node in ast.walk(handler):
        match node:
            case ast.ImportFrom(module="superbizagent.bootstrap"):
                raise AssertionError("a name taken out of bootstrap can't be followed")
            case ast.Attribute(ast.Call(ast.Attribute(ast.Name("bootstrap"), "services")), name):
                yield name
            case ast.Attribute(ast.Name("bootstrap"), name):
                yield name


def _used_in(part: ast.AST) -> Iterator[str]:
    for node in ast.walk(part):
        match node:
            case ast.Attribute(ast.Name("self") | ast.Call(ast.Name("services")), name) if name in _OF_SERVICES:
                yield name
            case ast.Name(name) if name in _OF_MODULE:
                yield name


def _reads_in(part: ast.AST) -> Iterator[Read]:
    fields = {node.value: node.attr for node in ast.walk(part) if isinstance(node, ast.Attribute)}
    for node in ast.walk(part):
        match node:
            case ast.Call(ast.Name("read"), [ast.Name(shape)]):
                yield Read(getattr(settings, shape), fields.get(node))
