"""Routes, answers and errors of messages."""

import asyncio
import json

import pytest

from tests.integration.gateway.support import Start, ask, hear, hears_nothing_else, say
from tests.integration.gateway.virtual_clock import VirtualClock


async def test_a_route_with_a_route_response_answers_the_client(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        answer = await ask(socket, "work", id=1)
        assert answer == {"pid": answer["pid"], "id": 1, "layer": "layer"}


async def test_without_a_route_response_the_body_stays_in_the_gateway(start: Start) -> None:
    async with start() as running, running.socket() as socket:
        await say(socket, "silent", id=1)
        await running.wait_for_events("WorkFunction")
        assert await hears_nothing_else(socket)
