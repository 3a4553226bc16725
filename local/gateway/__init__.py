"""A local WebSocket API gateway and Lambda runtime for any SAM template: what `sam local` lacks."""

from local.gateway.config import GatewayConfig, StaticSite, read_env_vars, read_static_headers
from local.gateway.errors import ConfigurationError, GatewayError, TemplateError, Unsupported
from local.gateway.gateway import Gateway
from local.gateway.runtime import ChildInfo, Result

__all__ = [
    "ChildInfo",
    "ConfigurationError",
    "Gateway",
    "GatewayConfig",
    "GatewayError",
    "Result",
    "StaticSite",
    "TemplateError",
    "Unsupported",
    "read_env_vars",
    "read_static_headers",
]
