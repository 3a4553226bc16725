"""Every error this product raises, each with a stable public code.

::

    SuperBizAgentError
    ├── RequestError                    the client asked for something that cannot be done
    │   ├── MalformedRequest            MALFORMED_REQUEST
    │   ├── UnknownAction               UNKNOWN_ACTION
    │   ├── InvalidQuery                INVALID_QUERY
    │   ├── InvalidSessionId            INVALID_SESSION_ID
    │   ├── Unauthenticated             UNAUTHENTICATED
    │   ├── SessionNotFound             SESSION_NOT_FOUND
    │   ├── RunNotFound                 RUN_NOT_FOUND
    │   ├── SessionBusy                 SESSION_BUSY
    │   └── RequestConflict             REQUEST_CONFLICT
    ├── SignInError                     a connection was not let in
    │   ├── TokenMissing                TOKEN_MISSING
    │   ├── TokenMalformed              TOKEN_MALFORMED
    │   ├── TokenUntrusted              TOKEN_UNTRUSTED
    │   ├── TokenExpired                TOKEN_EXPIRED
    │   ├── TokenNotYetValid            TOKEN_NOT_YET_VALID
    │   ├── TokenNotForUs               TOKEN_NOT_FOR_US
    │   └── IssuerUnavailable           ISSUER_UNAVAILABLE
    ├── RunError                        ends a run
    │   ├── RoutingUnavailable          ROUTING_UNAVAILABLE
    │   ├── RunPersistenceFailed        RUN_PERSISTENCE_FAILED
    │   ├── RunCancelled                RUN_CANCELLED
    │   ├── BudgetExhausted             BUDGET_EXHAUSTED
    │   ├── KnowledgeUnavailable        KNOWLEDGE_UNAVAILABLE
    │   ├── KnowledgeAnswerRejected     KNOWLEDGE_ANSWER_REJECTED
    │   ├── ObserverFailed              OBSERVER_FAILED
    │   ├── RunAbandoned                RUN_ABANDONED
    │   └── InternalFailure             INTERNAL_FAILURE
    ├── ModelError                      the model gave no usable reply
    │   ├── ModelTimeout                MODEL_TIMEOUT
    │   ├── ModelUnavailable            MODEL_UNAVAILABLE
    │   │   └── ModelThrottled          MODEL_THROTTLED
    │   ├── ModelReplyInvalid           MODEL_REPLY_INVALID
    │   ├── ModelRefused                MODEL_REFUSED
    │   ├── ModelMisconfigured          MODEL_MISCONFIGURED
    │   └── ModelContextTooLong         MODEL_CONTEXT_TOO_LONG
    ├── EvidenceError                   becomes an observation with status ERROR
    │   ├── InvalidToolArguments        INVALID_ARGUMENTS
    │   ├── UnknownTool                 UNKNOWN_TOOL
    │   ├── UnknownSource               UNKNOWN_SOURCE
    │   ├── StatementRefused            STATEMENT_REFUSED
    │   ├── StatementFailed             STATEMENT_FAILED
    │   ├── EvidenceTimeout             EVIDENCE_TIMEOUT
    │   └── EvidenceUnavailable         EVIDENCE_UNAVAILABLE
    ├── ChannelError                    a frame could not be delivered
    │   ├── ClientGone                  CLIENT_GONE
    │   └── ChannelUnavailable          CHANNEL_UNAVAILABLE
    ├── StoreError                      STORE_UNAVAILABLE
    │   └── MigrationLocked             MIGRATION_LOCKED
    ├── PageNotPublished                PAGE_NOT_PUBLISHED
    └── ConfigurationError              CONFIGURATION_ERROR

``code`` and ``message`` are public and fixed per class. What is passed to the constructor is for
the operator's eyes; it never reaches a client, and callers keep query text and secrets out of it.
``EvidenceError`` is the exception: its ``hint`` is written by us and shown to the model.
"""

from functools import cache
from typing import ClassVar


