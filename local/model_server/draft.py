"""Writing the draft: sentences made of what observations say, spelled as they spell it.

Every number, time and name in a sentence is copied from one of the observations it cites; the sentences
around them are fixed. So the draft can't say more than was found, only less than a reader would see.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from local.model_server.findings import (
    Found,
    Row,
    Shape,
    change_records,
    change_rows,
    documents,
    goes_with,
    ready,
    status_rows,
    tells_of,
)
from local.model_server.plan import Case
from local.model_server.prompt import Observation, Pattern, log_view, rows
from local.model_server.text import (
    cut,
    fold,
    has_chinese,
    has_quotation_mark,
    identifiers,
    is_step,
    overlap,
    sentences,
    terms,
    unique,
    unknown_topic,
)

_MOST_TEXT = 560
_MOST_QUOTE = 420
_MOST_CLAIMS = 10
_MOST_BYTES = 9_000
_FIELDS = re.compile(r"(?:\s+[\w.]+[=:]\S*)+$")
_PREFIX = re.compile(r"^(?:\[[^\]]*\]\s*)?(?:(?:[\w$-]+\.){2,}[\w$]+:?\s+)?")
_FIRST_AID = re.compile(r"mitigat|fix|resol|remed|recover|处理|缓解|恢复|解决", re.I)
_COUNTING = re.compile(r"\bhow (?:many|much)\b|\bnumber of\b|\bcount\b|多少|几个|几笔", re.I)
_LINK = re.compile(r"https?://|www\.|\]\(")


@dataclass(frozen=True)
class Claim:
    text: str
    observations: tuple[Observation, ...]
    quotes: tuple[str, ...] = ()
    document_ids: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "text": cut(fold(self.text), _MOST_TEXT),
            "evidence_ids": unique(observation.evidence_id for observation in self.observations)[:8],
            "quotes": [quote for quote in self.quotes if quote][:3],
            "document_ids": unique(self.document_ids),
        }


_ENGLISH = {
    "levels": "{source}: the matching lines by level are {levels}; first match {first}, last match {last}.",
    "pattern": '{source} logs {spelled}: "{phrase}".',
    "shape": "{source} logs {spelled}: one shape of message.",
    "change_log": "{source} records a change before the failures.",
    "change_phrase": '{source} records a change before the failures: "{phrase}".',
    "change_row": "The database records a change: {values}.",
    "status": "The database counts {table} by {column}: {values}.",
    "trace": "{identifier} appears in {sources}.",
    "document": 'The document "{title}" says: "{sentence}"',
    "row": "The database shows {values}.",
    "record": "{source} holds lines that match the question.",
    "because": "What fits in time and wording as the cause is this change: {change}.",
    "open": "The records show what fails and when; what set it off stays open.",
    "see": 'The document "{title}" describes this.',
    "scope": "Looked at {sources}.",
    "window": "{source} from {window}",
    "database": "the database",
    "documents": "the documents",
    "script": "Written by the scripted demo model, which matches words and times and understands neither.",
    "shifted": "The time in the question was read as of the last log lines, because the logs end earlier.",
    "cut": "Only a part of the matching records of {sources} was shown.",
    "partial": "{sources}: not all of the window could be searched.",
    "failed": "Some lookups failed and are left out.",
    "and": " and ",
    "comma": ", ",
    "space": " ",
}
_CHINESE = {
    "levels": "{source} 中匹配的日志按级别统计为 {levels} ；首次 {first} ，末次 {last} 。",
    "pattern": '{source} 记录 {spelled}: "{phrase}" 。',
    "shape": "{source} 记录 {spelled}: 同一类消息。",
    "change_log": "{source} 在故障之前记录了一次变更。",
    "change_phrase": '{source} 在故障之前记录了一次变更： "{phrase}" 。',
    "change_row": "数据库记录了一次变更： {values} 。",
    "status": "数据库中 {table} 按 {column} 统计： {values} 。",
    "trace": "{identifier} 出现在 {sources} 中。",
    "document": '文档 "{title}" 指出： "{sentence}"',
    "row": "数据库显示 {values} 。",
    "record": "{source} 中有与问题匹配的日志。",
    "because": "时间与内容都吻合、最可能的起因是这次变更： {change} 。",
    "open": "以上记录说明了故障的表现和时间，起因仍待确认。",
    "see": '文档 "{title}" 描述了这种情况。',
    "scope": "已查看 {sources} 。",
    "window": "{source} （ {window} ）",
    "database": "数据库",
    "documents": "文档",
    "script": "由脚本化的演示模型撰写：它只比对词语和时间，并不理解内容。",
    "shifted": "日志结束得较早，问题中的时间按最后的日志时间理解。",
    "cut": "{sources} 的匹配记录只显示了一部分。",
    "partial": "{sources} ：时间范围内的内容未能全部搜索。",
    "failed": "部分查询失败，已略去。",
    "and": " 和 ",
    "comma": " 、 ",
    "space": " ",
}


def write_draft(case: Case, refused: int = 0) -> dict[str, Any]:
    """The arguments of submit_draft. Each refusal of an earlier draft makes it shorter."""
    return _Writer(case, max(_MOST_CLAIMS >> refused, 1)).draft()


class _Writer:
    def __init__(self, case: Case, most_claims: int) -> None:
        self._case = case
        self._most_claims = most_claims
        self._words = _CHINESE if has_chinese(case.question) else _ENGLISH

    def draft(self) -> dict[str, Any]:
        claims = self._claims() if self._answers_the_question() else []
        draft: dict[str, Any] = {
            "conclusion": self._conclusion() if claims else None,
            "claims": [claim.as_json() for claim in claims],
            "scope": cut(self._scope(), 600),
            "limitations": self._limitations()[:8],
            "next_steps": self._next_steps() if claims else [],
            "missing_context": [] if claims else self._missing(),
        }
        return _bounded(draft)

    def _say(self, key: str, **values: str) -> str:
        return self._words[key].format_map({name: value.strip() for name, value in values.items()})

    # What was found ------------------------------------------------------------------------------

    @cached_property
    def _thing(self) -> str:
        """The one thing that the question names by its identifier, or nothing."""
        return next(iter(identifiers(self._case.question)), "")

    @cached_property
    def _wanted(self) -> frozenset[str]:
        return self._case.topic | self._case.trouble

    @cached_property
    def _changes(self) -> list[Row]:
        return change_rows(self._case.observations, self._case.trouble) if self._case.main else []

    @cached_property
    def _change_lines(self) -> list[tuple[Observation, str]]:
        return change_records(self._case.observations, self._case.trouble) if self._case.main else []

    @cached_property
    def _documents(self) -> list[Found]:
        return documents(self._case.observations, self._wanted)

    @cached_property
    def _shown_shapes(self) -> list[Shape]:
        """The main shape, the next of its source, and the worst of each other source; each message once."""
        main = self._case.main
        if main is None:
            return []
        chosen, per_source = [main], {main.view.source: 1}
        said = {main.pattern.text}
        others = [shape for shape in self._case.shapes if shape.view.source != main.view.source]
        for shape in (*others, *self._case.shapes):
            source = shape.view.source
            room = 2 if source == main.view.source or not self._case.named_sources else 1
            worth = shape.severe or shape.weight > 0.2 * main.weight
            if worth and goes_with(main, shape) and shape.pattern.text not in said and per_source.get(source, 0) < room:
                chosen.append(shape)
                said.add(shape.pattern.text)
                per_source[source] = per_source.get(source, 0) + 1
        return chosen[:4]

    def _answers_the_question(self) -> bool:
        """Whether anything that came back has to do with what the question names."""
        if identifiers(self._case.question):
            return any(tells_of(o, self._case.question) and o.ready for o in self._case.observations)
        if self._case.named_sources or not unknown_topic(self._case.question):
            return True
        asked = self._case.topic
        texts = [shape.pattern.text for shape in self._case.shapes]
        texts += [f"{table.name} {table.description}" for table in self._case.briefing.tables]
        texts += [line for o in self._case.observations if o.call.get("contains") and o.ready for line in o.body]
        return any(overlap(asked, text) for text in texts)

    # Claims --------------------------------------------------------------------------------------

    def _claims(self) -> list[Claim]:
        found = [
            *(self._identifier_claims() if self._thing else self._level_claims()),
            *map(self._shape_claim, self._shown_shapes[:3]),
            *self._change_claims(),
            *(self._row_claims() if self._thing else self._status_claims()),
            *map(self._shape_claim, self._shown_shapes[3:]),
            *(() if self._thing else self._identifier_claims()),
        ]
        found = found or [*self._record_claims(), *self._row_claims()]
        # A document alone explains nothing that happened: it needs a finding to go with.
        return [*found[: self._most_claims - 1], *self._document_claims()][: self._most_claims] if found else []

    def _level_claims(self) -> Iterator[Claim]:
        main = self._case.main
        if main is not None and main.view.levels and main.view.first_match and main.view.last_match:
            view = main.view
            text = self._say(
                "levels",
                source=view.source,
                levels=view.levels,
                first=view.first_match,
                last=view.last_match,
            )
            yield Claim(text, (main.observation,))

    def _shape_claim(self, shape: Shape) -> Claim:
        text = self._shape_sentence(shape)
        record = next((r for r in shape.view.records if _has_shape(r, shape.pattern)), "")
        return Claim(text, (shape.observation,), (cut(record.strip(), _MOST_QUOTE),))

    def _shape_sentence(self, shape: Shape) -> str:
        spelled, phrase = shape.pattern.spelled, _phrase(shape.pattern.text)
        key = "pattern" if phrase else "shape"
        return self._say(key, source=shape.view.source, spelled=spelled, phrase=phrase)

    def _change_claims(self) -> Iterator[Claim]:
        for observation, record in self._change_lines[:1]:
            yield Claim(
                self._change_line_sentence(observation, record),
                (observation,),
                (cut(record.strip(), _MOST_QUOTE),),
            )
        for row in self._changes[:1]:
            text = self._say("change_row", values=self._spelled(row.values))
            yield Claim(text, (row.observation,), (_whole_quote(row.line),))

    def _change_line_sentence(self, observation: Observation, record: str) -> str:
        source = log_view(observation).source
        phrase = _message(record)
        key = "change_phrase" if phrase else "change_log"
        return self._say(key, source=source, phrase=phrase)

    def _status_claims(self) -> Iterator[Claim]:
        for observation, counted in status_rows(self._case.observations)[:2]:
            table = _spoken_table(observation)
            lines = counted[:5]
            column = next(iter(lines[0].values))
            values = "; ".join(self._spelled(row.values) for row in lines)
            text = self._say("status", table=table or self._words["database"], column=column, values=values)
            yield Claim(text, (observation,), tuple(_whole_quote(row.line) for row in lines[:2]))

    def _identifier_claims(self) -> Iterator[Claim]:
        """One thing that several sources mention, with each one's record."""
        held: dict[str, list[tuple[Observation, str]]] = {}
        for observation in ready(self._case.observations, "query_logs"):
            for identifier in observation.call.get("contains") or []:
                if identifiers(str(identifier)) == [identifier]:
                    lines = [line for line in log_view(observation).records if str(identifier) in line]
                    held.setdefault(str(identifier), []).extend((observation, line) for line in lines[-1:])
        for identifier, records in list(held.items())[:1]:
            named = [log_view(observation).source for observation, _ in records]
            if records:
                text = self._say("trace", identifier=identifier, sources=self._listed(unique(named)))
                yield Claim(text, tuple(o for o, _ in records), tuple(cut(r.strip(), 300) for _, r in records))

    def _record_claims(self) -> Iterator[Claim]:
        """Lines without any level or trouble, where the question is about them."""
        for observation in ready(self._case.observations, "query_logs")[:3]:
            view = log_view(observation)
            asked = self._case.topic - terms(view.source)
            quotes = tuple(cut(line.strip(), 300) for line in view.records if overlap(asked, line))
            if quotes:
                yield Claim(self._say("record", source=view.source), (observation,), quotes[:3])

    def _row_claims(self) -> Iterator[Claim]:
        for observation in ready(self._case.observations, "query_mysql")[:4]:
            for line, values in rows(observation)[:2]:
                named = not self._thing or self._thing in line
                if values and named:
                    text = self._say("row", values=self._spelled(values))
                    yield Claim(text, (observation,), (_whole_quote(line),))

    def _document_claims(self) -> Iterator[Claim]:
        for found in self._documents[:1]:
            sentence = _best_sentence(found, self._wanted)
            if not sentence:
                continue
            title = found.passage.title
            if not has_quotation_mark(title) and not has_quotation_mark(sentence):
                text = self._say("document", title=title, sentence=sentence)
                yield Claim(text, (found.observation,), (sentence,), (found.passage.document_id,))
            elif not has_quotation_mark(title):
                text = self._say("see", title=title)
                yield Claim(text, (found.observation,), (sentence,), (found.passage.document_id,))

    # The rest of the draft -----------------------------------------------------------------------

    def _conclusion(self) -> str:
        shapes = self._shown_shapes
        if _COUNTING.search(self._case.question) and (counted := [*self._status_claims()]):
            return cut(self._words["space"].join(claim.text for claim in counted[:1]), 1_400)
        if not shapes or self._thing:
            claims = [*self._identifier_claims(), *self._row_claims(), *self._status_claims()]
            claims = claims or [*self._record_claims()]
            shown = [claim.text for claim in claims[:2]] + [self._shape_sentence(shape) for shape in shapes[:1]]
            return cut(self._words["space"].join(shown), 1_400)
        parts = [self._shape_sentence(shape) for shape in _one_a_source(shapes)[:2]]
        parts.append(self._cause())
        parts += [self._say("see", title=self._documents[0].passage.title) for _ in [*self._document_claims()][:1]]
        return cut(self._words["space"].join(parts), 1_400)

    def _cause(self) -> str:
        for row in self._changes[:1]:
            return self._say("because", change=self._spelled(row.values))
        for _, record in self._change_lines[:1]:
            if phrase := _message(record):
                return self._say("because", change=f'"{phrase}"')
        return self._words["open"]

    def _scope(self) -> str:
        looked = [o for o in self._case.observations if o.status != "ERROR"]
        windows: dict[str, str] = {}
        for observation in looked:
            view = log_view(observation)
            if observation.tool == "query_logs" and view.window and not observation.call.get("contains"):
                windows.setdefault(view.source, view.window)
        parts = [self._say("window", source=source, window=window) for source, window in windows.items()]
        tools = {observation.tool for observation in looked}
        parts += [self._words["database"]] if "query_mysql" in tools else []
        parts += [self._words["documents"]] if "lookup_knowledge" in tools else []
        return self._say("scope", sources=self._listed(parts)) if parts else ""

    def _limitations(self) -> list[str]:
        found = [self._words["script"]]
        if self._case.shifted:
            found.append(self._words["shifted"])
        for key, flag in (("cut", "truncated"), ("partial", "partial")):
            named = [self._name(o) for o in self._case.observations if o.coverage.get(flag) is True]
            if named:
                found.append(self._say(key, sources=self._listed(unique(named)[:4])))
        if any(observation.status == "ERROR" for observation in self._case.observations):
            found.append(self._words["failed"])
        return [cut(text, _MOST_TEXT) for text in found]

    def _name(self, observation: Observation) -> str:
        if observation.tool == "query_logs":
            return str(observation.call.get("source", "")) or observation.tool
        return self._words["database" if observation.tool == "query_mysql" else "documents"]

    def _next_steps(self) -> list[str]:
        """Steps of the best document, letter by letter."""
        for found in self._documents[:3]:
            title = found.passage.title
            same = [f for f in self._documents if f.passage.title == title]
            same.sort(key=lambda f: _FIRST_AID.search(f.passage.heading) is None)
            steps = [
                " ".join(sentences(line))
                for f in same
                for line in f.passage.lines
                if is_step(line) and not _LINK.search(line)
            ]
            steps = unique(cut(step, _MOST_TEXT) for step in steps if len(step) > 8)
            if steps:
                return steps[:4]
        return []

    def _missing(self) -> list[str]:
        if self._answers_the_question():
            return []
        if self._thing:
            return ["IDENTIFIER"]
        return ["SERVICE"] if self._case.window else ["SERVICE", "TIME_RANGE"]

    def _spelled(self, values: Mapping[str, str]) -> str:
        """Columns and values as the row has them; text that would break a sentence is left out."""
        shown = {
            key: value
            for key, value in values.items()
            if value and len(value) <= 80 and not has_quotation_mark(value) and "\n" not in value
        }
        return cut(self._words["comma"].join(f"{key} {value}" for key, value in shown.items()), 240)

    def _listed(self, names: Sequence[str]) -> str:
        if len(names) < 2:
            return "".join(names)
        return self._words["comma"].join(names[:-1]) + self._words["and"] + names[-1]


