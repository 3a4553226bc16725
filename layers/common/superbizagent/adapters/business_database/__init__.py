"""The business database behind the port BusinessDatabase: one guarded, read-only SELECT a call."""

from superbizagent.adapters.business_database.database import ReadOnlyDatabase, read_only_database
from superbizagent.adapters.business_database.driver import QueryLimits

__all__ = ["QueryLimits", "ReadOnlyDatabase", "read_only_database"]
