"""Bad peers: a model server and a connection API that drip, hang, lie, refuse and reset."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.faults.boundaries import Boundary
from tests.faults.cases import Question
from tests.faults.lane import Lane
from tests.faults.play import Plan, Scene, Stack
from tests.faults.proxy import Converse, reset
from tests.http_stub import read_request

DRIP_SECONDS = 0.1
FOR_PEERS = {"RUN_SECONDS": "16", "MODEL_CALL_SECONDS": "3"}
"""A run as long as this ends by itself, whatever its peers do: what they cost is bounded by other limits."""

When = Literal["always", "until the outcome", "from the third"]


async def _black_hole(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read(-1)


async def _reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    reset(writer)


async def _reset_in_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(_head(200, 5_000) + b'{"choices":[{"mess')
    await writer.drain()
    reset(writer)


def _dripping(said: bytes) -> Converse:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(said)
        while not writer.is_closing():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(DRIP_SECONDS)

    return drip


def _answering(status: int, body: object = "", **headers: str) -> Converse:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(_head(status, len(content), **headers) + content)
        await writer.drain()

    return answer


def _head(status: int, length: int, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} x", "Content-Type: application/json", f"Content-Length: {length}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def _refusal(status: int, kind: str) -> Converse:
    return _answering(status, {"message": "secret words of a vendor"}, x_amzn_ErrorType=kind)


HTTP = {
    "black hole": _black_hole,
    "reset": _reset,
    "slow drip of headers": _dripping(b"HTTP/1.1 200 OK\r\nX-Drip: "),
    "slow drip of the body": _dripping(_head(200, 1_000_000)),
}
MODEL: dict[str, Converse] = {
    **HTTP,
    "reset in mid body": _reset_in_body,
    "HTML with 200": _answering(200, "<html>Sign in</html>", Content_Type="text/html"),
    "garbage JSON": _answering(200, '{"choices": [{"message": {"content": "{\\"intent'),
    "empty JSON": _answering(200, ""),
    "429 with Retry-After": _answering(429, {"error": {"message": "slow down"}}, Retry_After="30"),
    "500": _answering(500, {"error": {"message": "secret words of a vendor"}}),
}
CHANNEL: dict[str, Converse] = {
    **HTTP,
    "403": _refusal(403, "ForbiddenException"),
    "413": _refusal(413, "PayloadTooLargeException"),
    "429": _refusal(429, "LimitExceededException"),
    "500": _refusal(500, "InternalServerError"),
}
GONE = _refusal(410, "GoneException")
POSTS = 6
"""Frames of the shortest run."""
_START = Boundary("store.principal", 1, "before")
_STORED = Boundary("store.finish", 1, "after")


@dataclass(frozen=True)
class PeerCase:
    peer: Literal["model", "channel"]
    behaviour: str
    when: When | int
    """An int: the one post, from 1, that is answered so."""
    question: Question = Question.CHAT

    @property
    def kind(self) -> str:
        return f"bad {self.peer}"

    @property
    def facets(self) -> frozenset[object]:
        return frozenset({(self.peer, "once" if isinstance(self.when, int) else self.when)})

    def __str__(self) -> str:
        when = f"at request {self.when}" if isinstance(self.when, int) else self.when
        return f"{self.peer}: {self.behaviour} {when}"


def peer_cases() -> list[PeerCase]:
    return [
        *(PeerCase("model", behaviour, "always") for behaviour in MODEL),
        *(PeerCase("model", behaviour, "from the third", Question.DIAGNOSIS) for behaviour in MODEL),
        *(PeerCase("channel", behaviour, "until the outcome") for behaviour in CHANNEL),
        *(PeerCase("channel", behaviour, "always") for behaviour in CHANNEL),
        *(PeerCase("channel", "410", post) for post in range(1, POSTS + 1)),
    ]


def plan_of(case: PeerCase) -> Plan:
    """The peer turns bad before the run's first act; one that gets well does when the outcome is stored."""
    spoil = _spoiled(case)

    async def start(scene: Scene, _: Stack) -> None:
        spoil(scene.lane)
        stored = scene.lane.boundaries.hold_too(_STORED)
        scene.hold.release()
        if case.when != "until the outcome":
            stored.release()
        else:
            await scene.lane.boundaries.comes_to(stored, scene.pid)
            scene.lane.proxies.channel.settle()
            stored.release()

    gone = case.behaviour == "410"
    return Plan(
        case.question,
        _START,
        start,
        answered=case.peer == "channel" and not gone,
        silent=gone or (case.peer == "channel" and case.when == "always"),
        cancels=gone,
    )


def _spoiled(case: PeerCase) -> Callable[[Lane], None]:
    converse = GONE if case.behaviour == "410" else (MODEL if case.peer == "model" else CHANNEL)[case.behaviour]

    def spoil(lane: Lane) -> None:
        proxy = lane.proxies.model if case.peer == "model" else lane.proxies.channel
        if isinstance(case.when, int):
            proxy.misbehave(converse, range(case.when, case.when + 1))
        else:
            proxy.misbehave(converse, range(3 if case.when == "from the third" else 1, 1_000_000))

    return spoil
