"""Log files as decoded lines: compressed or not, in any encoding, growing, cut short or damaged.

Memory stays bounded whatever a file holds: blocks are read one at a time and a line keeps its first
64 KB. Nothing here knows what a line says.
"""

import bz2
import codecs
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from superbizagent.domain.pattern import Pattern

BLOCK: Final = 64 * 1024
MAX_LINE: Final = 64 * 1024

_MAGIC: Final = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
_BOMS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
DAMAGED: Final = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
# A longer run of characters without a space or a mark is no secret that is known by its form.
_LONGEST_WORD: Final = 8 * 1024
_SPACE: Final = Pattern(r"[\s\"']")
_MARK: Final = Pattern(r"[,;|{}<>\[\]]")
_REPLACEMENT: Final = "\ufffd"


class Cancelled(Exception):
    """The awaiting task was cancelled; unwinds the worker thread."""


class UnreadableFile(Exception):
    """The file can't be opened; the text completes a sentence that begins with its name."""


@dataclass
class ScanBudget:
    """What one call may read, in bytes of text, over all of its files together, and whether its time is over."""

    limit: int
    cancelled: Callable[[], bool]
    late: Callable[[], bool] = lambda: False
    used: int = 0

    @property
    def left(self) -> int:
        return max(self.limit - self.used, 0)

    def check(self) -> None:
        """Raises Cancelled."""
        if self.cancelled():
            raise Cancelled


@dataclass
class ReadProblems:
    """What kept one file from being read whole and well; each note completes `FILE …`."""

    notes: list[str] = field(default_factory=list)
    undecodable_lines: int = 0
    cut_lines: int = 0
    exhausted: bool = False


