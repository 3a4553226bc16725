"""CloudWatch Logs over HTTP: the API calls that the adapter makes, and its queries run on known events.

The query language is read strictly: whatever is not one of the forms below is answered as malformed,
so that text that had broken out of its literal would be noticed.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, cast

import boto3
from botocore.config import Config

from superbizagent.adapters.cloudwatch_logs import LogsApi
from tests.http_stub import Received, Reply

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CUT = 1_000

Value = str | float | bool | None
Row = dict[str, Value]
Expression = Callable[[Row], Value]


class Malformed(Exception):
    """Not a query of the forms that are known here."""


@dataclass(frozen=True)
class StubEvent:
    at: datetime
    message: str

    @property
    def millis(self) -> int:
        return (self.at - EPOCH) // timedelta(milliseconds=1)


@dataclass
class Running:
    """A query as the service knows it; `polls` is how often it was asked about."""

    request: dict[str, Any]
    answer: dict[str, Any]
    polls: int = 0
    stopped: bool = False


@dataclass
class CloudWatchStub:
    """`statuses` are answered in turn to the polls of each query, the last one for good.

    `refusals` maps an operation to the error replies that it gives first.
    """

    groups: Mapping[str, Sequence[StubEvent]]
    statuses: Sequence[str] = ("Complete",)
    refusals: dict[str, list[Reply]] = field(default_factory=dict)
    page_size: int = 10_000
    calls: Counter[str] = field(default_factory=Counter)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    queries: dict[str, Running] = field(default_factory=dict)

    def answer(self, received: Received) -> Reply:
        headers = {name.lower(): value for name, value in received.headers.items()}
        operation = headers["x-amz-target"].removeprefix("Logs_20140328.")
        self.calls[operation] += 1
        self.requests.append((operation, received.json))
        refusals = self.refusals.get(operation)
        if refusals:
            return refusals.pop(0)
        try:
            return Reply(getattr(self, f"_{operation}")(**received.json), content_type="application/x-amz-json-1.1")
        except Malformed as error:
            return refusal("MalformedQueryException", str(error))
        except KeyError as error:
            return refusal("ResourceNotFoundException", f"no {error}")

    @property
    def texts(self) -> list[str]:
        return [running.request["queryString"] for running in self.queries.values()]

    def _StartQuery(self, **request: Any) -> dict[str, Any]:  # noqa: N802
        names = request.get("logGroupNames") or [
            identifier.split(":log-group:")[1] for identifier in request["logGroupIdentifiers"]
        ]
        assert len(request["queryString"]) <= 10_000
        start, end = request["startTime"] * 1_000, request["endTime"] * 1_000
        events = [
            (f"{name}:{place}", event)
            for name in names
            for place, event in enumerate(self.groups[name])
            if start <= event.millis <= end
        ]
        rows = [self._fields(pointer, event) for pointer, event in events]
        found, matched = run_query(request["queryString"], rows)
        query_id = f"query-{len(self.queries) + 1}"
        answer = {
            "results": [_cells(row) for row in found[: request["limit"]]],
            "statistics": {"recordsMatched": float(matched), "recordsScanned": float(len(events)), "bytesScanned": 1.0},
        }
        self.queries[query_id] = Running(request, answer)
        return {"queryId": query_id}

    def _fields(self, pointer: str, event: StubEvent) -> Row:
        row: Row = {
            "@ptr": pointer,
            "@message": event.message,
            "@timestamp": f"{event.at:%Y-%m-%d %H:%M:%S}.{event.at.microsecond // 1_000:03}",
        }
        try:
            discovered = json.loads(event.message)
        except ValueError:
            return row
        return row | discovered if isinstance(discovered, dict) else row

    def _GetQueryResults(self, *, queryId: str, nextToken: str = "0") -> dict[str, Any]:  # noqa: N802, N803
        query = self.queries[queryId]
        status = self.statuses[min(query.polls, len(self.statuses) - 1)]
        query.polls += 1
        if query.stopped:
            status = "Cancelled"
        begin = int(nextToken)
        more = (
            {"nextToken": str(begin + self.page_size)} if len(query.answer["results"]) > begin + self.page_size else {}
        )
        results = query.answer["results"][begin : begin + self.page_size]
        return {**query.answer, "results": results, "status": status, **more}

    def _StopQuery(self, *, queryId: str) -> dict[str, Any]:  # noqa: N802, N803
        self.queries[queryId].stopped = True
        return {"success": True}

    def _GetLogRecord(self, *, logRecordPointer: str) -> dict[str, Any]:  # noqa: N802, N803
        name, place = logRecordPointer.rsplit(":", 1)
        return {"logRecord": {"@message": self.groups[name][int(place)].message, "@ptr": logRecordPointer}}

    def _DescribeLogStreams(  # noqa: N802
        self,
        *,
        orderBy: str,  # noqa: N803
        descending: bool,
        limit: int,
        logGroupName: str = "",  # noqa: N803
        logGroupIdentifier: str = "",  # noqa: N803
    ) -> dict[str, Any]:
        assert (orderBy, descending) == ("LastEventTime", True)
        events = self.groups[logGroupName or logGroupIdentifier.split(":log-group:")[1]]
        times = [event.millis for event in events]
        stream = {"logStreamName": "one"}
        return {
            "logStreams": [
                {**stream, "firstEventTimestamp": min(times), "lastEventTimestamp": max(times)} if times else stream
            ]
        }


@cache
def _session() -> boto3.session.Session:
    return boto3.session.Session(aws_access_key_id="test", aws_secret_access_key="canary-secret")


def stub_api(url: str) -> LogsApi:
    """A client like the adapter's own, of a session that is made once: making one takes half a second."""
    config = Config(retries={"total_max_attempts": 1, "mode": "standard"})
    return cast(LogsApi, _session().client("logs", region_name="eu-west-1", endpoint_url=url, config=config))


