"""The store: runs, cancel requests, connections and history in MySQL, MariaDB or SQLite.

What every function needs of it. Runs, history and accounts are in modules of their own, for those who use them: stored
content has many shapes.
"""

from superbizagent.adapters.store.cancellation import SqlCancelRequests
from superbizagent.adapters.store.connections import SqlConnections
from superbizagent.adapters.store.database import Database
from superbizagent.adapters.store.engine import Timeouts
from superbizagent.adapters.store.tables import metadata

__all__ = ["Database", "SqlCancelRequests", "SqlConnections", "Timeouts", "metadata"]
