"""pytest plugin of `make mutation`: a process a mutant, forked from one that has collected the tests and run none.

What tests leave in caches would answer in the place of a mutant, so that no two mutants share a process; a session of
pytest for each of thousands would take far longer than the tests do.
"""

import fnmatch
import gc
import multiprocessing
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.file_utils import walk_mutatable_files
from mutmut.utils.format_utils import mangled_name_from_mutant_name

SURVIVED, KILLED, NO_TESTS, TIMEOUT = 0, 1, 33, 36
"""As mutmut's own commands read them."""
NOTICED = (KILLED, TIMEOUT)
_LONGEST_FACTOR, _LONGEST_CONSTANT = 5, 2.0
"""A test hangs that takes this many times its usual time and seconds more, of the processor, which others use too."""
_LONGEST_WAIT = 20.0
"""In seconds, for one that only waits."""
_fork = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class _Test:
    item: pytest.Item
    seconds: float
    reached: frozenset[str]
    """The names of functions, as the names of their mutants begin."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants", action="append", default=[], help="a pattern of mutants to test anew")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Finds the tests of each mutant, runs them, and keeps each result at once."""
    gc.freeze()
    tests = _tests_by_function(_measured(session.items))
    waiting: set[str] = set()
    with _above_the_tests():
        files = [_load(path) for path in walk_mutatable_files()]
    for data, name in _chosen(files, session.config.getoption("--mutants")):
        begin = time.monotonic()
        data.exit_code_by_key[name] = _result(name, tests[mangled_name_from_mutant_name(name)], waiting)
        data.durations_by_key[name] = time.monotonic() - begin
        with _above_the_tests():
            data.save()
    return True


@contextmanager
def _above_the_tests() -> Iterator[None]:
    """The folder from which mutmut finds its files."""
    here = Path.cwd()
    os.chdir(here.parent)
    try:
        yield
    finally:
        os.chdir(here)


def _load(path: Path) -> SourceFileMutationData:
    data = SourceFileMutationData(path=path)
    data.load()
    return data


def _chosen(
    files: Iterable[SourceFileMutationData], patterns: list[str]
) -> Iterator[tuple[SourceFileMutationData, str]]:
    """With patterns, the mutants that match one, in their order; without, those that no test has noticed yet."""
    mutants = [(data, name, code) for data in files for name, code in data.exit_code_by_key.items()]
    if not patterns:
        yield from ((data, name) for data, name, code in mutants if code not in NOTICED)
    for pattern in patterns:
        yield from ((data, name) for data, name, _ in mutants if fnmatch.fnmatch(name, pattern))


def _tests_by_function(tests: Iterable[_Test]) -> defaultdict[str, list[_Test]]:
    """The quickest first, so that most mutants are noticed at once."""
    found: defaultdict[str, list[_Test]] = defaultdict(list)
    for test in sorted(tests, key=lambda test: test.seconds):
        for function in test.reached:
            found[function].append(test)
    return found


def _measured(items: list[pytest.Item]) -> list[_Test]:
    """What each test reaches and how long it takes, found in a process of its own."""
    tests: list[_Test] = []
    with _child(_measure, items) as (_, ours):
        for item in items:
            try:
                tests.append(_Test(item, *ours.recv()))
            except EOFError:
                pytest.exit(f"fails without a mutant: {item.nodeid}", returncode=1)
    return tests


def _measure(items: list[pytest.Item], theirs: Connection) -> None:
    set_mutant_under_test("stats")
    for item in items:
        state()._stats.clear()
        begin = time.process_time()
        if not _passes(item):
            return
        theirs.send((time.process_time() - begin, frozenset(state()._stats)))


def _result(mutant: str, tests: list[_Test], waiting: set[str]) -> int:
    """Puts first what noticed this mutant, for it often notices the next; last what any left waiting (`waiting`)."""
    if not tests:
        return NO_TESTS
    tests.sort(key=lambda test: test.item.nodeid in waiting)
    with _child(_test, mutant, tests) as (process, ours):
        for index, test in enumerate(tests):
            if not ours.poll(_LONGEST_WAIT):
                waiting.add(test.item.nodeid)
                return TIMEOUT
            try:
                passed = ours.recv()
            except EOFError:
                process.join()
                return TIMEOUT if process.exitcode == -signal.SIGPROF else KILLED
            if not passed:
                tests.insert(0, tests.pop(index))
                return KILLED
    return SURVIVED


def _test(mutant: str, tests: list[_Test], theirs: Connection) -> None:
    set_mutant_under_test(mutant)
    for test in tests:
        signal.setitimer(signal.ITIMER_PROF, test.seconds * _LONGEST_FACTOR + _LONGEST_CONSTANT)
        theirs.send(_passes(test.item))


def _passes(item: pytest.Item) -> bool:
    return all(report.passed for report in runtestprotocol(item, log=False, nextitem=None))


@contextmanager
def _child(target: Callable[..., None], *arguments: object) -> Iterator[tuple[BaseProcess, Connection]]:
    """A forked process, and our end of a pipe whose other end is the last argument of what runs in it."""
    ours, theirs = _fork.Pipe()
    process = _fork.Process(target=target, args=(*arguments, theirs))
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()
        ours.close()
