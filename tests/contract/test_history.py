import pytest

from superbizagent.domain.run import ReleaseOutcome, RunStatus
from superbizagent.domain.stored_run import SessionSummary
from superbizagent.errors import RunNotFound, SessionNotFound
from superbizagent.ports import NewRun
from tests.contract.conftest import Stores
from tests.stored_values import NOW, TRICKY, at, chat_content, new_run, run_end


async def _turns(stores: Stores, count: int) -> list[NewRun]:
    """Runs of one session, all of the same microsecond two by two."""
    runs = [new_run(session_id="s1", created_at=at(number // 2)) for number in range(count)]
    for run in runs:
        await stores.runs.start(run)
        await stores.runs.finish(run.run_id, run_end(content=chat_content(run.run_id)))
    return runs


async def _page(stores: Stores, before: str | None, limit: int) -> list[str]:
    return [turn.run_id for turn in await stores.history.turns("s1", "ada", before, limit)]


@pytest.mark.spec("WIRE-5")
async def test_a_session_gives_back_its_turns_oldest_first(stores: Stores) -> None:
    runs = await _turns(stores, 5)
    turns = await stores.history.turns("s1", "ada", None, 10)
    assert [turn.run_id for turn in turns] == [run.run_id for run in runs]
    assert [turn.content for turn in turns] == [chat_content(run.run_id) for run in runs]
    assert list(turns) == [await stores.runs.find(run.run_id) for run in runs]


@pytest.mark.spec("WIRE-5")
async def test_pages_go_back_without_gap_or_repetition(stores: Stores) -> None:
    ids = [run.run_id for run in await _turns(stores, 7)]
    assert await _page(stores, None, 3) == ids[4:]
    assert await _page(stores, ids[4], 3) == ids[1:4]
    assert await _page(stores, ids[1], 3) == ids[:1]
    assert await _page(stores, ids[0], 3) == []
    assert await _page(stores, None, 0) == []
    assert await _page(stores, None, -1) == []


@pytest.mark.spec("WIRE-5")
async def test_running_and_failed_runs_are_turns_too(stores: Stores) -> None:
    failed, running = new_run(session_id="s1"), new_run(session_id="s1", created_at=at(9))
    await stores.runs.start(failed)
    await stores.runs.finish(failed.run_id, run_end(ReleaseOutcome.FAILED, failure_code="X"))
    await stores.runs.start(running)
    turns = await stores.history.turns("s1", "ada", None, 10)
    assert [turn.status for turn in turns] == [RunStatus.FAILED, RunStatus.RUNNING]
    assert [turn.outcome for turn in turns] == [ReleaseOutcome.FAILED, None]


@pytest.mark.spec("ISO-2", "WIRE-5")
async def test_turns_are_for_the_sessions_owner(stores: Stores) -> None:
    await _turns(stores, 1)
    for session_id, owner in (("s1", "bob"), ("s1", "ADA"), ("s1", "ada "), ("S1", "ada"), ("s2", "ada")):
        with pytest.raises(SessionNotFound):
            await stores.history.turns(session_id, owner, None, 10)


@pytest.mark.spec("ISO-2", "WIRE-5")
async def test_the_bound_has_to_be_a_run_of_the_session(stores: Stores) -> None:
    await _turns(stores, 1)
    foreign = new_run(owner="bob")
    await stores.runs.start(foreign)
    for before in ("nothing", "", foreign.run_id):
        with pytest.raises(RunNotFound):
            await stores.history.turns("s1", "ada", before, 10)


@pytest.mark.spec("WIRE-5")
async def test_a_principal_sees_its_sessions_most_recently_active_first(stores: Stores) -> None:
    for number, session in enumerate(("one", "two", "three")):
        await stores.runs.start(new_run(run_id=f"r{number}", session_id=session, created_at=at(number)))
    await stores.runs.finish("r0", run_end(finished_at=at(60)))
    sessions = await stores.history.sessions("ada", 10)
    assert [row.session_id for row in sessions] == ["one", "three", "two"]
    assert sessions[0] == SessionSummary("one", "Why do payments fail?", 1, NOW, at(60))
    assert [row.session_id for row in await stores.history.sessions("ada", 2)] == ["one", "three"]
    assert list(await stores.history.sessions("ada", 0)) == []
    assert list(await stores.history.sessions("ada", -1)) == []


@pytest.mark.spec("ISO-2")
async def test_other_principals_sessions_are_not_listed(stores: Stores) -> None:
    await stores.runs.start(new_run(owner="ada"))
    for owner in ("bob", "Ada", "ada ", ""):
        assert list(await stores.history.sessions(owner, 10)) == []


@pytest.mark.spec("WIRE-5")
async def test_the_title_is_the_first_query_in_one_bounded_line(stores: Stores) -> None:
    await stores.runs.start(new_run(run_id="r1", session_id="s1", query="支付\n\n网关 " + "超时" * 500))
    await stores.runs.finish("r1", run_end())
    await stores.runs.start(new_run(session_id="s1", query="another", created_at=at(9)))
    await stores.runs.start(new_run(session_id="s2", query=TRICKY))
    titles = {row.session_id: row.title for row in await stores.history.sessions("ada", 10)}
    assert titles["s1"].startswith("支付 网关 超时超时")
    assert titles["s1"].endswith("…")
    assert len(titles["s1"]) == 60
    assert titles["s2"].startswith("🫠️ 𠮷 👨‍👩‍👧 𝐏 支付网关超时")
