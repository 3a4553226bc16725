"""What every use of an OpenAI-compatible server shares: the client, and the vendor's errors in our terms."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import openai

from superbizagent.domain.pattern import Pattern
from superbizagent.errors import (
    ModelContextTooLong,
    ModelError,
    ModelMisconfigured,
    ModelRefused,
    ModelReplyInvalid,
    ModelThrottled,
    ModelTimeout,
    ModelUnavailable,
)

_LONE_SURROGATE = Pattern("[\ud800-\udfff]")
# Of one text, or of several in one request.
_TOO_LONG = Pattern(
    r"context.{0,20}(length|size|window)|maximum context|(prompt|input|request|string) (is )?too (long|large)"
    r"|too many (tokens|inputs)|reduce the length|exceeds? the maximum number of tokens|range of input length"
    r"|`?inputs`? (tokens|must have)|maximum (input|sequence) length|(input|sequence) (is )?longer than"
    r"|batch size|array (is )?too (long|large)",
    re.IGNORECASE,
)
_REFUSED = Pattern(
    r"content.?(filter|policy|management)|safety system|responsible ai|data_inspection_failed|content exists risk",
    re.IGNORECASE,
)
_RETRIABLE = frozenset({408, 409, 425, 429})
_ACCESS = frozenset({401, 402, 403, 407})


def openai_client(api_key: str, base_url: str | None, timeout: float) -> openai.AsyncOpenAI:
    """`timeout` in seconds bounds each read; the caller bounds the whole call."""
    return openai.AsyncOpenAI(
        api_key=api_key,
        base_url=base_url,
        # The SDK's own retries are off: retrying is the caller's, who pays for each call from a budget.
        max_retries=0,
        timeout=timeout,
        # No connection outlives its call: the next may come after Lambda has frozen this process, when
        # the peer has forgotten the connection and the clock that would have told its age stood still.
        default_headers={"Connection": "close"},
    )


def host_of(client: openai.AsyncOpenAI) -> str:
    """What an error may say of the endpoint: a URL may hold secrets."""
    return urlsplit(str(client.base_url)).hostname or "?"


@contextmanager
def errors_translated(host: str, server: str) -> Iterator[None]:
    """Raises ModelError for whatever the SDK raises within, and for a body that can't be read as an answer.

    `server` says what was expected to answer, such as "a chat completions server".
    """
    try:
        yield
    except openai.APIStatusError as error:
        raise _of_refusal(error, host) from error
    except openai.APITimeoutError as error:
        raise ModelTimeout(host) from error
    except (openai.APIConnectionError, OSError) as error:
        raise ModelUnavailable(host) from error
    except (openai.OpenAIError, ValueError, RecursionError) as error:
        raise ModelReplyInvalid(f"{host} did not answer as {server} does") from error


def _of_refusal(error: openai.APIStatusError, host: str) -> ModelError:
    if is_too_long(error):
        return ModelContextTooLong(host)
    if is_content_refused(error):
        return ModelRefused(host)
    if error.status_code == 429:
        return ModelThrottled(host)
    if error.status_code in _RETRIABLE or error.status_code >= 500:
        return ModelUnavailable(f"{host} answered {error.status_code}")
    return ModelMisconfigured(f"{host} answered {error.status_code}")


def is_too_long(error: openai.APIStatusError) -> bool:
    """A rate limit's words may be the same ("too many tokens"); its status tells them apart."""
    if error.status_code == 413:
        return True
    excluded = error.status_code in _RETRIABLE | _ACCESS or error.status_code == 404
    return not excluded and _TOO_LONG.search(refusal_text(error)) is not None


def is_content_refused(error: openai.APIStatusError) -> bool:
    return error.status_code in (400, 403, 422) and _REFUSED.search(refusal_text(error)) is not None


def refusal_text(error: openai.APIStatusError) -> str:
    """The refusal's own words, from whatever shape its body has; only searched, never shown or logged."""
    try:
        return error.response.text[:4_000]
    except (RuntimeError, ValueError, LookupError):
        return str(error.body)[:4_000]


def storable(text: str) -> str:
    """Unpaired surrogates can't be stored or sent."""
    return _LONE_SURROGATE.sub("\ufffd", text)
