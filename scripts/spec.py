"""Lists each rule of docs/specification.md with the tests that would catch it being broken.

Fails when a rule has none, or a test names a rule that does not exist. Collects only; runs no test.
"""

import contextlib
import io
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SPECIFICATION = ROOT / "docs" / "specification.md"
OPEN: frozenset[str] = frozenset()
"""Rules that may still be without a test; take an id out as soon as it has one."""

_RULE = re.compile(r"^- \*\*(?P<id>[A-Z]+-[0-9]+) (?P<title>[^*]+?)\.\*\*", re.MULTILINE)


def rules(text: str) -> dict[str, str]:
    """Ids with their titles, in the order of the document; raises ValueError for an id that is there twice."""
    found: dict[str, str] = {}
    for match in _RULE.finditer(text):
        if match["id"] in found:
            raise ValueError(f"{match['id']} is defined twice")
        found[match["id"]] = match["title"]
    return found


class Marked:
    """pytest plugin: which tests name which rule. A parametrized test counts once."""

    def __init__(self) -> None:
        self.tests: defaultdict[str, set[str]] = defaultdict(set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers("spec"):
                for rule in mark.args:
                    self.tests[rule].add(item.nodeid.partition("[")[0])


def problems(known: dict[str, str], tests: dict[str, set[str]]) -> list[str]:
    missing = [f"{rule} has no test" for rule in known if not tests.get(rule) and rule not in OPEN]
    unknown = [
        f"{rule} is not in {SPECIFICATION.name}, but {test} names it"
        for rule in sorted(tests.keys() - known.keys())
        for test in sorted(tests[rule])
    ]
    return missing + unknown


def main(arguments: list[str]) -> int:
    marked, output = Marked(), io.StringIO()
    with contextlib.redirect_stdout(output):
        collected = pytest.main(
            ["--collect-only", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", str(ROOT / "tests")], [marked]
        )
    if collected is not pytest.ExitCode.OK:
        print(output.getvalue(), file=sys.stderr)
        return 1
    known = rules(SPECIFICATION.read_text(encoding="utf-8"))
    for rule, title in known.items():
        tests = sorted(marked.tests[rule])
        print(f"{rule:<10} {len(tests):>3}  {title}" + ("  (open)" if not tests and rule in OPEN else ""))
        if "--tests" in arguments:
            print("".join(f"{'':16}{test}\n" for test in tests), end="")
    found = problems(known, marked.tests)
    print("\n".join(["", *found]) if found else f"\nAll {len(known)} rules are accounted for.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
