"""Documents for the answers: Markdown files in, ranked passages out (KNOW-5)."""

from superbizagent.adapters.knowledge.bedrock import BedrockKnowledgeIndex
from superbizagent.adapters.knowledge.embedding import Embeddings
from superbizagent.adapters.knowledge.embedding_ingest import Embedded, EmbeddingIngest
from superbizagent.adapters.knowledge.folder import BadFolder, check_folder
from superbizagent.adapters.knowledge.index import FullTextKnowledgeIndex
from superbizagent.adapters.knowledge.ingest import Change, ChangeKind, KnowledgeIngest
from superbizagent.adapters.knowledge.reranked_index import RerankedKnowledgeIndex
from superbizagent.adapters.knowledge.tables import metadata

__all__ = [
    "BadFolder",
    "BedrockKnowledgeIndex",
    "Change",
    "ChangeKind",
    "Embedded",
    "EmbeddingIngest",
    "Embeddings",
    "FullTextKnowledgeIndex",
    "KnowledgeIngest",
    "RerankedKnowledgeIndex",
    "check_folder",
    "metadata",
]
