"""Translates template.yaml into plain CloudFormation, as the service would, without an account: for tools and tests.

python -m tests.translated_template [PARAMETER=VALUE …] > translated.json
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

from local.gateway.template.reader import read_document

TEMPLATE = Path(__file__).resolve().parent.parent / "template.yaml"
ARTIFACTS = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}
# Those that SAM adds to functions' roles by itself; known by name, so that nobody has to be asked for them.
POLICIES = {
    name: f"arn:aws:iam::aws:policy/{path}{name}"
    for path, name in (
        ("service-role/", "AWSLambdaBasicExecutionRole"),
        ("service-role/", "AWSLambdaVPCAccessExecutionRole"),
        ("", "AWSXrayWriteOnlyAccess"),
        ("", "AWSXRayDaemonWriteAccess"),
    )
}

PSEUDO = {
    "AWS::AccountId": "111122223333",
    "AWS::NotificationARNs": "",
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "AWS::StackId": "arn:aws:cloudformation:us-east-1:111122223333:stack/s/1",
    "AWS::StackName": "s",
    "AWS::URLSuffix": "amazonaws.com",
}
"""Of a stack of no account."""


def translate(
    parameters: Mapping[str, str] | None = None, edit: Callable[[dict[str, Any]], None] = lambda _: None
) -> dict[str, Any]:
    """The template with its packages uploaded, after the transform. `parameters` replace defaults; `edit` is what
    somebody changes in the template before it is deployed.
    """
    document = read_document(TEMPLATE)
    for resource in document["Resources"].values():
        artifact = ARTIFACTS.get(resource["Type"])
        if artifact is not None:
            name = resource["Properties"][artifact].replace("/", "-")
            resource["Properties"][artifact] = f"s3://packages/{name}"
    edit(document)
    for name, value in (parameters or {}).items():
        document["Parameters"][name]["Default"] = value
    translator = Translator(POLICIES, Parser())
    translated: dict[str, Any] = translator.translate(document, dict(parameters or {}))
    return translated


if __name__ == "__main__":
    json.dump(translate(dict(pair.split("=", 1) for pair in sys.argv[1:])), sys.stdout, indent=1)
