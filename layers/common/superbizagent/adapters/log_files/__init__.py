"""Log files of one machine behind the port LogSource."""

from superbizagent.adapters.log_files.projection import Room
from superbizagent.adapters.log_files.source import LogFiles, LogFileSource, SearchTime

__all__ = ["LogFileSource", "LogFiles", "Room", "SearchTime"]
