"""Answering from passages, and judging claims, by the words they share."""

import re
from typing import Any

from local.model_server.prompt import Observation, Passage, passages
from local.model_server.text import (
    cut,
    fold,
    has_chinese,
    is_step,
    literals,
    overlap,
    quotations,
    sentences,
    terms,
    topic,
    unique,
)

_MOST_ITEMS = 6
_MOST_TEXT = 600
_HOW = re.compile(
    r"\bhow\b|\bsteps?\b|\bwhat (?:should|do|to)\b|procedure|runbook|fix|mitigat|"
    r"怎么|如何|步骤|处理|流程|手册",
    re.I,
)
_LIMITATION = {
    True: "由脚本化的演示模型从文档中摘录，只按词语匹配，未作归纳。",
    False: "Excerpts chosen by the scripted demo model by matching words; it has not understood them.",
}


def answer(query: str, call_id: str, found: list[Observation]) -> dict[str, Any]:
    """Sentences of the passages that match the query best, each with its document; none when none match."""
    wanted = topic(query) or terms(query)
    scored = [
        (3 * overlap(wanted, passage.heading) + overlap(wanted, "\n".join(passage.lines)), passage)
        for observation in found
        for passage in passages(observation)
    ]
    # Stable: of equals, the index's own order stands.
    best = [passage for score, passage in sorted(scored, key=lambda pair: -pair[0]) if score > 0]
    items: list[dict[str, Any]] = []
    for passage in best[:3]:
        for text in _excerpts(passage, wanted, steps=_HOW.search(query) is not None):
            if text not in [item["text"] for item in items]:
                items.append({"text": text, "call_id": call_id, "document_ids": [passage.document_id]})
    return {"items": items[:_MOST_ITEMS], "limitations": [_LIMITATION[has_chinese(query)]] if items else []}


def _excerpts(passage: Passage, wanted: frozenset[str], *, steps: bool) -> list[str]:
    lines = _joined(passage.lines)
    listed = [fold(" ".join(sentences(line))) for line in lines if is_step(line)]
    if steps and listed:
        return [cut(text, _MOST_TEXT) for text in unique(listed) if text][:4]
    candidates = unique(text for line in lines for text in sentences(line))
    ranked = sorted(candidates, key=lambda text: -overlap(wanted, text))
    chosen = set(ranked[:3])
    return [cut(text, _MOST_TEXT) for text in candidates if text in chosen]


def _joined(lines: tuple[str, ...]) -> list[str]:
    """Paragraphs: a line that only goes on belongs to the one before it."""
    found: list[str] = []
    goes_on = False
    for line in lines:
        plain = line.strip()
        begins = is_step(line) or plain.startswith(("#", "|", "```", ">")) or not plain
        if goes_on and not begins:
            found[-1] += f" {plain}"
        elif plain:
            found.append(line)
        goes_on = bool(plain) and not plain.startswith(("#", "|", "```"))
    return found


def verdicts(claims: list[dict[str, Any]], found: list[Observation]) -> dict[str, Any]:
    """One verdict a claim: supported when what it cites shows its numbers, names, quotations and words."""
    by_id = {observation.evidence_id: observation for observation in found}
    return {
        "verdicts": [
            {"claim": claim.get("claim", index), "supported": _supported(claim, by_id)}
            for index, claim in enumerate(claims)
        ]
    }


def _supported(claim: dict[str, Any], by_id: dict[str, Observation]) -> bool:
    text, ids = claim.get("text"), claim.get("evidence_ids")
    if not isinstance(text, str) or not isinstance(ids, list) or not ids:
        return False
    cited = [by_id[id_] for id_ in ids if isinstance(id_, str) and id_ in by_id]
    evidence = "\n".join(f"{o.text}\n{o.call}\n{o.coverage}" for o in cited if o.status != "ERROR")
    if len(cited) < len(ids) or not evidence.strip():
        return False
    folded = fold(evidence)
    quoted = quotations(text)
    shown = all(_shows(folded, literal) for literal in literals(text))
    return shown and all(quote in folded for quote in quoted) and _words_match(text, folded, bool(quoted))


def _shows(evidence: str, literal: str) -> bool:
    """Whether the literal occurs there whole; a time also in the other usual spelling."""
    spellings = {
        literal,
        re.sub(r"(?<=\d)T(?=\d)", " ", literal),
        literal.removesuffix("Z"),
        literal.rstrip("%"),
    }
    return any(
        re.search(rf"(?<![\d.]){re.escape(spelling)}(?!\d|\.\d)", evidence, re.I) for spelling in spellings if spelling
    )


def _words_match(text: str, evidence: str, quoted: bool) -> bool:
    """Half of the words of the claim's own script; verbatim quotations carry half of that."""
    wanted = terms(text)
    latin = {term for term in wanted if not has_chinese(term)}
    compared = latin or wanted
    if not compared:
        return False
    share = len(compared & terms(evidence)) / len(compared)
    return share >= (0.25 if quoted else 0.35)
