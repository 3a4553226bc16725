"""Rows to values: tolerant of what an older or a newer release has stored."""

from typing import Any

from pydantic import ValidationError
from sqlalchemy import Select, select

from superbizagent.adapters.store.columns import AnyRow, member
from superbizagent.adapters.store.tables import diagnosis_run
from superbizagent.domain.content import PublicContent, public_content
from superbizagent.domain.run import Intent, ReleaseOutcome, RunStatus
from superbizagent.domain.stored_run import StoredRun
from superbizagent.errors import StoreError


def select_runs() -> Select[*tuple[Any, ...]]:
    """Every column that a StoredRun, its owner and its place in the order are made of."""
    run = diagnosis_run.c
    return select(
        run.id,
        run.run_id,
        run.session_id,
        run.owner,
        run.request_id,
        run.gateway_request_id,
        run.query,
        run.status,
        run.intent,
        run.release_outcome,
        run.failure_code,
        run.content,
        run.created_at,
        run.finished_at,
    )


def stored_run(row: AnyRow) -> StoredRun:
    """The run in a row. One from before V013 has no request: its run id stands in for the request id."""
    status = member(RunStatus, row.status)
    if status is None:
        raise StoreError("a run has a status that this release doesn't know")
    return StoredRun(
        run_id=row.run_id,
        session_id=row.session_id,
        request_id=row.request_id or row.run_id,
        gateway_request_id=row.gateway_request_id or "",
        query=row.query,
        status=status,
        intent=member(Intent, row.intent),
        outcome=member(ReleaseOutcome, row.release_outcome),
        failure_code=row.failure_code,
        content=_content(row.content),
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


def _content(value: Any) -> PublicContent | None:
    if value is None:
        return None
    try:
        return public_content.validate_python(value)
    except ValidationError:
        return None
