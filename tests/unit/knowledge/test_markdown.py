import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from superbizagent.adapters.knowledge.markdown import PASSAGE_CHARACTERS, parse_markdown
from superbizagent.adapters.knowledge.passages import Document
from superbizagent.adapters.knowledge.search import passage_terms
from superbizagent.adapters.knowledge.tokens import query_terms


def parse(text: str, source: str = "folder/file-name.md") -> Document:
    return parse_markdown(text, source, "documents")


def texts(text: str) -> list[str]:
    return [passage.text for passage in parse(text).passages]


@pytest.mark.spec("KNOW-5")
@pytest.mark.parametrize(
    ("text", "source", "title"),
    [
        ("# Gateway *timeouts*\n\ntext", "a.md", "Gateway timeouts"),
        ("Set\next\n===\n\ntext", "a.md", "Set ext"),
        ("## First\n\ntext\n\n# Title\n\ntext", "a.md", "Title"),
        ("#\n\n# Second\n\ntext", "a.md", "Second"),
        ("# Title {#anchor}\n\ntext", "a.md", "Title"),
        ('---\ntitle: "From: front matter"\n---\ntext', "a.md", "From: front matter"),
        ("---\ntitle: Front\n---\n# Heading\n", "a.md", "Heading"),
        ("+++\ntitle = 'Toml'\n+++\ntext", "a.md", "Toml"),
        ("\r\n---\r\n\r\ntext", "disk-is_full.md", "disk is full"),
        ("---\r\ntitle: Front\r\n---\r\ntext", "a.md", "Front"),
        ("text", "payments/README.md", "payments"),
        ("text", "README.md", "README"),
        (f"# {'x' * 999}\n\ntext", "a.md", "x" * 199 + "…"),
    ],
)
def test_the_title(text: str, source: str, title: str) -> None:
    assert parse(text, source).title == title


@pytest.mark.spec("KNOW-5")
def test_passages_are_cut_by_heading() -> None:
    document = parse(
        "intro\n\n# Title\n\nabout\n\n## A\n\none\n\n### A1\n\ntwo\n\n"
        "## B\n\n### B1\n\n#### B11\n\nthree\n\n# Next\n\nfour\n"
    )
    assert [(passage.heading_path, passage.text) for passage in document.passages] == [
        ((), "intro"),
        ((), "about"),
        (("A",), "one"),
        (("A", "A1"), "two"),
        (("B", "B1", "B11"), "three"),
        (("Next",), "four"),
    ]


@pytest.mark.spec("KNOW-5")
def test_an_id_outlives_changes_elsewhere() -> None:
    before = parse("# T\n\n## A\n\none\n\n## B\n\ntwo\n\n## B\n\nthree\n")
    after = parse("# Other title\n\nnew\n\n## A\n\nchanged\n\n## New\n\n## B\n\ntwo\n\n## B\n\nthree\n")

    def ids(document: Document) -> dict[str, str]:
        return {passage.text: passage.passage_id for passage in document.passages}

    assert len(set(ids(before).values())) == 3
    assert {ids(after)[text] for text in ("changed", "two", "three")} == set(ids(before).values())
    assert all(re.fullmatch(r"D[0-9a-f]{12}", passage_id) for passage_id in ids(after).values())


def test_other_files_and_collections_have_other_ids() -> None:
    ids = {
        parse_markdown("# T\n\ntext", source, collection).passages[0].passage_id
        for source in ("a.md", "b.md")
        for collection in ("x", "y")
    }
    assert len(ids) == 4


def test_a_heading_alone_can_still_be_found() -> None:
    assert texts("# Only a title\n") == ["Only a title"]
    assert texts("# T\n\n## Empty\n\n## Full\n\ntext\n") == ["Empty", "text"]


@pytest.mark.parametrize("text", ["", " \n\t\n", "---\n", "<!-- nothing -->", "---\n---\n", "\n\n***\n"])
def test_an_empty_file_has_no_passage(text: str) -> None:
    assert parse(text).passages == ()


