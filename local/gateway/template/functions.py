"""AWS::Serverless::Function, its layers, its schedules and what applies to its asynchronous invocations."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from local.gateway.errors import TemplateError, Unsupported
from local.gateway.model import Function, Schedule
from local.gateway.template.identifiers import FUNCTION, LAYER
from local.gateway.template.intrinsics import NO_VALUE, Resolver, Unresolved

Notice = Callable[[str], None]
RATE = re.compile(r"rate\(\s*(\d+)\s+(minute|hour|day)s?\s*\)")
RULE = ("Enabled", "Input", "Schedule", "ScheduleExpression", "State")
SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400}


def read_functions(
    document: Mapping[str, Any], resolver: Resolver, folder: Path, notice: Notice, given: Collection[str] = ()
) -> dict[str, Function]:
    """`given` are variables that the functions get in any case: what the template says of them matters to nobody."""
    defaults = (document.get("Globals") or {}).get("Function") or {}
    asynchronous = _asynchronous_settings(resolver)
    functions = {}
    left_out: dict[str, list[str]] = {}
    for logical_id, resource in resolver.resources.items():
        if resource.get("Type") == FUNCTION:
            properties = merge(defaults, resource.get("Properties") or {})
            reader = _Reader(logical_id, properties, resolver, folder, notice, given)
            functions[logical_id] = reader.read(asynchronous.get(logical_id, {}))
            for reason in reader.left_out:
                left_out.setdefault(reason, []).append(logical_id)
    for reason, names in left_out.items():
        # Globals give the same variable to every function: one line, not one a function.
        notice(f"{reason} (function {', '.join(names)}).")
    return functions


def merge(defaults: Any, own: Any) -> Any:
    """As SAM merges Globals: maps by key, lists one after the other, anything else is replaced."""
    if isinstance(defaults, dict) and isinstance(own, dict) and not (_is_call(defaults) or _is_call(own)):
        return {**defaults, **{key: merge(defaults.get(key), value) for key, value in own.items()}}
    if isinstance(defaults, list) and isinstance(own, list):
        return [*defaults, *own]
    return own


def _is_call(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and (next(iter(value)) == "Ref" or str(next(iter(value))).startswith("Fn::"))


def _asynchronous_settings(resolver: Resolver) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for resource in resolver.resources.values():
        if resource.get("Type") == "AWS::Lambda::EventInvokeConfig":
            properties = resource.get("Properties") or {}
            function = resolver.identifiers.function_of(str(resolver.resolve(properties.get("FunctionName", ""))))
            if function:
                found[function] = properties
    return found


class _Reader:
    def __init__(
        self,
        logical_id: str,
        properties: Mapping[str, Any],
        resolver: Resolver,
        folder: Path,
        notice: Notice,
        given: Collection[str],
    ) -> None:
        self._id = logical_id
        self._properties = properties
        self._resolver = resolver
        self._folder = folder
        self._notice = notice
        self._given = given
        self.left_out: list[str] = []

    def read(self, asynchronous: Mapping[str, Any]) -> Function:
        runtime = self._runtime()
        settings = merge(self._properties.get("EventInvokeConfig") or {}, asynchronous)
        reserved = self._get("ReservedConcurrentExecutions", None)
        return Function(
            logical_id=self._id,
            name=self._resolver.identifiers.function_name(self._id),
            arn=self._resolver.identifiers.function_arn(self._id),
            handler=str(self._get("Handler")),
            runtime=runtime,
            code=self._folder_of("CodeUri", self._get("CodeUri", ".")),
            layers=tuple(self._layers()),
            environment=dict(self._environment()),
            timeout=float(self._get("Timeout", 3)),
            memory=int(self._get("MemorySize", 128)),
            concurrency=int(reserved) if reserved is not None else None,
            retries=int(self._resolver.resolve(settings.get("MaximumRetryAttempts", 0))),
            max_event_age=float(self._resolver.resolve(settings.get("MaximumEventAgeInSeconds", 21_600))),
            schedules=tuple(self._schedules()),
        )

    def _get(self, name: str, default: Any = ...) -> Any:
        if name not in self._properties:
            if default is ...:
                raise TemplateError(f"Function {self._id} has no {name}; set it there or in Globals.Function.")
            return default
        try:
            value = self._resolver.resolve(self._properties[name])
        except Unresolved as error:
            raise TemplateError(f"{name} of function {self._id} is needed, but {error}.") from error
        return default if value is NO_VALUE else value

    def _runtime(self) -> str:
        if self._get("PackageType", "Zip") == "Image" or "InlineCode" in self._properties:
            raise Unsupported(f"Function {self._id} is an image or inline code; this tool runs Python from a CodeUri.")
        runtime = str(self._get("Runtime"))
        if not runtime.startswith("python3"):
            raise Unsupported(
                f"Function {self._id} has the runtime {runtime}; this tool runs Python functions only. "
                "Give the function a Condition that is false locally."
            )
        return runtime

    def _folder_of(self, what: str, uri: Any) -> Path:
        if not isinstance(uri, str) or "://" in uri:
            raise Unsupported(f"{what} of {self._id} is not a local folder; build or name one.")
        folder = (self._folder / uri).resolve()
        if not folder.is_dir():
            raise TemplateError(f"{what} of {self._id} is {uri}, which is no folder beside the template.")
        return folder

    def _layers(self) -> Iterator[Path]:
        for layer in self._resolver.choose(self._properties.get("Layers")) or []:
            try:
                arn = self._resolver.resolve(layer)
            except Unresolved:
                arn = layer
            if arn is NO_VALUE:
                continue
            logical_id = str(arn).rpartition(":layer:")[2].partition(":")[0]
            resource = self._resolver.resources.get(logical_id, {})
            if resource.get("Type") != LAYER:
                self._notice(f"Layer {arn} of {self._id} is not in this template; install its packages locally.")
                continue
            uri = self._resolver.resolve((resource.get("Properties") or {}).get("ContentUri", "."))
            content = self._folder_of(f"ContentUri of layer {logical_id}", uri)
            # Built layers hold python/; the source of one is often the packages themselves.
            if (content / "python").is_dir():
                yield content / "python"
            yield content

    def _environment(self) -> Iterator[tuple[str, str]]:
        environment = self._resolver.choose(self._properties.get("Environment")) or {}
        variables = self._resolver.choose(environment.get("Variables")) or {}
        for name, value in variables.items():
            try:
                resolved = self._resolver.resolve(value)
            except Unresolved as error:
                if name not in self._given:
                    self.left_out.append(f"The variable {name} is left out: {error}")
                continue
            if resolved is not NO_VALUE:
                yield name, str(resolved).lower() if isinstance(resolved, bool) else str(resolved)

    def _schedules(self) -> Iterator[Schedule]:
        for name, event in (self._properties.get("Events") or {}).items():
            if event.get("Type") not in ("Schedule", "ScheduleV2"):
                continue
            version_2 = event["Type"] == "ScheduleV2"
            properties = event.get("Properties") or {}
            rule = self._resolver.resolve({key: properties[key] for key in RULE if key in properties})
            if rule.get("Enabled") is False or rule.get("State") == "DISABLED":
                continue
            expression = str(rule.get("ScheduleExpression" if version_2 else "Schedule", ""))
            match = RATE.fullmatch(expression.strip())
            if match is None:
                self._notice(f"Schedule {name} of {self._id} is not fired: {expression} is no rate(…).")
                continue
            source: Literal["aws.events", "aws.scheduler"] = "aws.scheduler" if version_2 else "aws.events"
            period = float(match[1]) * SECONDS[match[2]]
            yield Schedule(name=f"{self._id}{name}", period=period, source=source, input=_json(rule.get("Input")))


def _json(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        raise TemplateError(f"The Input of a schedule is not JSON: {text}") from error
