import re

import pytest

from superbizagent.domain.pattern import Pattern


@pytest.mark.parametrize("method", ["match", "fullmatch", "search"])
def test_a_pattern_finds_what_re_finds(method: str) -> None:
    expression, text = r"(?P<word>[a-z]+)-?", "Ab-cd"
    found = getattr(Pattern(expression, re.IGNORECASE), method)(text, 1)
    expected = getattr(re.compile(expression, re.IGNORECASE), method)(text, 1)

    assert (found and (found.span(), found["word"])) == (expected and (expected.span(), expected["word"]))


def test_a_pattern_finds_all_splits_and_replaces() -> None:
    pattern = Pattern("[0-9]+")

    assert [match.group() for match in pattern.finditer("a1b22", 2)] == ["22"]
    assert pattern.findall("a1b22") == ["1", "22"]
    assert pattern.split("a1b22c", maxsplit=1) == ["a", "b22c"]
    assert pattern.sub(lambda match: f"<{match.group()}>", "a1b22") == "a<1>b<22>"


def test_a_pattern_is_compiled_when_it_is_first_used() -> None:
    broken = Pattern("(")

    with pytest.raises(re.error):
        broken.search("text")
