"""What `make sam-local` needs no container for: which events it sends, and how it reads what comes back."""

import json
from pathlib import Path

import psutil
import pytest

from local.gateway.template.reader import read_document
from tests.sam_local.build import ROOT, for_architecture
from tests.sam_local.cases import CASES
from tests.sam_local.invocation import read
from tests.sam_local.processes import Failed, Finished, run

LOG = """\
START RequestId: 4c0dd9b9-9a1a-4b1c-8b5f-0f1ee1e4f2a1 Version: $LATEST
{"level":"INFO","message":"REPORT RequestId: of the function's own\\tDuration: 1.00 ms"}
END RequestId: 4c0dd9b9-9a1a-4b1c-8b5f-0f1ee1e4f2a1
REPORT RequestId: 4c0dd9b9-9a1a-4b1c-8b5f-0f1ee1e4f2a1\tInit Duration: 0.09 ms\tDuration: 1234.56 ms\t\
Billed Duration: 1235 ms\tMemory Size: 512 MB\tMax Memory Used: 512 MB\t
"""


def test_every_event_and_every_function_has_its_turn() -> None:
    assert {case.event for case in CASES} == {path.stem for path in (ROOT / "events").glob("*.json")}
    functions = {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}
    # Its one peer is S3, by the host name of a bucket, which means nothing here: see test_page_function.py.
    assert {case.function for case in CASES} == functions - {"page"}


def test_answer_and_time_of_an_invocation() -> None:
    invoked = read(Finished(output='\n{"statusCode": 200}\n', errors=LOG, status=0, seconds=4.5))
    assert (invoked.answer, invoked.ms, invoked.seconds) == ({"statusCode": 200}, 1234.56, 4.5)


def test_of_an_error_counts_what_the_function_chose() -> None:
    error = {"errorMessage": "Unauthorized", "errorType": "RuntimeError", "requestId": "4c0d", "stackTrace": ["…"]}
    invoked = read(Finished(output=json.dumps(error), errors="", status=0, seconds=1.0))
    assert invoked.answer == {"errorMessage": "Unauthorized", "errorType": "RuntimeError"}
    assert invoked.ms is None


@pytest.mark.parametrize(("output", "answer"), [("", None), ("null", None), ("a sentence of SAM", "a sentence of SAM")])
def test_any_output_is_an_answer(output: str, answer: object) -> None:
    assert read(Finished(output=output, errors="", status=1, seconds=1.0)).answer == answer


@pytest.mark.parametrize("machine", ["x86_64", "arm64"])
def test_all_that_is_compiled_is_built_for_the_machine(machine: str) -> None:
    template = for_architecture(read_document(ROOT / "template.yaml"), machine)
    other = {"x86_64": "arm64", "arm64": "x86_64"}[machine]
    assert other not in json.dumps(template)


async def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"^`sleep 600` took longer than 0 s\.$"):
        await run(["sleep", "600"], {}, tmp_path, 0.1)
    assert "sleep" not in [child.name() for child in psutil.Process().children()]
