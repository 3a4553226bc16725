"""Breaks the core a little at a time and tells which breaks no test notices: mutation.py [MODULE …]

Without a module, tests what no test has noticed yet; with one (`application.chat`), all of its mutants anew.
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
TREE = WORK / "mutants"
MUTMUT = str(Path(sys.executable).with_name("mutmut"))
NICENESS = 10
TESTS = (
    "tests/unit/application",
    "tests/unit/domain",
    "tests/contract/test_cancel_requests.py",
    "tests/contract/test_connections.py",
    "tests/contract/test_history.py",
    "tests/contract/test_run_store.py",
)
SELECTION = (
    "not sqlite and not mysql and not odd_characters and (not sources_fit or fit[40-x)"
    " and not odd_evidence and not values_taken_from and not changed_digit"
)
"""Of what fills a frame to its limit only the cases that say most; without the guards' longest properties, either."""
OPTIONS = (
    *("-p", "scripts.mutants", "-p", "no:cacheprovider", "-p", "no:randomly"),
    # For speed: the first two collect garbage around each test, the last two explain what nobody reads.
    *("-p", "no:unraisableexception", "-p", "no:threadexception", "--assert=plain", "--tb=native"),
    *("-p", "no:warnings", "--hypothesis-seed=0", "--timeout=0", "-qq"),
)

# mutmut knows a source folder by the name src only, and takes any other path for a part of the module's name.
_LINKS = {
    "src": "layers/common",
    **{name: name for name in ("tests", "local", "migrations", "scripts", "pyproject.toml")},
}
_GENERATE = (
    "from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants\n"
    "copy_src_dir(); copy_also_copy_files(); create_mutants(1)"
)
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


def break_functions() -> None:
    """A copy of the project whose functions hold all of their mutants; results of unchanged functions stay."""
    TREE.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-c", _GENERATE], cwd=WORK, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def run(modules: list[str]) -> int:
    patterns = [f"--mutants=superbizagent.{module}.x*" for module in modules]
    command = [sys.executable, "-m", "pytest", "--rootdir=.", *OPTIONS, *patterns, "-k", SELECTION, *TESTS]
    paths = {"PYTHONPATH": os.pathsep.join(map(str, (TREE / "src", TREE)))}
    return subprocess.run(command, cwd=TREE, env=os.environ | paths, check=False).returncode  # noqa: S603, TID251


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
    break_functions()
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
