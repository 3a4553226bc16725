"""The page as the stack deploys it, in a browser: the files in the bucket, under the headers that the template states,
with the product's WebSocket and a provider to sign in at."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest
import pytest_asyncio
from moto import mock_aws
from playwright.async_api import Browser, ConsoleMessage, Page, expect

from superbizagent.adapters.page_bucket import PageBucket
from superbizagent.adapters.sign_in.tokens import principal_name
from tests.deployed_page import Deployed, build_layer, deployed
from tests.e2e.conftest import new_page
from tests.http_stub import Received, Reply, http_stub
from tests.oidc_issuer import CLIENT, OidcIssuer, oidc_issuer
from tests.product.running import Product, running

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240), pytest.mark.spec("SEC-5")]

BUCKET = "page"


def stored(folder: Path, page: Deployed) -> dict[str, tuple[bytes, dict[str, str]]]:
    """What the page function leaves in the bucket: each file with the headers that S3 sends for it."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3 = boto3.session.Session().client("s3")
        s3.create_bucket(Bucket=BUCKET)
        PageBucket(BUCKET, folder).publish(page.config)
        found = {}
        for one in s3.list_objects_v2(Bucket=BUCKET)["Contents"]:
            file = s3.get_object(Bucket=BUCKET, Key=one["Key"])
            kept = {"Content-Type": file["ContentType"], "Cache-Control": file["CacheControl"]}
            found[one["Key"]] = (file["Body"].read(), kept)
        return found


@contextlib.asynccontextmanager
async def cloudfront(folder: Path, page: Deployed, **changed: str) -> AsyncIterator[str]:
    """The address under which the bucket's files are served, with the template's headers but those that are changed."""
    files = stored(folder, page)
    headers = {**page.headers, **{name.replace("_", "-"): value for name, value in changed.items()}}

    def serve(received: Received) -> Reply:
        # The distribution's root object.
        name = urlsplit(received.path).path.removeprefix("/") or "index.html"
        if name not in files:
            return Reply(status=403, headers=headers)
        body, own = files[name]
        return Reply(body, headers={**own, **headers})

    async with http_stub(serve) as stub:
        yield stub.url


@pytest_asyncio.fixture(loop_scope="session")
async def issuer() -> AsyncIterator[OidcIssuer]:
    async with oidc_issuer() as issuer:
        yield issuer


@pytest_asyncio.fixture(loop_scope="session")
async def product(sqlite_database: str, demo: Path, issuer: OidcIssuer) -> AsyncIterator[Product]:
    async with running(sqlite_database, demo, issuer) as started:
        yield started


def parameters(issuer: OidcIssuer) -> Mapping[str, str]:
    return {
        "PageClientId": CLIENT,
        "PageAuthorizationEndpoint": issuer.sign_in["authorizationEndpoint"],
        "PageTokenEndpoint": issuer.sign_in["tokenEndpoint"],
        "PageScope": issuer.sign_in["scope"],
    }


async def test_from_signing_in_to_an_answer_under_the_templates_headers(
    page: Page, product: Product, issuer: OidcIssuer, tmp_path: Path
) -> None:
    """`page` fails the test for any violation of the policy."""
    told = deployed(product.gateway.websocket_url, parameters(issuer))
    async with cloudfront(build_layer(tmp_path), told) as url:
        response = await page.goto(f"{url}/")
        assert response is not None
        sent = await response.all_headers()
        assert {name: sent.get(name.lower()) for name in told.headers} == told.headers
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator("#connection")).to_have_attribute("data-state", "open", timeout=60_000)
        # To the letter what the stack's output tells to register.
        assert page.url == f"{url}/"
        await page.locator("#question").fill("What can you do?")
        await page.locator("#question").press("Enter")
        await expect(page.locator(".answer[data-kind=SYSTEM_CHAT]")).to_be_visible(timeout=60_000)
        [row] = await product.rows()
        assert row["owner"] == principal_name(issuer.url, "ada")


@pytest.mark.parametrize("left_out", ["websocket", "token endpoint"])
async def test_the_policy_names_nothing_that_the_page_can_do_without(
    browser: Browser, product: Product, issuer: OidcIssuer, tmp_path: Path, left_out: str
) -> None:
    told = deployed(product.gateway.websocket_url, parameters(issuer))
    address = product.gateway.websocket_url if left_out == "websocket" else issuer.sign_in["tokenEndpoint"]
    policy = told.headers["Content-Security-Policy"]
    assert policy.count(address) == 1
    narrow = policy.replace(f" {address}", "")

    def refused(said: ConsoleMessage) -> bool:
        return address in said.text and "connect-src" in said.text

    async with (
        cloudfront(build_layer(tmp_path), told, Content_Security_Policy=narrow) as url,
        new_page(browser) as seen,
        seen.page.expect_console_message(refused, timeout=60_000),
    ):
        await seen.page.goto(f"{url}/")
        await seen.page.get_by_role("button", name="Sign in").click()
