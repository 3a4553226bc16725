"""The page's own words cover the contract's codes."""

from typing import get_args

import pytest
from playwright.async_api import Page

from scripts.asyncapi import error_messages
from superbizagent.domain.codes import MissingContext, ObservationStatus
from superbizagent.domain.content import FallbackReason
from superbizagent.ports import StatusCode
from superbizagent.websocket import MAX_FRAME_BYTES, MAX_QUERY_BYTES, MAX_QUERY_CHARACTERS
from tests.e2e.scripted_server import ScriptedServer

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.spec("WIRE-1")]


async def test_every_error_code_has_words(page: Page, server: ScriptedServer) -> None:
    await page.goto(server.url + "blank")
    known = await page.evaluate("async () => (await import('/words.js')).knownErrorCodes")
    assert set(known) == set(error_messages())


async def test_every_fixed_code_has_words(page: Page, server: ScriptedServer) -> None:
    await page.goto(server.url + "blank")
    reasons, missing, statuses, steps = await page.evaluate(
        """async (codes) => {
            const words = await import('/words.js');
            return [
                Object.keys(words.FALLBACK_REASONS),
                Object.keys(words.MISSING_CONTEXT),
                Object.keys(words.OBSERVATION_STATUS),
                codes.map((code) => words.stepText({ code })),
            ];
        }""",
        list(get_args(StatusCode)),
    )
    assert set(reasons) == set(FallbackReason)
    assert set(missing) == set(MissingContext)
    assert set(statuses) == set(ObservationStatus)
    assert "Working" not in steps


async def test_limits_are_the_services(page: Page, server: ScriptedServer) -> None:
    await page.goto(server.url + "blank")
    limits = await page.evaluate(
        """async () => {
            const { MAX_CHARACTERS, MAX_BYTES, MAX_FRAME_BYTES } = await import('/limits.js');
            return [MAX_CHARACTERS, MAX_BYTES, MAX_FRAME_BYTES];
        }"""
    )
    assert limits == [MAX_QUERY_CHARACTERS, MAX_QUERY_BYTES, MAX_FRAME_BYTES]


QUOTES: list[tuple[list[str], list[str], list[str]]] = [
    (["a b c"], ["b"], ["b"]),
    (["a  b", "c"], ["b c"], ["b", "c"]),
    (["aXa"], ["x"], []),
    (["aaa"], ["a", "aa"], ["aaa"]),
    (["(a|b) .*"], [".*"], [".*"]),
    (["超时 超时"], ["超时"], ["超时", "超时"]),
    (["", "a"], ["", "  "], []),
    ([], ["a"], []),
    (["a"], ["a b"], []),
]


async def test_quotes_are_found_as_the_guard_found_them(page: Page, server: ScriptedServer) -> None:
    await page.goto(server.url + "blank")
    found = await page.evaluate(
        """async (cases) => {
            const { highlight } = await import('/view/highlight.js');
            return cases.map(([lines, quotes]) => highlight(lines, quotes));
        }""",
        [[lines, quotes] for lines, quotes, _ in QUOTES],
    )
    for (lines, _, marked), pieces in zip(QUOTES, found, strict=True):
        assert ["".join(piece["text"] for piece in line) for line in pieces] == lines
        assert [piece["text"] for line in pieces for piece in line if piece["marked"]] == marked
