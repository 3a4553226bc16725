"""No cut goes through a secret before redaction has seen the whole of it (SEC-3)."""

from pathlib import Path

import pytest

from superbizagent.adapters.business_database.rows import RowFormat
from superbizagent.adapters.log_files import LogFiles, LogFileSource
from superbizagent.adapters.redaction import SecretRedactor
from superbizagent.domain.evidence import Evidence, QueryLogs
from tests.planted_secrets import Planted, planted

redact = SecretRedactor()
SECRETS = [secret for secret in planted(40) if "\n" not in secret.text]


async def read(folder: Path, text: str) -> Evidence:
    (folder / "a.log").write_text(text)
    source = LogFileSource(description="", paths=(str(folder / "*.log"),))
    return await LogFiles({"a": source}).query_logs(QueryLogs(source="a"))


def shown(evidence: Evidence) -> str:
    return redact("\n".join((*evidence.summary, *evidence.lines)))


@pytest.mark.spec("SEC-3")
@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.kind)
async def test_a_line_that_is_too_long_ends_before_a_secret(tmp_path: Path, secret: Planted) -> None:
    half = len(secret.text) // 2
    line = "2026-11-30T14:00:00Z ERROR " + "x" * 40 + " "
    line += "y " * ((64 * 1024 - half - len(line)) // 2) + secret.text
    evidence = await read(tmp_path, line + "\n")

    text = shown(evidence)

    halves = secret.secret[: len(secret.secret) // 3]
    assert len(halves) < 8 or halves not in text


@pytest.mark.spec("SEC-3")
async def test_a_key_block_without_times_is_one_record(tmp_path: Path) -> None:
    key = next(secret for secret in planted(40) if secret.kind == "private key")
    evidence = await read(tmp_path, f"before\n{key.secret}\nafter\n")

    assert [line.split("\n")[0] for line in evidence.lines] == ["before", "-----BEGIN RSA PRIVATE KEY-----", "after"]
    assert not [part for part in key.parts if part in shown(evidence)]


@pytest.mark.spec("SEC-3")
@pytest.mark.parametrize("before", range(60, 101, 4))
def test_a_cell_is_redacted_before_it_is_cut(before: int) -> None:
    key = next(secret for secret in planted(40) if secret.kind == "github token").secret
    row = RowFormat.for_names(["body"], 100, redact)

    text = row.row(["x" * (before - 1) + " " + key + " and more" * 20])

    assert key[:8] not in text
    assert row.cut_cells == 1
