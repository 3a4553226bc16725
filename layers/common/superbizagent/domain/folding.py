"""The one spelling in which texts are compared."""

import unicodedata

from superbizagent.domain.text import fold_whitespace


def normalise(text: str) -> str:
    """Compatibility forms folded (full-width digits, ligatures); white space made single spaces."""
    return fold_whitespace(unicodedata.normalize("NFKC", text))
