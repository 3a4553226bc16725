"""The layer without what `sam build` takes out of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))


def _left_out() -> list[str]:
    """The modules among what the layer's Makefile removes."""
    makefile = (ROOT / "layers" / "common" / "Makefile").read_text(encoding="utf-8")
    [paths] = re.findall(r"^UNUSED := (.+)$", makefile, re.MULTILINE)
    return [path.replace("/", ".") for path in paths.split() if path != "bin"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_imports_what_the_layer_leaves_out(function: str) -> None:
    # None in the place of a module is what an absent one looks like.
    absent = f"import sys; sys.modules.update(dict.fromkeys({_left_out()!r}))"
    command = [sys.executable, "-c", f"{absent}; import functions.{function}.app"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:]
