"""sweep, on a schedule: ends runs whose process died, and forgets connections that can't be open any more."""

from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from superbizagent import bootstrap

logger = Logger(service="superbizagent")
metrics = Metrics()
bootstrap.import_for("connections", "sweep")


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    swept = bootstrap.run(bootstrap.services().sweep.sweep())
    # What was swept is the journal's to count; this is for an alarm on a sweep that doesn't come.
    metrics.add_metric(name="Sweeps", unit=MetricUnit.Count, value=1)
    metrics.flush_metrics()
    return {"runs": len(swept.runs), "connections": swept.connections}
