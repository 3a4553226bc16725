"""The few interfaces the core needs. Adapters implement them; fakes mirror them in tests."""

# Annotations stay text: who implements or uses one port need not load what all of them speak of.
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from superbizagent.domain.budget import Usage
    from superbizagent.domain.content import PublicContent
    from superbizagent.domain.conversation import ModelReply, ModelRequest
    from superbizagent.domain.evidence import Evidence, LookupKnowledge, QueryLogs, QueryMysql
    from superbizagent.domain.previous_turn import PreviousTurn, PublishedResult
    from superbizagent.domain.run import CancelRequest, Intent, ReleaseOutcome, RunIds
    from superbizagent.domain.steps import Step
    from superbizagent.domain.stored_run import AbandonedRun, SessionSummary, StoredRun


class Clock(Protocol):
    """The only source of time."""

    def now(self) -> datetime:
        """The time of day, aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds that only ever go forward; the same clock as the event loop's."""


class Model(Protocol):
    async def complete(self, request: ModelRequest) -> ModelReply:
        """One call, not retried; raises ModelError. Cancelling it drops the connection."""


class LogSource(Protocol):
    async def describe(self) -> str:
        """The sources' names and contents, a line each, for the model."""

    async def query_logs(self, query: QueryLogs) -> Evidence:
        """Raises EvidenceError. Cancelling it stops the search."""


class BusinessDatabase(Protocol):
    async def describe(self) -> str:
        """Tables and columns, for the model."""

    async def query(self, query: QueryMysql) -> Evidence:
        """Raises EvidenceError. Cancelling it stops the statement at the server."""


class KnowledgeIndex(Protocol):
    async def lookup(self, query: LookupKnowledge) -> Evidence:
        """Raises EvidenceError."""


class Redactor(Protocol):
    def __call__(self, text: str) -> str:
        """`text` without secrets and invisible characters; the same secret gets the same placeholder."""


@dataclass(frozen=True)
class NewRun:
    """A run about to be stored as RUNNING.

    `gateway_request_id` tells the platform's redelivery of one message from a client's resend (LIFE-6).
    """

    run_id: str
    session_id: str
    owner: str
    request_id: str
    gateway_request_id: str
    connection_id: str
    query: str
    created_at: datetime
    deadline_at: datetime


@dataclass(frozen=True)
class RunEnd:
    """All that a finished run stores, in one transaction (STORE-3)."""

    outcome: ReleaseOutcome
    usage: Usage
    duration_ms: int
    finished_at: datetime
    failure_code: str | None = None
    content: PublicContent | None = None
    published_result: PublishedResult | None = None


@dataclass(frozen=True)
class StartResult:
    """What came of the wish to start a run: it is RUNNING, unless there is an `earlier` one of the same request.

    `abandoned`: the overdue runs of its session that were ended to make room for it.
    """

    earlier: StoredRun | None = None
    abandoned: tuple[AbandonedRun, ...] = ()


@dataclass(frozen=True)
class PriorContext:
    """What earlier runs of a session say: for the router, and for the next diagnosis."""

    last_intent: Intent | None = None
    last_query: str | None = None
    previous_turn: PreviousTurn | None = None


class OverdueRuns(Protocol):
    """Runs whose process may have died. Raises StoreError."""

    async def abandon_overdue(self, overdue_since: datetime, now: datetime) -> Sequence[AbandonedRun]:
        """Ends each RUNNING run whose deadline is before `overdue_since`; those it ended (LIFE-7)."""


class RunStore(OverdueRuns, Protocol):
    """Every method is one unit of work; raises StoreError when it could not be done."""

    async def prior_context(self, session_id: str, owner: str) -> PriorContext:
        """Empty for an unknown session; raises SessionNotFound for another owner's (ISO-2)."""

    async def start(self, run: NewRun) -> StartResult:
        """Stores the run as RUNNING, and its session if new.

        Stores nothing when there is an earlier run of the same owner and request id (LIFE-6).
        Raises RequestConflict when that one has another query, SessionNotFound for another owner's
        session, SessionBusy while another run of the session is RUNNING and not overdue. An overdue
        one is ended as FAILED / RUN_ABANDONED in the same transaction.
        """

    async def set_intent(self, run_id: str, intent: Intent) -> None:
        """Only while the run is RUNNING."""

    async def finish(self, run_id: str, end: RunEnd) -> bool:
        """Ends a RUNNING run; false when it had ended already (LIFE-3)."""

    async def find(self, run_id: str) -> StoredRun | None: ...


class CancelRequests(Protocol):
    """Cancellation as rows, so that it reaches a run in another process. Raises StoreError."""

    async def cancel_connection(self, connection_id: str, requested_at: datetime) -> None:
        """The connection is gone; cancels its runs, present and future."""

    async def cancel_run(self, run_id: str, owner: str, requested_at: datetime) -> None:
        """Raises RunNotFound for an unknown or another owner's run. Nothing happens to an ended one."""

    async def pending(self, run_id: str, connection_id: str) -> CancelRequest | None:
        """The first wish for this run's end, if there is one. Sees rows committed a moment ago (CANCEL-4)."""


class Connections(Protocol):
    """Which principal an open connection belongs to. Raises StoreError."""

    async def add(self, connection_id: str, principal: str, connected_at: datetime) -> None: ...

    async def principal(self, connection_id: str) -> str | None: ...

    async def remove(self, connection_id: str) -> None:
        """Nothing happens when it is unknown."""

    async def remove_older(self, than: datetime) -> int:
        """Removes connections that no gateway can still have open; how many."""


class History(Protocol):
    """What a principal can see again (WIRE-5). Raises StoreError."""

    async def sessions(self, owner: str, limit: int) -> Sequence[SessionSummary]:
        """The most recently active first."""

    async def turns(self, session_id: str, owner: str, before: str | None, limit: int) -> Sequence[StoredRun]:
        """The last `limit` runs of the session before the run `before`, oldest first.

        Raises SessionNotFound for an unknown or another owner's session.
        """


class Channel(Protocol):
    async def post(self, connection_id: str, frame: bytes) -> None:
        """Raises ClientGone or ChannelUnavailable."""


@dataclass(frozen=True)
class RunControl:
    """What an observer gets of a run (OBS-1): two ids and one thing to do."""

    session_id: str
    run_id: str
    cancel_client_disconnect: CancelClientDisconnect


class CancelClientDisconnect(Protocol):
    def __call__(self) -> object: ...


StatusCode = Literal[
    "ROUTING",
    "ROUTED",
    "ANSWERING",
    "SEARCHING_KNOWLEDGE",
    "INVESTIGATING",
    "TOOL_STARTED",
    "TOOL_FINISHED",
    "DRAFTING",
    "CHECKING_EVIDENCE",
    "CHECKING_MEANING",
]


class Observer(Protocol):
    """Protocol-neutral progress. What it raises ends the run; ClientGone counts as a disconnect (OBS-2)."""

    async def on_started(self, control: RunControl) -> None:
        """Once, after the run is stored and before the first status."""

    async def on_status(self, code: StatusCode, fields: dict[str, str]) -> None:
        """`fields` has fixed keys and values out of our own enumerations: intent, tool, status."""


class Journal(Protocol):
    """Where operators see what runs do (SEC-4). Called from the event loop: it must not wait."""

    def record(self, ids: RunIds, step: Step, elapsed: float | None) -> None:
        """`elapsed` is seconds since the run started, None where that is not known."""
