"""Log files of one machine behind the port LogSource."""

from superbizagent.adapters.log_files.source import LogFiles, LogFileSource, SearchTime

__all__ = ["LogFileSource", "LogFiles", "SearchTime"]
