"""The functions as `make build` makes them, for the architecture of this machine."""

import json
import shutil
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samcli.lib.providers.provider import LayerVersion

from local.demo.make import make as make_demo
from local.gateway.template.reader import read_document
from superbizagent.settings import environment
from tests.sam_local.processes import Failed, run

ROOT = Path(__file__).resolve().parents[2]
BUILD_SECONDS = 900.0
PLATFORMS = {"x86_64": "x86_64-manylinux2014", "arm64": "aarch64-manylinux2014"}
TASK = "/var/task"
"""Where a container has a function's folder."""
AUTHORITY = "authority.pem"
DEMO = "demo"
FUNCTION, LAYER = "AWS::Serverless::Function", "AWS::Serverless::LayerVersion"


def tools(given: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of SAM CLI: what is given, the tools of this virtual environment, and nobody's account."""
    return {
        **given,
        "PATH": f"{Path(sys.executable).parent}:{given['PATH']}",
        "SAM_CLI_TELEMETRY": "0",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_SESSION_TOKEN": "",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_REGION": "eu-central-1",
    }


async def build(folder: Path, architecture: str) -> Path:
    """The built template, under `folder`. Raises Failed."""
    template, built = folder / "template.json", folder / "build"
    template.write_text(json.dumps(for_architecture(read_document(ROOT / "template.yaml"), architecture)))
    command = ["sam", "build", "--template", str(template), "--base-dir", str(ROOT), "--build-dir", str(built)]
    command += ["--cache-dir", str(folder / "cache"), "--parallel"]
    variables = {**tools(environment()), "LAYER_PLATFORM": PLATFORMS[architecture]}
    done = await run(command, variables, folder, BUILD_SECONDS)
    if done.status != 0:
        raise Failed(f"`sam build` failed; it needs Python 3.13 on the path:\n{done.errors[-2000:]}")
    # A function's folder is all that its container has of this machine.
    make_demo(built / "ChatFunction" / DEMO)
    shutil.copyfile(folder / AUTHORITY, built / "AuthorizerFunction" / AUTHORITY)
    return publish_layers(built / "template.yaml", folder / "layers")


def for_architecture(template: dict[str, Any], architecture: str) -> dict[str, Any]:
    """The template with that architecture in place of its own, and an authorizer that can be told whom to trust."""
    template["Globals"]["Function"]["Architectures"] = [architecture]
    for resource in template["Resources"].values():
        if resource["Type"] == LAYER and "BuildArchitecture" in resource["Metadata"]:
            resource["Metadata"]["BuildArchitecture"] = architecture
            resource["Properties"]["CompatibleArchitectures"] = [architecture]
    authorizer = template["Resources"]["AuthorizerFunction"]["Properties"]
    authorizer["Environment"]["Variables"]["SSL_CERT_FILE"] = ""
    return template


def publish_layers(template: Path, cache: Path) -> Path:
    """A template whose layers are versions in an account, with SAM CLI's cache as if it had downloaded them.

    For a layer in the template it makes a new image for each call, which takes longer than all the rest of it.
    """
    document = read_document(template)
    resources = document["Resources"]
    arns = {}
    for name in [name for name, resource in resources.items() if resource["Type"] == LAYER]:
        # No image that an earlier call has left can pass for ours.
        arns[name] = f"arn:aws:lambda:eu-central-1:123456789012:layer:{name}-{uuid.uuid4().hex}:1"
        cache.mkdir(exist_ok=True)
        shutil.move(template.parent / resources.pop(name)["Properties"]["ContentUri"], cache / _cached(arns[name]))
    with_layers = [document["Globals"]["Function"]]
    with_layers += [one["Properties"] for one in resources.values() if one["Type"] == FUNCTION]
    for properties in with_layers:
        if "Layers" in properties:
            properties["Layers"] = [arns[layer["Ref"]] for layer in properties["Layers"]]
    published = template.with_name("published.json")
    published.write_text(json.dumps(document))
    return published


def _cached(arn: str) -> str:
    """What SAM CLI names the folder."""
    name: str = LayerVersion(arn, None).name
    return name
