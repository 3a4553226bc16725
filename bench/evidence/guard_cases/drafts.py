"""True drafts over observations in many wordings, and each of them broken in one place."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial

from bench.evidence.guard_cases import facts
from bench.evidence.guard_cases.observed import Observed, records_of
from bench.evidence.guard_cases.spelling import NUMBERS, TIMES, step_of
from superbizagent.domain.evidence import Observation

SENTENCES = {
    ("number", "en"): (
        "The log shows {} here.",
        "It comes to {}.",
        "The reading was {}, which is unusual.",
        "In this window the service recorded {}.",
        "The evidence ({}) points to the pool.",
    ),
    ("number", "zh"): ("日志显示{}。", "共计{}，明显偏高。", "该数值为{}（见日志）。", "服务在此窗口内记录了{}。"),
    ("time", "en"): (
        "It began at {}.",
        "The first failure came at {}, before the rest.",
        "At {} the service logged it.",
        "From {} on, requests failed.",
    ),
    ("time", "zh"): ("故障始于{}。", "在{}，服务记录了该事件。", "{}起请求失败。", "自{}开始。"),
    ("identifier", "en"): (
        "It concerns {}.",
        "The record names {}, as others do.",
        "{} failed first.",
        "What failed ({}) was retried.",
    ),
    ("identifier", "zh"): ("涉及{}。", "记录中出现了{}。", "{}首先失败。", "失败的是{}，随后重试。"),
    ("quotation", "en"): ("The log says {}.", "It reads {}, again and again.", "The line {} repeats."),
    ("quotation", "zh"): ("日志显示{}。", "其中{}反复出现。"),
}
QUOTES = {"en": ("“{}”", '"{}"', "`{}`", "'{}'"), "zh": ("「{}」", "“{}”", "『{}』")}
_OTHER_ZONES = (
    (" UTC", " +08:00"), ("UTC ", "北京时间"), ("（UTC）", "（北京时间）"), ("北京时间", "UTC "), ("（UTC ）", "（UTC）"),
    ("+08:00", "+09:00"), ("UTC+8", "UTC+7"), ("Beijing time", "UTC"), ("EST", "PST"), ("东八区", "UTC "), ("Z.", "+08:00."),
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A broken case. `false`: what was changed does not occur in the cited evidence."""

    kind: str
    case: "Case"
    false: bool


@dataclass(frozen=True)
class Case:
    """One claim over named observations."""

    family: str
    language: str
    wording: str
    text: str
    cites: tuple[str, ...]
    quotes: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    extra: tuple[Observation, ...] = ()
    mutants: Callable[[], Iterator[Mutant]] = field(default=lambda: iter(()), compare=False)