class LogStream:
    """One open file; `kind` is its compression by its first bytes, "" for none. Close it."""

    def __init__(self, path: Path) -> None:
        """Raises UnreadableFile."""
        self._raw = _open(path)
        try:
            self.state = os.fstat(self._raw.fileno())
            if not stat.S_ISREG(self.state.st_mode):
                raise UnreadableFile("is not a regular file")
            head = self._raw.read(8) or b""
            self._raw.seek(0)
            self.kind = next((name for magic, name in _MAGIC if head.startswith(magic)), "")
            self._stream = _decompressed(self._raw, self.kind)
        except OSError as error:
            self._raw.close()
            raise UnreadableFile(_reason(error)) from error
        except UnreadableFile:
            self._raw.close()
            raise

    @property
    def size(self) -> int:
        """Bytes on the disk when it was opened."""
        return self.state.st_size

    def read(self, size: int) -> bytes:
        """Up to `size` bytes of text; b"" at the end."""
        return self._stream.read(size) or b""

    def seek(self, offset: int) -> None:
        """To a byte of the text; cheap only without compression."""
        self._stream.seek(offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._raw.close()


def _open(path: Path) -> IO[bytes]:
    try:
        # Without O_NONBLOCK a named pipe among the matches would hang the open for good.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        return os.fdopen(os.open(path, flags), "rb", buffering=0)
    except OSError as error:
        raise UnreadableFile(_reason(error)) from error


def _decompressed(raw: IO[bytes], kind: str) -> IO[bytes]:
    if kind == "zstd":
        raise UnreadableFile("is compressed with zstd, which is not supported")
    if kind == "gzip":
        return gzip.GzipFile(fileobj=raw, mode="rb")  # type: ignore[return-value]
    if kind == "bzip2":
        return bz2.BZ2File(raw)
    if kind == "xz":
        return lzma.LZMAFile(raw)
    return raw


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist any more"
    if isinstance(error, PermissionError):
        return "may not be read"
    if isinstance(error, IsADirectoryError):
        return "is not a regular file"
    return "could not be read"


@dataclass(frozen=True)
class TextShape:
    """How a file's bytes become lines, by its first block."""

    encoding: str | None = None
    carriage_returns: bool = False


def shape_of(head: bytes) -> TextShape:
    """UTF-16 and UTF-32 by their mark or their zeros, else UTF-8; old Mac line ends where no other is."""
    encoding = next((name for bom, name in _BOMS if head.startswith(bom)), None) or _unmarked_utf16(head)
    only_returns = encoding is None and b"\n" not in head and b"\r" in head[:-1]
    return TextShape(encoding, only_returns)


def _unmarked_utf16(head: bytes) -> str | None:
    sample = head[:512]
    if len(sample) < 8:
        return None
    even, odd = sample[0::2], sample[1::2]
    if odd.count(0) > 0.7 * len(odd) and even.count(0) < 0.1 * len(even):
        return "utf-16-le"
    if even.count(0) > 0.7 * len(even) and odd.count(0) < 0.1 * len(odd):
        return "utf-16-be"
    return None


def line_blocks(
    stream: LogStream,
    budget: ScanBudget,
    problems: ReadProblems,
    *,
    begin: int = 0,
    shape: TextShape | None = None,
) -> Iterator[list[str]]:
    """The lines without their ends, block by block, up to the size the file had when it was opened.

    `begin` is a byte where a line starts. Raises Cancelled between blocks.
    """
    splitter = _Splitter(problems, shape)
    for data in _data_blocks(stream, budget, problems, begin):
        if lines := splitter.feed(data):
            yield lines
    if not problems.exhausted and (lines := splitter.finish()):
        yield lines


def _data_blocks(stream: LogStream, budget: ScanBudget, problems: ReadProblems, begin: int) -> Iterator[bytes]:
    # What is appended while we read would make the answer depend on our speed.
    left = stream.size - begin if not stream.kind else None
    try:
        if begin:
            stream.seek(begin)
        while left is None or left > 0:
            budget.check()
            wanted = min(BLOCK, budget.left or 1, left if left is not None else BLOCK)
            data = stream.read(wanted)
            if not data:
                if left:
                    problems.notes.append("became shorter while it was read")
                return
            if budget.left == 0 or budget.late():
                problems.exhausted = True
                return
            budget.used += len(data)
            left = left - len(data) if left is not None else None
            yield data
    except DAMAGED:
        problems.notes.append("is damaged or incomplete; what could be unpacked was read")
    except OSError as error:
        problems.notes.append(_reason(error) + " to its end")


class _Splitter:
    """Bytes in, whole lines out; a line that goes on and on is kept to its first 64 KB."""

    def __init__(self, problems: ReadProblems, shape: TextShape | None) -> None:
        self._problems = problems
        self._shape = shape
        self._decoder: codecs.IncrementalDecoder | None = None
        self._carry = b""
        self._dropped = 0
        self._started = False

    def feed(self, data: bytes) -> list[str]:
        data = self._normalised(data)
        cut = data.rfind(b"\n")
        if cut < 0:
            self._hold(data)
            return []
        first: list[str] = []
        begin = 0
        if self._dropped or len(self._carry) > MAX_LINE:
            begin = data.find(b"\n") + 1
            self._hold(data[: begin - 1])
            first = [self._held()]
        if begin > cut:
            body: list[str] = []
        else:
            body = self._lines(self._carry + data[begin:cut])
        self._carry, self._dropped = b"", 0
        self._hold(data[cut + 1 :])
        return first + body

    def finish(self) -> list[str]:
        return [self._held()] if self._carry else []

    def _normalised(self, data: bytes) -> bytes:
        if not self._started:
            self._started = True
            shape = self._shape or shape_of(data)
            self._shape = shape
            if shape.encoding:
                self._decoder = codecs.getincrementaldecoder(shape.encoding)(errors="replace")
            elif data.startswith(codecs.BOM_UTF8):
                data = data[len(codecs.BOM_UTF8) :]
        if self._decoder:
            data = self._decoder.decode(data).encode("utf-8", "replace")
        # Copy-and-truncate rotation leaves a file that begins with a hole of zeros.
        if b"\0" in data:
            data = data.replace(b"\0", b"")
        if self._shape and self._shape.carriage_returns:
            data = data.replace(b"\r", b"\n")
        return data

    def _hold(self, data: bytes) -> None:
        room = max(MAX_LINE - len(self._carry), 0)
        self._carry += data[:room]
        self._dropped += max(len(data) - room, 0)

    def _held(self) -> str:
        # A cut may go through a character, which then is dropped with the rest.
        text = self._carry.decode("utf-8", "ignore" if self._dropped else "replace").rstrip("\r")
        if self._dropped:
            text = self._marked(text, len(self._carry) + self._dropped)
        self._carry, self._dropped = b"", 0
        return text

    def _lines(self, data: bytes) -> list[str]:
        text, clean = self._decode(data)
        lines = text.split("\n")
        if "\r" in text:
            lines = [line.rstrip("\r") for line in lines]
        if not clean:
            self._problems.undecodable_lines += sum(_REPLACEMENT in line for line in lines)
        if len(data) > MAX_LINE and max(map(len, lines)) > MAX_LINE // 4:
            lines = [self._bounded(line) for line in lines]
        return lines

    def _decode(self, data: bytes) -> tuple[str, bool]:
        try:
            return data.decode(), True
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace"), False

    def _bounded(self, line: str) -> str:
        if len(line) <= MAX_LINE // 4:
            return line
        encoded = line.encode("utf-8", "replace")
        if len(encoded) <= MAX_LINE:
            return line
        return self._marked(encoded[:MAX_LINE].decode("utf-8", "ignore"), len(encoded))

    def _marked(self, text: str, size: int) -> str:
        self._problems.cut_lines += 1
        return f"{_whole_words(text)}…[line cut: {MAX_LINE} of {size} bytes kept]"


def _whole_words(text: str) -> str:
    """`text` without its last word, which was cut: half a secret can't be recognised as one."""
    floor = max(len(text) - _LONGEST_WORD, 0)
    for pattern in (_SPACE, _MARK):
        at = max((match.end() for match in pattern.finditer(text, floor)), default=0)
        if at:
            return text[:at]
    return text[:floor]
