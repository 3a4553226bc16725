"""Result rows as text: one JSON object a row, the same text for the same values."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

_FIELD: Final = '"password": '
# Python refuses to write out integers beyond 4,300 digits.
_MAX_INTEGER_BITS: Final = 4_096


@dataclass
class RowFormat:
    """Writes rows; counts the cells it had to cut to `cell_limit` characters.

    Texts are redacted before they are cut: half a secret can't be recognised as one.
    """

    columns: tuple[str, ...]
    cell_limit: int
    redact: Callable[[str], str] = str
    secret: Sequence[bool] = ()
    cut_cells: int = 0

    @classmethod
    def for_names(
        cls,
        names: Sequence[str],
        cell_limit: int,
        redact: Callable[[str], str] = str,
        secret: Sequence[bool] = (),
    ) -> "RowFormat":
        """Two columns of one name become `name` and `name_2`."""
        taken: set[str] = set()
        columns: list[str] = []
        for name in names:
            candidate, number = name, 2
            while candidate in taken:
                candidate, number = f"{name}_{number}", number + 1
            taken.add(candidate)
            columns.append(candidate[:200])
        return cls(tuple(columns), cell_limit, redact, secret)

    def row(self, values: Sequence[Any]) -> str:
        """One JSON object, keys in the order of the columns."""
        secret = self.secret or [False] * len(values)
        fields = zip(self.columns, values, secret, strict=True)
        return "{" + ", ".join(f"{_quoted(name)}: {self._shown(value, hidden)}" for name, value, hidden in fields) + "}"

    def _shown(self, value: Any, hidden: bool) -> str:
        if value is None or not hidden:
            return self._cell(value)
        return self.redact(_FIELD + _quoted(_text(value))).removeprefix(_FIELD)

    def _cell(self, value: Any) -> str:
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float | Decimal):
            return _number(value)
        return _quoted(self._bounded(_text(value)))

    def _bounded(self, text: str) -> str:
        if len(text) <= self.cell_limit:
            return text
        text = self.redact(text)
        if len(text) <= self.cell_limit:
            return text
        self.cut_cells += 1
        return f"{text[: self.cell_limit]}…[{self.cell_limit} of {len(text)} characters]"


def _quoted(text: str) -> str:
    return json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)


def _number(value: float | Decimal) -> str:
    if isinstance(value, int):
        return str(value) if value.bit_length() <= _MAX_INTEGER_BITS else _quoted("a very large integer")
    if isinstance(value, Decimal):
        if not value.is_finite():
            return _quoted(str(value))
        # Small exponents written out: 0E-8 is no number a reader expects.
        exponent = value.as_tuple().exponent
        return f"{value:f}" if isinstance(exponent, int) and abs(exponent) < 100 else str(value)
    if math.isnan(value):
        return _quoted("NaN")
    if math.isinf(value):
        return _quoted("Infinity" if value > 0 else "-Infinity")
    return repr(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return f"0x{data[:1_000].hex()} ({len(data)} bytes)"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _duration(value)
    return str(value)


def _duration(value: timedelta) -> str:
    """MySQL's TIME, which may be negative and longer than a day: `-34:22:59.5`."""
    micros = value // timedelta(microseconds=1)
    sign = "-" if micros < 0 else ""
    seconds, fraction = divmod(abs(micros), 1_000_000)
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}" if fraction else text
