"""KNOWLEDGE_QUERY: one lookup, then at most one answer call over what it returned (EXEC-2, KNOW-*)."""

import json
import secrets
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from superbizagent.application.evidence_collector import EvidenceCollector
from superbizagent.application.fence import Fence
from superbizagent.application.one_shot import read_answer, schema_of
from superbizagent.application.progress import Progress
from superbizagent.application.references import references
from superbizagent.application.run_model import RunModel
from superbizagent.domain.codes import ObservationStatus, ToolName
from superbizagent.domain.content import MAX_CONTENT_BYTES, KnowledgeContent, KnowledgeItem, encoded_size
from superbizagent.domain.conversation import Message, ModelRequest, OutputSchema
from superbizagent.domain.evidence import LookupKnowledge, Observation
from superbizagent.domain.text import bound_json, without_links
from superbizagent.errors import KnowledgeAnswerRejected, KnowledgeUnavailable, ModelReplyInvalid
from superbizagent.ports import KnowledgeIndex

NO_EVIDENCE = KnowledgeContent(
    items=(KnowledgeItem(text="The knowledge base holds no passage that answers this question.", document_ids=()),),
    limitations=("Only ingested documents were searched. Try other words, or name the alert or service.",),
)
"""The fixed answer when nothing was found (KNOW-4)."""

_PASSAGES = 6
_MAX_OUTPUT_TOKENS = 1_500
_SYSTEM = """You answer an on-call engineer's question from the passages that one search returned, and nothing else.
{rule}
The first block of the user message is JSON: query is the question, call_id names the search. The second is its result.
Answer in the language of the query with a JSON object:
- items: the answer in short self-contained pieces, in order. Each has text, call_id (exactly the one given) and
  document_ids: the ids of the passages that say it, as they stand after the word document, at least one.
- limitations: what the passages leave open; may be empty.
Never write an id into a text. If the passages do not answer the question, return no items."""

Piece = Annotated[str, Field(min_length=1, max_length=1_200)]


class _Answer(BaseModel):
    # Built when an answer is asked for.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class _Item(_Answer):
    text: Piece
    call_id: str
    document_ids: tuple[str, ...]


class KnowledgeDraft(_Answer):
    """The model's answer before it is held against the lookup."""

    items: Annotated[tuple[_Item, ...], Field(max_length=8)]
    limitations: Annotated[tuple[Piece, ...], Field(max_length=4)] = ()


async def answer(
    query: str, index: KnowledgeIndex, collector: EvidenceCollector, model: RunModel, progress: Progress
) -> KnowledgeContent:
    """Raises KnowledgeUnavailable, KnowledgeAnswerRejected, BudgetExhausted or ModelError; publishes nothing then."""
    await progress.status("SEARCHING_KNOWLEDGE")
    lookup = LookupKnowledge(query=query, limit=_PASSAGES)
    observation = await collector.collect(ToolName.LOOKUP_KNOWLEDGE, lookup, lambda: index.lookup(lookup))
    if observation.status is ObservationStatus.ERROR:
        raise KnowledgeUnavailable(observation.error_code or "")
    if not observation.ready or not observation.documents:
        return NO_EVIDENCE
    await progress.status("ANSWERING")
    call_id = f"K{secrets.token_hex(8)}"
    reply = await model.complete(_request(query, call_id, observation))
    try:
        draft = read_answer(reply, KnowledgeDraft)
    except ModelReplyInvalid as error:
        raise KnowledgeAnswerRejected from error
    return _published(draft, call_id, observation) if draft.items else NO_EVIDENCE


def _request(query: str, call_id: str, observation: Observation) -> ModelRequest:
    fence = Fence.new()
    head = json.dumps({"query": query, "call_id": call_id}, ensure_ascii=False)
    return ModelRequest(
        messages=(
            Message(role="system", content=_SYSTEM.format(rule=fence.rule)),
            Message(role="user", content=f"{fence.wrap(head)}\n{fence.observation(observation)}"),
        ),
        output=OutputSchema(name="knowledge_answer", definition=schema_of(KnowledgeDraft)),
        max_output_tokens=_MAX_OUTPUT_TOKENS,
    )


def _published(draft: KnowledgeDraft, call_id: str, observation: Observation) -> KnowledgeContent:
    """The draft as public content; raises KnowledgeAnswerRejected unless every item holds (KNOW-2, KNOW-3)."""
    returned = {document.document_id for document in observation.documents}
    for item in draft.items:
        if item.call_id != call_id or not item.document_ids or set(item.document_ids) - returned:
            raise KnowledgeAnswerRejected
    if any(call_id in text for text in (*(item.text for item in draft.items), *draft.limitations)):
        raise KnowledgeAnswerRejected
    sources = {document.source for document in observation.documents}
    items = (
        KnowledgeItem(
            text=without_links(item.text, sources, observation.projection),
            document_ids=tuple(dict.fromkeys(item.document_ids)),
        )
        for item in draft.items
    )
    return _fitted(
        KnowledgeContent(
            items=tuple(items),
            references=references({id_ for item in draft.items for id_ in item.document_ids}, observation.documents),
            limitations=tuple(without_links(text, sources, observation.projection) for text in draft.limitations),
        )
    )


def _fitted(content: KnowledgeContent) -> KnowledgeContent:
    """`content` within the size that is stored and sent, by cutting its longest texts (WIRE-4)."""
    for limit in (1_600, 1_000, 600, 300):
        if encoded_size(content) <= MAX_CONTENT_BYTES:
            break
        content = KnowledgeContent(
            items=tuple(item.model_copy(update={"text": bound_json(item.text, limit)}) for item in content.items),
            references=content.references,
            limitations=tuple(bound_json(text, limit) for text in content.limitations),
        )
    return content
