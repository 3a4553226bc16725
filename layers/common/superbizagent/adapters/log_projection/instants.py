"""Instants as microseconds since 1970, as which a search compares and counts them by the million."""

from datetime import UTC, datetime, timedelta
from typing import Final

MICROSECONDS: Final = 1_000_000

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ONE: Final = timedelta(microseconds=1)


def micros_of(instant: datetime) -> int:
    """Microseconds since 1970 of an aware instant."""
    return (instant - _EPOCH) // _ONE


def instant_of(micros: int) -> datetime:
    """The aware UTC instant; clamped to what datetime can hold."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if micros > 0 else datetime.min.replace(tzinfo=UTC)


def iso(instant: datetime) -> str:
    """ISO 8601 in UTC with Z and no more digits than needed."""
    text = instant.astimezone(UTC).replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if "." in text else text) + "Z"
