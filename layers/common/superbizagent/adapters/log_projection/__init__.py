"""What a model is shown of a search in logs, whatever kind of source the records come from.

A source adds its matching records to `Findings`, which keeps counts, shapes of messages and the records
worth showing in bounded memory; `evidence_of` composes summary, records and coverage to the room there is.
"""

from superbizagent.adapters.log_projection.evidence import Composed, Searched, compose
from superbizagent.adapters.log_projection.findings import Findings, Histogram, LogRecord, Totals, Unread
from superbizagent.adapters.log_projection.instants import MICROSECONDS, instant_of, iso, micros_of
from superbizagent.adapters.log_projection.messages import message_of
from superbizagent.adapters.log_projection.projection import Room
from superbizagent.adapters.log_projection.shapes import ALARM_STEMS
from superbizagent.adapters.log_projection.text_filter import TextFilter, hidden_notes, may_be_secret, unhidden

__all__ = [
    "ALARM_STEMS",
    "MICROSECONDS",
    "Composed",
    "Findings",
    "Histogram",
    "LogRecord",
    "Room",
    "Searched",
    "TextFilter",
    "Totals",
    "Unread",
    "compose",
    "hidden_notes",
    "instant_of",
    "iso",
    "may_be_secret",
    "message_of",
    "micros_of",
    "unhidden",
]
