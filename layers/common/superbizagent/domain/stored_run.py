"""What the store knows of runs that began earlier."""

# Annotations stay text: who ends or lists runs need not load all that content can be.
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from superbizagent.domain.content import PublicContent
    from superbizagent.domain.run import Intent, ReleaseOutcome, RunIds, RunStatus


@dataclass(frozen=True)
class StoredRun:
    """A run as the database has it. `outcome` is None while it is running.

    `content` is None too where the stored JSON can't be read any more.
    """

    run_id: str
    session_id: str
    request_id: str
    gateway_request_id: str
    query: str
    status: RunStatus
    intent: Intent | None
    outcome: ReleaseOutcome | None
    failure_code: str | None
    content: PublicContent | None
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True)
class AbandonedRun:
    """A run that was ended because it was overdue (LIFE-7). What it had used is not known: its process is gone."""

    ids: RunIds
    intent: Intent | None
    duration_ms: int


@dataclass(frozen=True)
class SessionSummary:
    """A session in the list of its principal's; `title` is its first query, bounded."""

    session_id: str
    title: str
    message_pairs: int
    created_at: datetime
    last_active_at: datetime
