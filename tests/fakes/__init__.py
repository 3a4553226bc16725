"""Fakes for the ports. Each passes the same contract suite as its adapter."""

from tests.fakes.clock import FakeClock
from tests.fakes.store import (
    FakeCancelRequests,
    FakeConnections,
    FakeDatabase,
    FakeHistory,
    FakeRunStore,
    Pause,
)

__all__ = [
    "FakeCancelRequests",
    "FakeClock",
    "FakeConnections",
    "FakeDatabase",
    "FakeHistory",
    "FakeRunStore",
    "Pause",
]
