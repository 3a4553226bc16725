"""Embeddings at ingest and at look-up, on both databases: what they add, and what is left without them."""

import asyncio
import subprocess
import sys
from array import array
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from sqlalchemy import text

from superbizagent.adapters.knowledge import FullTextKnowledgeIndex
from superbizagent.adapters.knowledge.embedding_ingest import EmbeddingIngest
from superbizagent.adapters.knowledge.ingest import KnowledgeIngest
from superbizagent.adapters.knowledge.reranked_index import RerankedKnowledgeIndex
from superbizagent.adapters.store import Database
from superbizagent.domain.evidence import Evidence, LookupKnowledge
from superbizagent.errors import EvidenceUnavailable, ModelMisconfigured, ModelTimeout, ModelUnavailable
from superbizagent.ports import KnowledgeIndex
from tests.fakes.embeddings import FakeEmbeddings
from tests.http_stub import HttpStub, Received, Reply, http_stub

FILES = {
    # Both are about a server; the one that the words favour says it more often.
    "words.md": "# Server\n\nThe server. A server is a server, and the server stays a server.\n",
    "meaning.md": "# Volume\n\nThe disk volume of a server: storage that is full.\n",
    "network.md": "# Cables\n\nCheck the network cable of the server.\n",
}
QUESTION = "my server has no more storage"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    return folder


def index_files(database: Database, folder: Path, files: Mapping[str, str]) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    list(KnowledgeIngest(database).run(folder, "documents"))


async def embed(database: Database, embeddings: FakeEmbeddings) -> tuple[int, int, bool]:
    """Stored, refused, and whether it came to its end."""
    outcome = await EmbeddingIngest(database, embeddings, first_pause=0.001).run()
    return outcome.stored, outcome.refused, outcome.error is None


async def look_up(index: KnowledgeIndex, question: str = QUESTION) -> Evidence:
    return await index.lookup(LookupKnowledge(query=question))


def sources(evidence: Evidence) -> list[str]:
    return [document.source for document in evidence.documents]


def stored_digests(database: Database) -> set[tuple[str, str]]:
    with database.engine.connect() as connection:
        rows = connection.execute(text("SELECT model, digest FROM knowledge_embedding")).all()
    return {(row.model, row.digest) for row in rows}


# Looking up -----------------------------------------------------------------------------------------


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_meaning_has_a_say_in_the_order(database: Database, folder: Path) -> None:
    index_files(database, folder, FILES)
    embeddings = FakeEmbeddings()
    assert await embed(database, embeddings) == (3, 0, True)
    question = "where is the server without inodes"
    by_words = await look_up(FullTextKnowledgeIndex(database), question)
    assert sources(by_words)[0] == "words.md"

    evidence = await look_up(RerankedKnowledgeIndex(database, embeddings), question)

    assert set(sources(evidence)) == set(FILES)
    assert sources(evidence)[0] == "meaning.md"
    assert evidence.coverage.notes == ()
    assert evidence.coverage.scanned == by_words.coverage.scanned == 3
    assert embeddings.queries == [question]


@pytest.mark.spec("KNOW-5")
async def test_meaning_finds_a_passage_that_has_little_in_common_with_the_question(
    database: Database, folder: Path
) -> None:
    files = {f"{at}.md": f"# Note {at}\n\nSomething about topic{at} and teams.\n" for at in range(20)}
    index_files(database, folder, {**files, "disk.md": "# Inode\n\nThe volume is at its end.\n"})
    embeddings = FakeEmbeddings()
    await embed(database, embeddings)
    question = "alpha beta gamma delta epsilon zeta: storage at its very end eta theta iota"

    assert sources(await look_up(FullTextKnowledgeIndex(database), question)) == []
    assert sources(await look_up(RerankedKnowledgeIndex(database, embeddings), question))[0] == "disk.md"


@pytest.mark.spec("KNOW-5")
async def test_meaning_finds_a_document_in_none_of_the_words(database: Database, folder: Path) -> None:
    notes = {f"{at:02}.md": f"# Note {at}\n\nThe server in room {at}.\n" for at in range(70)}
    index_files(database, folder, {**notes, "disk.md": "# Inode\n\nThe volume.\n\n## Remedy\n\nA larger disk.\n"})
    embeddings = FakeEmbeddings()
    await embed(database, embeddings)
    question = "server with no storage"

    evidence = await look_up(RerankedKnowledgeIndex(database, embeddings), question)

    assert sources(evidence)[0] == "disk.md"
    # Every passage of the document is looked at, and none of the others is lost or comes twice.
    assert evidence.coverage.matched == 72
    assert len({document.document_id for document in evidence.documents}) == len(evidence.documents)


