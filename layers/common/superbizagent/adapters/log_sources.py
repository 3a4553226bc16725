"""Log sources of several kinds behind one port."""

import asyncio
from collections.abc import Mapping, Sequence

from superbizagent.domain.evidence import Evidence, QueryLogs
from superbizagent.errors import ConfigurationError, UnknownSource
from superbizagent.ports import LogSource


class LogSources:
    """Implements the port LogSource: each name belongs to one of several sources.

    `kinds` are pairs of a source and the names it answers to. Raises ConfigurationError for a name in two.
    """

    def __init__(self, kinds: Sequence[tuple[LogSource, Sequence[str]]]) -> None:
        names = [name for _, own in kinds for name in own]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(f"these log sources are set up twice: {', '.join(twice)}")
        self._kinds = [source for source, own in kinds if own]
        self._by_name: Mapping[str, LogSource] = {name: source for source, own in kinds for name in own}

    async def describe(self) -> str:
        """The descriptions of all of them, in their order."""
        texts = await asyncio.gather(*(source.describe() for source in self._kinds))
        return "\n".join(text for text in texts if text)

    async def query_logs(self, query: QueryLogs) -> Evidence:
        source = self._by_name.get(query.source)
        if source is None:
            known = ", ".join(self._by_name) or "none is set up"
            raise UnknownSource(f"There is no log source of that name. The sources are: {known}.")
        return await source.query_logs(query)
