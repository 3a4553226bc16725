"""Markdown blocks to text that a person can read and a model can quote."""

import html
import re
from collections.abc import Sequence

from markdown_it.tree import SyntaxTreeNode

from superbizagent.domain.pattern import Pattern
from superbizagent.domain.text import fold_whitespace

_COMMENT = Pattern(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_WEB_LINK = Pattern(r"https?://", re.IGNORECASE)
_ATTRIBUTE = Pattern(r"""\b(href|src|alt)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
# Only tags of HTML are markup: `oncall <team>` and `-n <namespace>` are text.
_TAG = Pattern(
    r"</?(a|abbr|article|aside|b|blockquote|body|br|caption|center|cite|code|dd|del|details|div|dl|dt|em|figcaption"
    r"|figure|font|footer|h[1-6]|head|header|hr|html|i|iframe|img|ins|kbd|li|link|main|mark|meta|nav|ol|p|picture|pre"
    r"|q|s|samp|section|small|source|span|strike|strong|style|sub|summary|sup|table|tbody|td|tfoot|th|thead|title|tr|tt"
    r"|u|ul|var|video)(?:\s[^<>]{0,2000})?/?>",
    re.IGNORECASE,
)
_BREAKING = {"br", "p", "div", "li", "tr", "summary", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6"}
_BLANK_LINES = Pattern(r"\n\s*\n\s*")
_HEADING_ATTRIBUTES = Pattern(r"\s*\{[#.][^{}]*\}\s*$")

RAW_ROW = "row"
"""Under this key, a table row's `meta` has its source: the parser drops what is in a cell too many."""

_CELL_END = Pattern(r"(?<!\\)\|")
_CODE_INDENT = "    "


def heading_text(node: SyntaxTreeNode) -> str:
    return fold_whitespace(_HEADING_ATTRIBUTES.sub("", _inline_children(node)))


def block_text(node: SyntaxTreeNode) -> str:
    """The text of one block and all it holds; empty for what has none, such as a rule or a comment."""
    match node.type:
        case "fence" | "code_block":
            return _indented(node.content.strip("\n"), _CODE_INDENT, _CODE_INDENT)
        case "html_block":
            return without_html(node.content)
        case "bullet_list" | "ordered_list":
            return _list_text(node)
        case "blockquote":
            return _indented(_blocks(node.children), "> ", "> ")
        case "table":
            return "\n".join(_row_text(row) for row in node.walk() if row.type == "tr")
        case "hr":
            return ""
    return "\n".join(line.rstrip() for line in _inline_children(node).split("\n"))


def without_html(markup: str) -> str:
    """The text of a piece of HTML, with the targets of its links and the descriptions of its images."""
    text = _TAG.sub(lambda tag: _tag_text(tag[0], tag[1].lower()), _COMMENT.sub("", markup))
    return _BLANK_LINES.sub("\n", html.unescape(text)).strip()


def _blocks(nodes: Sequence[SyntaxTreeNode], between: str = "\n\n") -> str:
    return between.join(text for node in nodes if (text := block_text(node)))


def _list_text(node: SyntaxTreeNode) -> str:
    start = int(node.attrs.get("start", 1))
    ordered = node.type == "ordered_list"
    items = []
    for number, item in enumerate(node.children, start):
        mark = f"{number}. " if ordered else "- "
        items.append(_indented(_blocks(item.children, "\n"), mark, " " * len(mark)))
    return "\n".join(items)


def _row_text(row: SyntaxTreeNode) -> str:
    raw = str(row.meta.get(RAW_ROW, "")).strip().removeprefix("|").removesuffix("|")
    if len(_CELL_END.findall(raw)) >= len(row.children):
        return raw.strip()
    return " | ".join(fold_whitespace(_inline_children(cell)) for cell in row.children)


def _indented(text: str, first: str, others: str) -> str:
    lines = text.split("\n")
    indented = (f"{others if at else first}{line}" for at, line in enumerate(lines))
    return "\n".join(line.rstrip() for line in indented)


def _inline_children(node: SyntaxTreeNode) -> str:
    return "".join(_inline(child) for child in node.children)


def _inline(node: SyntaxTreeNode) -> str:
    match node.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "html_inline":
            return _inline_html(node.content)
        case "link":
            return _with_target(_inline_children(node), str(node.attrs.get("href", "")))
        case "image":
            return _with_target(node.content, str(node.attrs.get("src", "")))
    return _inline_children(node) if node.children else node.content


def _inline_html(markup: str) -> str:
    bare = _COMMENT.sub("", markup)
    return _TAG.sub(lambda tag: _tag_text(tag[0], tag[1].lower()), bare)


def _tag_text(tag: str, name: str) -> str:
    if name in ("a", "img"):
        values = {found[1].lower(): found[2] or found[3] or found[4] or "" for found in _ATTRIBUTE.finditer(tag)}
        target = values.get("href") or values.get("src") or ""
        link = f"({target}) " if _WEB_LINK.match(target) else ""
        return f"{values.get('alt', '')} {link}".lstrip()
    if name in ("td", "th"):
        return " "
    return "\n" if name in _BREAKING else ""


def _with_target(text: str, target: str) -> str:
    if not _WEB_LINK.match(target) or text.strip() == target:
        return text
    return f"{text} ({target})" if text.strip() else target
