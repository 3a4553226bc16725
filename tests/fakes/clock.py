"""Time that stands still until a test moves it."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 30, 15, 4, 5, 678901, tzinfo=UTC)


class FakeClock:
    """Clock."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("time only goes forward")
        self._elapsed += seconds
