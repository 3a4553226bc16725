"""Reads a SAM or CloudFormation template into the values of `local.gateway.model`."""

from collections.abc import Collection, Mapping
from pathlib import Path

from local.gateway.model import Stack
from local.gateway.template.api import read_api
from local.gateway.template.functions import read_functions
from local.gateway.template.intrinsics import Resolver
from local.gateway.template.reader import read_document

__all__ = ["load_stack"]

ACCOUNT = "123456789012"


def load_stack(
    path: Path,
    *,
    overrides: Mapping[str, str] | None = None,
    region: str = "us-east-1",
    stack_name: str = "local",
    api: str | None = None,
    stage: str | None = None,
    given: Collection[str] = (),
) -> Stack:
    document = read_document(path)
    pseudo = {
        "AWS::AccountId": ACCOUNT,
        "AWS::Partition": "aws",
        "AWS::Region": region,
        "AWS::StackId": f"arn:aws:cloudformation:{region}:{ACCOUNT}:stack/{stack_name}/local",
        "AWS::StackName": stack_name,
        "AWS::URLSuffix": "amazonaws.com",
    }
    resolver = Resolver(document, overrides or {}, pseudo)
    notices: list[str] = []
    functions = read_functions(document, resolver, path.resolve().parent, notices.append, given)
    return Stack(
        api=read_api(document, resolver, notices.append, wanted=api, stage=stage),
        functions=functions,
        region=region,
        account=ACCOUNT,
        notices=tuple(notices),
    )