@pytest.mark.spec("KNOW-5")
async def test_a_question_in_japanese_finds_documents_in_english(database: Database, folder: Path) -> None:
    index_files(database, folder, FILES)
    embeddings = FakeEmbeddings(themes={"storage": ("disk", "volume", "ディスク"), "network": ("network", "網")})
    await embed(database, embeddings)

    assert sources(await look_up(FullTextKnowledgeIndex(database), "ディスクがいっぱい")) == []
    evidence = await look_up(RerankedKnowledgeIndex(database, embeddings), "ディスクがいっぱい")
    assert sources(evidence)[0] == "meaning.md"


@pytest.mark.spec("KNOW-5")
async def test_a_document_may_have_the_words_in_one_passage_and_the_meaning_in_another(
    database: Database, folder: Path
) -> None:
    files = {
        "both.md": "# Runbook A\n\n## Symptom\n\nQueue lag alarm.\n\n## Cause\n\nThe volume, a disk.\n",
        "words.md": "# Runbook B\n\n## Symptom\n\nQueue lag alarm.\n\n## Cause\n\nInvoice refund payment.\n",
        "meaning.md": "# Runbook C\n\n## Symptom\n\nSilence.\n\n## Cause\n\nThe volume, a disk.\n",
    }
    index_files(database, folder, files)
    embeddings = FakeEmbeddings()
    await embed(database, embeddings)

    evidence = await look_up(RerankedKnowledgeIndex(database, embeddings), "queue lag alarm, storage")
    assert sources(evidence)[0] == "both.md"


@pytest.mark.spec("KNOW-5")
async def test_what_a_document_is_about_counts_beside_what_a_passage_of_it_says(
    database: Database, folder: Path
) -> None:
    check = "## Check\n\nLook at the server, then at the disk.\n"
    files = {
        "1.md": f"# Runbook\n\nThe network, packet by packet.\n\n{check}",
        "2.md": f"# Runbook\n\nThe volume has no storage left.\n\n{check}",
    }
    index_files(database, folder, files)
    embeddings = FakeEmbeddings()
    await embed(database, embeddings)

    evidence = await look_up(RerankedKnowledgeIndex(database, embeddings), "where to look at a server without inodes")

    first = evidence.documents[0]
    assert (first.source, first.heading_path) == ("2.md", ("Check",))


@pytest.mark.spec("KNOW-5", "STORE-4")
@pytest.mark.parametrize("error", [ModelTimeout(), ModelUnavailable(), ModelMisconfigured()])
async def test_without_an_answer_of_the_server_it_is_full_text_and_says_so(
    database: Database, folder: Path, error: ModelTimeout
) -> None:
    index_files(database, folder, FILES)
    embeddings = FakeEmbeddings()
    await embed(database, embeddings)
    embeddings.query_error = error

    evidence = await look_up(RerankedKnowledgeIndex(database, embeddings))

    plain = await look_up(FullTextKnowledgeIndex(database))
    assert (evidence.lines, evidence.documents) == (plain.lines, plain.documents)
    [note] = evidence.coverage.notes
    assert "words only" in note


