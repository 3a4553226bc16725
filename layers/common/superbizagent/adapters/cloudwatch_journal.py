"""The Journal as CloudWatch takes it: a JSON line a step, and metrics in lines of the embedded metric format.

docs/observation.md lists the fields and the metrics. No id is a dimension: each of its values would be a metric of its
own, and paid for.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import count
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from superbizagent.domain.budget import Usage
from superbizagent.domain.run import ReleaseOutcome, RunIds
from superbizagent.domain.steps import (
    Abandoned,
    DraftChecked,
    Finished,
    ModelCalled,
    NotStored,
    PostFailed,
    Started,
    Step,
    ToolCalled,
)
from superbizagent.errors import ClientGone, InternalFailure

_log = logging.getLogger(__name__)

_UNROUTED = "NONE"
_LAST_GUARD = "MEANING"
_SECONDS = 3
"""Decimal places."""


@dataclass(frozen=True)
class _Metrics:
    """Metrics with the same dimensions, or with the same sets of them; "service" is added to each."""

    values: Mapping[str, float]
    dimensions: tuple[Mapping[str, str], ...] = ({},)


class CloudWatchJournal:
    """Writes to standard output, which is what Lambda takes lines from, and waits for nothing."""

    def __init__(self) -> None:
        # The handlers' own: Powertools keeps one a service. It is the parent of every logger of this package.
        self._logger = Logger(service="superbizagent")
        self._number = count(1)

    def record(self, ids: RunIds, step: Step, elapsed: float | None) -> None:
        known = {name: value for name, value in asdict(ids).items() if value is not None}
        if isinstance(step, Started):
            # Whatever else is logged of this run carries its ids too; the handler clears them before the next.
            self._logger.append_keys(**known)
        extra = {"step": step.name, "seq": next(self._number), **known, **_fields(step)}
        if elapsed is not None:
            extra["elapsed"] = round(elapsed, _SECONDS)
        _log.log(_level(step), "run step", extra=extra)
        for metrics in _metrics(step):
            _emit(metrics)


def _level(step: Step) -> int:
    match step:
        case NotStored():
            return logging.ERROR
        case Abandoned():
            return logging.WARNING
        case PostFailed() if step.code != ClientGone.code:
            return logging.WARNING
        case _:
            return logging.INFO


def _fields(step: Step) -> dict[str, Any]:
    """What is said of the step; nothing is said of what isn't there."""
    told: dict[str, Any] = {}
    for field in fields(step):
        value = getattr(step, field.name)
        if isinstance(value, Usage):
            told |= value.model_dump()
        elif isinstance(value, float):
            told[field.name] = round(value, _SECONDS)
        elif isinstance(value, Mapping):
            told[field.name] = dict(value)
        elif value is not None:
            told[field.name] = value
    return told


def _emit(metrics: _Metrics) -> None:
    """One line. Every value is a float list, as Powertools writes it."""
    blob = EphemeralMetrics()
    first, *others = ({"service": str(blob.service), **dimensions} for dimensions in metrics.dimensions)
    for name, value in first.items():
        blob.add_dimension(name, value)
    for dimensions in others:
        blob.add_dimensions(**dimensions)
    for name, number in metrics.values.items():
        unit = MetricUnit.Seconds if name.endswith("Seconds") else MetricUnit.Count
        blob.add_metric(name=name, unit=unit, value=number)
    blob.flush_metrics()


def _metrics(step: Step) -> Iterator[_Metrics]:
    match step:
        case ModelCalled():
            yield from _model_called(step)
        case ToolCalled() if not step.cached:
            yield from _tool_called(step)
        case DraftChecked():
            yield from _draft_checked(step)
        case NotStored():
            yield _Metrics({"RunsNotStored": 1})
        case PostFailed():
            yield _Metrics({"ConnectionsGone" if step.code == ClientGone.code else "PostsFailed": 1})
        case Abandoned():
            yield _Metrics({"RunsAbandoned": 1})
            yield from _ended(step)
        case Finished():
            yield from _finished(step) if step.stored else (_Metrics({"RunsSuperseded": 1}),)


def _model_called(step: ModelCalled) -> Iterator[_Metrics]:
    values = {"ModelCalls": 1, "ModelSeconds": step.seconds, "ModelTokens": step.tokens}
    yield _Metrics(values, ({"purpose": step.purpose},))
    if step.code is not None:
        yield _Metrics({"ModelFailures": 1}, ({"code": step.code},))


def _tool_called(step: ToolCalled) -> Iterator[_Metrics]:
    yield _Metrics({"ToolCalls": 1, "ToolSeconds": step.seconds}, ({"tool": step.tool},))
    if step.code is not None:
        yield _Metrics({"ToolErrors": 1}, ({"tool": step.tool, "code": step.code},))


def _draft_checked(step: DraftChecked) -> Iterator[_Metrics]:
    rejected = 1 if step.rules else 0
    yield _Metrics({"DraftsChecked": 1, "DraftsRejected": rejected}, ({"guard": step.guard},))
    yield from (_Metrics({"GuardRejections": times}, ({"rule": rule},)) for rule, times in step.rules.items())
    if rejected or step.guard == _LAST_GUARD:
        # Once a draft. A share is one metric's sum over its count: alarms on it need not guess at what is missing.
        yield _Metrics({"DraftsRejected": rejected})


def _ended(step: Finished | Abandoned) -> Iterator[_Metrics]:
    """Of a run that has ended, whoever ended it."""
    outcome = step.outcome.value
    yield _Metrics({"Runs": 1}, ({"outcome": outcome}, {"intent": step.intent or _UNROUTED, "outcome": outcome}))
    match step.outcome:
        case ReleaseOutcome.FAILED:
            yield _Metrics({"RunFailures": 1}, ({}, {"code": step.code or InternalFailure.code}))
        case ReleaseOutcome.SUCCESS | ReleaseOutcome.FALLBACK:
            # The failures' own zero, for the same reason.
            yield _Metrics({"RunFailures": 0})


def _finished(step: Finished) -> Iterator[_Metrics]:
    yield from _ended(step)
    usage = {
        "RunSeconds": step.seconds,
        "RunTokens": step.usage.tokens,
        "RunModelCalls": step.usage.model_calls,
        "RunToolCalls": step.usage.tool_calls,
    }
    yield _Metrics(usage, ({"intent": step.intent or _UNROUTED},))
    if step.outcome is ReleaseOutcome.FALLBACK and step.reason is not None:
        yield _Metrics({"Fallbacks": 1}, ({"reason": step.reason},))
    if step.outcome is ReleaseOutcome.CANCELLED and step.cause is not None and step.cancelling is not None:
        yield _Metrics({"CancelSeconds": step.cancelling}, ({"cause": step.cause},))
