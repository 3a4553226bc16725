"""How often one unusual line among megabytes of logs reaches the model, and how often plain cuts keep it.

`python -m bench.evidence.log_projection [DIRECTORY] [--size 100MB] [--plants 20] [--seed 1]`

Each `*.log` of the directory, or else generated logs, is repeated to the size. Then a line is planted once at
a random place and the source is asked as the agent asks, through the collector and the redactor: for all
levels, and for warnings and worse. A plant counts when the projection holds it letter by letter. The cuts
have the projection's size and are of the lines that match, in their order.
"""

import argparse
import asyncio
import random
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

from superbizagent.adapters.log_files import LogFiles, LogFileSource
from superbizagent.adapters.log_projection import Room
from superbizagent.adapters.redaction import SecretRedactor
from superbizagent.adapters.system_clock import SystemClock
from superbizagent.application.evidence_collector import EvidenceCollector, EvidenceLimits
from superbizagent.domain.budget import Budget, BudgetLimits
from superbizagent.domain.codes import ToolName
from superbizagent.domain.evidence import LogLevel, Observation, QueryLogs
from superbizagent.domain.run_context import RunContext

SEVERE: tuple[LogLevel, ...] = ("ERROR", "FATAL", "WARN")
SOURCE = "app"
CUTS = ("head", "tail", "head+tail")

_LEVEL = re.compile(
    r"(?<![\w/.$])(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|FATAL|CRITICAL)(?![\w/.$=-])"
    r"|(?<=\[)(?:debug|info|notice|warn|error|crit)(?=\])"
    r'|(?<="level":")\w+|(?<=level=)\w+'
)
_LEVEL_OF: dict[str, LogLevel] = {
    "WARN": "WARN",
    "WARNING": "WARN",
    "ERROR": "ERROR",
    "SEVERE": "ERROR",
    "FATAL": "FATAL",
    "CRITICAL": "FATAL",
    "CRIT": "FATAL",
}
_HEADER_END = re.compile(r"\] - |\]: |: |\] |\s+")
_WORDS = (
    "Disk quota exceeded on volume /data/7, 0 bytes left",
    "certificate of upstream billing.internal expires in 36 hours",
    "leader election lost its quorum after 3 rounds",
    "heap usage above 97 percent, starting emergency collection",
    "schema version 41 differs from expected 42",
    "clock skew of 5400 ms against peer detected",
    "read-only file system, falling back to memory",
    "feature flag checkout-v2 switched on by deploy 8841",
    "replica lagging 48211 transactions behind",
    "configuration reloaded, 3 keys were dropped",
    "kernel: Out of memory: Killed process 4711 (java)",
    "数据库连接池已耗尽，等待 30 秒",
)


@dataclass(frozen=True)
class Plant:
    """`line` goes before line `at` of repetition `repetition`."""

    kind: str
    line: str
    at: int
    repetition: int


@dataclass
class Sample:
    """A log, its lines' levels of trouble, and how often each may be planted into."""

    name: str
    lines: list[str]
    severe: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.severe = [level_of(line) in SEVERE for line in self.lines]


@dataclass
class Score:
    """Per column how many plants were kept, and what the search cost."""

    planted: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    read: int = 0
    largest: int = 0


def level_of(line: str) -> LogLevel | None:
    match = _LEVEL.search(line, 0, 200)
    return _LEVEL_OF.get(match.group().upper()) if match else None


def plants(sample: Sample, count: int, repetitions: int, chance: random.Random) -> Iterator[Plant]:
    """In turn a line at a level that the sample hardly has, an unusual wording, both, and a line without a header."""
    spellings = Counter(match.group() for line in sample.lines if (match := _LEVEL.search(line, 0, 200)))
    rare = _rare_levels(spellings, len(sample.lines))
    kinds = ("level", "wording", "both", "bare") if rare else ("wording", "bare")
    for number in range(count):
        kind = kinds[number % len(kinds)]
        at = chance.randrange(len(sample.lines))
        yield Plant(kind, _planted(sample.lines[at], kind, rare, chance), at, chance.randrange(repetitions))


