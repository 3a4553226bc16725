"""The block of `key: value` lines that many tools put at the start of a Markdown file."""

import re

from superbizagent.domain.pattern import Pattern

_BLOCK = Pattern(r"\A(---|\+\+\+)[ \t]*\n(.*?)(?<=\n)(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_KEY = Pattern(r"[\"']?([A-Za-z_][\w.-]*)[\"']?[ \t]*(?:=|:(?=[ \t]|$))[ \t]*(.*)")
_QUOTES = "\"'[](){},|> \t"


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """The values by lower-case key, lists joined by spaces, and the text after the block.

    Reads what YAML and TOML front matter have in common and never raises; a thematic break at the
    start of a text is no front matter.
    """
    block = _BLOCK.match(text)
    if block is None:
        return {}, text
    lines = [line for line in block[2].split("\n") if line.strip()]
    values = [line for line in lines if not line.startswith("#")]
    if lines and not (values and _KEY.fullmatch(values[0])):
        return {}, text
    return _values(values), text[block.end() :]


def _values(lines: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    key = ""
    for line in lines:
        start = _KEY.fullmatch(line)
        if start:
            key = start[1].lower()
        value = _bare(start[2] if start else line)
        values[key] = f"{values.get(key, '')} {value}".strip()
    return values


def _bare(value: str) -> str:
    """Without the quotes, brackets and dashes of YAML and TOML."""
    items = value.strip().removeprefix("- ").split(", ")
    return " ".join(item.strip(_QUOTES) for item in items).strip()
