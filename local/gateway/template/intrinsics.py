"""CloudFormation's functions, conditions, parameters and pseudo parameters."""

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from local.gateway.errors import TemplateError
from local.gateway.template.identifiers import Identifiers

NO_VALUE = object()
DYNAMIC = re.compile(r"\{\{resolve:[^}]*\}\}")
VARIABLE = re.compile(r"\$\{([^}]*)\}")


class Unresolved(TemplateError):
    """A value that only exists once the stack is deployed, such as the address of a database."""


class Resolver:
    def __init__(
        self,
        document: Mapping[str, Any],
        overrides: Mapping[str, str],
        pseudo: Mapping[str, str],
    ) -> None:
        self._mappings = document.get("Mappings") or {}
        self._conditions = document.get("Conditions") or {}
        self._decided: dict[str, bool] = {}
        self._deciding: set[str] = set()
        self._pseudo = pseudo
        self._parameters = _parameters(document.get("Parameters") or {}, overrides)
        self.resources: dict[str, dict[str, Any]] = {
            name: resource
            for name, resource in document["Resources"].items()
            if isinstance(resource, dict) and self._exists(resource)
        }
        self.identifiers = Identifiers(self.resources, pseudo, self.resolve)

    def resolve(self, value: Any) -> Any:
        """The value with every function replaced; raises Unresolved where that needs a deployed stack."""
        match value:
            case str():
                if DYNAMIC.search(value):
                    raise Unresolved(f"{value} is looked up on AWS")
                return value
            case list():
                return [item for item in map(self.resolve, value) if item is not NO_VALUE]
            case dict():
                return self._resolve_mapping(value)
        return value

    def choose(self, value: Any) -> Any:
        """Only the branch of Fn::If, so that the caller can resolve its items one by one."""
        while isinstance(value, dict) and list(value) == ["Fn::If"]:
            name, yes, no = value["Fn::If"]
            value = yes if self.condition(name) else no
        return None if value == {"Ref": "AWS::NoValue"} else value

    def condition(self, name: str) -> bool:
        if name not in self._decided:
            if name not in self._conditions:
                raise TemplateError(f"Condition {name} is used but not declared in Conditions.")
            if name in self._deciding:
                raise TemplateError(f"Condition {name} depends on itself.")
            self._deciding.add(name)
            self._decided[name] = self._decide(self._conditions[name])
            self._deciding.discard(name)
        return self._decided[name]

    def _exists(self, resource: Mapping[str, Any]) -> bool:
        name = resource.get("Condition")
        return name is None or self.condition(name)

    def _resolve_mapping(self, value: dict[str, Any]) -> Any:
        if len(value) == 1:
            name, argument = next(iter(value.items()))
            if function := self._functions().get(name):
                return function(argument)
            if isinstance(name, str) and name.startswith("Fn::"):
                raise Unresolved(f"{name} cannot be worked out locally")
        resolved = {key: self.resolve(item) for key, item in value.items()}
        return {key: item for key, item in resolved.items() if item is not NO_VALUE}

    def _functions(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "Ref": self._ref,
            "Fn::Base64": lambda text: base64.b64encode(str(self.resolve(text)).encode()).decode(),
            "Fn::FindInMap": self._find_in_map,
            "Fn::GetAtt": self._get_att,
            "Fn::If": self._if,
            "Fn::Join": self._join,
            "Fn::Length": lambda items: len(self.resolve(items)),
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::Sub": self._sub,
            "Fn::ToJsonString": lambda item: json.dumps(self.resolve(item)),
            **dict.fromkeys(("Fn::Equals", "Fn::And", "Fn::Or", "Fn::Not"), self._decide),
        }

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self._pseudo:
            return self._pseudo[name]
        if name in self._parameters:
            return self._parameters[name]()
        if (identifier := self.identifiers.ref(name)) is not None:
            return identifier
        raise Unresolved(f"{name} exists only in a deployed stack")

    def _get_att(self, argument: Any) -> Any:
        name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        if (found := self.identifiers.attribute(name, str(self.resolve(attribute)))) is not None:
            return found
        raise Unresolved(f"{name}.{attribute} exists only in a deployed stack")

    def _find_in_map(self, argument: list[Any]) -> Any:
        name, first, second, *rest = (self.resolve(item) for item in argument)
        try:
            return self._mappings[name][first][second]
        except (KeyError, TypeError) as error:
            if rest and isinstance(rest[0], dict) and "DefaultValue" in rest[0]:
                return rest[0]["DefaultValue"]
            raise TemplateError(f"Mappings has no entry {name}.{first}.{second}.") from error

    def _if(self, argument: list[Any]) -> Any:
        name, yes, no = argument
        return self.resolve(yes if self.condition(name) else no)

    def _join(self, argument: list[Any]) -> str:
        separator, parts = argument
        return str(separator).join(str(part) for part in self.resolve(parts))

    def _select(self, argument: list[Any]) -> Any:
        index, items = self.resolve(argument)
        return items[int(index)]

    def _split(self, argument: list[Any]) -> list[str]:
        separator, text = self.resolve(argument)
        return str(text).split(separator)

    def _sub(self, argument: Any) -> str:
        text, variables = (argument, {}) if isinstance(argument, str) else argument

        def replace(match: re.Match[str]) -> str:
            name = match[1].strip()
            if name.startswith("!"):  # ${!Literal}
                return "${" + name[1:] + "}"
            if name in variables:
                return _text(self.resolve(variables[name]))
            if name in self._pseudo or name in self._parameters or "." not in name:
                return _text(self._ref(name))
            return _text(self._get_att(name))

        return str(self.resolve(VARIABLE.sub(replace, text)))

    def _decide(self, rule: Any) -> bool:
        if not isinstance(rule, dict) or len(rule) != 1:
            return _true(self.resolve(rule))
        name, argument = next(iter(rule.items()))
        match name:
            case "Condition":
                return self.condition(argument)
            case "Fn::And":
                return all(self._decide(item) for item in argument)
            case "Fn::Or":
                return any(self._decide(item) for item in argument)
            case "Fn::Not":
                return not self._decide(argument[0])
            case "Fn::Equals":
                left, right = (self.resolve(item) for item in argument)
                return _text(left) == _text(right)
        return _true(self.resolve(rule))


def _true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _parameters(declared: Mapping[str, Any], overrides: Mapping[str, str]) -> dict[str, Callable[[], Any]]:
    unknown = sorted(set(overrides) - set(declared))
    if unknown:
        known = ", ".join(sorted(declared)) or "none"
        raise TemplateError(f"The template has no parameter {', '.join(unknown)}; it has {known}.")
    return {name: _parameter(name, rule or {}, overrides) for name, rule in declared.items()}


def _parameter(name: str, rule: Mapping[str, Any], overrides: Mapping[str, str]) -> Callable[[], Any]:
    kind = str(rule.get("Type", "String"))

    def value() -> Any:
        if name in overrides:
            found: Any = overrides[name]
        elif kind.startswith("AWS::SSM::Parameter::Value"):
            raise Unresolved(f"parameter {name} is looked up on AWS; pass it with --parameter-overrides {name}=…")
        elif "Default" in rule:
            found = rule["Default"]
        else:
            raise Unresolved(f"parameter {name} has no default; pass it with --parameter-overrides {name}=…")
        if kind == "CommaDelimitedList" or kind.startswith("List<"):
            return [part.strip() for part in str(found).split(",")]
        return _text(found)

    return value
