"""Fills in the embeddings of passages and of documents' beginnings. Full text works without."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy import Connection

from superbizagent.adapters.knowledge.embedding import Embeddings, Vector, unit_vector
from superbizagent.adapters.knowledge.units import UnitsOfWork
from superbizagent.adapters.knowledge.vectors import Pending, pending_openings, pending_passages, remove_unused, store
from superbizagent.errors import ModelContextTooLong, ModelError, ModelTimeout, ModelUnavailable

BATCH = 32
"""Texts in one request: a common limit of servers, and what is lost when one breaks off."""

ATTEMPTS = 3
FIRST_PAUSE = 1.0
REQUEST_SECONDS = 300.0

# A text that is refused is halved until it fits; below this, the model is no use for it.
_SHORTEST = 100

Listing: TypeAlias = Callable[[Connection, str, int, int], Sequence[Pending]]


@dataclass(frozen=True)
class Embedded:
    """`refused` texts are too long for the model in any part. `error` is why the rest was left for later.

    A text is a passage, or a document's beginning; the same text counts once.
    """

    stored: int
    refused: int = 0
    error: ModelError | None = None


class EmbeddingIngest:
    """Only what has no embedding yet is embedded, and each batch is stored at once: a later run goes on from there."""

    def __init__(self, database: UnitsOfWork, embeddings: Embeddings, first_pause: float = FIRST_PAUSE) -> None:
        self._database = database
        self._embeddings = embeddings
        self._first_pause = first_pause

    async def run(self) -> Embedded:
        """Raises StoreError. What the model refuses is told, not raised."""
        stored = refused = 0
        try:
            for texts in self._batches():
                vectors = await self._vectors(texts)
                self._store(vectors)
                stored += len(vectors)
                refused += len(texts) - len(vectors)
        except ModelError as error:
            return Embedded(stored, refused, error)
        self._database.run(remove_unused, writes=True)
        return Embedded(stored, refused)

    def _batches(self) -> Iterator[Mapping[str, str]]:
        """What has no embedding yet, by digest. Each is listed when the one before it is stored.

        A text that was refused is listed again where it stands in another place, and not tried again.
        """
        tried = set[str]()
        for listing in (pending_passages, pending_openings):
            after = 0
            while batch := self._pending(listing, after):
                after = batch[-1].after
                texts = {pending.digest: pending.text for pending in batch if pending.digest not in tried}
                tried |= texts.keys()
                if texts:
                    yield texts

    def _pending(self, listing: Listing, after: int) -> Sequence[Pending]:
        model = self._embeddings.model
        return self._database.run(lambda connection: listing(connection, model, after, BATCH), writes=False)

    def _store(self, vectors: Mapping[str, Vector]) -> None:
        model = self._embeddings.model
        self._database.run(lambda connection: store(connection, model, vectors), writes=True)

    async def _vectors(self, texts: Mapping[str, str]) -> Mapping[str, Vector]:
        """By digest; without those that the model refuses at any length."""
        try:
            vectors = await self._request(list(texts.values()))
        except ModelContextTooLong:
            return await self._in_parts(texts)
        return {digest: unit_vector(vector) for digest, vector in zip(texts, vectors, strict=True)}

    async def _in_parts(self, texts: Mapping[str, str]) -> Mapping[str, Vector]:
        if len(texts) == 1:
            [(digest, text)] = texts.items()
            shorter = text[: len(text) // 2]
            return await self._vectors({digest: shorter}) if len(shorter) >= _SHORTEST else {}
        items = list(texts.items())
        middle = len(items) // 2
        return {**await self._vectors(dict(items[:middle])), **await self._vectors(dict(items[middle:]))}

    async def _request(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with asyncio.timeout(REQUEST_SECONDS):
                    return await self._embeddings.passages(texts)
            except (ModelTimeout, ModelUnavailable):
                if attempt == ATTEMPTS:
                    raise
            except TimeoutError as error:
                raise ModelTimeout("the embeddings server") from error
            await asyncio.sleep(self._first_pause * 2 ** (attempt - 1))
        raise AssertionError
