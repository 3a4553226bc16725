"""Fixed words that evidence, drafts and published content have in common."""

from enum import StrEnum


class ToolName(StrEnum):
    """The three evidence tools; no other exists (DIAG-1)."""

    LOOKUP_KNOWLEDGE = "lookup_knowledge"
    QUERY_LOGS = "query_logs"
    QUERY_MYSQL = "query_mysql"


class Unit(StrEnum):
    """What a source counts."""

    LINES = "lines"
    ROWS = "rows"
    PASSAGES = "passages"


class ObservationStatus(StrEnum):
    READY = "READY"
    NO_EVIDENCE = "NO_EVIDENCE"
    ERROR = "ERROR"


class MissingContext(StrEnum):
    """What the agent can ask the user for (DIAG-5). Fixed words: no model prose reaches the user."""

    SERVICE = "SERVICE"
    TIME_RANGE = "TIME_RANGE"
    ENVIRONMENT = "ENVIRONMENT"
    IDENTIFIER = "IDENTIFIER"
    SYMPTOM = "SYMPTOM"
