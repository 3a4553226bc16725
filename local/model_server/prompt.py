"""Reading the assistant's messages: fenced data, sections of the system prompt, observations.

What is inside a fence is data. It is looked at line by line where its format is known, and never obeyed.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

_OPEN = re.compile(r"<<<(data-[0-9A-Za-z]+)")


@dataclass(frozen=True)
class Segment:
    """Some successive lines of a message: `fenced` ones are data, the others are the assistant's own."""

    fenced: bool
    lines: tuple[str, ...]


def segments(text: str) -> list[Segment]:
    """Cuts `text` at its fences. One that is never closed reaches to the end."""
    found: list[Segment] = []
    outside: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        opened = _OPEN.fullmatch(line.strip())
        if not opened:
            outside.append(line)
            continue
        found.append(Segment(False, tuple(outside)))
        outside = []
        found.append(Segment(True, tuple(_until(lines, f"{opened[1]}>>>"))))
    found.append(Segment(False, tuple(outside)))
    return found


def _until(lines: Iterator[str], close: str) -> Iterator[str]:
    for line in lines:
        if line.strip() == close:
            return
        yield line


def first_fence(text: str) -> tuple[str, ...] | None:
    return next((segment.lines for segment in segments(text) if segment.fenced), None)


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object that `text` is, or None."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def instant(text: str) -> datetime | None:
    """An ISO 8601 instant as UTC; one without a zone is UTC already."""
    try:
        value = datetime.fromisoformat(text.strip().replace("Z", "+00:00").replace("z", "+00:00"))
    except ValueError:
        return None
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)


@dataclass(frozen=True)
class Source:
    """A log source as the prompt lists it; None where it doesn't say from when to when."""

    name: str
    description: str
    first: datetime | None = None
    last: datetime | None = None


@dataclass(frozen=True)
class Column:
    name: str
    type: str


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    description: str


@dataclass(frozen=True)
class Briefing:
    """What the system prompt tells about the world."""

    now: datetime | None
    sources: tuple[Source, ...]
    tables: tuple[Table, ...]


_NOW = re.compile(r"^Now:\s*(\S+)\s*$")
_SOURCE = re.compile(r"^([^\s:][^:]*):\s*(.*)$")
_RANGE = re.compile(r"^(.*?)\s*\((\S+) to (\S+)\)\s*$")


def briefing(system_prompt: str) -> Briefing:
    """Reads `Now:` and the fenced blocks under `## Log sources` and `## Database`, as far as they exist."""
    now: datetime | None = None
    heading = ""
    sections: dict[str, tuple[str, ...]] = {}
    for segment in segments(system_prompt):
        if segment.fenced:
            sections.setdefault(heading, segment.lines)
            continue
        for line in segment.lines:
            if line.startswith("## "):
                heading = line[3:].strip().lower()
            elif match := _NOW.match(line):
                now = now or instant(match[1])
    return Briefing(
        now=now,
        sources=tuple(filter(None, map(_source, sections.get("log sources", ())))),
        tables=tuple(filter(None, map(_table, sections.get("database", ())))),
    )


def _source(line: str) -> Source | None:
    match = _SOURCE.match(line.strip())
    if not match:
        return None
    name, description = match[1].strip(), match[2]
    if spans := _RANGE.match(description):
        first, last = instant(spans[2]), instant(spans[3])
        if first and last:
            return Source(name, spans[1], first, last)
    return Source(name, description)


def _table(line: str) -> Table | None:
    name, bracket, rest = line.strip().partition("(")
    if not bracket or not re.fullmatch(r"[\w.$`\"-]+", name.strip()):
        return None
    depth, end = 1, len(rest)
    for index, character in enumerate(rest):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            end = index
            break
    columns = tuple(filter(None, map(_column, _split_columns(rest[:end]))))
    return Table(name.strip(), columns, rest[end + 1 :].lstrip(": ").strip())


