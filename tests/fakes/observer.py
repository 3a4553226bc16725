"""An observer that remembers, and fails when told to."""

from dataclasses import dataclass, field

from superbizagent.ports import RunControl, StatusCode


@dataclass
class FakeObserver:
    """Observer. `fails_at` is the number of the event, from 1, that raises `error`."""

    fails_at: int | None = None
    error: BaseException = field(default_factory=lambda: RuntimeError("secret detail"))
    on_event: object = None
    control: RunControl | None = None
    events: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    seen: int = 0

    async def on_started(self, control: RunControl) -> None:
        self.control = control
        self._event("started", {"session_id": control.session_id, "run_id": control.run_id})

    async def on_status(self, code: StatusCode, fields: dict[str, str]) -> None:
        self._event(code, dict(fields))

    @property
    def codes(self) -> list[str]:
        return [code for code, _ in self.events]

    def _event(self, code: str, fields: dict[str, str]) -> None:
        self.seen += 1
        if self.seen == self.fails_at:
            raise self.error
        self.events.append((code, fields))
        if callable(self.on_event):
            self.on_event(code)
