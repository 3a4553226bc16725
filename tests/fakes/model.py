"""A model that says what a test scripted."""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from superbizagent.domain.conversation import ModelReply, ModelRequest, ToolCall
from superbizagent.errors import ModelUnavailable

Script = ModelReply | BaseException | Callable[[ModelRequest], ModelReply]


class _Hang:
    """A call that is answered only by being cancelled."""


HANG = _Hang()


class FakeModel:
    """Model. Answers from the front of `script`; without one left as `default` says, or fails.

    `requests` holds what was asked, `cancelled` how many calls were cancelled while they hung.
    """

    def __init__(self, *script: Script | _Hang, default: Script | _Hang | None = None) -> None:
        self._script: deque[Script | _Hang] = deque(script)
        self._default = default
        self.requests: list[ModelRequest] = []
        self.cancelled = 0
        self.hanging = asyncio.Event()

    def then(self, *script: Script | _Hang) -> None:
        self._script.extend(script)

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        step = self._script.popleft() if self._script else self._default
        if isinstance(step, _Hang):
            return await self._hang()
        if step is None:
            raise ModelUnavailable("the script has ended")
        if isinstance(step, BaseException):
            raise step
        await asyncio.sleep(0)
        return step if isinstance(step, ModelReply) else step(request)

    async def _hang(self) -> ModelReply:
        self.hanging.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        raise AssertionError("unreachable")


def text(content: str, tokens: int | None = 10, cut: bool = False) -> ModelReply:
    return ModelReply(content=content, tokens=tokens, cut=cut)


def answer(content: object, tokens: int | None = 10) -> ModelReply:
    """A reply that is this value as JSON."""
    return text(json.dumps(content, ensure_ascii=False), tokens)


def intent(name: str) -> ModelReply:
    return answer({"intent": name})


def calls(*tool_calls: ToolCall, tokens: int | None = 10, cut: bool = False, content: str = "") -> ModelReply:
    return ModelReply(content=content, tool_calls=tool_calls, tokens=tokens, cut=cut)


def call(name: str, arguments: object = None, call_id: str = "") -> ToolCall:
    """A tool call; a string is taken as the raw text of its arguments."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return ToolCall(id=call_id, name=name, arguments=raw)


def draft(**fields: Any) -> ModelReply:
    return calls(call("submit_draft", fields, call_id="d1"))


def verdicts(*supported: bool) -> ModelReply:
    return answer({"verdicts": [{"claim": number, "supported": value} for number, value in enumerate(supported)]})


def tool_messages(request: ModelRequest) -> Iterable[str]:
    return (message.content for message in request.messages if message.role == "tool")