def refusal(code: str, message: str = "canary", status: int = 400) -> Reply:
    return Reply({"__type": code, "message": message}, status, "application/x-amz-json-1.1")


def _cells(row: Row) -> list[dict[str, str]]:
    return [
        {"field": name, "value": _text(value)[: CUT if name == "@message" else None]}
        for name, value in row.items()
        if value is not None
    ]


def _text(value: Value) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:\\"|[^"\\\n])*")|(?P<number>\d+[mhd]?)|(?P<name>[@A-Za-z][\w.@]*|`[^`]+`)'
    r"|(?P<sign>>=|<=|[=<>()\[\],|*]))"
)


@dataclass
class Tokens:
    tokens: list[str]

    @classmethod
    def of(cls, text: str) -> "Tokens":
        tokens, at = [], 0
        text = text.strip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise Malformed(f"unexpected {text[at : at + 20]!r}")
            tokens.append(match.group().strip())
            at = match.end()
        return cls(tokens)

    @property
    def next(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def take(self, *wanted: str) -> str:
        if not self.tokens or (wanted and self.next not in wanted):
            raise Malformed(f"expected {wanted} before {' '.join(self.tokens[:5])}")
        return self.tokens.pop(0)

    def taken(self, wanted: str) -> bool:
        if self.next == wanted:
            self.tokens.pop(0)
            return True
        return False


def run_query(text: str, rows: list[Row]) -> tuple[list[Row], int]:
    """The rows that a query finds, and how many events matched its filters."""
    tokens = Tokens.of(text)
    columns: dict[str, Expression] = {}
    matched: int | None = None
    while True:
        command = tokens.take("fields", "filter", "stats", "sort", "limit")
        if command == "fields":
            columns |= _columns(tokens)
        elif command == "filter":
            condition = _either(tokens)
            rows = [row for row in rows if condition(row)]
        elif command == "stats":
            matched = len(rows)
            rows, columns = _stats(tokens, rows, columns), {}
        elif command == "sort":
            tokens.take("@timestamp")
            rows = sorted(rows, key=lambda row: str(row["@timestamp"]), reverse=tokens.take("asc", "desc") == "desc")
        else:
            limit = int(tokens.take())
            matched = len(rows) if matched is None else matched
            rows = rows[:limit]
        if not tokens.tokens:
            break
        tokens.take("|")
    if columns:
        rows = [{name: column(row) for name, column in columns.items()} | {"@ptr": row["@ptr"]} for row in rows]
    return rows, len(rows) if matched is None else matched


def _columns(tokens: Tokens) -> dict[str, Expression]:
    columns = {}
    while True:
        name = tokens.next
        value = _value(tokens)
        columns[tokens.take() if tokens.taken("as") else name] = value
        if not tokens.taken(","):
            return columns


def _stats(tokens: Tokens, rows: list[Row], columns: dict[str, Expression]) -> list[Row]:
    for wanted in ("count", "(", "*", ")", "as"):
        tokens.take(wanted)
    count = tokens.take()
    tokens.take("by")
    by = _columns(tokens)
    groups: Counter[tuple[Value, ...]] = Counter()
    for row in rows:
        known = row | {name: column(row) for name, column in columns.items()}
        groups[tuple(column(known) for column in by.values())] += 1
    return [dict(zip(by, group, strict=True)) | {count: float(number)} for group, number in groups.items()]


def _either(tokens: Tokens) -> Expression:
    options = [_both(tokens)]
    while tokens.taken("or"):
        options.append(_both(tokens))
    return lambda row: any(option(row) for option in options)


def _both(tokens: Tokens) -> Expression:
    conditions = [_condition(tokens)]
    while tokens.taken("and"):
        conditions.append(_condition(tokens))
    return lambda row: all(condition(row) for condition in conditions)


def _condition(tokens: Tokens) -> Expression:
    if tokens.taken("not"):
        inner = _condition(tokens)
        return lambda row: not inner(row)
    if tokens.taken("("):
        group = _either(tokens)
        tokens.take(")")
        return group
    if tokens.taken("ispresent"):
        tokens.take("(")
        present = _value(tokens)
        tokens.take(")")
        return lambda row: present(row) is not None
    left = _value(tokens)
    negated = tokens.taken("not")
    sign = tokens.take("like") if negated else tokens.take("like", "in", "=", ">=", "<=", "<", ">")
    if sign == "like":
        part = _string(tokens.take())
        return lambda row: (part in _text(left(row)) if left(row) is not None else False) != negated
    if sign == "in":
        members = _members(tokens)
        return lambda row: left(row) is not None and (left(row) in members or _text(left(row)) in members)
    return _compared(left, sign, float(tokens.take()))


def _compared(left: Expression, sign: str, right: float) -> Expression:
    def compare(row: Row) -> bool:
        value = left(row)
        assert isinstance(value, int | float)
        return {
            "=": value == right,
            ">=": value >= right,
            "<=": value <= right,
            "<": value < right,
            ">": value > right,
        }[sign]

    return compare


def _members(tokens: Tokens) -> list[Value]:
    tokens.take("[")
    members: list[Value] = []
    while True:
        token = tokens.take()
        members.append(_string(token) if token.startswith('"') else float(token))
        if tokens.take(",", "]") == "]":
            return members


def _string(token: str) -> str:
    if not token.startswith('"'):
        raise Malformed(f"{token!r} is no string")
    return token[1:-1].replace('\\"', '"')


def _value(tokens: Tokens) -> Expression:
    name = tokens.take()
    if tokens.taken("("):
        function = _function(name, tokens)
        tokens.take(")")
        return function
    if not re.fullmatch(r"[@A-Za-z][\w.@]*|`[^`]+`", name):
        raise Malformed(f"{name!r} is no field")
    plain = name.strip("`")
    return lambda row: row.get(plain)


def _function(name: str, tokens: Tokens) -> Expression:
    if name == "bin":
        amount = tokens.take()
        width = timedelta(**{{"m": "minutes", "h": "hours", "d": "days"}[amount[-1]]: int(amount[:-1])})
        return lambda row: f"{_at(row) - (_at(row) - EPOCH) % width:%Y-%m-%d %H:%M:%S}.000"
    argument = _value(tokens)
    if name == "tolower":
        return lambda row: _text(argument(row)).lower() if argument(row) is not None else None
    if name == "strlen":
        return lambda row: float(len(_text(argument(row))))
    if name == "toMillis":
        return lambda row: float((_at(row) - EPOCH) // timedelta(milliseconds=1))
    raise Malformed(f"{name!r} is no function")


def _at(row: Row) -> datetime:
    return datetime.fromisoformat(str(row["@timestamp"])).replace(tzinfo=UTC)
