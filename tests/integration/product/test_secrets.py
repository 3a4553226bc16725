"""A hundred secrets in logs, rows and documents: none gets to the model, the store, a frame or our own logs."""

import contextlib
import json
import logging
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from superbizagent import ingest
from superbizagent.bootstrap import redactor
from tests.planted_secrets import Planted, planted
from tests.product.running import Product, running

QUESTION = "Why are logins failing since 14:00 on 2026-11-30?"
LOGGED, STORED = 40, 70
"""The first are in the logs, those up to this in rows, the rest in documents."""

ROOMS = ("basement", "attic", "terrace")

EVIDENCE = """
[logs.gate]
description = "Logins, password=hunter2-in-a-description"
paths = ["logs/gate*.log"]

[database]
url = "sqlite:///business.db"

[database.tables.note]
description = "Notes of the desk"

[database.tables.account]
description = "Accounts of services"
"""


def write_evidence(folder: Path, secrets: Sequence[Planted]) -> None:
    (folder / "logs").mkdir()
    (folder / "runbooks").mkdir()
    (folder / "evidence.toml").write_text(EVIDENCE)
    (folder / "logs" / "gate.log").write_text("".join(_log_lines(secrets[:LOGGED])))
    (folder / "logs" / "gate-undated.log").write_text(secrets[LOGGED - 1].text + "\n")
    _write_rows(folder / "business.db", secrets[LOGGED:STORED])
    _write_documents(folder / "runbooks", secrets[STORED:])


def _log_lines(secrets: Sequence[Planted]) -> Iterator[str]:
    for number, secret in enumerate(secrets):
        yield f"2026-11-30T14:{number:02}:00Z ERROR gate Login of service {number} failed: {secret.text}\n"
    # Cut inside the secret by the longest line that is read, and by the longest that is shown.
    for number, filling in enumerate((65_536 - 70, 1_000 - 70, 8_000 - 70)):
        yield f"2026-11-30T14:5{number}:00Z ERROR gate {'x' * 40} {'detail ' * (filling // 7)}{secrets[0].secret}\n"


def _write_rows(path: Path, secrets: Sequence[Planted]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE note (id INTEGER, body TEXT)")
        connection.execute("CREATE TABLE account (login TEXT, password TEXT, api_key TEXT)")
        for number, secret in enumerate(secrets):
            # Longer than a cell may be, and cut inside the secret.
            body = (
                secret.text if number % 3 else f"{'detail ' * 700}"[: 2_000 - len(secret.text) // 2] + " " + secret.text
            )
            connection.execute("INSERT INTO note VALUES (?, ?)", (number, body))
            connection.execute("INSERT INTO account VALUES (?, ?, ?)", (f"svc-{number}", secret.secret, secret.secret))


def _write_documents(folder: Path, secrets: Sequence[Planted]) -> None:
    for number, secret in enumerate(secrets):
        block = f"```\n{secret.text}\n```" if number % 2 else secret.text
        # Some passages are cut to what is around the words looked for.
        filling = "Nothing to see. " * (70 if number % 10 == 0 else 1)
        room = ROOMS[number // 10]
        text = f"# Desk entry {number}\n\n## Keys of {room}\n\n{filling}\n\n{room}: {block}\n"
        (folder / f"desk-{number:02}.md").write_text(text)


_MARK = re.compile(r"\[secret:[a-z-]+:[0-9a-f]{8}\]")
CALLS: tuple[tuple[tuple[str, Any], ...], ...] = (
    # Alone, because calls of one turn are numbered as they come back.
    (("query_logs", {"source": "gate", "limit": 200}),),
    (
        ("query_logs", {"source": "gate", "limit": 200, "contains": ["Login of service 1"]}),
        ("query_logs", {"source": "gate", "start": "2026-11-30T14:50:00Z", "end": "2026-11-30T15:00:00Z"}),
        ("query_mysql", {"statement": "SELECT * FROM note"}),
        ("query_mysql", {"statement": "SELECT login, password FROM account"}),
        ("query_mysql", {"statement": "SELECT login, api_key FROM account"}),
    ),
    tuple(("lookup_knowledge", {"query": room, "limit": 10}) for room in ROOMS),
    (("query_mysql", {"statement": "SELECT nothing FROM note"}), ("query_logs", {"source": "vault"})),
)


async def ask_everything(product: Product, first: Planted) -> list[dict[str, Any]]:
    """The frames of two runs that fetch all there is; the first publishes a claim about a line with a secret."""
    for calls in CALLS:
        product.model.enqueue_calls(calls, kind="agent")
    marked = redactor(product.database)(f"Login of service 0 failed: {first.text}")
    claim = {"text": f"The gate logged: {marked}", "evidence_ids": ["E1"], "quotes": [marked]}
    draft = {
        "conclusion": "Login of service 0 failed.",
        "claims": [claim],
        "scope": "gate",
        "limitations": [],
        "next_steps": [],
    }
    product.model.enqueue_calls([("submit_draft", draft)], kind="agent")
    browser = await product.connect()
    frames = await browser.run(QUESTION)
    assert frames[-2]["content"]["type"] == "DIAGNOSIS", frames[-2]
    assert frames[-2]["content"]["claims"][0]["quotes"] == [marked]
    frames += await browser.run("What does the runbook say about the keys of the attic?")
    frames += await browser.history(sessionId=frames[0]["sessionId"])
    return frames


async def stored_text(product: Product) -> str:
    tables = await product.database.read(lambda connection: inspect(connection).get_table_names())
    assert {"diagnosis_run", "knowledge_chunk"} <= set(tables)
    return "\n".join([str(await product.rows(table)) for table in tables])


@pytest.mark.spec("SEC-3", "SEC-4")
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_secret_leaves_its_source(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """P109."""
    caplog.set_level(logging.INFO)
    secrets = planted(100)
    assert len({secret.secret for secret in secrets}) == 100
    assert len({secret.kind for secret in secrets}) >= 25
    folder = tmp_path / "evidence"
    folder.mkdir()
    write_evidence(folder, secrets)
    assert ingest.main([str(folder / "runbooks"), "--url", database_url, "--collection", "runbooks"]) == 0

    async with running(database_url, folder, PROJECTION_BYTES="150000", RUN_TOKENS="5000000") as product:
        frames = await ask_everything(product, secrets[0])
        asked = json.dumps(product.model.bodies, ensure_ascii=False)
        stored = await stored_text(product)
        redact = redactor(product.database)
    output = "".join(capfd.readouterr()) + caplog.text

    reached = [secret for secret in secrets if set(_MARK.findall(redact(secret.text))) <= set(_MARK.findall(asked))]
    # Were they not fetched, the test would say nothing.
    assert len(reached) == 100, [secret.text[:40] for secret in secrets if secret not in reached]
    assert "[secret:" in stored
    places = {"model": asked, "store": stored, "frames": json.dumps(frames, ensure_ascii=False), "logs": output}
    found = {
        (place, secret.kind, secret.text)
        for place, text in places.items()
        for secret in secrets
        for part in secret.parts
        for form in (part, json.dumps(part)[1:-1], json.dumps(json.dumps(part)[1:-1])[1:-1])
        if form in text
    }
    assert found == set()
    assert "hunter2" not in asked
    # Nothing of the evidence or the question at all is in our own logs (SEC-4).
    assert "Login of service" not in output
    assert "logins failing" not in output
