"""Knowledge Bases for Amazon Bedrock in the place of our own index, by boto3."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from superbizagent.adapters.knowledge.embedding import embedded_query
from superbizagent.adapters.knowledge.evidence import TITLE, Shown, passage_lines
from superbizagent.adapters.knowledge.tokens import query_terms
from superbizagent.adapters.worker_thread import in_thread
from superbizagent.domain.codes import Unit
from superbizagent.domain.evidence import Coverage, DocumentRef, Evidence, LookupKnowledge
from superbizagent.domain.text import bound_characters, fold_whitespace
from superbizagent.errors import EvidenceError, EvidenceTimeout, EvidenceUnavailable
from superbizagent.ports import Redactor

CONNECT_SECONDS = 3.0
READ_SECONDS = 12.0
ATTEMPTS = 2
"""With these a lookup ends, one way or another, in about the time that a tool call has."""

_NAME_CHARACTERS = 200
_SOURCE_CHARACTERS = 500
_METADATA = "x-amz-bedrock-kb-"
# Each kind of location has one field that leads to the document.
_ADDRESSES = ("uri", "url", "id", "query")

_HINTS = {
    "AccessDeniedException": "The knowledge base refuses this service; its operator has to grant bedrock:Retrieve.",
    "ResourceNotFoundException": "The configured knowledge base does not exist; tell the operator of this service.",
    "ValidationException": "The knowledge base does not take this query; ask in fewer, plainer words.",
    "ThrottlingException": "The knowledge base is busy; ask once more, later.",
    "ServiceQuotaExceededException": "The knowledge base is busy; ask once more, later.",
}


class BedrockKnowledgeIndex:
    """Port KnowledgeIndex. `knowledge_base_id` is an id or an ARN; the region is the process's own.

    A question passes `redact` before it leaves: the service shows it to a model (SEC-3).
    """

    def __init__(self, knowledge_base_id: str, redact: Redactor, client: Any = None) -> None:
        self._knowledge_base_id = knowledge_base_id
        self._redact = redact
        self._given_client = client

    async def lookup(self, query: LookupKnowledge) -> Evidence:
        """The service's own ranking; raises EvidenceError. Cancelling it ends the wait."""
        return await in_thread(lambda: self._lookup(query), "knowledge base")

    def _lookup(self, query: LookupKnowledge) -> Evidence:
        # It never finds nothing in mere punctuation, it refuses it.
        terms = query_terms(query.query)
        reply = self._retrieve(query) if terms else {}
        results = reply.get("retrievalResults") or []
        passages = _distinct(passage for result in results if (passage := _passage(result)))
        shown = passages[: query.limit]
        coverage = Coverage(
            unit=Unit.PASSAGES,
            matched=len(passages),
            shown=len(shown),
            truncated=len(shown) < len(passages) or bool(reply.get("nextToken")),
            filtered=True,
            notes=_notes(reply, skipped=len(results) - len(passages)),
        )
        if not shown:
            return Evidence(title=TITLE, coverage=coverage)
        return Evidence(
            title=TITLE,
            summary=(f"passages found: {len(passages)}; shown: {len(shown)}",),
            lines=passage_lines(shown, dict.fromkeys(terms, 1.0)),
            coverage=coverage,
            documents=tuple(passage.reference for passage in shown),
        )

    def _retrieve(self, query: LookupKnowledge) -> Mapping[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError

        try:
            reply: Mapping[str, Any] = self._client.retrieve(
                knowledgeBaseId=self._knowledge_base_id,
                retrievalQuery={"text": embedded_query(self._redact(query.query))},
                retrievalConfiguration={"vectorSearchConfiguration": {"numberOfResults": query.limit}},
            )
        except ClientError as error:
            raise _translated(error.response) from error
        except (ReadTimeoutError, ConnectTimeoutError) as error:
            raise EvidenceTimeout("The knowledge base did not answer in time.") from error
        except (BotoCoreError, ValueError) as error:
            # ValueError: an error body that is not even text, which botocore decodes without care.
            raise EvidenceUnavailable("The knowledge base could not be reached.") from error
        return reply

    @cached_property
    def _client(self) -> Any:
        """Made at first use: boto3 takes a quarter of a second to load."""
        if self._given_client is not None:
            return self._given_client
        import boto3
        from botocore.config import Config

        # A session of its own: the default one is not to be used from threads.
        return boto3.session.Session().client(
            "bedrock-agent-runtime",
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            ),
        )


def _translated(response: Mapping[str, Any]) -> EvidenceError:
    """In our words: the service's message may quote the query, and names accounts and roles."""
    code = str(response.get("Error", {}).get("Code"))
    return EvidenceUnavailable(_HINTS.get(code, "The knowledge base could not be searched."))


def _notes(reply: Mapping[str, Any], skipped: int) -> tuple[str, ...]:
    notes = []
    if reply.get("guardrailAction") == "INTERVENED":
        notes.append("A guardrail of the knowledge base withheld or changed passages.")
    if skipped:
        notes.append(f"Passages without text, or found twice, are left out: {skipped}.")
    return tuple(notes)


def _passage(result: Mapping[str, Any]) -> Shown | None:
    """None for what has no text, such as a picture."""
    text = _text(result.get("content") or {}).strip()
    if not text:
        return None
    metadata = result.get("metadata") or {}
    source = bound_characters(_source(result.get("location") or {}, metadata), _SOURCE_CHARACTERS)
    chunk = str(metadata.get(f"{_METADATA}chunk-id") or text)
    key = hashlib.sha256(f"{source}\0{chunk}".encode("utf-8", "replace")).hexdigest()
    reference = DocumentRef(
        document_id=f"D{key[:12]}",
        title=bound_characters(_title(metadata, source), _NAME_CHARACTERS),
        heading_path=_page(metadata),
        source=source,
    )
    return Shown(reference, text)


def _text(content: Mapping[str, Any]) -> str:
    """Of a table row its cells, of a recording what was said in it."""
    if content.get("row"):
        return "\n".join(f"{cell.get('columnName', '')}: {cell.get('columnValue', '')}" for cell in content["row"])
    audio, video = content.get("audio") or {}, content.get("video") or {}
    return str(content.get("text") or audio.get("transcription") or video.get("summary") or "")


def _source(location: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    places = [place for place in location.values() if isinstance(place, dict)]
    found = (str(place[name]) for place in places for name in _ADDRESSES if place.get(name))
    return fold_whitespace(next(found, str(metadata.get(f"{_METADATA}source-uri") or "knowledge base")))


def _title(metadata: Mapping[str, Any], source: str) -> str:
    given = metadata.get("title")
    if isinstance(given, str) and given.strip():
        return fold_whitespace(given)
    name = PurePosixPath(unquote(urlsplit(source).path if "://" in source else source)).stem
    return fold_whitespace(name.replace("-", " ").replace("_", " ")) or source


def _page(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    page = metadata.get(f"{_METADATA}document-page-number")
    return (f"page {page:g}",) if isinstance(page, int | float) else ()


def _distinct(passages: Iterable[Shown]) -> Sequence[Shown]:
    """One passage may come twice, from two data sources."""
    found: dict[str, Shown] = {}
    for passage in passages:
        found.setdefault(passage.reference.document_id, passage)
    return list(found.values())
