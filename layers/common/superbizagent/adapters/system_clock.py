"""The machine's clock."""

import time
from datetime import UTC, datetime


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """The clock that asyncio's loop takes its time from."""
        return time.monotonic()
