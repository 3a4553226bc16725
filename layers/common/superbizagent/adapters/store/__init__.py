"""The store: runs, cancel requests, connections and history in MySQL, MariaDB or SQLite."""

from superbizagent.adapters.store.accounts import Account, provide_account
from superbizagent.adapters.store.cancellation import SqlCancelRequests
from superbizagent.adapters.store.connections import SqlConnections
from superbizagent.adapters.store.database import Database
from superbizagent.adapters.store.engine import Timeouts
from superbizagent.adapters.store.history import SqlHistory
from superbizagent.adapters.store.runs import SqlRunStore
from superbizagent.adapters.store.tables import metadata

__all__ = [
    "Account",
    "Database",
    "SqlCancelRequests",
    "SqlConnections",
    "SqlHistory",
    "SqlRunStore",
    "Timeouts",
    "metadata",
    "provide_account",
]
