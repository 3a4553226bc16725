"""Claims that something is not there, over observations that show it, and over others that don't (GUARD-2)."""

from collections.abc import Iterator
from dataclasses import replace

from bench.evidence.guard_cases.drafts import Case, Mutant
from bench.evidence.guard_cases.observed import Observed
from superbizagent.domain.evidence import Observation

# Observation, what else is cited in its place falsely, and sentences with the window's bounds and another window's.
_WINDOWS = {
    "en": (("10:00", "11:00"), ("12:00", "13:00")),
    "zh": (("10:00", "11:00"), ("12:00", "13:00")),
}
_QUIET = {
    "en": (
        "There were no errors in {source} between {start} and {end}.",
        "No {source} errors were logged from {start} to {end} UTC.",
        "{source} logged no ERROR lines between {start} UTC and {end} UTC.",
        "Between {start} and {end} the {source} service ran without errors.",
        "The {source} log has zero errors from {start} until {end}.",
        "{source} did not log any errors ({start}–{end}).",
        "Not a single error was recorded by {source} from {start} to {end}.",
        "Errors were not seen in {source} between {start} and {end}.",
    ),
    "zh": (
        "{source}在{start}至{end}没有错误。",
        "{start}到{end}期间，{source}无报错。",
        "{source}日志在{start}–{end}未出现异常。",
        "{start}至{end}，{source}未发现任何错误。",
        "在{start}和{end}之间，{source}的错误数为零。",
        "{source}服务从{start}到{end}没有记录错误。",
    ),
}
_LOCAL = {
    "en": (
        "There were no errors in payments between 18:00 and 19:00 Beijing time.",
        "No errors in payments, 6–7 pm +08:00.",
    ),
    "zh": ("北京时间18:00至19:00，payments没有错误。", "payments在下午6点到7点（北京时间）无报错。"),
}
_OTHERS = (
    ("no deadlock", "en", "No deadlock was logged by checkout between 14:00 and 15:00."),
    ("no deadlock", "en", "The word “deadlock” does not appear in the checkout log between 14:00 and 15:00 UTC."),
    ("no deadlock", "zh", "checkout在14:00至15:00没有出现deadlock。"),
    ("no such status", "en", "No order has the status REFUNDED."),
    ("no such status", "en", "There are no orders with status 'REFUNDED'."),
    ("no such status", "zh", "没有状态为REFUNDED的订单。"),
    ("no runbook", "en", "No runbook describes kubernetes."),
    ("no runbook", "zh", "手册中没有关于kubernetes的文档。"),
    ("quiet payments, all", "en", "No errors were logged by payments between 03:00 and 03:01."),
    ("quiet payments, all", "zh", "03:00到03:01，payments没有错误，也没有告警。"),
)


def absences(observed: Observed) -> Iterator[Case]:
    for language, sentences in _QUIET.items():
        for sentence in sentences:
            yield from (_quiet(observed, language, sentence, source) for source in ("payments", "inventory"))
    for language, sentences in _LOCAL.items():
        for text in sentences:
            yield _broken_coverage(observed, Case("absence", language, "local time", text, ("quiet payments",)))
    for name, language, text in _OTHERS:
        yield _broken_coverage(observed, Case("absence", language, "searched for", text, (name,)))


def _quiet(observed: Observed, language: str, sentence: str, source: str) -> Case:
    window, elsewhere = _WINDOWS[language]
    if source == "inventory":
        window = ("05:00", "06:00")
    text = sentence.format(source=source, start=window[0], end=window[1])
    case = Case("absence", language, "no errors", text, (f"quiet {source}",))
    other = "inventory" if source == "payments" else "payments"

    def changed(kind: str, **changes: object) -> Mutant:
        return Mutant(f"absence: {kind}", replace(case, **changes), True)  # type: ignore[arg-type]

    def mutants() -> Iterator[Mutant]:
        yield changed("other window", text=sentence.format(source=source, start=elsewhere[0], end=elsewhere[1]))
        wider = (window[0], "11:01" if source == "payments" else "06:30")
        yield changed("wider window", text=sentence.format(source=source, start=wider[0], end=wider[1]))
        yield changed("other source", text=sentence.format(source=other, start=window[0], end=window[1]))
        yield changed("other source", text=sentence.format(source="checkout", start=window[0], end=window[1]))
        yield changed("other source", text=sentence.format(source="ledger", start=window[0], end=window[1]))
        yield changed("another observation", cites=(f"quiet {other}",))
        yield changed("another observation", cites=("changes",))
        yield changed("another observation", cites=("runbook",))
        yield changed("filtered by wording", cites=("no deadlock",))
        yield changed("filtered by wording", cites=("pool change",))
        yield changed("truncated", cites=("cut payments",))
        yield from _coverage_mutants(observed, case)

    return replace(case, mutants=mutants)


def _broken_coverage(observed: Observed, case: Case) -> Case:
    return replace(case, mutants=lambda: _coverage_mutants(observed, case))


def _coverage_mutants(observed: Observed, case: Case) -> Iterator[Mutant]:
    """The same claim over the same observation, had it not looked at everything."""
    observation = observed.by_name[case.cites[0]]
    for flag in ("truncated", "partial"):
        yield Mutant(f"absence: {flag}", _over(case, _covered(observation, **{flag: True})), True)
    yield Mutant("absence: an error", replace(case, cites=("error",)), True)
    yield Mutant("citation: none", replace(case, cites=()), True)
    yield Mutant("citation: unknown id", replace(case, cites=("unknown",)), True)


def _covered(observation: Observation, **changes: object) -> Observation:
    assert observation.coverage is not None
    coverage = observation.coverage.model_copy(update=changes)
    return observation.model_copy(update={"coverage": coverage, "evidence_id": "X1"})


def _over(case: Case, observation: Observation) -> Case:
    return replace(case, cites=(observation.evidence_id,), extra=(observation,))
