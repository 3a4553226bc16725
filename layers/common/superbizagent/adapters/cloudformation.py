"""Answers to CloudFormation: a PUT to a place in S3 that is signed for just this."""

import http.client
import time
import urllib.error
import urllib.request

from superbizagent.errors import ChannelUnavailable

ATTEMPTS = 6
FIRST_PAUSE = 0.2
ATTEMPT_SECONDS = 5.0
_SIGNATURE_REFUSED = frozenset({400, 401, 403, 404})


def put_answer(url: str, body: bytes, seconds: float) -> None:
    """Raises ChannelUnavailable when the answer isn't taken within `seconds`. Its text names no address.

    By urllib and not by a client that logs the addresses it asks: this one's query is its signature.
    """
    give_up = time.monotonic() + seconds
    # Signed without a content type; urllib would name one of its own.
    request = urllib.request.Request(url, body, {"Content-Type": ""}, method="PUT")  # noqa: S310 - checked in the event
    problem = ""
    for attempt in range(ATTEMPTS):
        try:
            with urllib.request.urlopen(request, timeout=min(ATTEMPT_SECONDS, seconds)) as response:  # noqa: S310
                response.read()
                return
        except urllib.error.HTTPError as error:
            error.close()
            problem = f"HTTP {error.code}"
            if error.code in _SIGNATURE_REFUSED:
                break
        except (OSError, http.client.HTTPException) as error:
            problem = type(error).__name__
        pause = FIRST_PAUSE * 2**attempt
        if time.monotonic() + pause >= give_up:
            break
        time.sleep(pause)
    raise ChannelUnavailable(f"CloudFormation took no answer: {problem}")
