"""What of megabytes of logs reaches a model: the rare lines do, in the room there is, and nothing is cut after."""

import json
import random
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local.model_server.prompt import Observation as Shown
from local.model_server.prompt import log_view
from superbizagent.adapters.log_files import LogFiles, LogFileSource, SearchTime
from superbizagent.adapters.log_projection import Room
from superbizagent.adapters.redaction import SecretRedactor
from superbizagent.application.evidence_collector import EvidenceCollector, EvidenceLimits
from superbizagent.domain.budget import Budget, BudgetLimits
from superbizagent.domain.codes import ToolName
from superbizagent.domain.evidence import LogLevel, Observation, QueryLogs
from superbizagent.domain.run_context import RunContext
from tests.fakes.clock import FakeClock

START = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
ORDINARY = (
    "INFO [pool-1] shop.Orders: order 4711 of alice paid in 35 ms",
    "INFO [pool-2] shop.Orders: order 4712 of bob paid in 31 ms",
    "WARN [pool-1] shop.Cache: child 6725 found in slot 10",
    "ERROR [main] shop.Payments: gateway timed out after 3000 ms for 10.0.0.7:443",
    "INFO [pool-3] shop.Http: GET /v2/54fadb412c4e40cd/servers/detail HTTP/1.1 status: 200 len: 1893 time: 0.24",
    "DEBUG [pool-3] shop.Cache: miss of cart:alice",
)


def stamped(second: float, text: str) -> str:
    return f"{START + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S}Z {text}"


def chatter(count: int, ordinary: Sequence[str] = ORDINARY) -> list[str]:
    return [stamped(number / 10, ordinary[number % len(ordinary)]) for number in range(count)]


async def observe(path: Path, size: int = 8_000, **arguments: object) -> Observation:
    """Through the collector and the redactor, as a run has it."""
    clock, redact = FakeClock(), SecretRedactor()
    context = RunContext(
        session_id="s",
        run_id="r",
        query="why?",
        budget=Budget(BudgetLimits()),
        deadline=clock.monotonic() + 100,
        monotonic=clock.monotonic,
    )
    # What it finds is asked here, however long a busy machine takes over it.
    collector = EvidenceCollector(context, clock, redact, EvidenceLimits(projection_bytes=size, timeout=100))
    source = LogFiles({"app": LogFileSource("x", (str(path),))}, room=Room(size, redact=redact))
    query = QueryLogs.model_validate({"source": "app", **arguments})
    observation = await collector.collect(ToolName.QUERY_LOGS, query, lambda: source.query_logs(query))
    assert len(observation.projection.encode()) <= size
    return observation


def fits(observation: Observation) -> bool:
    """Whether the collector had nothing to cut."""
    assert observation.coverage is not None
    return not {"the result was cut to fit", "long lines were cut"} & set(observation.coverage.notes)


def summary(observation: Observation, start: str) -> list[str]:
    head = observation.projection.split("\nrecords:\n")[0]
    return [line for line in head.splitlines() if line.startswith(start)]


RARE = {
    "level": "FATAL [pool-1] shop.Orders: order 4711 of alice paid in 35 ms",
    "error among errors": "ERROR [main] shop.Payments: certificate expires in 36 hours",
    "wording": "INFO [main] shop.Config: feature flag checkout-v2 switched on",
    "one word of a frequent template": "WARN [pool-1] shop.Cache: child 6725 lost in slot 10",
    "no level": "kernel: possible SYN flooding on port 443",
    "chinese": "INFO [main] shop.Db: 数据库连接池已耗尽，等待 30 秒",
    "stack trace": "ERROR [main] shop.Db: query failed\njava.lang.IllegalStateException: gone\n\tat shop.Db.run(J)",
}


@pytest.mark.spec("DIAG-2", "GUARD-2")
@pytest.mark.parametrize("kind", RARE)
@pytest.mark.parametrize("at", [1, 1_345, 2_998])
async def test_one_rare_record_among_thousands_is_shown_verbatim(tmp_path: Path, kind: str, at: int) -> None:
    lines = chatter(3_000)
    lines.insert(at, rare := stamped(at / 10, RARE[kind]))
    (tmp_path / "app.log").write_text("\n".join(lines))

    observation = await observe(tmp_path / "app.log")

    assert f"\n{rare}\n" in f"{observation.projection}\n"
    assert fits(observation)
    assert observation.coverage is not None
    assert (observation.coverage.scanned, observation.coverage.matched) == (3_001, 3_001)
    assert observation.coverage.truncated


