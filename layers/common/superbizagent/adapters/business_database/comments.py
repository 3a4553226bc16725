"""Comments out of a statement, so that no server gets one to read in its own way.

What is left is what is checked and what runs: a comment that was found wrongly could only make another
statement of it, which is checked like any other.
"""

import re
from typing import Final

from superbizagent.adapters.business_database.quotes import Dialect, after_quoted, opening_quotes
from superbizagent.domain.pattern import Pattern
from superbizagent.errors import StatementRefused

_BEGINS: Final[dict[Dialect, Pattern]] = {
    dialect: Pattern(rf"[{re.escape(opening_quotes(dialect))}]|/\*|--" + ("|#" if dialect == "mysql" else ""))
    for dialect in ("mysql", "sqlite")
}
# Servers run what is in these, or follow it.
_EXECUTED: Final = Pattern(r"/\*(?:[mM]?!|\+)")
_REFUSED: Final = "Comments that a server executes and hints are not allowed. Leave them out."


def without_comments(text: str, dialect: Dialect) -> str:
    """`text` with a space for each comment. Raises StatementRefused for those that a server may execute."""
    pieces: list[str] = []
    done = at = 0
    while found := _BEGINS[dialect].search(text, at):
        if found.group() not in ("/*", "--", "#"):
            at = after_quoted(text, found.start(), dialect)
            continue
        at = _end(text, found.start(), found.group())
        if "/*" in text[found.start() + 2 : at] or _EXECUTED.match(text, found.start()):
            raise StatementRefused(_REFUSED)
        pieces += (text[done : found.start()], " ")
        done = at
    return "".join((*pieces, text[done:]))


def _end(text: str, begin: int, mark: str) -> int:
    if mark == "/*":
        end = text.find("*/", begin + 2)
        if end < 0:
            raise StatementRefused("A comment is not closed.")
        return end + 2
    if mark == "--" and text[begin + 2 : begin + 3].strip(" \t\r\n"):
        raise StatementRefused("A comment needs a space after `--`; write `- -1` for a double minus.")
    end = text.find("\n", begin)
    return len(text) if end < 0 else end