def _one_a_source(shapes: Sequence[Shape]) -> list[Shape]:
    first: dict[str, Shape] = {}
    for shape in shapes:
        first.setdefault(shape.view.source, shape)
    return list(first.values())


def _phrase(text: str, least: int = 6) -> str:
    """A stretch of a pattern that can stand in quotation marks: all of it, or its first part of some words.

    Not the longest part: what stands in quotation marks in a log line is what somebody typed.
    """
    whole = _PREFIX.sub("", fold(text).split(" - ", 1)[-1], count=1).lstrip(" -]|:>")
    whole = _FIELDS.sub("", whole).rstrip(" ,;") or fold(text)
    if not has_quotation_mark(whole) and len(whole) <= 200:
        return whole
    parts = [part.strip(" ,:;{}[]\\") for part in re.split(r"[\"“”‘’「」『』`]|<\*>", whole)]
    worded = [part for part in parts if len(part) >= least and len(part.split()) > 1]
    return cut(next(iter(worded), max(parts, key=len)), 200) if max(map(len, parts)) >= least else ""


def _message(record: str) -> str:
    """The message of a record: the text of a JSON record, or what stands after the last level or dash."""
    try:
        value = json.loads(record)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        texts = [v for k, v in value.items() if k.lower() in {"msg", "message", "event", "text"} and isinstance(v, str)]
        text = next(iter(texts), "")
        return text if text and text in record and not has_quotation_mark(text) and len(text) <= 200 else ""
    tail = re.split(r"\b(?:INFO|WARN|WARNING|ERROR|DEBUG|FATAL)\b\]?[\s:-]*", record, maxsplit=1)[-1]
    tail = tail.split(" - ", 1)[-1]
    return _phrase(tail)


