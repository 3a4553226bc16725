"""`python -m bench.evidence.guards [--logs DIR] [--full]`: how many broken drafts the EvidenceGuard lets through.

True drafts over real observations are broken one at a time. A mutant counts as false when what was changed does not
occur in the evidence it cites; a value swapped for another one of the same evidence is the SemanticGuard's to catch,
so those are counted apart.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.evidence.guard_cases.absences import absences
from bench.evidence.guard_cases.documents import document_cases
from bench.evidence.guard_cases.drafts import Case, Drafts
from bench.evidence.guard_cases.free_wording import free_wording
from bench.evidence.guard_cases.observed import QUERY, Observed, observe
from superbizagent.domain.draft import Draft
from superbizagent.domain.evidence_guard import Finding, check

SEED = 20261130
LEAST_KILLED, LEAST_PASSED = 0.99, 0.98


@dataclass
class Count:
    good: int = 0
    all: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, good: bool, example: str) -> None:
        self.good += good
        self.all += 1
        if not good:
            self.examples.append(example)

    @property
    def share(self) -> float:
        return self.good / self.all if self.all else 1.0


class Result:
    """Counts by kind: true drafts passed, false mutants killed, and mutants whose value occurs elsewhere."""

    def __init__(self) -> None:
        self.passed: dict[tuple[str, str], Count] = defaultdict(Count)
        self.killed: dict[tuple[str, str], Count] = defaultdict(Count)
        self.occurring: dict[tuple[str, str], Count] = defaultdict(Count)

    def total(self, counts: dict[tuple[str, str], Count], language: str | None = None) -> Count:
        chosen = [count for (_, of), count in counts.items() if language in (None, of)]
        return Count(sum(count.good for count in chosen), sum(count.all for count in chosen))


def findings(case: Case, observed: Observed) -> tuple[Finding, ...]:
    claim = {
        "text": case.text,
        "evidence_ids": [_id(name, observed) for name in case.cites],
        "quotes": list(case.quotes),
        "document_ids": list(case.documents),
    }
    conclusion = "The service failed." if case.language == "en" else "服务故障。"
    draft = Draft.model_validate({"conclusion": conclusion, "claims": [claim]})
    return check(draft, (*observed.all, *case.extra), QUERY)


def _id(name: str, observed: Observed) -> str:
    found = observed.by_name.get(name)
    return found.evidence_id if found is not None else name


def measure(observed: Observed, seed: int = SEED, per_wording: int = 4) -> Result:
    result = Result()
    for case in _cases(observed, seed, per_wording):
        found = findings(case, observed)
        key = (f"{case.family}: {case.wording}", case.language)
        result.passed[key].add(
            not found, f"{case.text} {case.quotes or ''} {case.cites} {[f.rule.value for f in found]}"
        )
        for mutant in case.mutants():
            dead = bool(findings(mutant.case, observed))
            counts = result.killed if mutant.false else result.occurring
            counts[mutant.kind, case.language].add(
                dead, f"{mutant.case.text} {mutant.case.quotes or ''} {mutant.case.cites}"
            )
    return result


def _cases(observed: Observed, seed: int, per_wording: int) -> Iterator[Case]:
    yield from Drafts(observed, seed, per_wording).cases()
    yield from absences(observed)
    yield from document_cases(observed)
    yield from free_wording()


def report(result: Result, examples: int) -> Iterator[str]:
    tables = (
        ("True drafts, passed, by wording", result.passed),
        ("False drafts, killed, by mutation", result.killed),
        (
            "Changed to a value that occurs in the evidence (for the SemanticGuard), killed all the same",
            result.occurring,
        ),
    )
    for title, counts in tables:
        yield f"\n{title}\n"
        yield f"{'':<44}{'English':>14}{'Chinese':>14}"
        for kind in dict.fromkeys(kind for kind, _ in counts):
            yield f"{kind:<44}" + "".join(f"{_cell(counts.get((kind, lang))):>14}" for lang in ("en", "zh"))
        yield f"{'all':<44}" + "".join(f"{_cell(result.total(counts, lang)):>14}" for lang in ("en", "zh"))
        total = result.total(counts)
        yield f"{'both languages':<44}{_cell(total):>14}{total.share:>14.2%}"
        if counts is not result.occurring:
            yield from _examples(counts, examples)


def _cell(count: Count | None) -> str:
    return f"{count.good}/{count.all}" if count is not None and count.all else "-"


def _examples(counts: dict[tuple[str, str], Count], most: int) -> Iterable[str]:
    return [f"  ! {kind}: {text}" for (kind, _), count in counts.items() for text in count.examples[:most]]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.evidence.guards", description=__doc__)
    parser.add_argument("--logs", type=Path, help="a folder of log files to observe, too")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--full", action="store_true", help="five times as many drafts")
    parser.add_argument("--examples", type=int, default=0, help="how many wrong verdicts of each kind to print")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        observed = observe(Path(directory), options.logs)
    result = measure(observed, options.seed, 20 if options.full else 4)
    print("\n".join(report(result, options.examples)))
    killed, passed = result.total(result.killed).share, result.total(result.passed).share
    return 0 if killed >= LEAST_KILLED and passed >= LEAST_PASSED else 1


if __name__ == "__main__":
    sys.exit(main())
