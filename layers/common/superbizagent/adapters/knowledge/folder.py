"""The Markdown files of a folder."""

import codecs
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_FILE_BYTES = 1_048_576
"""Of a longer file only the beginning is read: parsing takes seconds a mebibyte."""

_SUFFIXES = (".md", ".markdown")
_ENCODED_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}


class BadFolder(Exception):
    """The folder can't be read; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class SourceFile:
    """`source` is the path within the folder, with forward slashes."""

    path: Path
    source: str


def markdown_files(folder: Path) -> Iterator[SourceFile]:
    """The files in the order of their paths, hidden ones left out. Raises BadFolder.

    Linked folders are followed after the real ones, and none is visited twice, so loops end.
    """
    found = [entry for entry in _walk(folder) if entry.suffix.lower() in _SUFFIXES]
    sources = (SourceFile(file, _printable(file.relative_to(folder).as_posix())) for file in found)
    yield from sorted(sources, key=lambda file: file.source)


def check_folder(folder: Path) -> None:
    """Raises BadFolder."""
    if not folder.exists():
        raise BadFolder(f"There is no folder {folder}; give the one that holds the Markdown files.")
    if not folder.is_dir():
        raise BadFolder(f"{folder} is no folder; give the one that holds the Markdown files.")


def read_text(path: Path) -> tuple[str, tuple[str, ...]]:
    """The text of a file and notices on what was lost; raises OSError."""
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    notices: list[str] = []
    if len(data) > MAX_FILE_BYTES:
        data = data[: data.rfind(b"\n", 0, MAX_FILE_BYTES) + 1] or data[:MAX_FILE_BYTES]
        notices.append(f"only the first {MAX_FILE_BYTES:,} bytes are indexed; split the file")
    encoding = next((name for mark, name in _ENCODED_MARKS.items() if data.startswith(mark)), "utf-8")
    text = data.decode(encoding, "replace")
    if "\0" in text:
        return "", (*notices, "is not a text file; nothing of it is indexed")
    if "\N{REPLACEMENT CHARACTER}" in text:
        notices.append(f"is not valid {encoding.upper()}; unreadable characters are replaced")
    return text, tuple(notices)


def _walk(folder: Path) -> Iterator[Path]:
    visited: set[str] = set()
    waiting = [folder]
    links: list[Path] = []
    while waiting or links:
        current = waiting.pop() if waiting else links.pop(0)
        real = os.path.realpath(current)
        if real in visited:
            continue
        visited.add(real)
        for entry in _entries(current):
            if entry.is_dir():
                (links if entry.is_symlink() else waiting).append(Path(entry))
            elif entry.is_file():
                yield Path(entry)


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    """A folder that can't be read ends the walk: its documents must not look as if they were gone."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda e: e.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadFolder(f"{folder} can't be read; allow this user to read it.") from error


def _printable(path: str) -> str:
    """Without bytes that are no text: file names need not be UTF-8."""
    return path.encode("utf-8", "backslashreplace").decode()
