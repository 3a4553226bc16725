"""A journal that keeps what it is told."""

from dataclasses import dataclass, field

from superbizagent.domain.run import RunIds
from superbizagent.domain.steps import Step


@dataclass
class FakeJournal:
    """Journal. `error` is raised by every record, when set."""

    steps: list[tuple[RunIds, Step]] = field(default_factory=list)
    elapsed: list[float | None] = field(default_factory=list)
    error: Exception | None = None

    def record(self, ids: RunIds, step: Step, elapsed: float | None) -> None:
        if self.error is not None:
            raise self.error
        self.steps.append((ids, step))
        self.elapsed.append(elapsed)

    @property
    def names(self) -> list[str]:
        return [step.name for _, step in self.steps]
