"""Documents for the answers: Markdown files in, ranked passages out (KNOW-5)."""

from superbizagent.adapters.knowledge.folder import BadFolder, check_folder
from superbizagent.adapters.knowledge.index import FullTextKnowledgeIndex
from superbizagent.adapters.knowledge.ingest import Change, ChangeKind, KnowledgeIngest
from superbizagent.adapters.knowledge.tables import metadata

__all__ = [
    "BadFolder",
    "Change",
    "ChangeKind",
    "FullTextKnowledgeIndex",
    "KnowledgeIngest",
    "check_folder",
    "metadata",
]
