"""A custom resource of CloudFormation: whatever happens it is answered, once, and in time.

CloudFormation waits an hour for an answer that doesn't come, and then for another one while it rolls back.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_pascal

from superbizagent.application.defects import place_of
from superbizagent.domain.text import bound_bytes
from superbizagent.errors import ChannelUnavailable, InternalFailure, SuperBizAgentError

ANSWER_SECONDS = 15.0
"""Kept of the function's time for the answer and its repetitions."""
MAX_REASON_BYTES = 1_000
"""Of the 4 KB that CloudFormation reads of an answer; its ids take up to 2."""

TimeLeft = Callable[[], float]
Put = Callable[[str, bytes, float], None]
_log = logging.getLogger(__name__)


class CustomResourceEvent(BaseModel):
    """What CloudFormation sends. `response_url` lets its bearer answer: it is as good as a password."""

    model_config = ConfigDict(alias_generator=to_pascal, frozen=True, hide_input_in_errors=True)

    request_type: Literal["Create", "Update", "Delete"]
    response_url: str = Field(alias="ResponseURL", pattern=r"^https?://", repr=False)
    stack_id: str
    request_id: str
    logical_resource_id: str
    physical_resource_id: str | None = None
    resource_properties: Mapping[str, Any] = Field(default_factory=dict)

    @property
    def resource_id(self) -> str:
        """The same for the resource's whole life: another one in an answer makes CloudFormation delete the old."""
        return self.physical_resource_id or f"{self.stack_id}/{self.logical_resource_id}"


class CustomResource:
    """`with resource: … resource.succeed(…) or resource.fail(…)`; without either in time it fails by itself.

    `put(url, body, seconds)` delivers the answer within that time, or raises ChannelUnavailable.
    """

    def __init__(self, event: CustomResourceEvent, put: Put, time_left: TimeLeft) -> None:
        self.event = event
        self._put = put
        self._time_left = time_left
        self._answering = threading.Lock()
        self._answered = False
        self._watchdog = threading.Timer(max(0.0, time_left() - ANSWER_SECONDS), self._run_out)

    @property
    def work_seconds(self) -> float:
        """What is left for the work itself."""
        return max(0.0, self._time_left() - ANSWER_SECONDS)

    def __enter__(self) -> Self:
        self._watchdog.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watchdog.cancel()
        # It may be answering just now: nothing is left running when the process is frozen.
        self._watchdog.join()

    def succeed(self, data: dict[str, str] | None = None) -> None:
        """`data` are the resource's attributes in the template. Raises ChannelUnavailable."""
        self._answer("SUCCESS", "", data or {})

    def fail(self, reason: str) -> None:
        """`reason` is shown to whoever deploys. Raises ChannelUnavailable."""
        self._answer("FAILED", reason, {})

    def _run_out(self) -> None:
        try:
            self.fail("TIMEOUT: The function's time ran out. Deploy again: the work goes on from where it got to.")
        except ChannelUnavailable as error:
            _log.error("deployment not told", extra={"code": error.code, "reason": str(error)})

    def _answer(self, status: Literal["SUCCESS", "FAILED"], reason: str, data: dict[str, str]) -> None:
        with self._answering:
            if self._answered:
                # The time ran out first, and CloudFormation takes one answer.
                _log.warning("deployment was told already", extra={"status": status})
                return
            body = {
                "Status": status,
                "Reason": bound_bytes(reason, MAX_REASON_BYTES),
                "PhysicalResourceId": self.event.resource_id,
                "StackId": self.event.stack_id,
                "RequestId": self.event.request_id,
                "LogicalResourceId": self.event.logical_resource_id,
                "Data": data,
            }
            self._put(self.event.response_url, json.dumps(body).encode(), max(1.0, self._time_left() - 1.0))
            self._answered = True


def told(error: Exception) -> str:
    """Why a deployment failed: code and fixed words, for everybody. What a vendor said of it is nowhere; what we did is
    in the log.
    """
    if not isinstance(error, SuperBizAgentError):
        _log.error("deployment failed", extra={"defect": place_of(error)})
        return f"{InternalFailure.code}: {InternalFailure.message}"
    _log.error("deployment failed", extra={"code": error.code, "reason": str(error)})
    return f"{error.code}: {error.message}"
