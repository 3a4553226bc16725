"""What every knowledge index does: the fake, SQLite and a MySQL-compatible server alike."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from migrations.run import upgrade
from superbizagent.adapters.knowledge import FullTextKnowledgeIndex
from superbizagent.adapters.knowledge.embedding_ingest import EmbeddingIngest
from superbizagent.adapters.knowledge.ingest import KnowledgeIngest
from superbizagent.adapters.knowledge.reranked_index import RerankedKnowledgeIndex
from superbizagent.adapters.store import Database
from superbizagent.domain.codes import Unit
from superbizagent.domain.evidence import Evidence, LookupKnowledge
from superbizagent.errors import ModelUnavailable
from superbizagent.ports import KnowledgeIndex
from tests.database_server import DatabaseServer
from tests.fakes.embeddings import FakeEmbeddings
from tests.fakes.knowledge import FakeKnowledgeIndex

Files = Mapping[str, str]


class Fill(Protocol):
    def __call__(self, files: Files) -> KnowledgeIndex: ...


# "silent": a second stage whose server never gives a usable answer has to do all that full text does.
ENGINES = ["fake", "sqlite", "mysql", "silent"]


@pytest.fixture(params=ENGINES)
def fill(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fill]:
    """Makes an index of the given Markdown files, by name."""
    if request.param == "fake":
        yield _fake
        return
    engine = "sqlite" if request.param == "silent" else request.param
    database = Database(request.getfixturevalue(f"{engine}_database"))
    yield lambda files: _ingested(database, files, tmp_path / "documents", silent=request.param == "silent")
    database.close()


@pytest.fixture(scope="module", params=ENGINES)
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeIndex]:
    """An index of RUNBOOKS, the same for all tests that only read it."""
    folder = tmp_path_factory.mktemp("index")
    with ExitStack() as ending:
        if request.param == "fake":
            yield _fake(RUNBOOKS)
            return
        url = f"sqlite:///{folder / 'index.db'}"
        if request.param == "mysql":
            server: DatabaseServer = request.getfixturevalue("mysql_server")
            url = ending.enter_context(server.new_database())
        database = Database(url)
        ending.callback(database.close)
        upgrade(database.engine)
        yield _ingested(database, RUNBOOKS, folder / "documents", silent=request.param == "silent")


def _fake(files: Files) -> KnowledgeIndex:
    index = FakeKnowledgeIndex("documents")
    for source in sorted(files):
        index.add(source, files[source])
    return index


def _ingested(database: Database, files: Files, folder: Path, *, silent: bool) -> KnowledgeIndex:
    for source, text in files.items():
        path = folder / source
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert list(KnowledgeIngest(database).run(folder, "documents"))
    return _with_silent_second_stage(database) if silent else FullTextKnowledgeIndex(database)


def _with_silent_second_stage(database: Database) -> KnowledgeIndex:
    embeddings = FakeEmbeddings()
    # A thread of its own, for the test's may run an event loop.
    with ThreadPoolExecutor() as threads:
        outcome = threads.submit(lambda: asyncio.run(EmbeddingIngest(database, embeddings).run())).result()
    assert outcome.error is None
    embeddings.query_error = ModelUnavailable()
    return RerankedKnowledgeIndex(database, embeddings)


RUNBOOKS: Files = {
    "payments/gateway-timeout.md": """# Payment gateway timeouts

The gateway answers late or not at all.

## Diagnosis

Look at `gateway_latency_seconds` and at the connection pool.

## Mitigation

Fail over to the second provider.
""",
    "KubePodCrashLooping.md": """## Meaning

A pod restarts again and again.

## Diagnosis

Read its last log with `kubectl logs --previous`.
""",
    "orders/支付网关.md": """# 支付网关超时排查手册

## 现象

网关超时后订单停在待支付。数据库连接池耗尽时也会这样。
""",
    "orders/japanese.md": "# タイムアウトの対応\n\nデータベースを確認する。\n",
    "db.md": """# The DB of the order service

It runs on port 3306. The user is IT. See also p99 and `etcd_disk_wal_fsync_duration_seconds_bucket`.

