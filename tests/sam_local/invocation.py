"""One event to one function by `sam local invoke`, and what came of it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superbizagent.settings import environment
from tests.sam_local.build import tools
from tests.sam_local.engine import Engine
from tests.sam_local.processes import Finished, run

KEPT = ("HOME", "PATH", "TMPDIR")
CALL_SECONDS = 240.0
"""With the image that SAM CLI makes for the first call with the same layers."""
_REPORT = re.compile(r"^REPORT RequestId:.*\tDuration: ([0-9.]+) ms", re.MULTILINE)


@dataclass(frozen=True)
class Invoked:
    """`seconds` of the whole call; `ms` as the runtime reports them, imports included; `log` is the function's."""

    answer: Any
    seconds: float
    ms: float | None
    log: str


@dataclass(frozen=True)
class Sam:
    """`variables` is the file of those that the functions have."""

    engine: Engine
    template: Path
    variables: Path
    folder: Path

    async def invoke(self, function: str, event: Mapping[str, Any]) -> Invoked:
        """Raises Failed when it doesn't end in time."""
        path = self.folder / "event.json"
        path.write_text(json.dumps(event))
        command = ["sam", "local", "invoke", f"{function.title()}Function", "--event", str(path)]
        command += ["--template", str(self.template), "--env-vars", str(self.variables), "--skip-pull-image"]
        command += ["--layer-cache-basedir", str(self.folder / "layers"), *self.engine.options]
        return read(await run(command, {**tools(_own()), **self.engine.variables}, self.folder, CALL_SECONDS))


def _own() -> Mapping[str, str]:
    """SAM CLI hands on to a function what the shell sets of the template's variables: a person's own are not meant."""
    return {name: value for name, value in environment().items() if name in KEPT or name.startswith("DOCKER_")}


def read(done: Finished) -> Invoked:
    """The answer is the last line of the output; of an error, what a function can choose of it."""
    lines = done.output.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        answer = lines[-1]
    if isinstance(answer, dict) and "errorMessage" in answer:
        answer = {name: answer[name] for name in ("errorType", "errorMessage") if name in answer}
    report = _REPORT.search(done.errors)
    return Invoked(answer, done.seconds, float(report[1]) if report else None, done.errors)
