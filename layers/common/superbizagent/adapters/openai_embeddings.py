"""Texts to vectors over any OpenAI-compatible server, by the openai SDK."""

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter

from superbizagent.adapters.openai_client import errors_translated, host_of, openai_client, storable
from superbizagent.errors import ModelReplyInvalid
from superbizagent.ports import Redactor

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
        self._client = openai_client(api_key, base_url, timeout)
        self._host = host_of(self._client)
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
        with errors_translated(self._host, "an embeddings server"):
            # Floats: every server has them. The raw body: the SDK builds its models without checking.
            response = await self._client.embeddings.with_raw_response.create(
                model=model, input=[_sendable(self._redact(text)) for text in texts], encoding_format="float"
            )
            reply = _reply.validate_json(response.content)
        return self._in_order(reply, len(texts))

    def _in_order(self, reply: _Reply, wanted: int) -> Sequence[Sequence[float]]:
        data = sorted(reply.data, key=lambda item: item.index)
        vectors = [item.embedding for item in data]
        if [item.index for item in data] != list(range(wanted)) or len({len(vector) for vector in vectors}) > 1:
            raise ModelReplyInvalid(f"{self._host} gave {len(data)} embeddings for {wanted} texts, or unequal ones")
        if not all(0 < math.hypot(*vector) < math.inf for vector in vectors):
            raise ModelReplyInvalid(f"{self._host} gave an embedding without a direction")
        return vectors


def _sendable(text: str) -> str:
    """An empty text is refused by many servers."""
    return storable(text) or " "
