"""Embeddings without a model: texts that share a theme are near each other."""

from collections.abc import Mapping, Sequence

from superbizagent.errors import ModelContextTooLong, ModelError

Themes = Mapping[str, Sequence[str]]

THEMES: Themes = {
    "storage": ("disk", "volume", "storage", "inode"),
    "network": ("network", "packet", "gateway", "cable"),
    "restarts": ("crash", "restart", "dies", "over and over"),
    "money": ("payment", "refund", "invoice"),
}


class FakeEmbeddings:
    """Port Embeddings. `errors` are raised by the next calls, in turn; texts over `longest` are refused."""

    def __init__(self, model: str = "themes", longest: int = 10_000, themes: Themes = THEMES) -> None:
        self._model = model
        self._longest = longest
        self._themes = themes
        self.errors: list[ModelError] = []
        self.query_error: ModelError | None = None
        self.requests: list[list[str]] = []
        self.queries: list[str] = []

    @property
    def model(self) -> str:
        return self._model

    @property
    def embedded(self) -> list[str]:
        """Every text that was asked for, in order."""
        return [text for request in self.requests for text in request]

    async def passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.requests.append(list(texts))
        if self.errors:
            raise self.errors.pop(0)
        if any(len(text) > self._longest for text in texts):
            raise ModelContextTooLong
        return [self._vector(text) for text in texts]

    async def query(self, text: str) -> Sequence[float]:
        self.queries.append(text)
        if self.query_error is not None:
            raise self.query_error
        return self._vector(text)

    def _vector(self, text: str) -> Sequence[float]:
        text = text.lower()
        # The last number keeps a text without any theme from having no direction.
        return [float(sum(text.count(word) for word in words)) for words in self._themes.values()] + [0.1]
