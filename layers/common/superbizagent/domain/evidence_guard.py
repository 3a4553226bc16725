"""EvidenceGuard: deterministic checks of a draft against the observations it cites (GUARD-1, GUARD-2)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from superbizagent.domain.absence import covers_absence, covers_window, says_absent, says_alone
from superbizagent.domain.codes import ToolName
from superbizagent.domain.derivations import follows, miscounted
from superbizagent.domain.draft import Claim, Draft
from superbizagent.domain.evidence import Observation
from superbizagent.domain.evidence_text import EvidenceText, asked_text, evidence_text, text_of
from superbizagent.domain.identifiers import occurs
from superbizagent.domain.levels import shows_levels
from superbizagent.domain.rows import mixes_rows
from superbizagent.domain.values import Values, identifier_pattern, normalise, values_in

_BOUNDS = 2


class Rule(StrEnum):
    """Why a draft was rejected. Internal: counted and logged, never published."""

    NO_CLAIMS = "NO_CLAIMS"
    NOTHING_CITED = "NOTHING_CITED"
    UNKNOWN_EVIDENCE = "UNKNOWN_EVIDENCE"
    EVIDENCE_NOT_READY = "EVIDENCE_NOT_READY"
    UNKNOWN_DOCUMENT = "UNKNOWN_DOCUMENT"
    QUOTE_NOT_FOUND = "QUOTE_NOT_FOUND"
    VALUE_NOT_FOUND = "VALUE_NOT_FOUND"
    ABSENCE_NOT_COVERED = "ABSENCE_NOT_COVERED"


@dataclass(frozen=True)
class Finding:
    """One broken rule; `part` names the claim (`claims[0]`) or field (`conclusion`) that broke it."""

    part: str
    rule: Rule


def check(draft: Draft, observations: Sequence[Observation], query: str) -> tuple[Finding, ...]:
    """What is wrong with a concluded draft; empty when it passes.

    The conclusion may say what the cited evidence says; scope and limitations also what the question
    says and what any observation says, because they describe the search itself.
    """
    by_id = {observation.evidence_id: observation for observation in observations}
    if not draft.claims:
        return (Finding("claims", Rule.NO_CLAIMS),)
    sources = _log_sources(observations)
    findings = [
        Finding(f"claims[{index}]", rule)
        for index, claim in enumerate(draft.claims)
        for rule in _check_claim(claim, by_id, sources)
    ]
    cited = {evidence_id for claim in draft.claims for evidence_id in claim.evidence_ids}
    observed = [by_id[evidence_id] for evidence_id in sorted(cited & by_id.keys())]
    findings += [Finding("conclusion", rule) for rule in _check_statement(draft.conclusion or "", observed, sources)]
    around = [evidence_text(observation) for observation in observations] + [text_of(query)]
    for part, prose in (("scope", [draft.scope]), ("limitations", draft.limitations)):
        for text in prose:
            findings += [Finding(part, rule) for rule in _check_values(values_in(text), around, text)]
    return tuple(findings)


def supported_steps(draft: Draft, observations: Sequence[Observation], query: str) -> tuple[str, ...]:
    """The next steps whose values all occur in some observation or in the question; others are dropped."""
    around = [evidence_text(observation) for observation in observations] + [text_of(query)]
    return tuple(step for step in draft.next_steps if not list(_check_values(values_in(step), around, step)))


def supporting_lines(claim: Claim, observation: Observation, limit: int) -> tuple[str, ...]:
    """The lines of an observation that show a claim's quotations and values, in order, at most `limit`."""
    lines = [line for line in observation.projection.splitlines() if line.strip()]
    if not lines:
        return ()
    wanted = values_in(claim.text)
    quotes = [normalise(quote) for quote in (*claim.quotes, *wanted.quotations)]
    scores = [_support(line, wanted, quotes) for line in lines]
    best = sorted(range(len(lines)), key=lambda index: (-scores[index], index))[:limit]
    chosen = [index for index in sorted(best) if scores[index] > 0]
    return tuple(lines[index] for index in chosen or range(min(limit, len(lines))))


