"""A chat use case on fakes, and one run of it."""

from dataclasses import dataclass, field
from typing import Any

from superbizagent.application.cancellation import CancelWatch
from superbizagent.application.chat import ChatRequest, ChatResult, ChatUseCase
from superbizagent.application.evidence_collector import EvidenceLimits
from superbizagent.application.evidence_tools import EvidenceSources
from superbizagent.application.execution import ChatLimits
from superbizagent.domain.budget import BudgetLimits
from superbizagent.ports import Clock
from tests.fakes.clock import FakeClock
from tests.fakes.journal import FakeJournal
from tests.fakes.model import FakeModel
from tests.fakes.observer import FakeObserver
from tests.fakes.sources import sources
from tests.fakes.store import FakeCancelRequests, FakeDatabase, FakeRunStore, RunRow

QUERY = "Why do payments fail since 14:00?"


def limits(**changes: Any) -> ChatLimits:
    """Limits of a run; keys of the budget and of the evidence are told apart by name."""
    budget = {name: changes.pop(name) for name in list(changes) if name in BudgetLimits.model_fields}
    evidence = {name: changes.pop(name) for name in list(changes) if name in EvidenceLimits.model_fields}
    return ChatLimits(budget=BudgetLimits(**budget), evidence=EvidenceLimits(**evidence), **changes)


@dataclass
class Stage:
    """Everything a run touches."""

    model: FakeModel
    sources: EvidenceSources = field(default_factory=sources)
    limits: ChatLimits = field(default_factory=limits)
    clock: Clock = field(default_factory=FakeClock)
    database: FakeDatabase = field(default_factory=FakeDatabase)
    observer: FakeObserver = field(default_factory=FakeObserver)
    journal: FakeJournal = field(default_factory=FakeJournal)
    poll_interval: float = 0.005

    def use_case(self) -> ChatUseCase:
        return ChatUseCase(
            runs=FakeRunStore(self.database),
            cancel_watch=CancelWatch(FakeCancelRequests(self.database), self.clock, self.poll_interval),
            model=self.model,
            sources=self.sources,
            redact=lambda text: text.replace("hunter2", "[secret-1]"),
            clock=self.clock,
            limits=self.limits,
            journal=self.journal,
        )

    async def run(self, query: str = QUERY, **changes: Any) -> ChatResult:
        return await self.use_case().execute(request(query, **changes), self.observer)

    @property
    def row(self) -> RunRow:
        """The one run of this stage."""
        (row,) = self.database.runs
        return row


def request(query: str = QUERY, **changes: Any) -> ChatRequest:
    fields: dict[str, Any] = {
        "owner": "ada",
        "connection_id": "c1",
        "request_id": "r1",
        "gateway_request_id": "g1",
        **changes,
    }
    return ChatRequest(query=query, **fields)