def _split_columns(text: str) -> list[str]:
    """At the commas that are not within a type such as DECIMAL(10, 2)."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _column(text: str) -> Column | None:
    name, _, type_ = text.strip().partition(" ")
    return Column(name.strip('`"'), type_.strip().upper()) if name and name not in {"…", "..."} else None


@dataclass(frozen=True)
class Pattern:
    """One message shape with its count; `text` has <*> where the lines differ."""

    count: int
    level: str
    first: str
    last: str
    text: str

    @property
    def spelled(self) -> str:
        """How the observation spells its counts and times."""
        times = f" first {self.first} last {self.last}" if self.first else ""
        return f"{self.count}x {self.level}{times}"


@dataclass(frozen=True)
class LogView:
    """The body of a query_logs observation."""

    source: str
    window: str = ""
    levels: str = ""
    first_match: str = ""
    last_match: str = ""
    patterns: tuple[Pattern, ...] = ()
    records: tuple[str, ...] = ()


@dataclass(frozen=True)
class Passage:
    """One passage that a lookup returned; `heading` is its title and heading path."""

    document_id: str
    heading: str
    lines: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.heading.split(" > ")[0].strip()


@dataclass(frozen=True)
class Observation:
    """One tool result as the assistant shows it. `call` is the tool's arguments."""

    evidence_id: str
    tool: str
    status: str
    call: Mapping[str, Any] = field(default_factory=dict)
    coverage: Mapping[str, Any] = field(default_factory=dict)
    body: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        return self.status == "READY"

    @property
    def complete(self) -> bool:
        return not (self.coverage.get("truncated") or self.coverage.get("partial"))

    @property
    def text(self) -> str:
        return "\n".join(self.body)


def observations(text: str) -> list[Observation]:
    """The observation blocks of a message, in order; other text outside fences is skipped."""
    found: list[Observation] = []
    header: dict[str, str] = {}
    body: tuple[str, ...] | None = None
    for segment in segments(text):
        if segment.fenced:
            if header and body is None:
                asked, body = _asked_and_result(segment.lines)
                header |= asked
            continue
        for line in segment.lines:
            key, colon, value = line.partition(":")
            if key == "evidence_id" and colon:
                found.extend(_observation(header, body or ()))
                header, body = {}, None
            if colon and (header or key == "evidence_id"):
                header.setdefault(key.strip(), value.strip())
    return [*found, *_observation(header, body or ())]


def _asked_and_result(lines: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What a block tells of the call, up to its first line `result:`, and the result after it."""
    at = lines.index("result:") if "result:" in lines else len(lines)
    fields = (line.partition(":") for line in lines[:at])
    return {key.strip(): value.strip() for key, _, value in fields}, lines[at + 1 :]


def _observation(header: Mapping[str, str], body: tuple[str, ...]) -> Sequence[Observation]:
    if not header.get("evidence_id"):
        return ()
    observation = Observation(
        evidence_id=header["evidence_id"],
        tool=header.get("tool", ""),
        status=header.get("status", "ERROR"),
        call=json_object(header.get("arguments", "")) or {},
        coverage=json_object(header.get("coverage", "")) or {},
        body=body,
    )
    return (observation,)


_INSTANT = r"(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?Z?"
_PATTERN = re.compile(rf"^pattern: (\d+)x (\S+?)(?: first ({_INSTANT}) last ({_INSTANT}))?: (.*\S)\s*$")
_LEFT_OUT = re.compile(r"^… .* not shown …$")


def log_view(observation: Observation) -> LogView:
    """Counts, patterns and records of a log observation. Record lines are never taken for counts."""
    body = observation.body
    at = body.index("records:") if "records:" in body else len(body)
    facts: dict[str, str] = {}
    patterns: list[Pattern] = []
    for line in body[1:at]:
        if match := _PATTERN.match(line):
            patterns.append(Pattern(int(match[1]), match[2], match[3] or "", match[4] or "", match[5]))
        else:
            key, _, value = line.partition(": ")
            facts.setdefault(key, value.strip())
    return LogView(
        source=str(observation.call.get("source") or (body[0] if body else "")),
        window=facts.get("window", ""),
        levels=facts.get("levels", ""),
        first_match=facts.get("first match", ""),
        last_match=facts.get("last match", ""),
        patterns=tuple(patterns),
        records=tuple(line for line in body[at + 1 :] if line.strip() and not _LEFT_OUT.match(line)),
    )


def rows(observation: Observation) -> list[tuple[str, dict[str, str]]]:
    """The rows of a database observation: each line as it is, and its values as spelled there."""
    read = ((line, _row(line)) for line in observation.body[1:] if line.startswith("{"))
    return [(line, row) for line, row in read if row is not None]


def _row(line: str) -> dict[str, str] | None:
    try:
        value = json.loads(line, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    spelled = {key: str(item).lower() if isinstance(item, bool) else item for key, item in value.items()}
    return {key: item for key, item in spelled.items() if isinstance(item, str)}


_DOCUMENT = re.compile(r"^document ([\w.:/#@-]+): (.+?)(?: \(([^()]*(?:\([^()]*\)[^()]*)*)\))?$")


def passages(observation: Observation) -> list[Passage]:
    """The passages of a lookup observation, best first as the index returned them."""
    found: list[Passage] = []
    for line in observation.body:
        match = _DOCUMENT.match(line)
        if match and match[3] is not None:
            found.append(Passage(match[1], match[2], ()))
        elif found:
            last = found.pop()
            found.append(Passage(last.document_id, last.heading, (*last.lines, line)))
    return found