class Drafts:
    """Makes the cases of one set of observations. Deterministic for a seed."""

    def __init__(self, observed: Observed, seed: int, per_wording: int) -> None:
        self._observed = observed
        self._dice = random.Random(seed)  # noqa: S311
        self._per_wording = per_wording
        self._ready = {name: o for name, o in observed.by_name.items() if o.ready}

    def cases(self) -> Iterator[Case]:
        for language in ("en", "zh"):
            yield from self._numbers(language)
            yield from self._several_numbers(language)
            yield from self._times(language)
            yield from self._ranges(language)
            yield from self._identifiers(language)
            yield from self._quotations(language)

    def _sentence(self, family: str, language: str) -> str:
        return self._dice.choice(SENTENCES[family, language])

    def _observation(self, where: str) -> Observation:
        return self._observed.by_name[where]

    # Numbers ----------------------------------------------------------------------------------------

    def _numbers(self, language: str) -> Iterator[Case]:
        known = [fact for name, o in self._ready.items() for fact in facts.number_facts(name, o)]
        for wording, spell in NUMBERS[language].items():
            fitting = [fact for fact in known if spell(fact.value, fact.unit) is not None]
            for fact in self._some(fitting):
                yield self._number(fact, language, wording)

    def _number(self, fact: facts.NumberFact, language: str, wording: str) -> Case:
        sentence = self._sentence("number", language)
        case = Case("number", language, wording, self._spelled(fact, sentence, language, wording), (fact.where,))
        return replace(case, mutants=lambda: self._number_mutants(case, fact, sentence))

    @staticmethod
    def _spelled(fact: facts.NumberFact, sentence: str, language: str, wording: str) -> str:
        spelled = NUMBERS[language][wording](fact.value, fact.unit)
        return sentence.format(spelled) if spelled is not None else ""

    def _number_mutants(self, case: Case, fact: facts.NumberFact, sentence: str) -> Iterator[Mutant]:
        observation = self._observation(fact.where)
        rounded = bool(re.search(r"about|~|or so|nearly|more than|约|左右|近|超过", case.wording))
        for kind, value in self._other_numbers(fact.value):
            text = self._spelled(replace(fact, value=value), sentence, case.language, case.wording)
            if not text or text == case.text:
                continue
            tolerance = step_of(value) * 2 if rounded else Decimal(0)
            yield Mutant(kind, replace(case, text=text), not facts.number_occurs(value, observation, tolerance))
        if (
            rounded
            and (bare := re.sub(r"about |~| or so|nearly |more than |约|左右|近|超过", "", case.text)) != case.text
        ):
            digits = re.search(r"[0-9][0-9,]*", bare)
            stated = Decimal(digits.group().replace(",", "")) if digits else Decimal(0)
            yield Mutant("rounding not stated", replace(case, text=bare), not facts.number_occurs(stated, observation))
        yield from self._citation_mutants(case, lambda other: facts.number_occurs(fact.value, other, fact.value / 5))

    def _other_numbers(self, value: Decimal) -> Iterator[tuple[str, Decimal]]:
        text = f"{value:f}"
        places = [index for index, character in enumerate(text) if character.isdigit()]
        place = self._dice.choice(places)
        digit = self._dice.choice([d for d in "123456789" if d != text[place]])
        yield "number: one digit", Decimal(text[:place] + digit + text[place + 1 :])
        step = Decimal(1).scaleb(-len(text.partition(".")[2]))
        yield "number: off by one", value + step
        yield "number: off by one", value - step
        yield "number: magnitude", value * 10
        if value % 10 == 0:
            yield "number: magnitude", value / 10

    def _several_numbers(self, language: str) -> Iterator[Case]:
        forms = {
            "en": (("list a, b and c", "{}, {} and {}"), ("list a/b/c", "{}/{}/{}"), ("a of b", "{} of {} lines")),
            "zh": (("list a、b和c", "{}、{}和{}"), ("a/b", "{}/{}行"), ("b中a", "{1}行中有{0}行")),
        }
        for wording, form in forms[language]:
            for name in self._some(list(self._ready)):
                values = [fact for fact in facts.number_facts(name, self._observation(name)) if not fact.unit]
                if len(values) >= 3:
                    yield self._number_list(name, self._dice.sample(values, 3), language, wording, form)

    def _number_list(
        self, where: str, values: Sequence[facts.NumberFact], language: str, wording: str, form: str
    ) -> Case:
        sentence = self._sentence("number", language)
        digits = [f"{fact.value:f}" for fact in values]
        case = Case("number", language, wording, sentence.format(form.format(*digits)), (where,))

        def mutants() -> Iterator[Mutant]:
            for kind, value in self._other_numbers(values[0].value):
                text = sentence.format(form.format(f"{value:f}", *digits[1:]))
                yield Mutant(kind, replace(case, text=text), not facts.number_occurs(value, self._observation(where)))

        return replace(case, mutants=mutants)

    # Times ------------------------------------------------------------------------------------------

    def _time_facts(self) -> list[facts.TimeFact]:
        found = []
        for name, observation in self._ready.items():
            found += facts.time_facts(name, observation, self._observed.zone_of(name))
        return found

    def _times(self, language: str) -> Iterator[Case]:
        known = self._time_facts()
        for wording, spell in TIMES[language].items():
            for fact in self._some(known):
                sentence = self._sentence("time", language)
                case = Case("time", language, wording, sentence.format(spell(fact.at)), (fact.where,))
                yield self._timed(case, fact, sentence, spell)

    def _timed(self, case: Case, fact: facts.TimeFact, sentence: str, spell: Callable[[datetime], str]) -> Case:
        def mutants() -> Iterator[Mutant]:
            for kind, shift in _shifts(case.text):
                text = sentence.format(spell(fact.at + shift))
                if text != case.text:
                    false = self._time_is_false(fact.at + shift, fact.where, case, kind)
                    yield Mutant(kind, replace(case, text=text), false)
            yield from self._zone_mutants(case, fact)
            yield from self._citation_mutants(case, lambda other: True)

        return replace(case, mutants=mutants)

    def _zone_mutants(self, case: Case, fact: facts.TimeFact) -> Iterator[Mutant]:
        for here, there in _OTHER_ZONES:
            if here in case.text:
                hours = {"+09:00": -1, "UTC+7": 1, "PST": 3}.get(there, -8 if "08" in there or "北京" in there else 8)
                claimed = fact.at + timedelta(hours=hours)
                text = case.text.replace(here, there, 1)
                yield Mutant(
                    "time: zone", replace(case, text=text), self._time_is_false(claimed, fact.where, case, "time: zone")
                )
                return

    def _time_is_false(self, at: datetime, where: str, case: Case, kind: str) -> bool:
        """Whether no time of the observation is that one, as written, in UTC or in Beijing time."""
        observation = self._observation(where)
        clocks = facts.clocks(observation, self._observed.zone_of(where))
        if kind == "time: day":
            return f"{at:%d}" not in facts.days(observation)
        about = re.search(r"about|约|左右", case.wording)
        precise = bool(
            re.search(r"second|秒|iso|month name, short|date 月日|UTC\+8|（北京|New York|zone iso", case.wording)
        )
        for zone in (UTC, timezone(timedelta(hours=8))):
            here = at.astimezone(zone)
            for hour, minute, second in clocks:
                apart = abs((hour * 60 + minute) - (here.hour * 60 + here.minute))
                if (about and min(apart, 1440 - apart) <= 20) or (
                    not about and apart == 0 and (not precise or kind == "time: zone" or second in (here.second, 0))
                ):
                    return False
        return True

    def _ranges(self, language: str) -> Iterator[Case]:
        forms = {
            "en": ("between {} and {} UTC", "from {} to {}", "{}–{}", "{}-{} UTC", "since {} and until {}"),
            "zh": ("{}至{}", "{}到{}之间", "{}～{}", "从{}到{}"),
        }
        known = self._time_facts()
        for form in forms[language]:
            for fact in self._some(known):
                sentence = "It failed {}." if language == "en" else "{}服务失败。"
                later = [other.at for other in known if other.where == fact.where and other.at >= fact.at]
                end = self._dice.choice(later)
                text = sentence.format(form.format(f"{fact.at:%H:%M}", f"{end:%H:%M}"))
                case = Case("time", language, f"range {form}", text, (fact.where,))
                yield self._timed(
                    case,
                    fact,
                    sentence,
                    lambda t, form=form, end=end: form.format(f"{t:%H:%M}", f"{end:%H:%M}"),  # type: ignore[misc]
                )

    # Identifiers ------------------------------------------------------------------------------------

    def _identifiers(self, language: str) -> Iterator[Case]:
        known = [fact for name, o in self._ready.items() for fact in facts.identifier_facts(name, o)]
        spellings: tuple[tuple[str, Callable[[str], str]], ...] = (
            ("plain", str),
            ("lower case", str.lower),
            ("upper case", str.upper),
            ("code ticks", "`{}`".format),
            ("parenthesis", "({})".format),
        )
        for wording, spell in spellings:
            for fact in self._some(known, 3):
                yield self._identifier(fact, language, wording, spell)
        for fact in self._some(known, 2):
            others = [other for other in known if other.where == fact.where and other != fact]
            if others:
                other, joint = self._dice.choice(others).text, " and " if language == "en" else "、"
                yield self._identifier(fact, language, "list", lambda text, o=other, j=joint: f"{text}{j}{o}")  # type: ignore[misc]

    def _identifier(self, fact: facts.TextFact, language: str, wording: str, spell: Callable[[str], str]) -> Case:
        sentence = self._sentence("identifier", language)
        case = Case("identifier", language, wording, sentence.format(spell(fact.text)), (fact.where,))

        def mutants() -> Iterator[Mutant]:
            words = facts.words_of(self._observation(fact.where))
            for kind, text in self._other_identifiers(fact):
                false = text.lower() not in words and not any(_part_of(text.lower(), word) for word in words)
                yield Mutant(kind, replace(case, text=sentence.format(spell(text))), false)
            yield from self._citation_mutants(
                case, lambda other: fact.text.lower() in other.projection.lower() + other.arguments.lower()
            )

        return replace(case, mutants=mutants)

    def _other_identifiers(self, fact: facts.TextFact) -> Iterator[tuple[str, str]]:
        text = fact.text
        same = [f.text for f in facts.identifier_facts(fact.where, self._observation(fact.where)) if f.text != text]
        alike = [other for other in same if _shape(other) == _shape(text)]
        if alike:
            yield "identifier: swapped for one that occurs", self._dice.choice(alike)
        away = [
            other.text
            for name, o in self._ready.items()
            if name != fact.where
            for other in facts.identifier_facts(name, o)
            if _shape(other.text) == _shape(text)
        ]
        if away:
            yield "identifier: swapped for another", self._dice.choice(away)
        place = self._dice.choice([i for i, c in enumerate(text) if c.isalnum()])
        pool = "0123456789" if text[place].isdigit() else "abcdefghijklmnopqrstuvwxyz"
        changed = self._dice.choice([c for c in pool if c != text[place].lower()])
        yield "identifier: one character", text[:place] + changed + text[place + 1 :]
        yield "identifier: extended", text + self._dice.choice("0123456789" if text[-1].isdigit() else "bcdfgkmx")
        for cut in (text[:-1], text[:-2]):
            if cut[-1].isalnum():
                yield "identifier: truncated", cut

    # Quotations -------------------------------------------------------------------------------------

    def _quotations(self, language: str) -> Iterator[Case]:
        known = [fact for name, o in self._ready.items() for fact in facts.phrase_facts(name, o)]
        for marks in QUOTES[language]:
            for fact in self._some(known, 3):
                sentence = self._sentence("quotation", language).replace("{}", marks)
                yield self._quotation(fact, language, f"marks {marks}", partial(_inside, sentence))
        for fact in self._some(known, 4):
            text = "The log says so." if language == "en" else "日志已有说明。"
            yield self._quotation(fact, language, "field quotes", partial(_beside, text))

    def _quotation(
        self, fact: facts.TextFact, language: str, wording: str, spell: Callable[[str], tuple[str, tuple[str, ...]]]
    ) -> Case:
        text, quotes = spell(fact.text)
        case = Case("quotation", language, wording, text, (fact.where,), quotes)

        def mutants() -> Iterator[Mutant]:
            records = [" ".join(r.split()) for r in self._observation(fact.where).projection.splitlines()]
            for kind, other in self._other_phrases(fact):
                changed, fields = spell(other)
                quoted = " ".join(other.split())
                false = not any(re.search(rf"(?<![A-Za-z0-9]){re.escape(quoted)}(?![A-Za-z0-9])", r) for r in records)
                yield Mutant(kind, replace(case, text=changed, quotes=fields), false)
            yield from self._citation_mutants(case, lambda other: fact.text in other.projection)

        return replace(case, mutants=mutants)

    def _other_phrases(self, fact: facts.TextFact) -> Iterator[tuple[str, str]]:
        words = fact.text.split()
        place = self._dice.randrange(len(words))
        yield "quotation: one word", " ".join((*words[:place], "elsewhere", *words[place + 1 :]))
        yield "quotation: word left out", " ".join((*words[:1], *words[2:]))
        letters = [i for i, c in enumerate(fact.text) if c.isalnum()]
        at = self._dice.choice(letters)
        yield "quotation: one character", fact.text[:at] + ("x" if fact.text[at] != "x" else "y") + fact.text[at + 1 :]
        yield "quotation: cut inside a word", fact.text[:-1] if fact.text[-2:].isalnum() else fact.text + "x"
        others = [f.text for f in facts.phrase_facts(fact.where, self._observation(fact.where)) if f.text != fact.text]
        if others:
            other = self._dice.choice(others).split()
            yield "quotation: stitched", " ".join((*words[: len(words) // 2 + 1], *other[len(other) // 2 :]))
        records = records_of(self._observation(fact.where))
        if len(records) > 1:
            index = self._dice.randrange(len(records) - 1)
            seam = f"{records[index][-25:]} {records[index + 1][:25]}"
            if not re.search(r"[\"“”「」『』`'《》]", seam):
                yield "quotation: stitched", seam

    # Citations --------------------------------------------------------------------------------------

    def _citation_mutants(self, case: Case, shown_by: Callable[[Observation], bool]) -> Iterator[Mutant]:
        yield Mutant("citation: none", replace(case, cites=()), True)
        yield Mutant("citation: unknown id", replace(case, cites=("unknown",)), True)
        yield Mutant("citation: an error", replace(case, cites=("error",)), True)
        name = self._dice.choice([name for name in self._ready if name not in case.cites])
        if not shown_by(self._observed.by_name[name]):
            yield Mutant("citation: another source", replace(case, cites=(name,)), True)

    def _some(self, known: Sequence[object], times: int = 1) -> list:  # type: ignore[type-arg]
        return self._dice.sample(list(known), min(len(known), self._per_wording * times))


def _shifts(text: str) -> Iterator[tuple[str, timedelta]]:
    yield "time: minute", timedelta(minutes=1)
    yield "time: minute", timedelta(minutes=-7)
    yield "time: hour", timedelta(hours=1)
    yield "time: hour", timedelta(hours=-2)
    if re.search(r"[0-9]{4}|日|[A-Z][a-z]+ [0-9]+th|[0-9]月", text):
        yield "time: day", timedelta(days=1)
        yield "time: day", timedelta(days=-3)


def _shape(text: str) -> str:
    return re.sub(r"[a-z]+", "a", re.sub(r"[0-9]+", "0", text))


def _part_of(text: str, word: str) -> bool:
    """Whether it is the whole of a word up to or from a colon, dot or slash: a host of an address, a class of a path."""
    return bool(re.search(rf"(?:^|[.:/@$]){re.escape(text)}(?:$|[.:/@$])", word))


def _inside(sentence: str, quotation: str) -> tuple[str, tuple[str, ...]]:
    return sentence.format(quotation), ()


def _beside(text: str, quotation: str) -> tuple[str, tuple[str, ...]]:
    return text, (quotation,)