def _has_shape(record: str, pattern: Pattern) -> bool:
    """Whether the record has the pattern's fixed parts, in order."""
    at, folded = 0, fold(record)
    for part in pattern.text.split("<*>"):
        text = fold(part)
        if not text:
            continue
        found = folded.find(text, at)
        if found < 0:
            return False
        at = found + len(text)
    return True


def _whole_quote(line: str) -> str:
    return cut(line.strip(), _MOST_QUOTE)


def _spoken_table(observation: Observation) -> str:
    """The table's name as words; one with digits would be an identifier that the rows don't show."""
    match = re.search(r"\bFROM\s+`?([\w.]+)", str(observation.call.get("statement", "")), re.I)
    name = (match[1] if match else "").split(".")[-1].replace("_", " ")
    return "" if any(character.isdigit() for character in name) else name


def _best_sentence(found: Found, wanted: frozenset[str]) -> str:
    candidates = [s for line in found.passage.lines for s in sentences(line) if not _LINK.search(s)]
    candidates = [s for s in candidates if 12 <= len(s) <= 300] or [s for s in candidates if len(s) <= 300]
    related = [s for s in candidates if overlap(wanted, s)]
    return max(related, key=lambda s: overlap(wanted, s) / (4 + len(terms(s))) ** 0.5, default="")


def _bounded(draft: dict[str, Any]) -> dict[str, Any]:
    """Leaves out the last claims before the document until the whole fits."""
    while len(draft["claims"]) > 1 and len(json.dumps(draft, ensure_ascii=False).encode()) > _MOST_BYTES:
        draft["claims"].pop(-2)
    return draft
