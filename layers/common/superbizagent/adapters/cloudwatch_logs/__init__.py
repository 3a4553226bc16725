"""CloudWatch Logs behind the port LogSource: configured aliases of log groups, searched by Logs Insights."""

from superbizagent.adapters.cloudwatch_logs.calls import LogsApi, group_arn, new_api
from superbizagent.adapters.cloudwatch_logs.source import CloudWatchLogs, CloudWatchSource

__all__ = ["CloudWatchLogs", "CloudWatchSource", "LogsApi", "group_arn", "new_api"]