@pytest.mark.spec("DIAG-2")
async def test_a_rare_line_without_a_time_is_shown_with_the_record_that_it_continues(tmp_path: Path) -> None:
    lines = chatter(5_000)
    lines.insert(2_000, "Out of memory: Killed process 4711 (java)")
    (tmp_path / "app.log").write_text("\n".join(lines))

    observation = await observe(tmp_path / "app.log")

    assert f"{lines[1_999]}\n{lines[2_000]}\n" in observation.projection


@pytest.mark.spec("DIAG-2")
@pytest.mark.parametrize("at", [3, 100, 199])
async def test_a_rare_line_deep_in_a_long_stack_trace_is_shown(tmp_path: Path, at: int) -> None:
    trace = "\n".join(f"\tat shop.Frame.call(Frame.java:{n})" for n in range(200))
    lines = [stamped(n, f"ERROR [main] shop.Db: query failed\n{trace}") for n in range(200)]
    lines[at] = lines[at].replace("java:120)", "java:120)\nCaused by: certificate has expired")
    (tmp_path / "app.log").write_text("\n".join(lines))

    observation = await observe(tmp_path / "app.log")

    assert "\nCaused by: certificate has expired\n" in observation.projection


@pytest.mark.spec("DIAG-2")
async def test_rare_json_and_filtered_records_are_shown(tmp_path: Path) -> None:
    lines = [
        json.dumps({"ts": f"{START + timedelta(seconds=n):%Y-%m-%dT%H:%M:%SZ}", "level": "warn", "msg": f"slow {n} ms"})
        for n in range(3_000)
    ]
    rare = lines[1_500].replace("slow 1500 ms", "replica lagging")
    lines.insert(1_500, rare)
    (tmp_path / "app.log").write_text("\n".join(lines))

    for levels in ((), ("WARN", "ERROR")):
        observation = await observe(tmp_path / "app.log", levels=levels)
        assert rare in observation.projection.splitlines()


@pytest.mark.spec("DIAG-2")
async def test_a_json_record_with_a_rare_value_in_any_field_is_shown(tmp_path: Path) -> None:
    """Users are many, so that a new one is nothing; the same message with another outcome is."""
    lines = [
        f'{{"ts":"{START + timedelta(seconds=n):%Y-%m-%dT%H:%M:%SZ}","msg":"done",'
        f'"user":"{chr(97 + n % 26) * (n % 9 + 1)}",'
        f'"outcome":"{"ok" if n % 2 else "cached"}","ms":{n}}}'
        for n in range(3_000)
    ]
    lines[1_234] = lines[1_234].replace("cached", "upstream reset")
    (tmp_path / "app.log").write_text("\n".join(lines))

    observation = await observe(tmp_path / "app.log")

    assert lines[1_234] in observation.projection.splitlines()


def _cached(number: int) -> str:
    """With a name that no other line has."""
    chance = random.Random(number)  # noqa: S311 - a repeatable choice is wanted
    return stamped(number, f"INFO cache {''.join(chance.choices('abcdefghijklmnop', k=7))} answered with a hit")


def _access(number: int, status: int = 200) -> str:
    at = START + timedelta(seconds=number)
    size = number * 37 % 9_000
    return f'10.0.0.9 - - [{at:%d/%b/%Y:%H:%M:%S +0000}] "GET /a/{number} HTTP/1.1" {status} {size} "-" "curl/8"'


def _nested(number: int, **changes: object) -> str:
    response = {"statusCode": 200 + number % 2, "kept": True, **changes}
    return json.dumps(
        {"time": f"{START + timedelta(seconds=number):%Y-%m-%dT%H:%M:%SZ}", "msg": "done", "res": response}
    )


def _chinese(number: int) -> str:
    return stamped(number, f"INFO [main] 用户下单成功，订单号{number * 7_919}，金额{number % 900}元")


