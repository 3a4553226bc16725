"""What the journal hears of calls and frames that failed, and what a run keeps when the journal itself fails."""

import asyncio
from dataclasses import dataclass, field

import pytest

from superbizagent.application.defects import place_of
from superbizagent.application.journal import JournalledChannel, code_of, record
from superbizagent.domain.run import CancelReason, RunIds
from superbizagent.domain.steps import PostFailed
from superbizagent.errors import ClientGone
from tests.fakes.journal import FakeJournal
from tests.unit.application.test_router import context


@dataclass
class Wire:
    """A Channel: `error` is raised by every post, when set."""

    error: Exception | None = None
    posted: list[tuple[str, bytes]] = field(default_factory=list)

    async def post(self, connection_id: str, frame: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.posted.append((connection_id, frame))


async def test_frames_pass_unchanged_and_unheard() -> None:
    wire, journal = Wire(), FakeJournal()

    await JournalledChannel(wire, journal).post("c1", b"{}")

    assert (wire.posted, journal.steps) == ([("c1", b"{}")], [])


@pytest.mark.spec("OBS-2")
@pytest.mark.parametrize("journal", [FakeJournal(), FakeJournal(error=RuntimeError("full"))])
async def test_a_frame_that_did_not_arrive_is_told_and_still_an_error(journal: FakeJournal) -> None:
    with pytest.raises(ClientGone):
        await JournalledChannel(Wire(ClientGone()), journal).post("c1", b"{}")

    if journal.error is None:
        assert journal.steps == [(RunIds(connection_id="c1"), PostFailed("CLIENT_GONE"))]


def test_a_step_is_told_with_its_time() -> None:
    journal = FakeJournal()

    record(journal, RunIds(run_id="r"), PostFailed("CLIENT_GONE"), 1.5)

    assert journal.elapsed == [1.5]


@pytest.mark.spec("LIFE-5")
@pytest.mark.parametrize(
    ("error", "cancelled", "code"),
    [
        (ClientGone(), False, "CLIENT_GONE"),
        (asyncio.CancelledError(), True, "RUN_CANCELLED"),
        (asyncio.CancelledError(), False, "BUDGET_EXHAUSTED"),
        (KeyError("secret"), False, "INTERNAL_FAILURE"),
    ],
)
def test_what_ended_a_call_has_a_stable_code(error: BaseException, cancelled: bool, code: str) -> None:
    run = context()
    if cancelled:
        run.cancel(CancelReason.CLIENT_DISCONNECT)

    assert code_of(error, run) == code


@pytest.mark.spec("SEC-4")
def test_a_defect_is_named_by_its_type_and_place_never_by_its_text() -> None:
    def look_up() -> None:
        raise KeyError("secret")

    with pytest.raises(KeyError) as raised:
        look_up()

    line = raised.traceback[-1].lineno + 1
    assert place_of(raised.value) == f"KeyError at test_journal.py:{line} in look_up"
    assert place_of(KeyError("secret")) == "KeyError"