def test_blocks_stay_readable() -> None:
    text = """- [one](https://example.org/1) and [two](two.md)
  1. nested `code`
  2. more
- <https://example.org>

```sh
if true; then
  echo "<b>"
fi
```

| a | b |
|---|--:|
| 1 | *2* |
| 3 | `cat x | grep y` |

> quoted
> **text**

a &lt; b  <!-- remark -->
![a picture](https://example.org/p.png) oncall <team> <br/>next
"""
    assert texts(text) == [
        """- one (https://example.org/1) and two
  1. nested code
  2. more
- https://example.org

    if true; then
      echo "<b>"
    fi

a | b
1 | 2
3 | `cat x | grep y`

> quoted
> text

a < b
a picture (https://example.org/p.png) oncall <team>
next"""
    ]


def test_html_is_text_without_its_markup() -> None:
    text = """<details>
<summary>More</summary>
<p>inside <a href="https://example.org">link</a> &amp; <b>bold</b></p>
<!-- gone
too -->
</details>
"""
    assert texts(text) == ["More\ninside (https://example.org) link & bold"]


def test_front_matter_is_no_text_but_can_be_found() -> None:
    document = parse("---\ntitle: T\ntags: [alpha, 'beta']\naliases:\n  - gamma delta\n---\ntext\n")
    assert [passage.text for passage in document.passages] == ["text"]
    found = passage_terms(document, document.passages[0]).headings
    assert set(query_terms("alpha beta gamma delta")) <= set(found)


@pytest.mark.parametrize(
    "text", ["---\n# Heading\n---\nword\n", "---\nplain word\n---\nfurther\n", "---\na: b\nword\n"]
)
def test_a_rule_at_the_start_is_no_front_matter(text: str) -> None:
    assert not words_lost(text, re.findall(r"[A-Za-z]{2,}", text))


def test_long_sections_are_split_at_paragraphs() -> None:
    paragraphs = [f"{number} " + "word " * 100 for number in range(10)]
    found = texts("# T\n\n## Long\n\n" + "\n\n".join(paragraphs))
    assert len(found) > 2
    assert all(len(text) <= PASSAGE_CHARACTERS for text in found)
    assert "\n\n".join(found) == "\n\n".join(paragraph.strip() for paragraph in paragraphs)


@pytest.mark.parametrize(
    "block", ["x" * 5_000, "word " * 1_000, "```\n" + "line of code\n" * 500 + "```", "- item\n" * 900]
)
def test_long_blocks_are_split_without_loss(block: str) -> None:
    found = texts(block)
    assert all(0 < len(text) <= PASSAGE_CHARACTERS for text in found)
    assert "".join("".join(found).split()).count("x") == block.count("x")
    assert sum(text.count("item") + text.count("line of code") for text in found) == block.count("item") + block.count(
        "line of code"
    )


def words_lost(text: str, words: list[str]) -> set[str]:
    """Those that no passage can be found by."""
    document = parse(text)
    found = [passage_terms(document, passage) for passage in document.passages]
    return {word for word in words if not any(terms.having(query_terms(word)) for terms in found)}


BLOCKS = st.sampled_from(
    ["# ", "## ", "### ", "- ", "1. ", "> ", "    ", "\t", "\n", "\n\n", "\r\n", "\n---\n", "\n===\n"]
)
INLINE = st.sampled_from(
    ["**", "*", "_", "~~", "`", "\n```\n", "[", "](", ")", "!", "\\", "<b>", "</b>", "<x>", "&amp;"]
)
TABLE = st.sampled_from(["| ", " |", "\n|-|\n", "\n|a|\n|-|\n"])
WORD = st.integers(0, 99).map(lambda number: f" w{number} ")


@settings(deadline=None)
@given(st.lists(st.one_of(BLOCKS, INLINE, TABLE, WORD), max_size=60).map("".join))
@example("> " * 300 + "w1")
@example("- " * 300 + "w1")
@example("# w1\n## w2\n# w3")
@example("|a|\n|-|\n|b|w1")
def test_no_word_is_lost(text: str) -> None:
    # What stands after a fence is its language, in brackets a link's target: neither is text.
    bare = re.sub(r"(```|~~~)[^\n]*", r"\1", text).replace("](", "] (")
    assert not words_lost(bare, re.findall(r"w[0-9]+", bare))


@settings(deadline=None)
@given(st.text(max_size=300))
@example("[" * 500)
@example("*a" * 500)
@example("`" * 999 + "a" + "`" * 998)
@example("---\n\n---\n\n---")
@example("<!--" * 50)
def test_any_text_is_a_document(text: str) -> None:
    document = parse(text)
    assert document.title
    assert all(passage.text.strip() for passage in document.passages)