def _support(line: str, wanted: Values, quotes: Iterable[str]) -> int:
    text = text_of(line)
    score = 10 * sum(quote in text.folded or (len(text.folded) > 20 and text.folded in quote) for quote in quotes)
    score += sum(any(moment.agrees_with(other) for other in text.moments) for moment in wanted.moments)
    score += sum(any(number.agrees_with(other) for other in text.numbers) for number in wanted.numbers)
    return score + 2 * sum(bool(identifier_pattern(name).search(text.folded)) for name in wanted.identifiers)


def _log_sources(observations: Sequence[Observation]) -> frozenset[str]:
    """The names of the log sources that were asked, in lower case."""
    asked = [observation.asked() or {} for observation in observations if observation.tool == ToolName.QUERY_LOGS]
    return frozenset(str(arguments["source"]).casefold() for arguments in asked if arguments.get("source"))


def _check_claim(claim: Claim, by_id: Mapping[str, Observation], sources: Collection[str]) -> Iterator[Rule]:
    if not claim.evidence_ids:
        yield Rule.NOTHING_CITED
        return
    if any(evidence_id not in by_id for evidence_id in claim.evidence_ids):
        yield Rule.UNKNOWN_EVIDENCE
        return
    cited = [by_id[evidence_id] for evidence_id in claim.evidence_ids]
    yield from _check_status(claim, cited)
    if set(claim.document_ids) - _document_ids(cited):
        yield Rule.UNKNOWN_DOCUMENT
    texts = [evidence_text(observation) for observation in cited]
    for quote in claim.quotes:
        if not any(text.holds(quote) for text in texts):
            yield Rule.QUOTE_NOT_FOUND
    yield from _check_statement(claim.text, cited, sources)


def _check_status(claim: Claim, cited: Sequence[Observation]) -> Iterator[Rule]:
    """At least one cited observation is READY, or shows that nothing was found and the claim says just that.

    None may be an ERROR: it shows nothing about its source.
    """
    absence = says_absent(claim.text, [evidence_text(observation) for observation in cited])
    shows = [observation for observation in cited if observation.ready or (absence and observation.safe)]
    if not shows or not all(observation.safe for observation in cited):
        yield Rule.EVIDENCE_NOT_READY


def _check_statement(prose: str, cited: Sequence[Observation], sources: Collection[str]) -> Iterator[Rule]:
    """A claim or conclusion: its values occur in what it cites, and what it says is absent was looked for."""
    texts = [evidence_text(observation) for observation in cited]
    values = values_in(prose)
    if says_absent(prose, texts):
        covering = [observation for observation in cited if covers_absence(prose, observation, sources)]
        if not covering:
            yield Rule.ABSENCE_NOT_COVERED
        elif sum(moment.hour is not None for moment in values.moments) == _BOUNDS:
            # The window in which something is absent lies inside the one searched; its bounds need not show.
            values = replace(values, moments=())
        texts += [asked_text(observation) for observation in covering]
    elif says_alone(prose, texts) and not any(covers_window(prose, observation, sources) for observation in cited):
        yield Rule.ABSENCE_NOT_COVERED
    yield from _check_values(values, texts, prose)
    if miscounted(prose) or not shows_levels(prose, cited) or mixes_rows(prose, values, cited):
        yield Rule.VALUE_NOT_FOUND


def _document_ids(cited: Sequence[Observation]) -> set[str]:
    return {
        document.document_id
        for observation in cited
        if observation.tool == ToolName.LOOKUP_KNOWLEDGE
        for document in observation.documents
    }


def _check_values(values: Values, texts: Sequence[EvidenceText], prose: str) -> Iterator[Rule]:
    """Each value occurs in one of `texts`, never half in one and half in another, or follows from those that do."""
    for value in _single(values):
        if not any(text.shows(value) for text in texts) and not follows(value, values, prose, texts):
            yield Rule.QUOTE_NOT_FOUND if value.quotations else Rule.VALUE_NOT_FOUND
    for word in values.words:
        if any(text.misspells(word) for text in texts) and not any(occurs(word, text.folded) for text in texts):
            yield Rule.VALUE_NOT_FOUND


def _single(values: Values) -> Iterator[Values]:
    for quotation in values.quotations:
        yield Values(quotations=(quotation,))
    for moment in values.moments:
        yield Values(moments=(moment,))
    for identifier in values.identifiers:
        yield Values(identifiers=(identifier,))
    for number in values.numbers:
        yield Values(numbers=(number,))
    for first in values.status_classes:
        yield Values(status_classes=(first,))
