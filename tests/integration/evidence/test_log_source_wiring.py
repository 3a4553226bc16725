"""What evidence.toml names is what the agent's tools reach."""

from datetime import timedelta
from pathlib import Path

import pytest

from superbizagent.adapters.system_clock import SystemClock
from superbizagent.bootstrap import Services
from superbizagent.domain.evidence import QueryLogs
from tests.cloudwatch_stub import CloudWatchStub, StubEvent
from tests.http_stub import http_stub


@pytest.mark.spec("SEC-2")
async def test_files_and_log_groups_answer_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_database: str
) -> None:
    at = SystemClock().now().replace(microsecond=0) - timedelta(hours=3)
    stub = CloudWatchStub({"/aws/lambda/payments": [StubEvent(at, f"{at.isoformat()} ERROR gateway timed out")]})
    async with http_stub(stub.answer) as server:
        (tmp_path / "web.log").write_text("2026-11-30T14:00:00Z INFO started\n")
        evidence_file = tmp_path / "evidence.toml"
        evidence_file.write_text(
            '[logs.web]\npaths = ["web.log"]\n'
            f'[cloudwatch_settings]\nregion = "eu-west-1"\naccount = "111122223333"\nendpoint_url = "{server.url}"\n'
            '[cloudwatch.payments]\ndescription = "Payments"\nlog_groups = ["/aws/lambda/payments"]\n'
        )
        for name, value in {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "EVIDENCE_FILE": str(evidence_file),
            "DATABASE_URL": sqlite_database,
        }.items():
            monkeypatch.setenv(name, value)
        services = Services()
        try:
            logs = services._sources.logs
            described = await logs.describe()
            files = await logs.query_logs(QueryLogs(source="web"))
            groups = await logs.query_logs(QueryLogs(source="payments", levels=("ERROR",)))
        finally:
            services.database.close()

    assert [line.split(" (")[0] for line in described.splitlines()] == ["web: ", "payments: Payments"]
    assert files.coverage.matched == 1
    assert (groups.coverage.matched, groups.coverage.complete) == (1, True)
    assert "gateway timed out" in groups.lines[0]
