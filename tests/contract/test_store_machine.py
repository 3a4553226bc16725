"""Random histories of the store against a model of it that is nothing but lists and dictionaries."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from superbizagent.adapters.store import Database, metadata
from superbizagent.domain.run import Intent, ReleaseOutcome
from superbizagent.errors import SuperBizAgentError
from tests.contract.conftest import Stores, fake_stores, real_stores
from tests.contract.store_model import World
from tests.stored_values import TRICKY, at, chat_content, new_run, published, run_end

T = TypeVar("T")
# Mostly one of them, or nearly all starts would be refused.
OWNERS = st.sampled_from(["ada"] * 4 + ["Ada"])
SESSIONS = st.sampled_from(["s1", "s1", "s2", "S1"])
REQUESTS = st.integers(1, 12).map("q{}".format)
QUERIES = st.sampled_from([TRICKY, TRICKY, TRICKY, f"{TRICKY} "])
CONNECTIONS = st.sampled_from(["c1", "c2"])
# Not in order on purpose: clocks of two processes differ. A run has 180 s, and then ten of grace: around these.
TIMES = st.sampled_from([0, 180, 180.000001, 190, 190.000001, 370, 380.000001, 600, 900]).map(at)
INTENTS = st.sampled_from(list(Intent))
OUTCOMES = st.sampled_from(list(ReleaseOutcome))
LIMITS = st.integers(0, 3)


class StoreMachine(RuleBasedStateMachine):
    """One rule a method of the ports; ids that nobody has are among what is drawn."""

    started = Bundle("started")
    run_ids = started | st.just("nothing")

    def __init__(self, stores: Stores, runner: asyncio.Runner) -> None:
        super().__init__()
        self.stores = stores
        self.runner = runner
        self.world = World()

    def _same(
        self, real: Awaitable[T], expected: Callable[[], object], view: Callable[[T], object] = lambda value: value
    ) -> None:
        """The same answer, or the same refusal."""
        assert _outcome(lambda: view(self.runner.run(_awaited(real)))) == _outcome(expected)

    @rule(
        target=started, owner=OWNERS, session_id=SESSIONS, request_id=REQUESTS, query=QUERIES, when=TIMES, c=CONNECTIONS
    )
    def start(self, owner: str, session_id: str, request_id: str, query: str, when: datetime, c: str) -> str:
        new = new_run(
            owner=owner, session_id=session_id, request_id=request_id, query=query, created_at=when, connection_id=c
        )
        self._same(self.stores.runs.start(new), lambda: self.world.start(new))
        return new.run_id

    @rule(run_id=started, query=QUERIES, when=TIMES, session_id=SESSIONS)
    def start_again(self, run_id: str, query: str, when: datetime, session_id: str) -> None:
        first = self.world.run(run_id)
        if first is not None:
            request_id, owner = first.new.request_id, first.new.owner
            self.start(owner, session_id, request_id, query, when, "c1")

    @rule(session_id=SESSIONS, when=TIMES, intent=INTENTS, outcome=OUTCOMES)
    def whole_turn(self, session_id: str, when: datetime, intent: Intent, outcome: ReleaseOutcome) -> None:
        """What becomes of most runs: drawn step by step they would hardly ever come to it."""
        run_id = self.start("ada", session_id, f"r{len(self.world.runs)}", TRICKY, when, "c1")
        self.set_intent(run_id, intent)
        self.finish(run_id, outcome, when, whole=True)

    @rule(run_id=run_ids, intent=INTENTS)
    def set_intent(self, run_id: str, intent: Intent) -> None:
        self._same(self.stores.runs.set_intent(run_id, intent), lambda: self.world.set_intent(run_id, intent))

    @rule(run_id=run_ids, outcome=OUTCOMES, when=TIMES, whole=st.booleans())
    def finish(self, run_id: str, outcome: ReleaseOutcome, when: datetime, whole: bool) -> None:
        end = run_end(
            outcome,
            finished_at=when,
            failure_code="X" if outcome is ReleaseOutcome.FAILED else None,
            content=chat_content(TRICKY) if whole else None,
            published_result=published(f"Of {run_id}") if whole and outcome is ReleaseOutcome.SUCCESS else None,
        )
        self._same(self.stores.runs.finish(run_id, end), lambda: self.world.finish(run_id, end))

    @rule(since=TIMES, now=TIMES)
    def sweep(self, since: datetime, now: datetime) -> None:
        self._same(self.stores.runs.abandon_overdue(since, now), lambda: self.world.sweep(since, now), list)

    @rule(run_id=run_ids, owner=OWNERS, when=TIMES)
    def cancel_run(self, run_id: str, owner: str, when: datetime) -> None:
        cancelling = self.stores.cancels.cancel_run(run_id, owner, when)
        self._same(cancelling, lambda: self.world.cancel_run(run_id, owner, when))

    @rule(connection_id=CONNECTIONS, when=TIMES)
    def cancel_connection(self, connection_id: str, when: datetime) -> None:
        self._same(
            self.stores.cancels.cancel_connection(connection_id, when),
            lambda: self.world.cancel_connection(connection_id, when),
        )

    @rule(session_id=SESSIONS, owner=OWNERS, run_id=run_ids, connection_id=CONNECTIONS, limit=LIMITS)
    def look(self, session_id: str, owner: str, run_id: str, connection_id: str, limit: int) -> None:
        """What others see meanwhile."""
        world, runs, history = self.world, self.stores.runs, self.stores.history
        self._same(runs.find(run_id), lambda: world.find(run_id))
        self._same(runs.prior_context(session_id, owner), lambda: world.prior(session_id, owner))
        page = history.turns(session_id, owner, run_id, limit)
        self._same(page, lambda: world.page(session_id, owner, run_id, limit), list)
        pending = self.stores.cancels.pending(run_id, connection_id)
        self._same(pending, lambda: world.pending(run_id, connection_id))

    @rule(owner=OWNERS, limit=LIMITS)
    def sessions(self, owner: str, limit: int) -> None:
        self._same(
            self.stores.history.sessions(owner, limit),
            lambda: self.world.history(owner, limit),
            lambda rows: [(row.session_id, row.message_pairs) for row in rows],
        )

    @rule(connection_id=CONNECTIONS, principal=OWNERS, when=TIMES)
    def connect(self, connection_id: str, principal: str, when: datetime) -> None:
        self.runner.run(_awaited(self.stores.connections.add(connection_id, principal, when)))
        self.world.connections[connection_id] = (principal, when)

    @rule(connection_id=CONNECTIONS)
    def disconnect(self, connection_id: str) -> None:
        self.runner.run(_awaited(self.stores.connections.remove(connection_id)))
        self.world.connections.pop(connection_id, None)

    @invariant()
    def connections_are_whose_they_are(self) -> None:
        for connection_id in ("c1", "c2"):
            known = self.world.connections.get(connection_id)
            found = self.runner.run(_awaited(self.stores.connections.principal(connection_id)))
            assert found == (known[0] if known else None)

    def teardown(self) -> None:
        """Every session and every run, read back at the end."""
        for session_id, session in self.world.sessions.items():
            self._session_is_whole(session_id, session.owner)
            assert self.stores.message_pairs(session_id) == session.pairs

    def _session_is_whole(self, session_id: str, owner: str) -> None:
        turns = self.stores.history.turns(session_id, owner, None, 99)
        self._same(turns, lambda: self.world.page(session_id, owner, None, 99), list)
        self._same(self.stores.runs.prior_context(session_id, owner), lambda: self.world.prior(session_id, owner))


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def _outcome(work: Callable[[], object]) -> object:
    try:
        return work()
    except SuperBizAgentError as error:
        return type(error)


@pytest.fixture(params=["fake", "sqlite", "mysql"])
def fresh_stores(request: pytest.FixtureRequest) -> Iterator[Callable[[], Stores]]:
    """Makes stores without rows, again and again."""
    if request.param == "fake":
        yield fake_stores
        return
    database = Database(request.getfixturevalue(f"{request.param}_database"), pool_size=1)

    def empty() -> Stores:
        with database.engine.begin() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(table.delete())
        return real_stores(database)

    yield empty
    database.close()


@pytest.mark.spec(
    "LIFE-3", "LIFE-6", "LIFE-7", "STORE-2", "STORE-3", "STORE-4", "PREV-1", "WIRE-5", "ISO-2", "CANCEL-1"
)
def test_any_history_ends_as_the_model_says(fresh_stores: Callable[[], Stores]) -> None:
    bounded = settings(
        max_examples=20,
        stateful_step_count=30,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    with asyncio.Runner() as runner:

        class Machine(StoreMachine):
            def __init__(self) -> None:
                super().__init__(fresh_stores(), runner)

        run_state_machine_as_test(Machine, settings=bounded)
