"""Claims as people and models word them, over incidents of their own, each of them broken in several ways."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.evidence.guard_cases.drafts import Case, Mutant
from superbizagent.domain.evidence import Coverage, Observation

_FILE = Path(__file__).with_name("free_wording.toml")
_FAMILY = "free wording"


def free_wording() -> Iterator[Case]:
    content = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    observed = {name: _observation(name, fields) for name, fields in content["observations"].items()}
    for claim in content["claims"]:
        language = "zh" if re.search(r"[\u4e00-\u9fff]{4}", claim["text"]) else "en"
        cited = tuple(observed[name] for name in claim["cites"])
        case = Case(
            _FAMILY,
            language,
            " and ".join(sorted({observation.tool for observation in cited})),
            claim["text"],
            tuple(observation.evidence_id for observation in cited),
            documents=tuple(claim.get("documents", ())),
            extra=cited,
        )
        yield replace(case, mutants=partial(_mutants, case, claim.get("breaks", ())))


def _mutants(case: Case, breaks: Sequence[Sequence[str]]) -> Iterator[Mutant]:
    for said, instead in breaks:
        text = case.text.replace(said, instead, 1)
        if text == case.text:
            raise ValueError(f"{said!r} does not stand in {case.text!r}")
        yield Mutant(_FAMILY, replace(case, text=text), false=True)


def _observation(name: str, fields: Mapping[str, Any]) -> Observation:
    coverage = Coverage.model_validate(json.loads(fields["coverage"]))
    return Observation.model_validate({**fields, "evidence_id": f"free {name}", "digest": name, "coverage": coverage})