class SlowEmbeddings(FakeEmbeddings):
    """Never answers a question; `asked` once it has one."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.ended = False

    async def query(self, text: str) -> Sequence[float]:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True
        return []


@pytest.mark.spec("KNOW-5")
async def test_a_server_that_takes_too_long_is_not_waited_for(database: Database, folder: Path) -> None:
    index_files(database, folder, FILES)
    embeddings = SlowEmbeddings()
    await embed(database, embeddings)

    evidence = await look_up(RerankedKnowledgeIndex(database, embeddings, query_seconds=0.05))

    assert sources(evidence) == sources(await look_up(FullTextKnowledgeIndex(database)))
    assert len(evidence.coverage.notes) == 1
    assert embeddings.ended


@pytest.mark.spec("CANCEL-2")
async def test_cancelling_a_lookup_ends_the_request_for_its_embedding(database: Database, folder: Path) -> None:
    index_files(database, folder, FILES)
    embeddings = SlowEmbeddings()
    await embed(database, embeddings)
    lookup = asyncio.create_task(look_up(RerankedKnowledgeIndex(database, embeddings, query_seconds=60)))
    await embeddings.asked.wait()

    lookup.cancel()
    with pytest.raises(asyncio.CancelledError):
        await lookup
    assert embeddings.ended


@pytest.mark.spec("KNOW-5")
async def test_passages_without_embeddings_are_found_all_the_same(database: Database, folder: Path) -> None:
    index_files(database, folder, FILES)
    embeddings = FakeEmbeddings()
    index = RerankedKnowledgeIndex(database, embeddings)

    none_stored = await look_up(index)
    assert sources(none_stored) == sources(await look_up(FullTextKnowledgeIndex(database)))
    assert "no embeddings" in none_stored.coverage.notes[0]
    assert embeddings.queries == []

    await embed(database, embeddings)
    index_files(database, folder, {**FILES, "later.md": "# Storage\n\nA server's storage.\n"})
    some_stored = await look_up(index)
    assert "later.md" in sources(some_stored)
    assert "1 of the 4" in some_stored.coverage.notes[0]


@pytest.mark.spec("KNOW-5")
async def test_vectors_of_another_model_or_size_are_not_compared(database: Database, folder: Path) -> None:
    index_files(database, folder, FILES)
    await embed(database, FakeEmbeddings())
    plain = sources(await look_up(FullTextKnowledgeIndex(database)))

    other_model = await look_up(RerankedKnowledgeIndex(database, FakeEmbeddings("other")))
    assert (sources(other_model), len(other_model.coverage.notes)) == (plain, 1)

    renamed = FakeEmbeddings(themes={"one": ("server",)})
    other_size = await look_up(RerankedKnowledgeIndex(database, renamed))
    assert (sources(other_size), len(other_size.coverage.notes)) == (plain, 1)


@pytest.mark.spec("KNOW-4")
@pytest.mark.parametrize("question", ["zebra", "how do I", "?!"])
async def test_a_question_in_no_word_of_any_document_costs_no_request(
    database: Database, folder: Path, question: str
) -> None:
    index_files(database, folder, FILES)
    embeddings = FakeEmbeddings()
    await embed(database, embeddings)

    evidence = await look_up(RerankedKnowledgeIndex(database, embeddings), question)

    assert (evidence.documents, evidence.coverage.notes, embeddings.queries) == ((), (), [])


async def test_of_a_pasted_log_the_beginning_and_the_end_are_embedded(database: Database, folder: Path) -> None:
    index_files(database, folder, FILES)
    embeddings = FakeEmbeddings()
    await embed(database, embeddings)
    await look_up(RerankedKnowledgeIndex(database, embeddings), f"server? {'x ' * 3_900} storage!")

    [query] = embeddings.queries
    assert len(query) <= 2_001
    assert query.startswith("server?")
    assert query.endswith("storage!")


async def test_coverage_counts_all_that_matched_beyond_what_is_reranked(database: Database, folder: Path) -> None:
    index_files(database, folder, {f"{at:03}.md": f"# Host {at}\n\nReboot the server.\n" for at in range(70)})
    embeddings = FakeEmbeddings()
    await embed(database, embeddings)
    coverage = (await look_up(RerankedKnowledgeIndex(database, embeddings), "reboot a server")).coverage
    assert (coverage.scanned, coverage.matched, coverage.shown, coverage.truncated) == (70, 70, 5, True)


async def test_a_database_that_does_not_answer_is_evidence_unavailable(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'no' / 'folder.db'}")
    with pytest.raises(EvidenceUnavailable):
        await look_up(RerankedKnowledgeIndex(database, FakeEmbeddings()))
    database.close()


# Ingest ---------------------------------------------------------------------------------------------


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_only_what_changed_is_embedded(database: Database, folder: Path) -> None:
    two = {"a.md": "# A\n\nLead.\n\n## One\n\nFirst.\n\n## Two\n\nSecond.\n", "b.md": "# B\n\nOther.\n"}
    index_files(database, folder, two)
    embeddings = FakeEmbeddings()
    # Four passages, and the beginning of the first document; the second has one passage, which is its beginning.
    assert await embed(database, embeddings) == (5, 0, True)
    before = stored_digests(database)

    assert await embed(database, embeddings) == (0, 0, True)
    index_files(database, folder, {**two, "a.md": two["a.md"].replace("Second", "Changed")})
    embeddings.requests.clear()
    assert await embed(database, embeddings) == (2, 0, True)
    assert embeddings.embedded == ["A > Two\nChanged.", "A\nLead.\nFirst.\nChanged."]
    # What no document says any more is gone.
    assert len(stored_digests(database)) == 5
    assert len(stored_digests(database) & before) == 3

    index_files(database, folder, {"renamed.md": two["b.md"]})
    assert await embed(database, embeddings) == (0, 0, True)
    assert len(stored_digests(database)) == 1


async def test_a_text_that_two_passages_share_is_embedded_once(database: Database, folder: Path) -> None:
    index_files(database, folder, {f"{at}.md": "# Same\n\nThe same.\n" for at in range(3)})
    embeddings = FakeEmbeddings()
    assert await embed(database, embeddings) == (1, 0, True)
    assert len(embeddings.embedded) == 1


async def test_words_of_an_identifier_are_apart_and_the_place_comes_first(database: Database, folder: Path) -> None:
    index_files(database, folder, {"KubeAPIDown.md": "# KubeAPIDown\n\n## Meaning\n\nIt is gone.\n"})
    embeddings = FakeEmbeddings()
    await embed(database, embeddings)
    assert embeddings.embedded == ["Kube API Down > Meaning\nIt is gone.", "Kube API Down\nIt is gone."]


@pytest.mark.spec("KNOW-5", "STORE-4")
async def test_an_ingest_that_breaks_off_goes_on_where_it_ended(database: Database, folder: Path) -> None:
    index_files(database, folder, {f"{at:03}.md": f"# Host {at}\n\nReboot.\n" for at in range(70)})
    embeddings = FakeEmbeddings()
    embeddings.errors = [ModelUnavailable()]
    assert await embed(database, embeddings) == (70, 0, True), "one failure is retried"
    assert [len(request) for request in embeddings.requests] == [32, 32, 32, 6]

    other = FakeEmbeddings("other")
    other.errors = [ModelMisconfigured()]
    assert await embed(database, other) == (0, 0, False)
    assert len(other.requests) == 1, "what no retry can mend is not retried"
    failing = FlakyEmbeddings("other", good=1)
    assert await embed(database, failing) == (32, 0, False)
    assert await embed(database, other) == (38, 0, True)
    assert len(stored_digests(database)) == 140


class FlakyEmbeddings(FakeEmbeddings):
    """Answers `good` requests, and none after."""

    def __init__(self, model: str, good: int) -> None:
        super().__init__(model)
        self._good = good

    async def passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if len(self.requests) >= self._good:
            raise ModelUnavailable
        return await super().passages(texts)


async def test_a_text_too_long_for_the_model_is_embedded_in_part_and_spoils_no_other(
    database: Database, folder: Path
) -> None:
    long = "# Long\n\n" + "storage " * 140
    index_files(database, folder, {"long.md": long, "short.md": "# Short\n\nA server.\n"})
    embeddings = FakeEmbeddings(longest=400)
    assert await embed(database, embeddings) == (2, 0, True)
    hopeless = FakeEmbeddings("hopeless", longest=30)
    assert await embed(database, hopeless) == (1, 1, True)


async def test_vectors_are_stored_as_unit_vectors_of_float32(database: Database, folder: Path) -> None:
    index_files(database, folder, {"a.md": "# A\n\nstorage storage network\n"})
    await embed(database, FakeEmbeddings())
    with database.engine.connect() as connection:
        row = connection.execute(text("SELECT dimension, vector FROM knowledge_embedding")).one()
    vector = array("f", bytes(row.vector))
    assert (row.dimension, len(vector)) == (5, 5)
    assert sum(number * number for number in vector) == pytest.approx(1)


# The command ----------------------------------------------------------------------------------------


@pytest.fixture
async def server() -> AsyncIterator[HttpStub]:
    async with http_stub(_embeddings_of) as stub:
        yield stub


def _embeddings_of(request: Received) -> Reply:
    data = [{"object": "embedding", "index": at, "embedding": [1.0, 0.5]} for at in range(len(request.json["input"]))]
    return Reply({"object": "list", "data": data, "model": "m"})


def ingest(folder: Path, url: str, **variables: str) -> tuple[int, str, str]:
    """The command as an operator runs it: exit status, standard output, standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "superbizagent.ingest", str(folder), "--url", url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": "", **variables},
    )
    return done.returncode, done.stdout, done.stderr