class SuperBizAgentError(Exception):
    """The root; never raised itself."""

    code: ClassVar[str] = "INTERNAL_FAILURE"
    message: ClassVar[str] = "Something went wrong on our side. Nothing was published."


class RequestError(SuperBizAgentError):
    """The client asked for something that cannot be done."""


class MalformedRequest(RequestError):
    code = "MALFORMED_REQUEST"
    message = "The message is not a JSON object with the fields its action needs."


class UnknownAction(RequestError):
    code = "UNKNOWN_ACTION"
    message = "The action is not one of chat, cancel and history."


class InvalidQuery(RequestError):
    code = "INVALID_QUERY"
    message = "The question must have 1 to 8,000 characters and at most 24 KB of UTF-8 text."


class InvalidSessionId(RequestError):
    code = "INVALID_SESSION_ID"
    message = "The session id must have 1 to 64 characters of letters, digits, hyphen and underscore."


class Unauthenticated(RequestError):
    code = "UNAUTHENTICATED"
    message = "This connection is not signed in. Connect again."


class SessionNotFound(RequestError):
    code = "SESSION_NOT_FOUND"
    message = "There is no such session."


class RunNotFound(RequestError):
    code = "RUN_NOT_FOUND"
    message = "There is no such run."


class SessionBusy(RequestError):
    code = "SESSION_BUSY"
    message = "A question is being answered in this session. Wait for it or cancel it."


class RequestConflict(RequestError):
    code = "REQUEST_CONFLICT"
    message = "This request id was used for another question. Send the question with a new request id."


class SignInError(SuperBizAgentError):
    """A connection was not let in. What is passed to the constructor holds nothing of the token."""


class TokenMissing(SignInError):
    code = "TOKEN_MISSING"
    message = "The connection brought no access token. Sign in."


class TokenMalformed(SignInError):
    code = "TOKEN_MALFORMED"
    message = "What the connection brought is not one signed access token. Sign in again."


class TokenUntrusted(SignInError):
    code = "TOKEN_UNTRUSTED"
    message = "The access token was not signed by the service's issuer. Sign in again."


class TokenExpired(SignInError):
    code = "TOKEN_EXPIRED"
    message = "The access token has expired. Sign in again."


class TokenNotYetValid(SignInError):
    code = "TOKEN_NOT_YET_VALID"
    message = "The access token is not valid yet. Check the clock of this machine."


class TokenNotForUs(SignInError):
    code = "TOKEN_NOT_FOR_US"
    message = "The token is genuine, but it gives no access to this service."


class IssuerUnavailable(SignInError):
    code = "ISSUER_UNAVAILABLE"
    message = "The sign-in service could not be asked for its keys. Try again."


class RunError(SuperBizAgentError):
    """Ends a run."""


class RoutingUnavailable(RunError):
    code = "ROUTING_UNAVAILABLE"
    message = "The question could not be classified. Try again."


class RunPersistenceFailed(RunError):
    code = "RUN_PERSISTENCE_FAILED"
    message = "The answer could not be stored, so it was not published. Try again."


class RunCancelled(RunError):
    code = "RUN_CANCELLED"
    message = "The run was cancelled."


class BudgetExhausted(RunError):
    """A limit of the run was reached; ``resource`` names it (model_calls, tool_calls, tokens, wall_time)."""

    code = "BUDGET_EXHAUSTED"
    message = "The limits of this run were reached before anything could be established."

    def __init__(self, resource: str, limit: float) -> None:
        super().__init__(f"{resource} limit of {limit:g} reached")
        self.resource = resource
        self.limit = limit


class KnowledgeUnavailable(RunError):
    code = "KNOWLEDGE_UNAVAILABLE"
    message = "The knowledge base could not be searched. Try again."


class KnowledgeAnswerRejected(RunError):
    code = "KNOWLEDGE_ANSWER_REJECTED"
    message = "The answer did not hold to the documents that were found, so it was not published."


