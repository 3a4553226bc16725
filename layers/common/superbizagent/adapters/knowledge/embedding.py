"""What of a passage is embedded, and vectors as they are stored. Plain Python: no numpy in the layer."""

import hashlib
import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from operator import mul
from typing import TYPE_CHECKING, Protocol, TypeAlias

from superbizagent.domain.pattern import Pattern
from superbizagent.domain.text import bound_characters

# About what small models read of a text; longer passages don't occur (`PASSAGE_CHARACTERS`).
_TEXT_CHARACTERS = 2_000
# On the questions of bench/evidence, anything from 600 to 2,000 does as well.
_OPENING_CHARACTERS = 1_200
_QUERY_CHARACTERS = 1_000
# KubePodCrashLooping says nothing to a model, Kube Pod Crash Looping does.
_WORD_START = Pattern(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

if TYPE_CHECKING:
    Vector: TypeAlias = array[float]
else:
    # Not generic at run time before Python 3.12.
    Vector = array
"""Numbers of 32 bits, of length one: the product of two is their cosine."""


class Embeddings(Protocol):
    """Texts to vectors, of any length but all of one dimension. Raises ModelError."""

    @property
    def model(self) -> str:
        """What vectors are kept under: those of two models can't be compared."""

    async def passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, in order. Raises ModelContextTooLong when fewer or shorter ones may do."""

    async def query(self, text: str) -> Sequence[float]:
        """The vector of a question."""


def embedded_text(title: str, heading_path: Sequence[str], text: str) -> str:
    """A passage with its place: "Check the logs." alone could stand in any document."""
    place = _WORD_START.sub(" ", " > ".join((title, *heading_path)))
    return bound_characters(f"{place}\n{text}", _TEXT_CHARACTERS)


def embedded_opening(title: str, texts: Iterable[str]) -> str:
    """What a document is about, as far as its beginning tells: its title and its first passages."""
    return bound_characters("\n".join((_WORD_START.sub(" ", title), *texts)), _OPENING_CHARACTERS)


def embedding_digest(embedded: str) -> str:
    return hashlib.sha256(embedded.encode("utf-8", "replace")).hexdigest()


def embedded_query(text: str) -> str:
    """Of a longer query, its beginning and its end: a question stands before or after what is pasted."""
    if len(text) <= 2 * _QUERY_CHARACTERS:
        return text
    return f"{text[:_QUERY_CHARACTERS]}\n{text[-_QUERY_CHARACTERS:]}"


def unit_vector(numbers: Sequence[float]) -> Vector:
    length = math.hypot(*numbers)
    return array("f", (number / length for number in numbers))


def cosine(one: Vector, other: Vector) -> float:
    return math.fsum(map(mul, one, other))


def to_bytes(vector: Vector) -> bytes:
    return _little_endian(vector).tobytes()


def from_bytes(stored: bytes) -> Vector:
    return _little_endian(array("f", stored))


def _little_endian(vector: Vector) -> Vector:
    if sys.byteorder == "big":
        vector = vector[:]
        vector.byteswap()
    return vector