async def test_the_command_embeds_where_a_model_is_configured(
    sqlite_database: str, folder: Path, server: HttpStub
) -> None:
    (folder / "a.md").write_text("# A\n\nText.\n")
    variables = {"EMBEDDINGS_BASE_URL": server.url, "EMBEDDINGS_MODEL": "m"}

    status, output, _ = await asyncio.to_thread(ingest, folder, sqlite_database, **variables)
    assert status == 0
    assert output.splitlines()[-1] == "Embeddings of m: 1 text added."
    assert server.received[0].json == {"model": "m", "input": ["A\nText."], "encoding_format": "float"}

    server.script(Reply({"error": {"message": "no such model sk-canary"}}, status=404))
    (folder / "b.md").write_text("# B\n\nText.\n")
    status, output, error = await asyncio.to_thread(ingest, folder, sqlite_database, **variables)
    assert status == 1
    assert "added b.md" in output
    assert "answered 404" in error
    assert "Run this command again" in error
    assert "canary" not in error


async def test_the_command_refuses_half_a_configuration(sqlite_database: str, folder: Path) -> None:
    status, _, error = await asyncio.to_thread(
        ingest, folder, sqlite_database, EMBEDDINGS_BASE_URL="http://127.0.0.1:1/v1"
    )
    assert (status, error.strip()) == (2, "EMBEDDINGS_BASE_URL is set and EMBEDDINGS_MODEL is not")
