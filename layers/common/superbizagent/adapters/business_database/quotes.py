"""What stands in quotes in a statement, by the server's own rules."""

from typing import Final, Literal

from superbizagent.errors import StatementRefused

Dialect = Literal["mysql", "sqlite"]

_OPENING: Final[dict[Dialect, str]] = {"mysql": "'\"`", "sqlite": "'\"`["}


def opening_quotes(dialect: Dialect) -> str:
    return _OPENING[dialect]


def after_quoted(text: str, position: int, dialect: Dialect) -> int:
    """Behind the quotation that begins at `position`. Raises StatementRefused where it doesn't end."""
    opening = text[position]
    closing = "]" if opening == "[" else opening
    position += 1
    while position < len(text):
        character = text[position]
        if character == "\\" and dialect == "mysql" and opening != "`":
            position += 2
        elif character != closing:
            position += 1
        elif opening != "[" and text[position + 1 : position + 2] == closing:
            position += 2
        else:
            return position + 1
    raise StatementRefused("A quotation is not closed.")
