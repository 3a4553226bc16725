"""The page on the whole product: a real browser, the gateway, the functions in their processes, a database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from superbizagent import ingest
from tests.product.running import Product, running

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]

QUESTION = "Why are checkouts failing since 14:00 on 2026-11-30?"


@pytest_asyncio.fixture(loop_scope="session")
async def product(sqlite_database: str, demo: Path) -> AsyncIterator[Product]:
    assert ingest.main([str(demo / "runbooks"), "--url", sqlite_database, "--collection", "runbooks"]) == 0
    async with running(sqlite_database, demo) as started:
        yield started


async def ask(page: Page, words: str) -> None:
    await expect(page.locator("#connection")).to_have_attribute("data-state", "open", timeout=40_000)
    await page.locator("#question").fill(words)
    await page.locator("#question").press("Enter")


@pytest.mark.spec("WIRE-5", "RELEASE-1", "KNOW-5")
async def test_from_the_question_to_the_evidence_and_again_after_a_reload(page: Page, product: Product) -> None:
    await page.goto(product.gateway.http_url)
    await expect(page.get_by_text("Answers come from the scripted demo model")).to_be_visible()
    await ask(page, QUESTION)
    answer = page.locator(".answer[data-kind=DIAGNOSIS]")
    await expect(answer).to_contain_text("CHG-3107", timeout=60_000)
    await answer.get_by_role("button", name="S1").first.click()
    await expect(answer).to_contain_text(
        "Payment gateway timed out after 3000 ms, order stays PENDING order=ORD-104952"
    )
    await page.reload()
    await expect(page.locator("article.turn")).to_contain_text(QUESTION, timeout=40_000)
    await expect(page.locator(".answer[data-kind=DIAGNOSIS]")).to_contain_text("CHG-3107")


@pytest.mark.spec("CANCEL-3")
async def test_a_run_is_cancelled_from_the_page_and_the_next_question_works(page: Page, product: Product) -> None:
    product.model.enqueue(kind="router", latency=60)
    await page.goto(product.gateway.http_url)
    await ask(page, QUESTION)
    turn = page.locator("article.turn").first
    await expect(turn).to_have_attribute("data-state", "running", timeout=40_000)
    await page.keyboard.press("Escape")
    await expect(turn).to_have_attribute("data-state", "cancelled", timeout=40_000)
    row = await product.row_when(lambda row: row["status"] != "RUNNING")
    assert row["release_outcome"] == "CANCELLED"
    await ask(page, "What can you do?")
    await expect(page.locator(".answer[data-kind=SYSTEM_CHAT]")).to_be_visible(timeout=40_000)
