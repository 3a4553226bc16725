"""What the index holds: documents, cut into passages."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Passage:
    """A part of a document under one heading.

    `passage_id` stays the same for as long as the document keeps its path and this heading, whatever
    happens to other parts of it and whichever database holds it.
    """

    passage_id: str
    heading_path: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Document:
    """One file. It can also be found by its `other_names`, as if they were titles, and its `keywords`."""

    title: str
    other_names: str
    keywords: str
    passages: tuple[Passage, ...]
    notices: tuple[str, ...] = ()


def passage_id(collection: str, source: str, heading_path: Sequence[str], occurrence: int) -> str:
    """An identifier without spaces. `occurrence` counts passages with the same headings, from 0."""
    key = "\0".join((collection, source, *heading_path, str(occurrence)))
    return f"D{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:12]}"
