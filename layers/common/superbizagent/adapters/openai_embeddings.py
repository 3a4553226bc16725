"""Texts to vectors over any OpenAI-compatible server, by the openai SDK."""

import math
import re
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlsplit

import openai
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from superbizagent.errors import (
    ModelContextTooLong,
    ModelError,
    ModelMisconfigured,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
)
from superbizagent.ports import Redactor

_RETRIABLE = frozenset({408, 409, 425, 429})
_REFUSED_INPUT = frozenset({400, 413, 422})
_TOO_LONG = re.compile(r"too (long|large|many)|maximum|context|exceed|longer than|token limit|`inputs`", re.IGNORECASE)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_Number = Annotated[float, Field(allow_inf_nan=False)]


class _Embedding(BaseModel):
    index: int
    embedding: Annotated[list[_Number], Field(min_length=1, max_length=16_000)]


class _Reply(BaseModel):
    data: list[_Embedding]


_reply = TypeAdapter(_Reply)


class OpenAIEmbeddings:
    """One endpoint and one model. `timeout` in seconds bounds each read; the caller bounds the whole call.

    Some models embed a question otherwise than a passage, and some servers tell the two apart by the
    model's name: `query_model` is the name to ask for questions with. Every text passes `redact` first:
    no secret of a document or a question reaches a model (SEC-3).
    """

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None,
        model: str,
        query_model: str | None = None,
        redact: Redactor,
        timeout: float = 60.0,
    ) -> None:
        self._client = openai.AsyncOpenAI(
            api_key=api_key,
            base_url=base_url,
            max_retries=0,
            timeout=timeout,
            # No connection outlives its call: Lambda may freeze this process before the next one.
            default_headers={"Connection": "close"},
        )
        self._host = urlsplit(str(self._client.base_url)).hostname or "?"
        self._model = model
        self._query_model = query_model or model
        self._redact = redact

    @property
    def model(self) -> str:
        """What vectors of passages are kept under: those of two models can't be compared."""
        return self._model

    async def passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, in order. Raises ModelError; ModelContextTooLong when shorter ones may do."""
        return await self._embed(self._model, texts)

    async def query(self, text: str) -> Sequence[float]:
        """Raises ModelError."""
        [vector] = await self._embed(self._query_model, [text])
        return vector

    async def close(self) -> None:
        await self._client.close()

    async def _embed(self, model: str, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        try:
            # Floats: every server has them. The raw body: the SDK builds its models without checking.
            response = await self._client.embeddings.with_raw_response.create(
                model=model, input=[_sendable(self._redact(text)) for text in texts], encoding_format="float"
            )
            reply = _reply.validate_json(response.content)
        except openai.APIStatusError as error:
            raise self._translated(error) from error
        except openai.APITimeoutError as error:
            raise ModelTimeout(self._host) from error
        except (openai.APIConnectionError, OSError) as error:
            raise ModelUnavailable(self._host) from error
        except (openai.OpenAIError, ValidationError, ValueError, RecursionError) as error:
            raise ModelReplyInvalid(f"{self._host} did not answer as an embeddings server does") from error
        return self._in_order(reply, len(texts))

    def _in_order(self, reply: _Reply, wanted: int) -> Sequence[Sequence[float]]:
        data = sorted(reply.data, key=lambda item: item.index)
        vectors = [item.embedding for item in data]
        if [item.index for item in data] != list(range(wanted)) or len({len(vector) for vector in vectors}) > 1:
            raise ModelReplyInvalid(f"{self._host} gave {len(data)} embeddings for {wanted} texts, or unequal ones")
        if not all(0 < math.hypot(*vector) < math.inf for vector in vectors):
            raise ModelReplyInvalid(f"{self._host} gave an embedding without a direction")
        return vectors

    def _translated(self, error: openai.APIStatusError) -> ModelError:
        status = error.status_code
        if status == 413 or (status in _REFUSED_INPUT and _TOO_LONG.search(_text_of(error))):
            return ModelContextTooLong(self._host)
        if status in _RETRIABLE or status >= 500:
            return ModelUnavailable(f"{self._host} answered {status}")
        return ModelMisconfigured(f"{self._host} answered {status}")


def _sendable(text: str) -> str:
    """Unpaired surrogates can't be sent, and an empty text is refused by many servers."""
    return _LONE_SURROGATE.sub("\ufffd", text) or " "


def _text_of(error: openai.APIStatusError) -> str:
    """The refusal's own words; only searched, never shown or logged."""
    try:
        return error.response.text[:4_000]
    except (RuntimeError, ValueError, LookupError):
        return ""
