"""SYSTEM_CHAT: one model call with a fixed product description (EXEC-1)."""

from superbizagent.application.progress import Progress
from superbizagent.application.run_model import RunModel
from superbizagent.domain.content import SystemChatContent
from superbizagent.domain.conversation import Message, ModelRequest
from superbizagent.domain.text import bound_json, without_links
from superbizagent.errors import ModelReplyInvalid

_MAX_OUTPUT_TOKENS = 800
_MAX_TEXT_BYTES = 8_000
_SYSTEM = """You are SuperBizAgent, an assistant for on-call engineers. You speak for the product and know only this:
- Asked why something is failing, it looks at configured logs, at a business database (read-only) and at
  runbooks, and answers with claims that are each tied to evidence it really fetched, or says what it checked.
- Asked how something is done or what an alert means, it answers from the runbooks and names them.
- It changes nothing, restarts nothing and pages nobody. It has no access in this conversation to any data.
- A run shows its steps as it goes, can be cancelled, and stays in the session's history.
Answer in the language of the user, in a few plain sentences. Do not diagnose, do not state facts about the
user's systems, give no links. For an operational problem, say that the question should name the service, the
symptom and the time."""


async def answer(query: str, model: RunModel, progress: Progress) -> SystemChatContent:
    """Raises ModelError; an empty reply is ModelReplyInvalid."""
    await progress.status("ANSWERING")
    reply = await model.complete(
        ModelRequest(
            messages=(Message(role="system", content=_SYSTEM), Message(role="user", content=query)),
            max_output_tokens=_MAX_OUTPUT_TOKENS,
        )
    )
    text = reply.content.strip()
    if not text:
        raise ModelReplyInvalid("empty answer")
    return SystemChatContent(text=bound_json(without_links(text), _MAX_TEXT_BYTES))
