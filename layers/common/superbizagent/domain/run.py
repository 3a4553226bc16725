"""A run's identifiers and its stored states."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from superbizagent.domain.pattern import Pattern
from superbizagent.errors import InvalidSessionId

_ID = Pattern(r"[A-Za-z0-9_-]{1,64}")


def new_id() -> str:
    """A new session or run id: 128 random bits, unguessable, so that knowing one proves nothing."""
    return secrets.token_hex(16)


def valid_session_id(value: str) -> str:
    """`value` itself when it is a valid session id; raises InvalidSessionId."""
    if not _ID.fullmatch(value):
        raise InvalidSessionId
    return value


class Intent(StrEnum):
    """What kind of question a run answers (ROUTE-2); each has its own executor."""

    SYSTEM_CHAT = "SYSTEM_CHAT"
    KNOWLEDGE_QUERY = "KNOWLEDGE_QUERY"
    DIAGNOSIS = "DIAGNOSIS"


class RunStatus(StrEnum):
    """The status column (STORE-2)."""

    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class ReleaseOutcome(StrEnum):
    """What a run ended in, exactly one a run (LIFE-3)."""

    SUCCESS = "SUCCESS"
    FALLBACK = "FALLBACK"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def status(self) -> RunStatus:
        """Both safe outcomes are stored as SUCCESS; this outcome keeps the exact meaning (STORE-2)."""
        return RunStatus.SUCCESS if self is ReleaseOutcome.FALLBACK else RunStatus(self.value)


class CancelReason(StrEnum):
    """Why a run was cancelled."""

    CLIENT_DISCONNECT = "CLIENT_DISCONNECT"
    CLIENT_REQUEST = "CLIENT_REQUEST"
    SHUTDOWN = "SHUTDOWN"


@dataclass(frozen=True)
class RunIds:
    """Whose step it is, as far as that is known."""

    run_id: str | None = None
    session_id: str | None = None
    request_id: str | None = None
    connection_id: str | None = None


@dataclass(frozen=True)
class CancelRequest:
    """Somebody's wish that a run end; `requested_at` by the clock of the process that took it."""

    reason: CancelReason
    requested_at: datetime
