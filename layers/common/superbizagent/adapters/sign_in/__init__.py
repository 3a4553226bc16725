"""Who is connecting: access tokens of one OpenID Connect issuer."""

from superbizagent.adapters.sign_in.issuer import Issuer
from superbizagent.adapters.sign_in.signing_keys import SigningKeys
from superbizagent.adapters.sign_in.tokens import AccessTokens, TokenRules

__all__ = ["AccessTokens", "Issuer", "SigningKeys", "TokenRules"]
