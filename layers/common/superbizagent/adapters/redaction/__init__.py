"""Secrets out of text, and characters that nobody sees (SEC-3)."""

from superbizagent.adapters.redaction.invisible import without_invisible
from superbizagent.adapters.redaction.redactor import SecretRedactor

__all__ = ["SecretRedactor", "without_invisible"]
