"""Which patterns and records of a search are shown, so that the whole fits what a model may see of it.

The collector would cut a longer text bluntly, and a rare line in its middle would be lost.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from superbizagent.adapters.log_projection.findings import Findings, Shown, Unread, clock_text, excerpt, shortened
from superbizagent.adapters.log_projection.instants import instant_of
from superbizagent.adapters.log_projection.shapes import Shape, masked

_PATTERN_SHARE: Final = 0.35
_MAX_PATTERNS: Final = 24
_EXAMPLE_SHARE: Final = 0.75
_LEAST_RECORD: Final = 300
_MARK: Final = 30
_RARE: Final = 1_000


@dataclass(frozen=True)
class Room:
    """What a model may see of one search: `size` in bytes, each line at most `line` characters.

    Sizes are those that text has once `redact` has replaced what is secret in it.
    """

    size: int = 8_000
    line: int = 1_000
    redact: Callable[[str], str] = str

    def bytes_of(self, text: str) -> int:
        """With the end of the line."""
        return len(self.redact(text).encode("utf-8", "replace")) + 1


@dataclass(frozen=True)
class Projection:
    """What is shown. `lines` hold the records and where others are left out; `shortened` of them are excerpts.

    `ranks` are the places of the records shown among those read.
    """

    patterns: tuple[str, ...]
    lines: tuple[str, ...]
    ranks: tuple[int, ...]
    shortened: int


def project(findings: Findings, unread: Unread | None, room: Room, taken: int) -> Projection:
    """`taken` bytes of the room are for the rest of the summary."""
    left = max(room.size - taken, 0)
    shapes = findings.shapes()
    patterns = _patterns(findings, shapes, room, int(left * _PATTERN_SHARE))
    left -= sum(map(room.bytes_of, patterns))
    chosen = _Chosen(findings, room, left)
    chosen.choose(shapes)
    records = dict(sorted(chosen.records.items()))
    lines = tuple(_with_gaps(records, findings.matched, unread))
    return Projection(patterns, lines, tuple(records), chosen.shortened)


class _Chosen:
    """Records by rank, taken one by one until the room or the limit is reached."""

    def __init__(self, findings: Findings, room: Room, left: int) -> None:
        self.records: dict[int, str] = {}
        self._findings = findings
        self._room = room
        self._size = left
        self._left = left - _gap_size(findings.matched)
        self._whole = dict(chain(findings.head, findings.tail))
        # Of several parts of one record its excerpt is cut around the rarest.
        self._around = {part.rank: part.example for part in reversed(_odd(findings)) if part.example}

    @property
    def shortened(self) -> int:
        return sum(map(shortened, self.records.values()))

    def choose(self, shapes: Sequence[Shape]) -> None:
        findings = self._findings
        examples = _examples(shapes, findings)
        if findings.matched <= findings.limit and self._all_fit():
            return
        first = next(iter(examples), None)
        for rank, text in chain([first] if first else [], findings.head[:1], list(findings.tail)[-1:]):
            self._take(rank, text)
        # The rest of the limit and of the room is for how it began and how it ended.
        most = findings.limit - min(max(findings.limit // 4, 2), findings.limit)
        for rank, text in examples:
            if len(self.records) >= most or self._left < self._size * (1 - _EXAMPLE_SHARE):
                break
            self._take(rank, text)
        for rank, text in _alternately(findings.head, list(findings.tail)):
            self._take(rank, text)

    def _all_fit(self) -> bool:
        if len(self._findings.head) < self._findings.matched:
            return False
        pieces = {rank: self._piece(text, self._left) for rank, text in self._findings.head}
        if sum(map(self._room.bytes_of, pieces.values())) > self._left:
            return False
        self.records = pieces
        return True

    def _take(self, rank: int, text: str) -> None:
        if rank in self.records or len(self.records) >= self._findings.limit:
            return
        expected = min(self._findings.matched, self._findings.limit, 5)
        most = max(self._size // max(expected, 1), _LEAST_RECORD)
        whole = self._whole.get(rank, "")
        fits = whole and self._room.bytes_of(whole[: most + 1]) <= most
        text = whole if fits else self._around.get(rank) or text or whole
        if not text:
            return
        piece = self._piece(text, most)
        neighbours = (rank - 1 in self.records) + (rank + 1 in self.records)
        cost = self._room.bytes_of(piece) + (1 - neighbours) * _gap_size(self._findings.matched)
        if cost > self._left:
            return
        self._left -= cost
        self.records[rank] = piece

    def _piece(self, text: str, most: int) -> str:
        """`text` in at most `most` bytes, as far as excerpts of 100 characters and more can do it."""
        contains = self._findings.contains
        marks = _MARK * (len(contains) + 2)
        lines = text.split("\n")
        if self._room.bytes_of(text) > most or max(map(len, lines)) > self._room.line:
            # Before any cut: half a secret is not recognised as one.
            text = self._room.redact(text)
            lines = text.split("\n")
        if max(map(len, lines)) > self._room.line:
            text = "\n".join(excerpt(line, max(self._room.line - marks, 100), contains) for line in lines)
        piece, room = text, len(text)
        while (size := self._room.bytes_of(piece)) > most and room > 100:
            room = max(min(room, len(piece)) * most // size - marks, 100)
            piece = excerpt(text, room, contains)
        return piece


def _gap_size(matched: int) -> int:
    return len(_gap(matched).encode()) + 1


def _gap(count: int, more: str = "") -> str:
    return f"… {count}{more} records not shown …"


def _with_gaps(records: dict[int, str], read: int, unread: Unread | None) -> Iterator[str]:
    expected = 0
    for rank, text in records.items():
        yield from _between(expected, rank, unread)
        yield text
        expected = rank + 1
    yield from _between(expected, read, unread)


def _between(begin: int, end: int, unread: Unread | None) -> Iterator[str]:
    """The mark for the records read of ranks `begin` to before `end`, and for what was not read among them."""
    hidden = end - begin
    if unread is None or end < unread.begin or unread.end < begin:
        if hidden:
            yield _gap(hidden)
    elif unread.count is not None and begin <= unread.begin and unread.end <= end:
        yield _gap(hidden + unread.count)
    else:
        yield _gap(hidden, " or more")


def _alternately(head: Sequence[Shown], tail: Sequence[Shown]) -> Iterator[Shown]:
    for early, late in zip(head, reversed(tail), strict=False):
        yield early
        yield late


class _Order:
    """Several ways to look at the shapes, each the most telling first."""

    def __init__(self, shapes: Sequence[Shape], matched: int) -> None:
        half = matched // 2
        severe = [shape for shape in shapes if shape.severity]
        new = [shape for shape in shapes if shape.rank > half]
        self.severe = sorted(severe, key=lambda shape: (_magnitude(shape.kin), -shape.severity, shape.kin, shape.rank))
        self.rare = sorted(shapes, key=lambda shape: (shape.kin, -shape.severity, not shape.alarming, -shape.rank))
        self.new = sorted(new, key=lambda shape: (-shape.severity, -shape.count, shape.rank))
        self.trouble = sorted(severe, key=lambda shape: (shape.severity < 2, -shape.count, shape.rank))
        self.frequent = sorted(shapes, key=lambda shape: (-shape.count, shape.rank))


def _magnitude(count: int) -> int:
    """So that the only warning comes before errors by the hundred, but not before the only error."""
    return len(str(count))


def _round(*queues: Iterable[Shape]) -> Iterator[Shape]:
    """One of each in turn, none twice. A queue that is given twice has two turns."""
    waiting = [iter(queue) for queue in queues]
    done: set[int] = set()
    while waiting:
        for queue in list(waiting):
            shape = next((shape for shape in queue if id(shape) not in done), None)
            if shape is None:
                waiting.remove(queue)
                continue
            done.add(id(shape))
            yield shape


def _examples(shapes: Sequence[Shape], findings: Findings) -> list[Shown]:
    """In the order in which they should be shown. The first ones of most searches are the rare severe ones."""
    order = _Order(shapes, findings.matched)
    # One iterator given twice has two turns a round.
    severe, rare = iter(order.severe), iter(order.rare)
    chosen = _round(severe, rare, order.trouble, severe, rare, _odd(findings), order.new, order.frequent)
    return [(shape.rank, shape.example) for shape in islice(chosen, 4 * findings.limit)]


def _odd(findings: Findings) -> list[Shape]:
    """Lines and values within records, the rarest first."""
    return sorted(findings.parts(), key=lambda shape: (shape.count, not shape.alarming, -shape.rank))


def spans_days(findings: Findings) -> bool:
    if findings.first is None or findings.last is None:
        return False
    return instant_of(findings.first).date() != instant_of(findings.last).date()


def _patterns(findings: Findings, shapes: Sequence[Shape], room: Room, left: int) -> tuple[str, ...]:
    """Rare and new ones first, then by frequency; the last line tells how many there are besides."""
    order = _Order(shapes, findings.matched)
    dated = spans_days(findings)
    texts: dict[int, str] = {}
    chosen: list[Shape] = []
    left -= len("other patterns: 1000000 (of 1000000000 lines)\n")
    for shape in _round(order.severe, order.frequent, order.trouble, order.rare, order.new):
        text = _pattern(shape, room, dated=dated)
        size = room.bytes_of(text)
        if len(chosen) >= _MAX_PATTERNS or size > left:
            break
        left -= size
        texts[id(shape)] = text
        chosen.append(shape)
    apart = [shape for shape in chosen if _stands_out(shape, findings.matched)]
    apart.sort(key=lambda shape: (-shape.severity, shape.kin, shape.rank))
    usual = [shape for shape in order.frequent if id(shape) in texts and not _stands_out(shape, findings.matched)]
    lines = [texts[id(shape)] for shape in (*apart, *usual)]
    return (*lines, *_others(shapes, chosen, findings))


def _stands_out(shape: Shape, matched: int) -> bool:
    return shape.kin * _RARE <= matched or shape.rank > matched // 2


def _pattern(shape: Shape, room: Room, *, dated: bool) -> str:
    when = ""
    if shape.first is not None and shape.last is not None:
        when = f" first {clock_text(shape.first, dated=dated)} last {clock_text(shape.last, dated=dated)}"
    return f"pattern: {shape.count}x {shape.level or 'none'}{when}: {_safe(shape, room)}"


def _safe(shape: Shape, room: Room) -> str:
    """The template without the words that redaction would change: masked, a secret is not recognised as one."""
    safe = set(masked(room.redact(shape.message)).split())
    return " ".join(word if word in safe else "<*>" for word in shape.template.split()) or "<*>"


def _others(shapes: Sequence[Shape], chosen: Sequence[Shape], findings: Findings) -> Iterator[str]:
    rest = len(shapes) - len(chosen)
    lines = findings.matched - sum(shape.count for shape in chosen)
    if rest > 0 or findings.ungrouped:
        yield f"other patterns: {'more than ' if findings.ungrouped else ''}{rest} (of {lines} lines)"
