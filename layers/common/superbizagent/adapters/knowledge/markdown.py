"""A Markdown file to a document: its title, and its text in passages by heading."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from superbizagent.adapters.knowledge.front_matter import split_front_matter
from superbizagent.adapters.knowledge.passages import Document, Passage, passage_id
from superbizagent.adapters.knowledge.pieces import in_pieces
from superbizagent.adapters.knowledge.plain_text import RAW_ROW, block_text, heading_text
from superbizagent.domain.text import bound_characters, fold_whitespace

PASSAGE_CHARACTERS = 1_500
"""About how long a passage gets before it is split at the end of a paragraph or a line."""

NAME_CHARACTERS = 200
"""The longest title or heading that is kept whole."""

# Far beyond what people write, and well within Python's stack.
_MAX_NESTING = 50
_LONG_FENCE = "~" * 200

_parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).enable(["table", "strikethrough"])

# A file of such a name is called after its folder.
_NAMELESS = {"readme", "index", "_index"}


@dataclass
class _Section:
    """A heading with what stands under it, before the next heading."""

    heading_path: tuple[str, ...]
    blocks: list[str] = field(default_factory=list)


def parse_markdown(text: str, source: str, collection: str) -> Document:
    """The document in `text`; `source` is its path within `collection`. Never raises."""
    values, body = split_front_matter(text.replace("\r\n", "\n").replace("\r", "\n"))
    root = _parsed(body)
    heading = _first_title(root)
    path = PurePosixPath(source)
    own_title = (heading_text(heading) if heading else "") or values.pop("title", "")
    title = _bounded(own_title or _name_in_words(path))
    # A document of a title only is still a document; an empty file is none.
    sections = list(_sections(root, heading)) or ([_Section((), [title])] if own_title else [])
    return Document(
        title=title,
        other_names=_bounded(f"{path.stem} {values.pop('title', '')}"),
        keywords=" ".join((*path.parts[:-1], *values.values())),
        passages=tuple(_passages(sections, source, collection)),
    )


def _parsed(body: str) -> SyntaxTreeNode:
    tokens = _parser.parse(body)
    if any(token.level >= _MAX_NESTING - 2 for token in tokens):
        # The parser drops what is nested deeper; as one block of code, nothing is lost.
        tokens = _parser.parse(f"{_LONG_FENCE}\n{body}\n{_LONG_FENCE}")
    lines = body.split("\n")
    for token in tokens:
        if token.type == "tr_open" and token.map:
            token.meta[RAW_ROW] = lines[token.map[0]]
    return SyntaxTreeNode(tokens)


def _first_title(root: SyntaxTreeNode) -> SyntaxTreeNode | None:
    titles = (node for node in root.children if node.type == "heading" and node.tag == "h1")
    return next((node for node in titles if heading_text(node)), None)


def _name_in_words(path: PurePosixPath) -> str:
    """`etcd-no_leader.md` is called etcd no leader, `payments/README.md` payments."""
    name = path.parent.name if path.stem.lower() in _NAMELESS and path.parent.name else path.stem
    return fold_whitespace(name.replace("-", " ").replace("_", " ")) or name


def _bounded(name: str) -> str:
    return bound_characters(fold_whitespace(name), NAME_CHARACTERS)


def _sections(root: SyntaxTreeNode, title: SyntaxTreeNode | None) -> Iterator[_Section]:
    """Every section with text of its own, and each heading that has neither text nor headings below."""
    open_headings: list[tuple[int, str]] = []
    section = _Section(())
    is_leaf = False
    for node in root.children:
        if node.type != "heading":
            section.blocks.append(block_text(node))
            continue
        level = 0 if node is title else int(node.tag[1:])
        below = bool(open_headings) and level > open_headings[-1][0]
        yield from _finished(section, is_leaf=is_leaf and not below)
        while open_headings and open_headings[-1][0] >= level:
            open_headings.pop()
        if node is not title:
            open_headings.append((level, _bounded(heading_text(node))))
        is_leaf = node is not title
        section = _Section(tuple(name for _, name in open_headings if name))
    yield from _finished(section, is_leaf=is_leaf)


def _finished(section: _Section, *, is_leaf: bool) -> Iterator[_Section]:
    section.blocks = [block for block in section.blocks if block.strip()]
    if not section.blocks and is_leaf and section.heading_path:
        section.blocks = [section.heading_path[-1]]
    if section.blocks:
        yield section


def _passages(sections: Sequence[_Section], source: str, collection: str) -> Iterator[Passage]:
    seen: Counter[tuple[str, ...]] = Counter()
    for section in sections:
        for text in in_pieces(section.blocks, PASSAGE_CHARACTERS):
            path = section.heading_path
            yield Passage(passage_id(collection, source, path, seen[path]), path, text)
            seen[path] += 1