def _rare_levels(spellings: Counter[str], lines: int) -> list[str]:
    """In the sample's own spelling; no rarer than one line in two hundred."""
    usual = next(iter(spellings), "")
    names = ("warn", "error", "crit") if usual.islower() else ("WARN", "ERROR", "FATAL")
    counts: Counter[LogLevel | None] = Counter()
    for spelling, count in spellings.items():
        counts[_LEVEL_OF.get(spelling.upper())] += count
    return [name for name in names if spellings and counts[_LEVEL_OF[name.upper()]] <= lines / 200]


def _planted(line: str, kind: str, rare: Sequence[str], chance: random.Random) -> str:
    match = _LEVEL.search(line, 0, 200)
    if match and kind in ("level", "both"):
        level = chance.choice(rare)
        line = line[: match.start()] + level + line[match.end() :]
        match = _LEVEL.search(line, 0, 200)
    if kind == "level":
        return line
    words = chance.choice(_WORDS)
    if kind == "bare":
        return words
    if line.startswith("{"):
        return re.sub(r'(?<="msg":")[^"]*', words, line)
    end = match.end() if match else 0
    # Past the level there may be a thread and a logger, which unusual lines have as well.
    header = _HEADER_END.search(line, end + 1)
    return (line[: header.end()] if header else line[:end] + " ") + words


def write(sample: Sample, plant: Plant, repetitions: int, path: Path) -> int:
    """Returns the size in bytes."""
    whole = "".join(f"{line}\n" for line in sample.lines).encode()
    before = "".join(f"{line}\n" for line in sample.lines[: plant.at]).encode()
    with path.open("wb") as file:
        for repetition in range(repetitions):
            if repetition == plant.repetition:
                file.write(before + plant.line.encode() + b"\n" + whole[len(before) :])
            else:
                file.write(whole)
        return file.tell()


def in_cuts(sample: Sample, plant: Plant, repetitions: int, size: int, *, severe: bool) -> dict[str, bool]:
    """Whether cuts of the matching lines hold the plant. By arithmetic: the log is its sample again and again."""
    sizes = [
        len(line.encode()) + 1 if kept or not severe else 0
        for line, kept in zip(sample.lines, sample.severe, strict=True)
    ]
    ends = [0, *accumulate(sizes)]
    own = len(plant.line.encode()) + 1
    before = plant.repetition * ends[-1] + ends[plant.at]
    after = repetitions * ends[-1] - before
    return {
        "head": before + own <= size,
        "tail": after + own <= size,
        "head+tail": before + own <= size * 2 // 3 or after + own <= size // 3,
    }


async def observe(path: Path, levels: tuple[LogLevel, ...], size: int) -> Observation:
    """As a run would see it."""
    clock, redact = SystemClock(), SecretRedactor()
    context = RunContext(
        session_id="bench",
        run_id="bench",
        query="",
        budget=Budget(BudgetLimits()),
        deadline=clock.monotonic() + 3_600,
        monotonic=clock.monotonic,
    )
    collector = EvidenceCollector(context, clock, redact, EvidenceLimits(projection_bytes=size, timeout=3_600))
    source = LogFiles(
        {SOURCE: LogFileSource("planted", (str(path),))}, max_bytes=8 * 1024**3, room=Room(size, redact=redact)
    )
    query = QueryLogs(source=SOURCE, levels=levels)
    return await collector.collect(ToolName.QUERY_LOGS, query, lambda: source.query_logs(query))


