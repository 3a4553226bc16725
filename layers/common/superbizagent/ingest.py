"""``python -m superbizagent.ingest DIR``: makes a folder of Markdown files findable (KNOW-5).

Exit status: 0 when the index is up to date, 1 when something had to be left out or the database failed,
2 when the command can't be carried out as given.
"""

import argparse
import asyncio
import contextlib
import io
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from superbizagent.adapters.knowledge.embedding_ingest import Embedded, EmbeddingIngest
from superbizagent.adapters.knowledge.folder import BadFolder, check_folder
from superbizagent.adapters.knowledge.ingest import Change, ChangeKind, KnowledgeIngest
from superbizagent.adapters.openai_embeddings import OpenAIEmbeddings
from superbizagent.adapters.store import Database
from superbizagent.bootstrap import Services
from superbizagent.domain.pattern import Pattern
from superbizagent.errors import ConfigurationError, SuperBizAgentError
from superbizagent.ports import Redactor

_COLLECTION = Pattern(r"\S(?:.{0,62}\S)?")
_KINDS_IN_SUMMARY = (ChangeKind.ADDED, ChangeKind.UPDATED, ChangeKind.REMOVED, ChangeKind.UNCHANGED)


class BadCommand(Exception):
    """The message is one sentence that says what to do."""


def main(arguments: Sequence[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A file name need not fit the terminal's encoding.
        sys.stdout.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        folder = Path(options.folder).expanduser().resolve()
        check_folder(folder)
        collection = _collection(options.collection, folder)
        services = Services(options.url or None)
        with contextlib.closing(open_database(services)) as database:
            embeddings = services.embeddings
            indexed = _ingest(database, services.redact, folder, collection)
            return max(indexed, _embed(database, embeddings) if embeddings is not None else 0)
    except (BadCommand, BadFolder) as error:
        print(error, file=sys.stderr)
        return 2
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    except SuperBizAgentError as error:
        print(f"The documents could not be stored: {error}.", file=sys.stderr)
        print("Check that the database answers and that its migrations have run.", file=sys.stderr)
        return 1


def open_database(services: Services) -> Database:
    """The named database, or the service's own. Raises BadCommand where that one isn't set."""
    try:
        return services.database
    except ConfigurationError as error:
        raise BadCommand(f"Name the database with --url, or in DATABASE_URL ({error}).") from error


def _collection(given: str | None, folder: Path) -> str:
    name = folder.name if given is None else given
    name = name.encode("utf-8", "backslashreplace").decode()
    if _COLLECTION.fullmatch(name):
        return name
    raise BadCommand("Give the documents a name of 1 to 64 characters with --collection.")


def _ingest(database: Database, redact: Redactor, folder: Path, collection: str) -> int:
    counts: Counter[ChangeKind] = Counter()
    passages = 0
    for change in KnowledgeIngest(database, redact).run(folder, collection):
        _print(change)
        counts[change.kind] += 1
        passages += change.passages
    print(_summary(collection, counts, passages), flush=True)
    return 1 if counts[ChangeKind.SKIPPED] else 0


def _embed(database: Database, embeddings: OpenAIEmbeddings) -> int:
    """The documents can be found by their words already, whatever becomes of this."""
    outcome = asyncio.run(_embedded(database, embeddings))
    print(f"Embeddings of {embeddings.model}: {_counted(outcome.stored, 'text')} added.", flush=True)
    if outcome.refused:
        print(f"{_counted(outcome.refused, 'text')}: too long for {embeddings.model}.", file=sys.stderr)
    if outcome.error is not None:
        reason = f"{outcome.error.message} ({outcome.error})"
        print(f"The other embeddings are missing: {reason} Run this command again to add them.", file=sys.stderr)
    return 1 if outcome.error is not None or outcome.refused else 0


async def _embedded(database: Database, embeddings: OpenAIEmbeddings) -> Embedded:
    try:
        return await EmbeddingIngest(database, embeddings).run()
    finally:
        await embeddings.close()


def _print(change: Change) -> None:
    if change.kind not in (ChangeKind.UNCHANGED, ChangeKind.SKIPPED):
        detail = "" if change.kind is ChangeKind.REMOVED else f" ({_counted(change.passages, 'passage')})"
        print(f"{change.kind} {change.source}{detail}", flush=True)
    for notice in change.notices:
        print(f"{change.source}: {notice}", file=sys.stderr, flush=True)


def _summary(collection: str, counts: Counter[ChangeKind], passages: int) -> str:
    parts = [f"{counts[kind]} {kind}" for kind in _KINDS_IN_SUMMARY]
    if counts[ChangeKind.SKIPPED]:
        parts.append(f"{counts[ChangeKind.SKIPPED]} skipped")
    return f"Collection {collection}: {', '.join(parts)}; {_counted(passages, 'passage')}."


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m superbizagent.ingest",
        description="Indexes the Markdown files of a folder; what changed since the last time only.",
    )
    parser.add_argument("folder", metavar="DIR", help="the folder; its files are found at any depth")
    parser.add_argument("--url", help="the database, as an SQLAlchemy URL; by default the service's own")
    parser.add_argument(
        "--collection",
        help="the name these documents are kept under, by default the folder's; documents of the"
        " collection whose files are gone from the folder are removed",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
