"""The dependency rule, held by import contracts in pyproject.toml, and what an import may not do."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "layers" / "common" / "superbizagent"
CORE = sorted(
    [PACKAGE / "errors.py", PACKAGE / "ports.py", *PACKAGE.glob("domain/*.py"), *PACKAGE.glob("application/**/*.py")]
)


@pytest.mark.spec("ISO-1", "EXEC-2", "EXEC-4")
def test_the_import_contracts_are_kept() -> None:
    # In a process of its own: the linter configures logging, which disables every logger there is.
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--config", "pyproject.toml"]
    environment = {"PYTHONPATH": f"{PACKAGE.parent}:{ROOT}"}
    linted = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert linted.returncode == 0, linted.stdout


@pytest.mark.spec("EXEC-4")
def test_every_executor_is_under_the_contract() -> None:
    assert {path.stem for path in (PACKAGE / "application" / "executors").glob("*.py")} == {
        "__init__",
        "diagnosis",
        "knowledge_query",
        "system_chat",
    }


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_core_takes_time_and_environment_from_nowhere(path: Path) -> None:
    banned = {"now", "utcnow", "today", "time", "monotonic", "perf_counter", "environ", "getenv"}
    modules = {"datetime", "date", "time", "os"}

    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert not (node.attr in banned and node.value.id in modules), f"line {node.lineno}"
        if isinstance(node, ast.Import):
            assert not {"os", "time", "socket"} & {alias.name for alias in node.names}, f"line {node.lineno}"
        if isinstance(node, ast.ImportFrom):
            assert node.module not in {"os", "time", "socket"}, f"line {node.lineno}"


def _run_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """All of a module but the bodies of its functions."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _run_on_import(child)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_regular_expression_is_compiled_on_import(path: Path) -> None:
    """They take longer to compile than the rest of our own to load: `Pattern` does it at the first use."""
    for node in _run_on_import(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re":
            assert node.attr not in {"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub"}


_COMPILE_ALL = """
import gc, pkgutil
import superbizagent
from superbizagent.domain.pattern import Pattern
for module in pkgutil.walk_packages(superbizagent.__path__, "superbizagent."):
    __import__(module.name)
patterns = [one for one in gc.get_objects() if isinstance(one, Pattern)]
assert not [one for one in patterns if "compiled" in vars(one)]
assert [one.compiled for one in patterns]
"""


def test_every_pattern_compiles_and_none_did_on_import() -> None:
    command = [sys.executable, "-W", "error", "-c", _COMPILE_ALL]
    done = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


_IMPORT_ALL = """
import pkgutil, socket, sys, threading
def refused(*args, **kwargs):
    raise AssertionError("the network is used on import")
socket.socket.connect = refused
socket.getaddrinfo = refused
import superbizagent.application as application, superbizagent.domain as domain
for package in (application, domain):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        __import__(module.name)
vendors = set("aiohttp aws_lambda_powertools boto3 botocore httpx2 openai pymysql sqlalchemy sqlglot".split())
assert not vendors & set(sys.modules), vendors & set(sys.modules)
assert threading.active_count() == 1
"""


@pytest.mark.spec("ISO-1")
def test_importing_the_core_loads_no_vendor_and_starts_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _IMPORT_ALL],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("function", sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py")))
def test_a_function_loads_nothing_heavy_when_it_is_imported(function: str) -> None:
    """In a process of its own, as a cold start is. Chat, and nobody else, loads what its runs need."""
    # Powertools imports botocore's name, which loads next to nothing; what costs is its session.
    heavy = {
        "aws_xray_sdk",
        "boto3",
        "botocore.session",
        "cryptography",
        "drain3",
        "jwt",
        "markdown_it",
        "openai",
        "sqlglot",
    }
    code = f"import sys, functions.{function}.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "superbizagent" in loaded
    assert loaded & (heavy if function != "chat" else {"aws_xray_sdk", "jwt"}) == set()


_STORE = {"pymysql", "sqlalchemy", "superbizagent.adapters.store"}
_SHOWN = {"superbizagent.domain.content", "superbizagent.frames", "superbizagent.history_frames"}
_STORED = {"superbizagent.domain.stored_run", "superbizagent.ports"}
_RUN = {
    "superbizagent.application.agent",
    "superbizagent.application.chat",
    "superbizagent.application.executors",
    "superbizagent.application.release",
    "superbizagent.domain.absence",
    "superbizagent.domain.conversation",
    "superbizagent.domain.draft",
    "superbizagent.domain.evidence",
    "superbizagent.domain.evidence_guard",
    "superbizagent.frames",
    "superbizagent.ports",
}
_MESSAGES = {"superbizagent.exchange", "superbizagent.websocket"}
_OF_OTHER_DEPLOYMENTS = {
    "markdown_it",
    "superbizagent.adapters.business_database.sqlite_driver",
    "superbizagent.adapters.knowledge.bedrock",
    "superbizagent.adapters.knowledge.ingest",
    "superbizagent.adapters.knowledge.reranked_index",
    "superbizagent.adapters.log_files",
}


@pytest.mark.parametrize(
    ("function", "others"),
    [
        ("authorizer", _STORE | _SHOWN | _STORED | _RUN | _MESSAGES),
        ("connect", _SHOWN | _STORED | _RUN | _MESSAGES),
        ("disconnect", _SHOWN | _STORED | _RUN | _MESSAGES),
        ("default", _SHOWN | _STORED | _RUN),
        ("cancel", _SHOWN | _STORED | _RUN),
        ("history", _RUN),
        ("sweep", _SHOWN | _RUN | _MESSAGES),
        ("migrate", _SHOWN | _STORED | _RUN | _MESSAGES),
        ("page", _STORE | _SHOWN | _STORED | _RUN | _MESSAGES),
        ("chat", {"superbizagent.history_frames"} | _OF_OTHER_DEPLOYMENTS),
    ],
)
def test_a_function_loads_no_other_functions_part(function: str, others: set[str]) -> None:
    code = f"import sys, functions.{function}.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) & others == set()


def test_the_collector_is_at_work_again_after_the_imports_and_leaves_them_alone() -> None:
    code = "import gc, functions.sweep.app; print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout == "True True\n"