<!-- secret remark -->
""",
}


async def look_up(index: KnowledgeIndex, query: str, limit: int = 5) -> Evidence:
    return await index.lookup(LookupKnowledge(query=query, limit=limit))


async def sources(index: KnowledgeIndex, query: str) -> list[str]:
    return [document.source for document in (await look_up(index, query)).documents]


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_a_passage_is_named_by_title_headings_and_source(index: KnowledgeIndex) -> None:
    evidence = await look_up(index, "which provider do we fail over to when the gateway is slow", 1)

    [document] = evidence.documents
    assert document.title == "Payment gateway timeouts"
    assert document.heading_path == ("Mitigation",)
    assert document.source == "payments/gateway-timeout.md"
    assert document.document_id.isalnum()
    assert evidence.lines == (
        f"document {document.document_id}: Payment gateway timeouts > Mitigation ({document.source})",
        "Fail over to the second provider.",
    )


@pytest.mark.spec("KNOW-5", "STORE-4")
@pytest.mark.parametrize(
    ("query", "source"),
    [
        ("gateway timeout", "payments/gateway-timeout.md"),
        ("GATEWAY_LATENCY_SECONDS", "payments/gateway-timeout.md"),
        ("pods that keep crash looping", "KubePodCrashLooping.md"),
        ("crashloop", "KubePodCrashLooping.md"),
        ("kubepodcrashlooping", "KubePodCrashLooping.md"),
        ("restarting", "KubePodCrashLooping.md"),
        ("超时", "orders/支付网关.md"),
        ("网关超时", "orders/支付网关.md"),
        ("库", "orders/支付网关.md"),
        ("支付网关超时怎么办", "orders/支付网关.md"),
        # A document in English, by the English of what is asked for in Chinese.
        ("崩溃之后反复重启", "KubePodCrashLooping.md"),
        ("订单服务的数据库在哪个端口", "db.md"),
        ("タイムアウト", "orders/japanese.md"),
        ("ﾀｲﾑｱｳﾄ", "orders/japanese.md"),
        ("DB", "db.md"),
        ("database of the order service", "db.md"),
        ("3306", "db.md"),
        ("p99", "db.md"),
        ("etcd_disk_wal_fsync_duration_seconds_bucket", "db.md"),
        ("fsync", "db.md"),
    ],
)
async def test_the_right_document_comes_first(index: KnowledgeIndex, query: str, source: str) -> None:
    assert (await sources(index, query))[0] == source


@pytest.mark.spec("KNOW-4", "KNOW-5", "STORE-4")
@pytest.mark.parametrize(
    "query",
    [
        "how do I",
        "?!…",
        "\"*-+:%()~<>@'",
        "zebra",
        "🙂",
        "\x00\x01",
        " \n\t",
        "ﷺ" * 50,
        "斑马",
        "secret remark",
    ],
)
async def test_a_query_without_a_match_is_answered_with_nothing(index: KnowledgeIndex, query: str) -> None:
    if not query.strip():
        query = f"{query}."
    evidence = await look_up(index, query)

    assert (evidence.lines, evidence.documents) == ((), ())
    assert (evidence.coverage.matched, evidence.coverage.shown) == (0, 0)
    assert evidence.coverage.complete
    assert evidence.coverage.scanned == 8


@pytest.mark.spec("KNOW-5", "STORE-4")
@pytest.mark.parametrize(
    "query",
    [
        'gateway "',
        "gateway*",
        "-gateway",
        "+gateway -timeout",
        "NEAR(gateway timeout)",
        "gateway AND NOT timeout OR",
        "terms:gateway",
        "100% gateway",
        "gateway' OR '1'='1",
        "gateway; DROP TABLE knowledge_chunk",
        "gateway 🙂 @distance (~<>)",
        "{gateway}^2",
    ],
)
async def test_no_character_of_a_query_is_an_operator(index: KnowledgeIndex, query: str) -> None:
    assert (await sources(index, query))[0] == "payments/gateway-timeout.md"


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_the_question_after_a_pasted_log_counts(index: KnowledgeIndex) -> None:
    log = " ".join(f"line{number}x" for number in range(900))[:7_900]
    for query in (f"{log} payment gateway timeouts", f"payment gateway timeouts? {log}"):
        assert (await sources(index, query))[0] == "payments/gateway-timeout.md"


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_a_title_counts_for_more_than_a_mention(fill: Fill) -> None:
    mention = "The cache is one of many things that this text is about, and the cache matters little in it.\n"
    index = fill({"a.md": f"# Everything\n\n{mention}", "b.md": "# Cache\n\nAsk the team that owns it.\n"})
    assert await sources(index, "cache") == ["b.md", "a.md"]


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_coverage_counts_what_was_searched_found_and_shown(fill: Fill) -> None:
    files = {f"host-{number}.md": f"# Host {number}\n\nReboot it.\n" for number in range(9)}
    evidence = await look_up(fill(files), "reboot a host", 4)

    coverage = evidence.coverage
    assert (coverage.unit, coverage.scanned, coverage.matched) == (Unit.PASSAGES, 9, 9)
    assert (coverage.shown, coverage.truncated, coverage.complete) == (4, True, False)
    assert evidence.summary == ("passages searched: 9; matched: 9; shown: 4",)
    # Equal ones come in the order of their sources, everywhere.
    assert [document.source for document in evidence.documents] == [f"host-{number}.md" for number in range(4)]


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_a_long_passage_is_shown_around_the_hit(fill: Fill) -> None:
    filler = "\n".join(f"- item {number} of a long list with nothing in it" for number in range(28))
    evidence = await look_up(fill({"long.md": f"# List\n\n{filler}\n- the flux capacitor\n"}), "flux capacitor", 1)

    assert "- the flux capacitor" in evidence.lines
    assert evidence.lines[1] == "…"
    assert len("\n".join(evidence.lines[1:])) <= 1_200


@pytest.mark.spec("KNOW-1", "STORE-4")
async def test_many_long_passages_fit_a_bounded_projection(fill: Fill) -> None:
    line = "网关超时排查" * 12
    files = {f"{number}.md": f"# {number} 网关\n\n" + f"{line}\n" * 18 + "的" * 400 for number in range(10)}
    evidence = await look_up(fill(files), "网关超时", 10)

    headings = [line for line in evidence.lines if line.startswith("document ")]
    assert len(headings) == len(evidence.documents) == 10
    assert len("\n".join(evidence.lines).encode()) <= 7_000


@pytest.mark.spec("KNOW-4", "STORE-4")
async def test_an_empty_index_finds_nothing(fill: Fill) -> None:
    evidence = await look_up(fill({"empty.md": ""}), "anything")
    assert (evidence.coverage.scanned, evidence.coverage.matched) == (0, 0)


@pytest.mark.spec("STORE-4")
async def test_every_index_gives_the_same_order(fill: Fill, order_everywhere: Callable[[str], str]) -> None:
    index = fill({**RUNBOOKS, **_many()})
    queries = [
        "gateway timeouts and the disk of the order database",
        "node disk full",
        "service restarts after a failed deployment",
        "超时 数据库",
        "latency",
    ]
    found = [[document.document_id for document in (await look_up(index, query, 10)).documents] for query in queries]
    assert all(found)
    assert order_everywhere(repr(found)) == repr(found)


@pytest.fixture(scope="module")
def order_everywhere() -> Callable[[str], str]:
    """What the first index said, to compare the others with."""
    said: list[str] = []

    def first(found: str) -> str:
        said.append(found)
        return said[0]

    return first


def _many() -> Files:
    """Enough documents with words in common that their order is decided by small differences."""
    things = ("disk", "gateway", "order", "node", "database", "queue", "cache", "service")
    events = ("full", "slow", "restarts", "failed", "latency", "timeout", "deployment")
    return {
        f"many/{thing}-{event}.md": f"# {thing} {event}\n\n{f'{thing} is {event}. ' * (at % 4 + 1)}\n\n"
        f"## What to do\n\nLook at the {things[(at * 3) % 8]}, then at the {things[(at * 5) % 8]}.\n"
        for at, (thing, event) in enumerate((thing, event) for thing in things for event in events)
    }