class ObserverFailed(RunError):
    code = "OBSERVER_FAILED"
    message = "Progress could not be reported, so the run was ended."


class RunAbandoned(RunError):
    code = "RUN_ABANDONED"
    message = "The run stopped without an answer. Ask again."


class InternalFailure(RunError):
    pass


class ModelError(SuperBizAgentError):
    """The model gave no usable reply."""


class ModelTimeout(ModelError):
    code = "MODEL_TIMEOUT"
    message = "The model did not answer in time."


class ModelUnavailable(ModelError):
    code = "MODEL_UNAVAILABLE"
    message = "The model could not be reached."


class ModelThrottled(ModelUnavailable):
    code = "MODEL_THROTTLED"
    message = "The model takes no more questions at the moment. Try again in a minute."


class ModelReplyInvalid(ModelError):
    code = "MODEL_REPLY_INVALID"
    message = "The model's reply could not be used."


class ModelRefused(ModelError):
    code = "MODEL_REFUSED"
    message = "The model's provider refused this question."


class ModelMisconfigured(ModelError):
    code = "MODEL_MISCONFIGURED"
    message = "The model is not set up correctly. Tell the operator of this service."


class ModelContextTooLong(ModelError):
    code = "MODEL_CONTEXT_TOO_LONG"
    message = "The question and its evidence are too long for the model."


class EvidenceError(SuperBizAgentError):
    """Becomes an observation with status ERROR; ``hint`` tells the model what to do, in our words."""

    def __init__(self, hint: str = "") -> None:
        super().__init__(hint or self.message)
        self.hint = hint or self.message


class InvalidToolArguments(EvidenceError):
    code = "INVALID_ARGUMENTS"
    message = "The arguments do not fit the tool's schema."


class UnknownTool(EvidenceError):
    code = "UNKNOWN_TOOL"
    message = "There is no such tool."


class UnknownSource(EvidenceError):
    code = "UNKNOWN_SOURCE"
    message = "There is no source of that name."


class StatementRefused(EvidenceError):
    code = "STATEMENT_REFUSED"
    message = "Only one read-only SELECT over the listed tables is allowed."


class StatementFailed(EvidenceError):
    code = "STATEMENT_FAILED"
    message = "The database could not run the statement."


class EvidenceTimeout(EvidenceError):
    code = "EVIDENCE_TIMEOUT"
    message = "The source did not answer in time. Ask for less."


class EvidenceUnavailable(EvidenceError):
    code = "EVIDENCE_UNAVAILABLE"
    message = "The source could not be read."


class ChannelError(SuperBizAgentError):
    """A frame could not be delivered."""


class ClientGone(ChannelError):
    code = "CLIENT_GONE"
    message = "The client has disconnected."


class ChannelUnavailable(ChannelError):
    code = "CHANNEL_UNAVAILABLE"
    message = "The client could not be reached."


class StoreError(SuperBizAgentError):
    code = "STORE_UNAVAILABLE"
    message = "The service's database could not be reached. Try again."


class MigrationLocked(StoreError):
    code = "MIGRATION_LOCKED"
    message = "Another migration of this database is running. Try again when it has ended."


class PageNotPublished(SuperBizAgentError):
    code = "PAGE_NOT_PUBLISHED"
    message = "The page's files could not be written to their bucket, or removed from it."


class ConfigurationError(SuperBizAgentError):
    code = "CONFIGURATION_ERROR"
    message = "The service is not set up correctly. Tell its operator."


def message_of(code: str) -> str:
    """The public message of a stored code; the general one for a code that this version doesn't know."""
    return _messages().get(code, SuperBizAgentError.message)


@cache
def _messages() -> dict[str, str]:
    messages: dict[str, str] = {}
    pending: list[type[SuperBizAgentError]] = [SuperBizAgentError]
    while pending:
        error = pending.pop()
        if "code" in vars(error):
            messages[error.code] = error.message
        pending += error.__subclasses__()
    return messages
