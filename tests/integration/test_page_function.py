"""The page function: CloudFormation's events, a bucket, and a real HTTP server that takes the answers."""

import asyncio
import importlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest
from moto import mock_aws

from superbizagent import bootstrap
from superbizagent.adapters import cloudformation
from tests.deployed_page import build_layer
from tests.http_stub import HttpStub, http_stub

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

WEB = Path(__file__).parents[2] / "web"
REGION: Final = "eu-central-1"
BUCKET = "superbizagent-page"
RESOURCE = "arn:aws:cloudformation:eu-central-1:123456789012:stack/superbizagent/51af3dc0/PageFiles"
CONFIG = {"websocketUrl": "wss://a1.execute-api.eu-central-1.amazonaws.com/live", "signIn": {"clientId": "page"}}

Json = dict[str, Any]


@dataclass(frozen=True)
class Context:
    """`remaining` counts down, as Lambda's does."""

    remaining: float = 120.0
    function_name: str = "page"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:eu-central-1:123456789012:function:page"
    aws_request_id: str = "88888888-4444-4444-4444-121212121212"
    log_stream_name: str = "2026/11/30/[$LATEST]5d3a"
    began: float = field(default_factory=time.monotonic)

    def get_remaining_time_in_millis(self) -> int:
        return round((self.began + self.remaining - time.monotonic()) * 1000)


@dataclass
class Deployment:
    """CloudFormation as the function sees it, and the bucket."""

    module: ModuleType
    stub: HttpStub
    s3: "S3Client"
    folder: Path

    async def deploy(self, kind: str = "Create", **properties: Any) -> Json:
        """The one answer to an event."""
        known = len(self.stub.received)
        event = {
            "RequestType": kind,
            "ResponseURL": f"{self.stub.url}/bucket?X-Amz-Signature=canary",
            "StackId": RESOURCE.rpartition("/")[0],
            "RequestId": f"request-{known}",
            "LogicalResourceId": "PageFiles",
            "ResourceType": "Custom::Page",
            "ResourceProperties": {
                "ServiceToken": "arn:aws:lambda:eu-central-1:123456789012:function:page",
                "Bucket": BUCKET,
                "Config": CONFIG,
                **properties,
            },
            **({} if kind == "Create" else {"PhysicalResourceId": RESOURCE}),
        }
        assert await asyncio.to_thread(self.module.handler, event, Context()) is None
        [received] = self.stub.received[known:]
        answer: Json = received.json
        assert answer["PhysicalResourceId"] == RESOURCE
        return answer

    def stored(self) -> dict[str, bytes]:
        found = self.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {one["Key"]: self.s3.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read() for one in found}


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POWERTOOLS_LOG_DEDUPLICATION_DISABLED", "true")
        patch.setenv("POWERTOOLS_LOGGER_LOG_EVENT", "true")
        yield importlib.import_module("functions.page.app")


@pytest.fixture
async def deployment(module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Deployment]:
    folder = build_layer(tmp_path)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "PAGE_FOLDER": str(folder),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cloudformation, "FIRST_PAUSE", 0.001)
    bootstrap.services.cache_clear()
    with mock_aws():
        s3 = boto3.session.Session().client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        async with http_stub() as stub:
            yield Deployment(module, stub, s3, folder)
    bootstrap.services.cache_clear()


async def test_the_page_is_stored_as_it_is_with_its_configuration(deployment: Deployment) -> None:
    answer = await deployment.deploy()
    assert (answer["Status"], answer["Data"]) == ("SUCCESS", {})
    own = {path.relative_to(WEB).as_posix(): path.read_bytes() for path in WEB.rglob("*") if path.is_file()}
    del own["Makefile"]
    stored = deployment.stored()
    assert json.loads(stored.pop("config.json")) == CONFIG
    assert stored == own


async def test_every_file_has_its_type_and_is_asked_for_again(deployment: Deployment) -> None:
    await deployment.deploy()
    types = {}
    for name in deployment.stored():
        head = deployment.s3.head_object(Bucket=BUCKET, Key=name)
        assert head["CacheControl"] == "no-cache"
        types[Path(name).suffix] = head["ContentType"]
    assert types == {
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".svg": "image/svg+xml",
    }


async def test_an_update_writes_what_is_new_and_removes_what_is_gone(deployment: Deployment) -> None:
    await deployment.deploy()
    (deployment.folder / "words.js").unlink()
    (deployment.folder / "more.css").write_text("p {}")
    deployment.s3.put_object(Bucket=BUCKET, Key="view/old.js", Body=b"old")
    before = deployment.stored().keys()
    changed = {**CONFIG, "websocketUrl": "wss://b2.example.com/live"}
    assert (await deployment.deploy("Update", Config=changed))["Status"] == "SUCCESS"
    stored = deployment.stored()
    assert before ^ stored.keys() == {"words.js", "more.css", "view/old.js"}
    assert json.loads(stored["config.json"]) == changed


async def test_a_deleted_page_leaves_a_bucket_that_can_be_deleted(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await deployment.deploy()
    # In place of a thousand, so that the page is more than one listing holds, and one deletion.
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")
    assert deployment.s3.list_objects_v2(Bucket=BUCKET)["IsTruncated"]
    assert (await deployment.deploy("Delete"))["Status"] == "SUCCESS"
    deployment.s3.delete_bucket(Bucket=BUCKET)
    # As after a creation that got no further, or when somebody was quicker.
    assert (await deployment.deploy("Delete"))["Status"] == "SUCCESS"


async def test_a_bucket_that_is_not_there_is_a_failed_deployment(deployment: Deployment) -> None:
    deployment.s3.delete_bucket(Bucket=BUCKET)
    answer = await deployment.deploy()
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].startswith("PAGE_NOT_PUBLISHED: ")
    assert "[$LATEST]5d3a" in answer["Reason"]


@pytest.mark.parametrize("kind", ["Update", "Delete"])
async def test_a_file_that_may_not_be_deleted_is_a_failed_deployment(deployment: Deployment, kind: str) -> None:
    """S3 tells it in an answer that says it succeeded."""
    deployment.s3.put_object(Bucket=BUCKET, Key="old.js", Body=b"")
    denied = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:DeleteObject",
        "Resource": f"arn:aws:s3:::{BUCKET}/old.js",
    }
    deployment.s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps({"Version": "2012-10-17", "Statement": [denied]}))
    answer = await deployment.deploy(kind)
    assert (answer["Status"], answer["Reason"].partition(":")[0]) == ("FAILED", "PAGE_NOT_PUBLISHED")
    assert "old.js" in deployment.stored()


@pytest.mark.parametrize("broken", ["no index", "no such folder", "unknown kind", "no setting"])
async def test_a_package_that_is_no_page_is_a_failed_deployment(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    match broken:
        case "no index":
            (deployment.folder / "index.html").unlink()
        case "no such folder":
            monkeypatch.setenv("PAGE_FOLDER", "/nowhere")
        case "unknown kind":
            (deployment.folder / "page.wasm").touch()
        case _:
            monkeypatch.delenv("PAGE_FOLDER")
    answer = await deployment.deploy()
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].partition(":")[0] in ("PAGE_NOT_PUBLISHED", "CONFIGURATION_ERROR")
    assert deployment.stored() == {}


@pytest.mark.spec("SEC-4")
async def test_a_defect_is_told_without_a_word_of_it(
    deployment: Deployment, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = await deployment.deploy(Config="canary")
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].startswith("INTERNAL_FAILURE: ")
    assert "canary" not in answer["Reason"] + "".join(capfd.readouterr()) + caplog.text
