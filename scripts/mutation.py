"""Breaks the core a little at a time and tells which breaks no test notices: mutation.py [MODULE …]

Without a module, takes up what the last run left; with one (`application.chat`), tests its mutants anew.
Everything is in .mutation/: `cd .mutation && ../.venv/mutation/bin/mutmut show NAME` gives a survivor's diff.
"""

import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".mutation"
MUTMUT = str(Path(sys.executable).with_name("mutmut"))
CHILDREN = 2
NICENESS = 10

# mutmut knows a source folder by the name src only, and takes any other path for a part of the module's name.
_LINKS = {
    "src": "layers/common",
    **{name: name for name in ("tests", "local", "migrations", "scripts", "pyproject.toml")},
}
_RESULT = re.compile(r"^ *superbizagent\.(?P<module>[\w.]+)\.(?P<mutant>x[_ǁ]\S+): (?P<status>.+)$", re.MULTILINE)
_COLUMNS = ("killed", "timeout", "survived", "no tests", "not checked")
_NOTICED = ("killed", "timeout")
"""A mutant that hangs its tests is noticed as well as one that fails them."""


def lay_out() -> None:
    """The project as mutmut wants to find it."""
    WORK.mkdir(exist_ok=True)
    for name, target in _LINKS.items():
        link = WORK / name
        if not link.is_symlink():
            link.symlink_to(Path("..") / target)


def run(modules: list[str]) -> int:
    patterns = [f"superbizagent.{module}.*" for module in modules]
    return subprocess.run([MUTMUT, "run", "--max-children", str(CHILDREN), *patterns], cwd=WORK, check=False).returncode  # noqa: S603


def results() -> dict[str, dict[str, str]]:
    """The status of each mutant, by module."""
    listed = subprocess.run([MUTMUT, "results", "--all", "true"], cwd=WORK, check=True, capture_output=True, text=True)  # noqa: S603
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for match in _RESULT.finditer(listed.stdout):
        found[match["module"]][match["mutant"]] = match["status"]
    return dict(sorted(found.items()))


def table(found: dict[str, dict[str, str]]) -> str:
    """Markdown, a line a module."""
    counts = {module: Counter(statuses.values()) for module, statuses in found.items()}
    counts["all"] = sum(counts.values(), Counter[str]())
    head = f"| module | mutants | {' | '.join(_COLUMNS)} | noticed |\n|---|{'---:|' * (len(_COLUMNS) + 2)}"
    return "\n".join([head, *(_row(name, of_module) for name, of_module in counts.items())])


def _row(name: str, counts: Counter[str]) -> str:
    noticed = sum(counts[status] for status in _NOTICED) / max(counts.total(), 1)
    return f"| {name} | {counts.total()} | {' | '.join(str(counts[column]) for column in _COLUMNS)} | {noticed:.1%} |"


def main(modules: list[str]) -> int:
    os.nice(NICENESS)
    lay_out()
    code = run(modules)
    found = results()
    for module, statuses in found.items():
        for mutant, status in statuses.items():
            if status not in (*_NOTICED, "not checked"):
                print(f"{status}: superbizagent.{module}.{mutant}")
    print(table(found))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