# An ordinary line by its number, and the one that is unlike the others.
UNLIKE: dict[str, tuple[Callable[[int], str], str]] = {
    "status of an access line": (_access, _access(77, 502)),
    "keyed status": (
        lambda n: stamped(n, f"INFO path=/v1 status={200 + n % 3} trace={n * 7_919}"),
        stamped(77, "INFO path=/v1 status=503 trace=99"),
    ),
    "status in an object": (_nested, _nested(77, statusCode=503)),
    "truth value in an object": (_nested, _nested(77, kept=False)),
    "field that others lack": (_nested, _nested(77, error={"type": "WalletFrozen"})),
    "Chinese wording": (_chinese, stamped(77, "INFO [main] 用户下单被风控拦截，订单号4711")),
    "end of a long line": (
        lambda n: stamped(n, f"INFO dump {'k=1 ' * 200}end"),
        stamped(77, f"INFO dump {'k=1 ' * 200}checksum mismatch, refusing to apply"),
    ),
    "alarm among endless names": (
        _cached,
        stamped(5_500, "INFO cache abcdefg answered with a timeout"),
    ),
    "another end among endless names": (
        _cached,
        stamped(5_500, "INFO cache abcdefg answered with a miss"),
    ),
    "names with one digit are no wording": (
        lambda n: stamped(n, f"INFO [main] reserved SKU{n * 7 % 9_973} for cart"),
        stamped(77, "INFO [main] released SKU4711 for cart"),
    ),
}


@pytest.mark.spec("DIAG-2")
@pytest.mark.parametrize("kind", UNLIKE)
async def test_what_makes_a_record_unlike_the_others_is_seen_wherever_it_stands(tmp_path: Path, kind: str) -> None:
    ordinary, rare = UNLIKE[kind]
    lines = [ordinary(number) for number in range(6_000)]
    lines.insert(5_500, rare)
    (tmp_path / "app.log").write_text("\n".join(lines))

    observation = await observe(tmp_path / "app.log")

    assert rare in observation.projection.splitlines()
    assert fits(observation)


@pytest.mark.spec("DIAG-2")
async def test_rare_records_survive_beside_long_ones(tmp_path: Path) -> None:
    """Each ordinary record would fill the room alone."""
    trace = "\n".join(f"\tat shop.Frame{n}.call(Frame.java:{n})" for n in range(300))
    lines = [stamped(n, f"ERROR [main] shop.Db: query {n} failed {'x' * 3_000}\n{trace}") for n in range(200)]
    lines.insert(77, rare := stamped(77, "WARN [main] shop.Disk: quota exceeded on volume a"))
    (tmp_path / "app.log").write_text("\n".join(lines))

    observation = await observe(tmp_path / "app.log")

    assert rare in observation.projection.splitlines()
    assert "characters cut]" in observation.projection
    assert "of the records shown are shortened where marked" in summary(observation, "cut:")[0]
    assert fits(observation)


@pytest.mark.spec("SEC-3", "DIAG-2")
async def test_secrets_that_grow_in_redaction_leave_room_for_the_rare(tmp_path: Path) -> None:
    lines = chatter(2_000, [f"INFO [main] shop.Login: password=pw{n}xy for u{n} token=tk{n}zz" for n in range(7)])
    lines.insert(999, rare := stamped(99.9, "ERROR [main] shop.Login: directory is read-only"))
    (tmp_path / "app.log").write_text("\n".join(lines))

    observation = await observe(tmp_path / "app.log", limit=200)

    assert rare in observation.projection.splitlines()
    assert "[secret:" in observation.projection
    assert fits(observation)
    assert not re.search(r"\bpw\dxy|\btk\dzz", observation.projection)


