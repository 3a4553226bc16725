"""Which knowledge index is built, by configuration."""

from pathlib import Path

import pytest

from superbizagent.adapters.knowledge import FullTextKnowledgeIndex
from superbizagent.adapters.knowledge.bedrock import BedrockKnowledgeIndex
from superbizagent.adapters.knowledge.reranked_index import RerankedKnowledgeIndex
from superbizagent.bootstrap import Services
from superbizagent.errors import ConfigurationError
from superbizagent.settings import KnowledgeSettings

EMBEDDINGS = {"EMBEDDINGS_MODEL": "m", "EMBEDDINGS_BASE_URL": "http://127.0.0.1:9/v1"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in KnowledgeSettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path / 'index.db'}")


@pytest.mark.spec("KNOW-5")
@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, FullTextKnowledgeIndex),
        ({"EMBEDDINGS_MODEL": "", "KNOWLEDGE_BASE_ID": " "}, FullTextKnowledgeIndex),
        (EMBEDDINGS, RerankedKnowledgeIndex),
        ({"KNOWLEDGE_BASE_ID": "KB12345678"}, BedrockKnowledgeIndex),
        ({"KNOWLEDGE_BASE_ID": "KB12345678", **EMBEDDINGS}, BedrockKnowledgeIndex),
    ],
)
def test_the_index_is_chosen_by_configuration(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: type
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert type(Services().knowledge) is expected


def test_an_embeddings_server_without_a_model_is_half_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDINGS_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ConfigurationError, match="EMBEDDINGS_MODEL is not"):
        _ = Services().knowledge
