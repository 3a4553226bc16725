"""SemanticGuard: one strict model verdict per claim, at most two attempts (GUARD-3)."""

import json
import logging
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from superbizagent.application.fence import Fence
from superbizagent.application.one_shot import read_answer, schema_of
from superbizagent.application.run_model import RunModel
from superbizagent.domain.conversation import Message, ModelReply, ModelRequest, OutputSchema
from superbizagent.domain.draft import Claim, Draft
from superbizagent.domain.evidence import Observation
from superbizagent.errors import ModelError, ModelReplyInvalid

_log = logging.getLogger(__name__)

ATTEMPTS = 2
_MAX_OUTPUT_TOKENS = 1_000
_SYSTEM = """You check whether claims follow from the evidence they cite. You judge; you do not improve.
{rule}
The user message holds the claims as JSON, then the observations they cite. For each claim give one verdict:
supported is true only if the cited observations, read on their own, show what the claim says: its subject, its
cause and effect, its direction and its extent. A claim that says more than its evidence, mixes up services, or turns
"happened before" into "caused" without any sign of it, is not supported. An observation's coverage tells what was
looked at: NO_EVIDENCE or a count of zero supports absence only within that coverage.
Answer with a JSON object: verdicts, a list with exactly one entry for each claim: its number and supported."""


class _Strict(BaseModel):
    # Built when there is a draft to judge.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Verdict(_Strict):
    claim: int
    supported: bool


class Verdicts(_Strict):
    verdicts: list[Verdict]


async def supported(draft: Draft, observations: Sequence[Observation], model: RunModel, attempt_timeout: float) -> bool:
    """Whether a verdict was given for every claim and the conclusion, and each says supported.

    Without a verdict after two attempts nothing may be published, so that is false too. Raises
    BudgetExhausted and RunCancelled. `attempt_timeout` is in seconds.
    """
    claims = _claims(draft)
    request = _request(claims, observations)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _all_supported(await model.complete(request, within=attempt_timeout), len(claims))
        except ModelError as error:
            _log.warning("no verdict", extra={"attempt": attempt, "code": error.code})
    return False


def _claims(draft: Draft) -> list[Claim]:
    """The draft's claims, and its conclusion as one more that rests on all they cite."""
    cited = dict.fromkeys(evidence_id for claim in draft.claims for evidence_id in claim.evidence_ids)
    # model_construct: the conclusion may be longer than a claim may be.
    conclusion = Claim.model_construct(text=draft.conclusion or "", evidence_ids=tuple(cited), quotes=())
    return [*draft.claims, conclusion]


def _request(claims: list[Claim], observations: Sequence[Observation]) -> ModelRequest:
    fence = Fence.new()
    listed = [
        {"claim": number, "text": claim.text, "evidence_ids": list(claim.evidence_ids)}
        for number, claim in enumerate(claims)
    ]
    cited = set(claims[-1].evidence_ids)
    blocks = [fence.observation(observation) for observation in observations if observation.evidence_id in cited]
    text = "\n\n".join([fence.wrap(json.dumps({"claims": listed}, ensure_ascii=False)), *blocks])
    return ModelRequest(
        messages=(
            Message(role="system", content=_SYSTEM.format(rule=fence.rule)),
            Message(role="user", content=text),
        ),
        output=OutputSchema(name="claim_verdicts", definition=schema_of(Verdicts)),
        max_output_tokens=_MAX_OUTPUT_TOKENS,
    )


def _all_supported(reply: ModelReply, count: int) -> bool:
    verdicts = read_answer(reply, Verdicts).verdicts
    if sorted(verdict.claim for verdict in verdicts) != list(range(count)):
        raise ModelReplyInvalid("not exactly one verdict per claim")
    return all(verdict.supported for verdict in verdicts)
