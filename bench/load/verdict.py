"""Compares what clients were told with what the database says. Reads rows itself: the product is what is judged."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import RowMapping, create_engine, text
from sqlalchemy.pool import NullPool

from bench.load.traffic import Asked

ROWS = """
SELECT request_id, run_id, intent, status, release_outcome, failure_code, content IS NOT NULL AS has_content,
       created_at, finished_at FROM diagnosis_run
"""
TOLD = {"done": "SUCCESS", "cancelled": "CANCELLED", "error": "FAILED"}


@dataclass
class Verdict:
    """`lost`: questions that became no run, and of which no client was told anything."""

    runs: int = 0
    lost: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    wrongs: list[str] = field(default_factory=list)
    start_delays: list[float] = field(default_factory=list)
    end_delays: list[float] = field(default_factory=list)
    durations: dict[str, list[float]] = field(default_factory=dict)


def wait_until_ended(database_url: str, seconds: float) -> None:
    """Runs whose process was killed are ended by the sweep, after their deadline."""
    until = time.monotonic() + seconds
    engine = create_engine(database_url, poolclass=NullPool)
    with engine.connect() as connection:
        while time.monotonic() < until:
            if not connection.scalar(text("SELECT COUNT(*) FROM diagnosis_run WHERE status = 'RUNNING'")):
                return
            connection.commit()
            time.sleep(2)


def most_connections(database_url: str) -> int:
    with create_engine(database_url, poolclass=NullPool).connect() as connection:
        row = connection.execute(text("SHOW GLOBAL STATUS LIKE 'Max_used_connections'")).one()
        return int(row[1])


def judge(database_url: str, asked: Sequence[Asked], *, disturbances: int) -> Verdict:
    """A disturbance may lose one question: it was on its way when its socket dropped, or its process was killed before
    it had stored the run.
    """
    with create_engine(database_url, poolclass=NullPool).connect() as connection:
        rows: dict[str, list[RowMapping]] = {}
        for row in connection.execute(text(ROWS)).mappings():
            rows.setdefault(row["request_id"], []).append(row)
    verdict = Verdict()
    for one in asked:
        found = rows.pop(one.request_id, [])
        if problem := _problem(one, found, disturbed=disturbances > 0):
            verdict.wrongs.append(f"{one.request_id}: {problem}")
        if found:
            _count(verdict, one, found[0])
        else:
            verdict.lost += 1
    if verdict.lost > disturbances:
        verdict.wrongs.append(f"{verdict.lost} questions became no run, after {disturbances} disturbances")
    verdict.wrongs += [f"{request_id}: nobody asked this" for request_id in rows]
    return verdict


def _count(verdict: Verdict, asked: Asked, row: RowMapping) -> None:
    verdict.runs += 1
    code = f" {row['failure_code']}" if row["failure_code"] else ""
    verdict.ends[f"{row['intent'] or 'not routed'}: {row['release_outcome']}{code}"] += 1
    if (started := asked.received_at("started")) is not None:
        verdict.start_delays.append(started - _seconds(row["created_at"]))
    if row["finished_at"] is None or (ended := asked.received_at(*TOLD)) is None:
        return
    verdict.end_delays.append(ended - _seconds(row["finished_at"]))
    verdict.durations.setdefault(asked.intent, []).append(ended - asked.sent_at)


def _problem(asked: Asked, rows: Sequence[RowMapping], *, disturbed: bool) -> str | None:
    if len(rows) > 1:
        return f"{len(rows)} runs"
    if not rows:
        return None if disturbed and not asked.frames else "no run"
    row = rows[0]
    if row["status"] == "RUNNING" or row["release_outcome"] is None or row["finished_at"] is None:
        return "still running"
    if row["status"] == "SUCCESS" and not row["has_content"]:
        return "success without content"
    return _misnumbered(asked) or _contradiction(asked, row) or (None if disturbed else _failure(asked, row))


def _misnumbered(asked: Asked) -> str | None:
    # A frame whose post was not answered in time is posted again, and may have arrived: it comes twice, word for word.
    frames = [frame for _, frame in asked.frames if "seq" in frame]
    numbers = [frame["seq"] for place, frame in enumerate(frames) if not place or frame != frames[place - 1]]
    return None if numbers == list(range(1, len(numbers) + 1)) else f"frames are numbered {numbers}"


def _contradiction(asked: Asked, row: RowMapping) -> str | None:
    last = asked.terminal
    if last is None:
        return None
    kinds = [frame["type"] for _, frame in asked.frames]
    if TOLD[last["type"]] != row["status"] or last.get("outcome") not in (None, row["release_outcome"]):
        return f"told {json.dumps(last)[:200]}, stored {row['status']} {row['release_outcome']}"
    if last["type"] == "error" and last["code"] != row["failure_code"]:
        return f"told {last['code']}, stored {row['failure_code']}"
    return None if last["type"] != "done" or kinds[-2] == "content" else "done without content"


def _failure(asked: Asked, row: RowMapping) -> str | None:
    """Without disturbance every question has its one right end."""
    if asked.terminal is None:
        return "no last frame"
    right = (row["intent"], row["release_outcome"]) == (asked.intent, "SUCCESS")
    return None if right else f"{asked.intent} ended as {row['intent']} {row['release_outcome']} {row['failure_code']}"


def _seconds(stored: datetime) -> float:
    return stored.replace(tzinfo=UTC).timestamp()
