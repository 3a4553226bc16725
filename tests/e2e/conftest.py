"""A browser for the session and a clean page for each test, all on the session's event loop.

Test modules say `pytestmark = pytest.mark.asyncio(loop_scope="session")`.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.e2e import chromium
from tests.e2e.page_object import Chat
from tests.e2e.scripted_server import ScriptedServer

PATIENCE = 15_000
REPORT_VIOLATIONS = """document.addEventListener('securitypolicyviolation', (event) =>
    window.reportViolation(`${event.violatedDirective}: ${event.blockedURI}`));"""


@dataclass
class WatchedPage:
    """A page, and what went wrong on it: script errors and violations of the content policy."""

    page: Page
    problems: list[str] = field(default_factory=list)


@asynccontextmanager
async def new_page(browser: Browser) -> AsyncIterator[WatchedPage]:
    context = await browser.new_context()
    context.set_default_timeout(PATIENCE)
    watched = WatchedPage(await context.new_page())
    await context.expose_function("reportViolation", lambda words: watched.problems.append(words))
    await context.add_init_script(REPORT_VIOLATIONS)
    watched.page.on("pageerror", lambda error: watched.problems.append(str(error)))
    yield watched
    await context.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    path = chromium.find_or_install()
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=path, args=list(chromium.ARGUMENTS), chromium_sandbox=False
        )
        yield launched
        await launched.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_page(browser: Browser) -> AsyncIterator[WatchedPage]:
    """Making a page costs three times as much as a usual test on it."""
    async with new_page(browser) as watched:
        yield watched


@pytest_asyncio.fixture(loop_scope="session")
async def page(shared_page: WatchedPage) -> AsyncIterator[Page]:
    """An empty page. A script error or a violation of the content policy fails the test."""
    async for page in clean(shared_page):
        yield page


@pytest_asyncio.fixture(loop_scope="session")
async def clocked_page(browser: Browser) -> AsyncIterator[Page]:
    """A page whose time the test turns by its `clock`; its own, for an installed clock stays installed."""
    async with new_page(browser) as watched:
        await watched.page.clock.install()
        async for page in clean(watched):
            yield page


async def clean(watched: WatchedPage) -> AsyncIterator[Page]:
    await watched.page.set_viewport_size({"width": 1100, "height": 720})
    watched.problems.clear()
    yield watched.page
    await watched.page.evaluate("window.sessionStorage.clear()")
    await watched.page.goto("about:blank")
    assert watched.problems == []


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as scripted:
        yield scripted
    assert scripted.problems == []


@pytest.fixture
def chat(page: Page, server: ScriptedServer) -> Chat:
    return Chat(page, server)


@pytest.fixture
def timed_chat(clocked_page: Page, server: ScriptedServer) -> Chat:
    return Chat(clocked_page, server)


@pytest.fixture(autouse=True)
def patient_expectations() -> Iterator[None]:
    expect.set_options(timeout=PATIENCE)
    yield
    expect.set_options(timeout=None)