@pytest.mark.spec("SEC-3")
@pytest.mark.parametrize("padding", range(600, 760, 19))
async def test_no_cut_and_no_mask_leaves_a_part_of_a_secret(tmp_path: Path, padding: int) -> None:
    secret = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwiYWRtaW4iOnRydWV9.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9"
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(["MIIEpAIBAAKCAQEAq7BFUpkGp3"] * 30)
    lines = [
        stamped(0, f"ERROR {'y' * (padding // 3)} sent {secret} back"),
        stamped(1, f"ERROR {'z ' * (padding // 2)} {secret} {'w' * 900}"),
        stamped(2, f"ERROR {'k' * padding}\n{key}\n-----END RSA PRIVATE KEY-----"),
        *chatter(300),
    ]
    (tmp_path / "app.log").write_text("\n".join(lines))

    projection = (await observe(tmp_path / "app.log")).projection

    assert "[secret:" in projection
    for part in ("eyJh", "hbGci", "JzdWIi", "wiYWRtaW4", "XgL0n3", "MIIEpA", "UpkGp3"):
        assert part not in projection


@pytest.mark.spec("DIAG-2")
async def test_each_record_is_of_one_pattern_and_names_that_vary_are_one(tmp_path: Path) -> None:
    names = [a + b + c for a in "klmnp" for b in "aeiou" for c in ("ra", "lo", "ti", "ne", "su")]
    lines = [stamped(n, f"INFO shop.Login: user {names[n % len(names)]} logged in from berlin") for n in range(3_000)]
    lines[1_000] = stamped(1_000, "INFO shop.Login: user kara logged in from nowhere")
    lines[2_000] = stamped(2_000, "ERROR shop.Login: user kara locked out")
    (tmp_path / "app.log").write_text("\n".join(lines))

    observation = await observe(tmp_path / "app.log")

    patterns = summary(observation, "pattern:")
    assert patterns == [
        "pattern: 1x ERROR first 14:33:20 last 14:33:20: shop.Login: user kara locked out",
        "pattern: 1x INFO first 14:16:40 last 14:16:40: shop.Login: user kara logged in from nowhere",
        "pattern: 2998x INFO first 14:00:00 last 14:49:59: shop.Login: user <*> logged in from berlin",
    ]
    assert [pattern.spelled for pattern in log_view(_as_shown(observation)).patterns] == [
        re.sub(r"^pattern: (.*? last \S+): .*$", r"\1", pattern) for pattern in patterns
    ]


def _as_shown(observation: Observation) -> Shown:
    return Shown(observation.evidence_id, observation.tool, "READY", body=tuple(observation.projection.split("\n")))


@pytest.mark.spec("DIAG-2")
async def test_what_is_new_comes_before_what_was_always_there(tmp_path: Path) -> None:
    lines = chatter(3_000)
    lines += [stamped(300 + n / 10, "WARN [main] shop.Queue: backlog of 900 jobs") for n in range(1_000)]
    (tmp_path / "app.log").write_text("\n".join(lines))

    first = summary(await observe(tmp_path / "app.log"), "pattern:")[0]

    assert first == "pattern: 1000x WARN first 14:05:00 last 14:06:39: [main] shop.Queue: backlog of <*> jobs"


@pytest.mark.spec("DIAG-2", "GUARD-2")
async def test_what_was_cut_is_said_and_only_then(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("\n".join(chatter(30)))
    whole = await observe(tmp_path / "app.log")
    part = await observe(tmp_path / "app.log", limit=6)

    assert summary(whole, "cut:") == []
    assert whole.coverage is not None
    assert whole.coverage.complete
    assert summary(part, "cut:")[0].startswith("cut: 24 matching records are not shown")
    assert "lines scanned: 30; matched: 30; shown: 6" in part.projection


WORDS = st.sampled_from(
    [
        "INFO",
        "ERROR",
        "WARN",
        "disk",
        "user",
        "失败",
        "🫠" * 9,
        "x" * 1_500,
        "password=hunter22",
        "{}",
        "…",
        "a\u2028b",
        "17",
    ]
)


@pytest.mark.spec("DIAG-2", "GUARD-2")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.lists(WORDS, min_size=1, max_size=30).map(" ".join), min_size=1, max_size=80),
    continued=st.lists(st.integers(0, 40), max_size=5),
    size=st.integers(1_500, 9_000),
    limit=st.integers(1, 200),
)
async def test_whatever_the_lines_are_it_fits_and_counts_what_it_shows(
    tmp_path: Path, texts: list[str], continued: list[int], size: int, limit: int
) -> None:
    lines = [stamped(number, text) for number, text in enumerate(texts)]
    for at in continued:
        lines.insert(min(at, len(lines)), "  continued " + "c" * 300)
    (tmp_path / "app.log").write_text("\n".join(lines) + "\n", encoding="utf-8")

    observation = await observe(tmp_path / "app.log", size=size, limit=limit)

    assert fits(observation)
    coverage = observation.coverage
    assert coverage is not None
    records = observation.projection.split("\nrecords:\n", 1)[1].split("\n")
    hidden = sum(int(line.split()[1]) for line in records if re.fullmatch(r"… \d+ records not shown …", line))
    assert coverage.shown + hidden == coverage.matched
    assert coverage.shown <= limit
    assert coverage.truncated or hidden == 0


