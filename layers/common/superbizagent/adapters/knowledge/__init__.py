"""Documents for the answers: Markdown files in, ranked passages out (KNOW-5).

Here is what every deployment needs. Filling the index (`ingest`, `embedding_ingest`, `folder`), ranking by meaning
(`reranked_index`) and a knowledge base of Amazon Bedrock (`bedrock`) are modules of their own, for those who use them.
"""

from superbizagent.adapters.knowledge.index import FullTextKnowledgeIndex
from superbizagent.adapters.knowledge.tables import metadata

__all__ = ["FullTextKnowledgeIndex", "metadata"]
