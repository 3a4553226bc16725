"""The few calls of the CloudWatch Logs API, with its errors in our terms. Every call here blocks its thread."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol, TypeVar, cast

from superbizagent.errors import ConfigurationError, EvidenceUnavailable

_log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 3.0
READ_SECONDS: Final = 8.0

_MAX_VALUE: Final = 8_000
"""Characters kept of each of thousands of messages; what is shown of a longer one is read again."""

T = TypeVar("T")

Listing = tuple[Sequence[Mapping[str, Any]], bool]
"""Streams of a group, and whether these are all."""


class LogsApi(Protocol):
    """What is used of boto3's client `logs`."""

    def start_query(self, **arguments: Any) -> Any: ...
    def get_query_results(self, **arguments: Any) -> Any: ...
    def stop_query(self, **arguments: Any) -> Any: ...
    def get_log_record(self, **arguments: Any) -> Any: ...
    def describe_log_streams(self, **arguments: Any) -> Any: ...


class TryAgain(EvidenceUnavailable):
    """Throttled, at a limit of parallel queries, or not reached: the same call may succeed in a moment."""


class NoSuchResource(EvidenceUnavailable):
    """A log group or a query that does not exist."""


class AccessDenied(EvidenceUnavailable):
    """Not allowed, or not signed in a way that AWS accepts."""


class QueryRefused(EvidenceUnavailable):
    """AWS takes the query for malformed. Ours are well formed; so is it the window, as it turns out."""


def new_api(region: str, endpoint_url: str | None = None) -> LogsApi:
    """The client of one region. Its calls are bounded in time and not repeated: that is for whoever
    knows how much time is left. Raises ConfigurationError.
    """
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
    try:
        # A session of its own: the default one is not to be used from threads.
        session = boto3.session.Session()
        client = session.client("logs", region_name=region, endpoint_url=endpoint_url, config=config)
    except (BotoCoreError, ValueError) as error:
        raise ConfigurationError(f"CloudWatch Logs can't be asked: {type(error).__name__}") from error
    return cast(LogsApi, client)


def group_arn(region: str, account: str, group: str) -> str:
    """The full name of a log group."""
    partition = "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"
    return f"arn:{partition}:logs:{region}:{account}:log-group:{group}"


@dataclass(frozen=True)
class Page:
    """The state of a query and what it has found so far; counts are None where AWS leaves them out."""

    status: str
    rows: tuple[Mapping[str, str], ...]
    matched: int | None
    scanned: int | None
    next_token: str | None


@dataclass(frozen=True)
class Request:
    """A query to start; the window is in whole seconds since 1970, both included."""

    groups: tuple[str, ...]
    start: int
    end: int
    text: str
    limit: int


class Calls:
    """`api` makes the client when it is first needed: boto3 takes a quarter of a second to load.

    Groups are names. With `account` they are asked for by their full names in that account, so that
    credentials of another one find nothing. Methods raise the errors above, or EvidenceUnavailable.
    """

    def __init__(self, api: Callable[[], LogsApi], group_arn: Callable[[str], str] | None = None) -> None:
        self._make = api
        self._group_arn = group_arn

    @cached_property
    def _api(self) -> LogsApi:
        return self._make()

    def start(self, request: Request) -> str:
        arn = self._group_arn
        groups: dict[str, Any] = (
            {"logGroupIdentifiers": [arn(group) for group in request.groups]}
            if arn
            else {"logGroupNames": list(request.groups)}
        )
        answer = self._call(
            lambda: self._api.start_query(
                **groups,
                startTime=request.start,
                endTime=request.end,
                queryString=request.text,
                limit=request.limit,
            )
        )
        return str(answer["queryId"])

    def results(self, query_id: str, next_token: str | None = None) -> Page:
        token = {"nextToken": next_token} if next_token else {}
        answer = self._call(lambda: self._api.get_query_results(queryId=query_id, **token))
        statistics = answer.get("statistics") or {}
        return Page(
            status=str(answer.get("status", "")),
            rows=tuple(_row(fields) for fields in answer.get("results") or ()),
            matched=_count(statistics.get("recordsMatched")),
            scanned=_count(statistics.get("recordsScanned")),
            next_token=answer.get("nextToken"),
        )

    def stop(self, query_id: str) -> None:
        self._call(lambda: self._api.stop_query(queryId=query_id))

    def whole_message(self, pointer: str) -> str | None:
        answer = self._call(lambda: self._api.get_log_record(logRecordPointer=pointer))
        message = (answer.get("logRecord") or {}).get("@message")
        return message if isinstance(message, str) else None

    def streams(self, group: str) -> Listing:
        """Those with the latest events first."""
        name = {"logGroupIdentifier": self._group_arn(group)} if self._group_arn else {"logGroupName": group}
        answer = self._call(
            lambda: self._api.describe_log_streams(**name, orderBy="LastEventTime", descending=True, limit=50)
        )
        return answer.get("logStreams") or (), not answer.get("nextToken")

    def _call(self, call: Callable[[], T]) -> T:
        from botocore import exceptions

        try:
            return call()
        except exceptions.ClientError as error:
            raise _translated(error.response) from error
        except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as error:
            raise AccessDenied from error
        except (exceptions.HTTPClientError, exceptions.ConnectionError) as error:
            raise TryAgain("CloudWatch Logs could not be reached.") from error
        except (exceptions.BotoCoreError, ValueError) as error:
            # ValueError: an answer that is no text, which botocore decodes without care.
            _log.error("CloudWatch Logs call failed", extra={"error": type(error).__name__})
            raise EvidenceUnavailable from error


_BUSY: Final = frozenset(
    (
        "LimitExceededException",
        "RequestLimitExceeded",
        "ServiceQuotaExceededException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    )
)
_DENIED: Final = frozenset(
    (
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "NotAuthorized",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    )
)


def _translated(response: Mapping[str, Any]) -> EvidenceUnavailable:
    """By AWS's code. Its message is not looked at: it quotes the request and names of our account."""
    code = str(response.get("Error", {}).get("Code", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0
    if code in _BUSY or status == 429:
        return TryAgain("CloudWatch Logs takes no more searches at the moment: too many run at once. Try again later.")
    if code in _DENIED:
        return AccessDenied()
    if code == "ResourceNotFoundException":
        return NoSuchResource()
    if code == "MalformedQueryException":
        return QueryRefused()
    if status >= 500:
        return TryAgain("CloudWatch Logs is not available at the moment. Try again later.")
    if status == 403:
        return AccessDenied()
    _log.error("CloudWatch Logs refused a call", extra={"code": code[:64]})
    return EvidenceUnavailable("CloudWatch Logs did not accept this search.")


def _row(fields: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    return {
        str(field.get("field")): str(field["value"])[:_MAX_VALUE] for field in fields if field.get("value") is not None
    }


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 0 else None
