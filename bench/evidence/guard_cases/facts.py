"""True values of the observations, found without the guard's own reading of text, and what else occurs in them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

from bench.evidence.guard_cases.observed import records_of
from superbizagent.domain.evidence import Observation

_UNITS_OF_FIELDS = {"amount_cents": "cents", "pending_percent": "%", "wait_ms": "ms"}
_MEASURED = re.compile(r"(?<![\w.:-])([0-9]+(?:\.[0-9]+)?) ?(ms|s|%)(?![A-Za-z0-9])")
_SIZE = re.compile(r"\bsize ([0-9]{4,})\b")
_IDS = re.compile(
    r"(?<![\w-])(?:(?:ORD|PAY|RSV|SKU|CHG|DEP|CUS)-[0-9]+\b|\bblk_-?[0-9]+\b|\breq-[0-9a-f-]{36}\b|\bappattempt_[0-9_]+\b"
    r"|\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?\b|\b[a-z]+(?:\.[a-z_]+){1,4}\b|\b(?:[A-Z][a-z]+){2,}\b|/[a-z]+(?:/[a-z.0-9]+)+)(?![\w-])"
)
_STAMP = re.compile(r"([0-9]{4})[-/]([0-9]{2})[-/]([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,][0-9]+)?(Z?)")
_COUNT = re.compile(r"^(?:pattern: ([0-9]+)x|lines scanned: ([0-9]+); matched: ([0-9]+)|levels: (.*))", re.MULTILINE)
_DIGITS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_CLOCK = re.compile(r"(?<![0-9:])([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?")
_BREAKS = re.compile(r"[\s\"',=(){}\[\]<>;|“”\u3000-\u9fff\uff00-\uffef]+")


@dataclass(frozen=True)
class NumberFact:
    where: str
    value: Decimal
    unit: str


@dataclass(frozen=True)
class TimeFact:
    where: str
    at: datetime


@dataclass(frozen=True)
class TextFact:
    """An identifier or a phrase of a record."""

    where: str
    text: str


def number_facts(where: str, observation: Observation) -> list[NumberFact]:
    found = {NumberFact(where, value, unit) for value, unit in _numbers(observation)}
    return sorted(found, key=lambda fact: (fact.unit, fact.value))


def _numbers(observation: Observation) -> Iterator[tuple[Decimal, str]]:
    for match in _COUNT.finditer(observation.projection):
        for group in match.groups():
            yield from ((Decimal(digits), "") for digits in _DIGITS.findall(group or ""))
    for record in records_of(observation):
        for key, value in _fields(record).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield Decimal(str(value)), _UNITS_OF_FIELDS.get(key, "")
        yield from ((Decimal(number), unit) for number, unit in _MEASURED.findall(record))
        yield from ((Decimal(number), "bytes") for number in _SIZE.findall(record))


def _fields(record: str) -> dict[str, object]:
    try:
        fields = json.loads(record)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def time_facts(where: str, observation: Observation, zone: timedelta) -> list[TimeFact]:
    return [TimeFact(where, at) for at in sorted(_instants("\n".join(records_of(observation)), zone))]


def _instants(text: str, zone: timedelta) -> set[datetime]:
    found = set()
    for *parts, utc in _STAMP.findall(text):
        at = datetime(*(int(part) for part in parts), tzinfo=UTC if utc else timezone(zone))  # type: ignore[misc,arg-type]
        found.add(at.astimezone(UTC))
    return found


def identifier_facts(where: str, observation: Observation) -> list[TextFact]:
    found = dict.fromkeys(name for record in records_of(observation) for name in _IDS.findall(record))
    return [TextFact(where, name) for name in found if len(name) > 5]


def phrase_facts(where: str, observation: Observation) -> list[TextFact]:
    """Runs of five to eight words of a record that can stand in quotation marks."""
    found: dict[str, None] = {}
    for record in records_of(observation):
        text = next((str(v) for k, v in _fields(record).items() if k == "msg"), record)
        words = re.sub(r"^.*?(?:\] |: )", "", text).split()
        for start in range(0, max(len(words) - 4, 1), 4):
            phrase = " ".join(words[start : start + 7])
            if len(phrase) > 12 and not re.search(r"[\"“”「」`'《》]", phrase) and phrase in record:
                found[phrase] = None
    return [TextFact(where, phrase) for phrase in found]


# What occurs ----------------------------------------------------------------------------------------


def occurring_numbers(observation: Observation) -> frozenset[Decimal]:
    """Every run of digits of the observation, even inside words, and its window's length."""
    return frozenset(Decimal(digits) for digits in _DIGITS.findall(_everything(observation)))


_FACTORS = tuple(Decimal(f) for f in ("1", "1000", "0.001", "60", "3600", "100", "0.01", "1024", "1048576", "10000"))


def number_occurs(value: Decimal, observation: Observation, tolerance: Decimal = Decimal(0)) -> bool:
    """Whether the number is anywhere in the observation, in any unit; `tolerance` for one stated as rounded."""
    return any(
        abs(value * factor - other) <= tolerance * factor or abs(value - other * factor) <= tolerance
        for other in occurring_numbers(observation)
        for factor in _FACTORS
    )


def clocks(observation: Observation, zone: timedelta) -> frozenset[tuple[int, int, int]]:
    """Every time of day of the observation, as written, in UTC and in the other zone."""
    text = _everything(observation)
    found = {(int(h), int(m), int(s or 0)) for h, m, s in _CLOCK.findall(text)}
    found |= {(at.hour, at.minute, at.second) for at in _instants(text, zone)}
    return frozenset(found)


def words_of(observation: Observation) -> frozenset[str]:
    """What stands between breaks, lower case, whole and without punctuation around it."""
    words = {word.lower() for word in _BREAKS.split(_everything(observation))}
    return frozenset(words | {word.strip(".:,/") for word in words})


def _everything(observation: Observation) -> str:
    window = observation.coverage and (observation.coverage.start, observation.coverage.end)
    documents = [f"{document.title} {document.document_id}" for document in observation.documents]
    instants = [instant.isoformat() for instant in window or () if instant]
    return "\n".join((observation.title, observation.projection, *documents, *instants))


def days(observation: Observation) -> frozenset[str]:
    """The days of the month of every date of the observation."""
    text = _everything(observation)
    found = {day for _, _, day in re.findall(r"([0-9]{4})[-/]([0-9]{2})[-/]([0-9]{2})", text)}
    return frozenset(found | set(re.findall(r"[A-Z][a-z]{2} ([0-9]{2}) [0-9]{2}:", text)))
