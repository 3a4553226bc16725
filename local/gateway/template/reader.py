"""YAML with CloudFormation's short tags, as plain dictionaries in the long form."""

from pathlib import Path
from typing import Any

import yaml

from local.gateway.errors import TemplateError

TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.SafeLoader):
    pass


# CloudFormation reads `Version: 2012-10-17` as text.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _short_tag(loader: _Loader, name: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)  # noqa: S101 - there are no other nodes
        value = loader.construct_mapping(node, deep=True)
    if name == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {name if name in ("Ref", "Condition") else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _short_tag)


def read_document(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(f"The template {path} cannot be read ({error}); name it with --template.") from error
    try:
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader with CloudFormation's tags
    except yaml.YAMLError as error:
        raise TemplateError(f"The template {path} is not valid YAML: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
        raise TemplateError(f"{path} has no Resources; is it a SAM or CloudFormation template?")
    return document