def measure(sample: Sample, options: argparse.Namespace, path: Path) -> dict[str, Score]:
    """Scores per question and kind of plant."""
    chance = random.Random(f"{options.seed} {sample.name}")  # noqa: S311 - a repeatable choice is wanted
    once = sum(len(line.encode()) + 1 for line in sample.lines)
    repetitions = max(options.size // once, 1)
    scores: dict[str, Score] = {}
    for plant in plants(sample, options.plants, repetitions, chance):
        written = write(sample, plant, repetitions, path)
        questions: dict[str, tuple[LogLevel, ...]] = {"all levels": ()}
        if level_of(plant.line) in SEVERE:
            questions["WARN+"] = SEVERE
        for name, levels in questions.items():
            score = scores.setdefault(name, Score())
            began = time.perf_counter()
            observation = asyncio.run(observe(path, levels, options.bytes))
            score.seconds += time.perf_counter() - began
            score.read += written
            score.planted += 1
            projection = observation.projection
            score.largest = max(score.largest, len(projection.encode()))
            found = SecretRedactor()(plant.line) in projection.splitlines()
            score.kept["ours"] += found
            if not found and options.verbose:
                print(f"missed ({sample.name}, {name}, {plant.kind}): {plant.line}\n{projection}\n")
            cuts = in_cuts(sample, plant, repetitions, options.bytes, severe=bool(levels))
            score.kept.update({cut: int(kept) for cut, kept in cuts.items()})
    return scores


def generated(chance: random.Random) -> list[Sample]:
    """Logs of three formats with names, paths and durations that vary."""
    start = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
    times = [start + timedelta(milliseconds=700 * number) for number in range(2_000)]
    names = [f"{a}{b}" for a in ("mar", "jo", "el", "ka", "su") for b in ("ia", "nas", "sa", "rin", "vi", "tom")]

    def message() -> tuple[str, str]:
        name, number = chance.choice(names), chance.randrange(10_000)
        return chance.choices(
            [
                ("INFO", f"user {name} logged in from 10.0.{number % 256}.7"),
                ("INFO", f"order {number} of {name} paid in {number % 900} ms"),
                ("DEBUG", f"cache lookup of cart:{name}:{number} was a miss"),
                ("INFO", f"GET /api/{name}/items/{number} 200 {number % 77}ms"),
                ("WARN", f"slow query of {number} ms on replica-{number % 3}"),
                ("ERROR", f"payment gateway timed out after {number} ms for order {number * 7}"),
            ],
            [30, 30, 20, 17, 2, 1],
        )[0]

    lines: dict[str, list[str]] = {"plain": [], "keyed": [], "json": []}
    for at in times:
        level, text = message()
        lines["plain"].append(f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03} {level} [main] shop.Service: {text}")
        lines["keyed"].append(f"time={at:%Y-%m-%dT%H:%M:%SZ} level={level.lower()} app=shop msg: {text}")
        lines["json"].append(f'{{"ts":"{at:%Y-%m-%dT%H:%M:%SZ}","level":"{level.lower()}","msg":"{text}"}}')
    return [Sample(name, texts) for name, texts in lines.items()]


def samples(directory: Path | None, chance: random.Random) -> list[Sample]:
    if directory is None:
        return generated(chance)
    return [
        Sample(path.stem.removesuffix("_2k"), path.read_text(encoding="utf-8", errors="replace").splitlines())
        for path in sorted(directory.glob("*.log"))
    ]


def size_of(text: str) -> int:
    """`100MB` in bytes."""
    match = re.fullmatch(r"(\d+)\s*([KMG]?)B?", text.strip().upper())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 100MB")
    return int(match[1]) * {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}[match[2]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.evidence.log_projection", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, help="a folder of *.log samples; without it, generated logs")
    parser.add_argument("--size", type=size_of, default=size_of("1MB"), help="each sample is repeated to this size")
    parser.add_argument("--plants", type=int, default=6, help="how many lines are planted, one at a time, per sample")
    parser.add_argument("--bytes", type=int, default=8_000, help="the projection's size and that of the cuts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print the projections that miss their plant")
    options = parser.parse_args()

    total: dict[str, Score] = {}
    print(
        f"{'sample':<12} {'asked for':<11} {'planted':>7} {'ours':>6} " + " ".join(f"{cut:>9}" for cut in CUTS), end=""
    )
    print(f" {'bytes':>6} {'MB/s':>6}")
    chance = random.Random(options.seed)  # noqa: S311
    with tempfile.TemporaryDirectory() as folder:
        for sample in samples(options.directory, chance):
            for question, score in measure(sample, options, Path(folder) / "app.log").items():
                print(_row(sample.name, question, score), flush=True)
                whole = total.setdefault(question, Score())
                whole.planted += score.planted
                whole.kept.update(score.kept)
                whole.seconds += score.seconds
                whole.read += score.read
                whole.largest = max(whole.largest, score.largest)
    for question, score in total.items():
        print(_row("all", question, score))
    # Linux counts it in kilobytes. The sample and this program are in it, the log of many times its size is not.
    print(f"most memory at one time: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB")


def _row(sample: str, question: str, score: Score) -> str:
    kept = " ".join(f"{score.kept[cut]:>9}" for cut in CUTS)
    speed = score.read / 1e6 / score.seconds
    counts = f"{score.planted:>7} {score.kept['ours']:>6} {kept}"
    return f"{sample:<12} {question:<11} {counts} {score.largest:>6} {speed:>6.1f}"


if __name__ == "__main__":
    main()
