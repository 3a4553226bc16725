"""What is injected where: the matrix, by rules that can be read, and a spread of it by a seed."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from tests.faults.boundaries import Boundary

ALIKE = 2
"""Calls of one kind that get cases; the third poll, agent turn or tool call of a run is like the second."""


class Fault(StrEnum):
    ERROR = "error"
    DEFECT = "defect"
    DELAY = "delay"
    GONE = "gone"
    RESET = "reset"
    KILL = "kill"
    STOP = "stop"
    SWEEP = "sweep"
    CANCEL = "cancel row"
    DISCONNECT = "disconnect"
    REDELIVERY = "redelivery"
    RESEND = "resend"


ERRORS = {
    "store": "StoreError",
    "poll": "StoreError",
    "model": "ModelUnavailable",
    "logs": "EvidenceUnavailable",
    "database": "EvidenceUnavailable",
    "knowledge": "EvidenceUnavailable",
    "frame": "ChannelUnavailable",
}
"""What the adapter of each port raises of its own."""

RESETTABLE = frozenset({"store", "poll", "model", "database", "knowledge", "frame"})
"""Ports with a peer at the other end of a socket; logs are files."""


class Question(StrEnum):
    DIAGNOSIS = "Why are checkouts failing since 14:00 on 2026-11-30?"
    KNOWLEDGE = "What does the runbook say about payment gateway timeouts?"
    CHAT = "What can you do?"


@dataclass(frozen=True)
class Case:
    question: Question
    boundary: Boundary
    fault: Fault

    @property
    def kind(self) -> str:
        return self.fault

    @property
    def facets(self) -> frozenset[object]:
        return frozenset({self.fault, (self.boundary.port, self.boundary.phase), self.question})

    def __str__(self) -> str:
        return f"{self.question.name.lower()}: {self.fault} {self.boundary}"


def applies(fault: Fault, boundary: Boundary) -> bool:
    """The rule by which combinations are left out because they are another one, or nothing.

    An observer call and the frame it posts are one moment: what happens to the process or to the client is
    injected at the frame. What a call answers can be lost, but a delay after it is the delay before the next. After
    a status nothing has changed but that it is told: what happens then is what happens before the next call.
    """
    match fault:
        case Fault.ERROR:
            return boundary.port in ERRORS
        case Fault.DEFECT:
            return True
        case Fault.DELAY:
            return boundary.phase == "before"
        case Fault.GONE:
            return boundary.port == "frame"
        case Fault.RESET:
            return boundary.port in RESETTABLE
        case _:
            return boundary.port != "observer" and not (boundary.port == "frame" and _same_as_next(boundary))


def _same_as_next(boundary: Boundary) -> bool:
    return boundary.name.startswith("frame.status") and boundary.phase == "after"


def matrix(recorded: Mapping[Question, Sequence[Boundary]]) -> list[Case]:
    """Each boundary with each fault; of the shorter questions only what the diagnosis has not shown."""
    cases, known = [], set[Boundary]()
    for question in Question:
        for boundary in recorded[question]:
            tail = question is Question.DIAGNOSIS or _own(boundary, known)
            cases += [Case(question, boundary, fault) for fault in Fault if tail and applies(fault, boundary)]
        known |= set(recorded[question])
    return cases


_ENDS = frozenset({"store.finish", "frame.content", "frame.done"})


def _own(boundary: Boundary, known: set[Boundary]) -> bool:
    return boundary not in known or boundary.name in _ENDS


class Faceted(Protocol):
    @property
    def facets(self) -> frozenset[object]:
        """What kinds of case it is one of."""


AnyCase = TypeVar("AnyCase", bound=Faceted)


def spread(cases: Iterable[AnyCase], seed: int) -> list[AnyCase]:
    """A sample in which each facet is there at least once: each fault, each kind of boundary before and after."""
    shuffled = list(cases)
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - a choice of tests
    chosen: list[AnyCase] = []
    seen: set[object] = set()
    for case in shuffled:
        if case.facets - seen:
            chosen.append(case)
            seen |= case.facets
    return chosen


def boundaries(names: Iterable[Boundary]) -> list[Boundary]:
    """Those worth a case, in order, each once."""
    kept = (boundary for boundary in names if boundary.name != "event" and boundary.ordinal <= ALIKE)
    return list(dict.fromkeys(kept))
