"""What tests do on the page, in a user's words."""

from playwright.async_api import Locator, Page, expect

from tests.e2e.scripted_server import Peer, Run, ScriptedServer


class Chat:
    """The open page and its current connection."""

    def __init__(self, page: Page, server: ScriptedServer) -> None:
        self.page = page
        self.server = server
        self.question = page.locator("#question")
        self.turns = page.locator("article.turn")
        self.answers = page.locator(".answer")
        self.notices = page.locator(".notice")
        self.connection = page.locator("#connection")
        self.sessions = page.locator("#session-list li")

    async def open(self, session_id: str = "") -> Peer:
        """Loads the page, at a session if one is named, and waits until it is connected."""
        await self.page.goto(self.server.url + (f"#session={session_id}" if session_id else ""))
        return await self.connected()

    async def connected(self) -> Peer:
        peer = await self.server.peer()
        await expect(self.connection).to_have_attribute("data-state", "open")
        return peer

    async def ask(self, text: str) -> None:
        await self.question.fill(text)
        await self.question.press("Enter")

    async def run(self, peer: Peer, text: str, session_id: str = "s1", run_id: str = "r1") -> Run:
        """Asks, and has the server start the run."""
        await self.ask(text)
        message = await peer.expect("chat")
        run = Run(message["requestId"], session_id, run_id)
        await peer.send(run.started())
        await expect(self.page.locator(f"[data-run={run_id}]")).to_have_attribute("data-state", "running")
        return run

    def turn(self, text: str) -> Locator:
        return self.turns.filter(has_text=text)

    async def draft(self) -> str:
        return await self.question.input_value()