class _TickingClock(FakeClock):
    """A second passes each time it is asked."""

    def monotonic(self) -> float:
        self.advance(1)
        return super().monotonic()


@pytest.mark.spec("DIAG-2", "GUARD-2")
async def test_a_search_that_takes_too_long_returns_what_it_found_and_says_so(tmp_path: Path) -> None:
    """Its time is over after four blocks of 64 KB; what follows was not looked at."""
    lines = chatter(20_000)
    lines[100] = rare = stamped(10, "FATAL [main] shop.Disk: quota exceeded")
    (tmp_path / "app.log").write_text("\n".join(lines))
    source = LogFileSource("x", (str(tmp_path / "app.log"),))
    query = QueryLogs(source="app")

    cut = await LogFiles({"app": source}, time=SearchTime(5, _TickingClock())).query_logs(query)
    whole = await LogFiles({"app": source}, time=SearchTime(5, FakeClock())).query_logs(query)

    assert cut.coverage.partial
    assert 2_000 < (cut.coverage.scanned or 0) < 6_000
    assert rare in cut.lines
    assert cut.coverage.notes[0].startswith("stopped after 5 seconds and 262144 bytes of text near 2026-11-30T14:0")
    assert (whole.coverage.scanned, whole.coverage.partial, whole.coverage.notes) == (20_000, False, ())


async def test_a_room_too_small_for_anything_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("\n".join(chatter(5_000)))

    observation = await observe(tmp_path / "app.log", size=500)

    assert observation.projection.startswith("logs app\nwindow: ")
    assert observation.coverage is not None
    assert observation.coverage.truncated


@pytest.mark.spec("DIAG-2")
async def test_endless_new_wordings_take_bounded_memory_and_hide_no_error(tmp_path: Path) -> None:
    chance = random.Random(7)  # noqa: S311 - a repeatable choice is wanted
    words = ["".join(chance.choices("abcdefghijklmnop", k=6)) for _ in range(3_000)]

    def line(number: int) -> str:
        return stamped(number / 10, "INFO " + " ".join(chance.choices(words, k=chance.randint(3, 12))))

    rare = stamped(900, "ERROR disk failed")

    async def peak(count: int) -> int:
        lines = [line(number) for number in range(count)]
        lines.insert(count - 5, rare)
        (tmp_path / "app.log").write_text("\n".join(lines))
        tracemalloc.start()
        try:
            observation = await observe(tmp_path / "app.log")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            assert rare in observation.projection.splitlines()

    small, large = await peak(6_000), await peak(12_000)

    assert large < small * 1.4


async def test_levels_keep_their_names_apart(tmp_path: Path) -> None:
    """The same words at two levels are two patterns."""
    lines = [stamped(n, f"{'WARN' if n % 3 else 'ERROR'} queue is full") for n in range(30)]
    (tmp_path / "app.log").write_text("\n".join(lines))
    levels: tuple[LogLevel, ...] = ("WARN", "ERROR")

    observation = await observe(tmp_path / "app.log", levels=levels)

    assert [line.split()[1:3] for line in summary(observation, "pattern:")] == [["20x", "WARN"], ["10x", "ERROR"]]


def test_the_miner_is_loaded_only_where_log_files_are() -> None:
    code = "import sys, superbizagent.bootstrap; sys.exit('drain3' in sys.modules or 'jsonpickle' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
