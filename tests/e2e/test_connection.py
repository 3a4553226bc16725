"""When the page tries again, and when it stops. The clock is Playwright's, the random numbers are ours."""

from itertools import pairwise

import pytest
from playwright.async_api import Page, expect

from tests.e2e.page_object import Chat
from tests.e2e.scripted_server import ScriptedServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

TRY = """async ([fate, random]) => {
    const { createConnection } = await import('/connection.js');
    window.tries = [];
    window.states = [];
    window.fate = fate;
    window.connection = createConnection({
        address: async () => ({ url: 'ws://nowhere.invalid', protocols: [] }),
        random: () => random,
        onState: (state) => window.states.push(state),
        createSocket: () => {
            const socket = { readyState: 1, close() {} };
            window.tries.push(Date.now());
            setTimeout(() => {
                if (window.fate === 'refused') return socket.onclose({ code: 1006 });
                socket.onopen();
                if (window.fate === 'dropped') setTimeout(() => socket.onclose({ code: 1011 }), 5);
                window.socket = socket;
            }, 5);
            return socket;
        },
    });
    window.connection.connect();
}"""


async def gaps(page: Page) -> list[float]:
    """Seconds between tries."""
    tries = await page.evaluate("window.tries")
    return [(later - earlier) / 1000 for earlier, later in pairwise(tries)]


async def advance(page: Page, seconds: int) -> None:
    for _ in range(0, seconds, 10):
        await page.clock.run_for(10_000)


async def test_delay_grows_to_a_cap_when_every_connection_is_dropped(
    clocked_page: Page, server: ScriptedServer
) -> None:  # P149
    await clocked_page.goto(server.url + "blank")
    await clocked_page.evaluate(TRY, ["dropped", 1.0])
    await advance(clocked_page, 600)
    waits = await gaps(clocked_page)
    assert len(waits) >= 20
    for expected, waited in zip([1, 2, 4, 8, 16, 30, 30, 30], waits, strict=False):
        assert waited == pytest.approx(expected, abs=0.5)
    assert max(waits) < 31


async def test_delay_starts_over_only_after_a_stable_period(clocked_page: Page, server: ScriptedServer) -> None:
    await clocked_page.goto(server.url + "blank")
    await clocked_page.evaluate(TRY, ["dropped", 1.0])
    await advance(clocked_page, 40)
    await clocked_page.evaluate("window.fate = 'open'")
    await advance(clocked_page, 80)
    assert await clocked_page.evaluate("window.connection.state.name") == "open"

    await clocked_page.evaluate("window.fate = 'dropped'; window.socket.onclose({ code: 1001 })")
    assert (await clocked_page.evaluate("window.states.at(-1)")) == {"name": "waiting", "delay": 1000}
    await advance(clocked_page, 10)
    delays = [state["delay"] for state in await clocked_page.evaluate("window.states") if state["name"] == "waiting"]
    assert delays[delays.index(30_000) + 1 :][:4] == [1_000, 2_000, 4_000, 8_000]


async def test_refused_handshakes_end_in_a_stop_with_a_way_out(
    clocked_page: Page, server: ScriptedServer
) -> None:  # P149
    await clocked_page.goto(server.url + "blank")
    await clocked_page.evaluate(TRY, ["refused", 0.0])
    await advance(clocked_page, 300)
    assert len(await clocked_page.evaluate("window.tries")) == 8
    assert await clocked_page.evaluate("window.states.at(-1)") == {"name": "stopped", "reason": "unreachable"}
    await clocked_page.evaluate("window.fate = 'open'; window.connection.retry()")
    await advance(clocked_page, 10)
    assert await clocked_page.evaluate("window.connection.state.name") == "open"


async def test_a_hundred_pages_do_not_come_back_together(page: Page, server: ScriptedServer) -> None:  # P151
    await page.goto(server.url + "blank")
    delays: list[list[float]] = await page.evaluate(
        """async () => {
            const { reconnectDelay } = await import('/connection.js');
            let seed = 42;
            const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
            const one = (failures) => Array.from({ length: 100 }, () => reconnectDelay(failures, random));
            return [1, 4, 20].map(one);
        }"""
    )
    for ceiling, values in zip([1_000, 8_000, 30_000], delays, strict=True):
        assert all(ceiling / 2 <= value <= ceiling for value in values)
        buckets = [int((value - ceiling / 2) / (ceiling / 20)) for value in values]
        assert len(set(buckets)) == 10
        assert max(buckets.count(bucket) for bucket in buckets) <= 25


async def test_page_stops_with_a_message_and_retries_on_demand(
    clocked_page: Page, timed_chat: Chat, server: ScriptedServer
) -> None:
    server.refusal = 401
    await clocked_page.goto(server.url)
    for _ in range(60):
        await clocked_page.clock.run_for(5_000)
        if await timed_chat.connection.get_attribute("data-state") == "stopped":
            break
    await expect(timed_chat.connection).to_contain_text("doesn’t accept your sign-in")
    tried = server.handshakes
    await clocked_page.clock.run_for(120_000)
    assert server.handshakes == tried
    server.refusal = None
    await clocked_page.get_by_role("button", name="Try now").click()
    await timed_chat.connected()


async def test_unusable_config_is_named(page: Page, chat: Chat, server: ScriptedServer) -> None:
    for address in ("", "javascript:alert(1)", "ftp://x", None, 5):
        server.config = {"websocketUrl": address}
        await page.goto(server.url)
        await expect(chat.connection).to_have_attribute("data-state", "stopped")
        await expect(chat.connection).to_contain_text("config.json")
    server.config = {}
    await page.get_by_role("button", name="Try now").click()
    await chat.connected()
