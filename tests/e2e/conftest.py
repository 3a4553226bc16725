"""A browser for the session and a fresh page for each test, both on the session's event loop.

Test modules say `pytestmark = pytest.mark.asyncio(loop_scope="session")`.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.e2e import chromium
from tests.e2e.page_object import Chat
from tests.e2e.scripted_server import ScriptedServer


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    path = chromium.find_or_install()
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=path, args=list(chromium.ARGUMENTS), chromium_sandbox=False
        )
        yield launched
        await launched.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page of its own context. A script error or a violation of the content policy fails the test."""
    context = await browser.new_context(viewport={"width": 1100, "height": 720})
    context.set_default_timeout(10_000)
    problems: list[str] = []
    await context.expose_function("reportViolation", lambda words: problems.append(words))
    await context.add_init_script(
        "document.addEventListener('securitypolicyviolation',"
        " (event) => window.reportViolation(`${event.violatedDirective}: ${event.blockedURI}`));"
    )
    opened = await context.new_page()
    opened.on("pageerror", lambda error: problems.append(str(error)))
    yield opened
    await context.close()
    assert problems == []


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as scripted:
        yield scripted
    assert scripted.problems == []


@pytest.fixture(autouse=True)
def _patient_expectations() -> None:
    """Playwright's expectations wait as long as its actions do."""
    expect.set_options(timeout=10_000)


@pytest.fixture
def chat(page: Page, server: ScriptedServer) -> Chat:
    return Chat(page, server)
