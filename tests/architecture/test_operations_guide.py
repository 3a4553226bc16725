"""docs/operations.md against the template and the code: at night nobody has time for a name that isn't there."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from local.gateway.template.reader import read_document
from migrations.run import TABLE_LOCK_SECONDS, known_revisions
from superbizagent.adapters.store import Timeouts
from superbizagent.settings import DatabaseSettings, RunSettings

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
TEMPLATE = read_document(ROOT / "template.yaml")
SOURCE = "\n".join(
    path.read_text(encoding="utf-8")
    for path in [
        ROOT / "template.yaml",
        *(path for folder in ("layers", "functions", "migrations") for path in (ROOT / folder).rglob("*.py")),
    ]
)
FENCED = re.compile(r"```.*?```", re.DOTALL)
QUOTED = {" ".join(words.split()) for words in re.findall(r"`([^`]+)`", FENCED.sub("", GUIDE))}
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in GUIDE.splitlines() if line.startswith("|")]
COMMANDS = "\n".join(re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)) + "\n".join(QUOTED)
LAMBDA_CONDITIONS = {"EventAgeExceeded", "RetriesExhausted"}
"""Why Lambda gave up an event, in its own words."""


def _of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {
        name: resource["Properties"] for name, resource in TEMPLATE["Resources"].items() if resource["Type"] == kind
    }


def _first_cells() -> set[str]:
    return {name for row in ROWS for name in row[0].split(", ")}


def test_every_alarm_has_a_section_and_every_section_its_alarm() -> None:
    alarms = set(_of_type("AWS::CloudWatch::Alarm"))
    assert set(re.findall(r"^### (\w+Alarm)$", GUIDE, re.MULTILINE)) == alarms


@pytest.mark.parametrize("alarm", sorted(_of_type("AWS::CloudWatch::Alarm")))
def test_a_section_of_an_alarm_says_what_to_look_at_what_to_do_and_when_not_to(alarm: str) -> None:
    found = re.search(rf"^### {alarm}$(.*?)^##", GUIDE, re.MULTILINE | re.DOTALL)
    assert found is not None
    assert [word for word in ("**First**", "**Do**", "**Ignore**") if word not in found[1]] == []


def test_every_parameter_has_its_row() -> None:
    assert {f"`{name}`" for name in TEMPLATE["Parameters"]} <= _first_cells()


def test_every_widget_has_its_row() -> None:
    body = json.dumps(_of_type("AWS::CloudWatch::Dashboard")["Dashboard"]["DashboardBody"])
    titles = re.findall(r'\\"title\\": \\"(.+?)\\"', body)
    assert len(titles) > 30
    # A title may have a comma itself.
    assert [title for title in titles if not any(row[0] and title in row[0] for row in ROWS)] == []


def test_every_saved_query_is_named() -> None:
    names = {query["Name"]["Fn::Sub"].partition("/")[2] for query in _of_type("AWS::Logs::QueryDefinition").values()}
    assert names <= QUOTED


def test_every_name_that_is_quoted_exists() -> None:
    """In camel case: resources, parameters, outputs, their properties, and metrics."""
    names = {name.partition("=")[0] for name in QUOTED if re.fullmatch(r"[A-Z][a-z]+([A-Z][A-Za-z0-9]*)+(=\S+)?", name)}
    assert len(names) > 60
    assert {name for name in names if not re.search(rf"\b{name}\b", SOURCE)} <= {
        *LAMBDA_CONDITIONS,
        # Made by SAM, of the function's name and the event's.
        *(f"{name}{event}" for name, one in _functions().items() for event in one.get("Events", {})),
    }


def test_every_variable_and_code_that_is_quoted_exists() -> None:
    names = {word for name in QUOTED for word in re.findall(r"^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$", name)}
    assert len(names) > 20
    assert {name for name in names if name not in SOURCE and name.lower() not in SOURCE} <= {
        # States of a stack, in CloudFormation's words.
        "DELETE_FAILED",
        "ROLLBACK_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
        "UPDATE_ROLLBACK_FAILED",
    }


def test_what_commands_ask_the_stack_for_it_has() -> None:
    asked = set(re.findall(r"\bphysical (\w+)", COMMANDS))
    assert {"Database", "FailedChats", "MigrateFunction"} <= asked
    assert asked <= set(TEMPLATE["Resources"])
    assert set(re.findall(r"(?<!-)\boutput (\w+)", COMMANDS)) <= set(TEMPLATE["Outputs"])
    [stopped] = re.findall(r'ALL="([^"]+)"', GUIDE)
    # Whatever writes to the database, but for the one that migrates it; the authorizer and the page have no database.
    assert set(stopped.split()) == set(_functions()) - {"AuthorizerFunction", "MigrateFunction", "PageFunction"}


def test_limits_are_those_of_the_code() -> None:
    defaults = {
        name.upper(): field.default
        for shape in (RunSettings, DatabaseSettings)
        for name, field in shape.model_fields.items()
    }
    stated = {row[0].strip("`"): float(row[1]) for row in ROWS if row[0].strip("`") in defaults}
    assert len(stated) == 9
    assert stated == {name: defaults[name] for name in stated}
    assert f"the function's {_functions()['ChatFunction']['Timeout']}" in GUIDE
    assert f"waits {TABLE_LOCK_SECONDS} seconds" in " ".join(GUIDE.split())
    assert f"repeated for {Timeouts().patience:g} s" in " ".join(GUIDE.split())
    assert f'"{known_revisions()[0]}", "newest": "{known_revisions()[0]}"' in GUIDE


def _functions() -> dict[str, dict[str, Any]]:
    return _of_type("AWS::Serverless::Function")


# Links ---------------------------------------------------------------------------------------------

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "local" / "gateway" / "README.md"]


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in _anchors(linked), target
