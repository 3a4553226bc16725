"""How connections to the business database are encrypted."""

import ipaddress
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import pymysql

from superbizagent.adapters.mysql_tls import verifying_context
from superbizagent.errors import ConfigurationError

_NO_TLS: Final = 2026
"""CR_SSL_CONNECTION_ERROR."""

T = TypeVar("T")


class Encryption:
    """One TLS context for all connections to a server: PyMySQL would read the authorities again for each.

    With `ca_file` the server has to prove who it is. Without it another machine has to encrypt all the
    same, and only a server on this one may do without. Raises ConfigurationError.
    """

    def __init__(self, host: str | None, ca_file: Path | None) -> None:
        self._context = _context(ca_file)
        self._required = ca_file is not None or not _here(host)
        self._plain = False

    def connected(self, connect: Callable[[dict[str, Any]], T]) -> T:
        """What `connect` returns, given the arguments for the driver."""
        if not self._plain:
            try:
                return connect({"ssl": self._context})
            except pymysql.OperationalError as error:
                if self._required or not error.args or error.args[0] != _NO_TLS:
                    raise
            self._plain = True
        return connect({"ssl_disabled": True})


def _context(ca_file: Path | None) -> ssl.SSLContext:
    if ca_file is None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        return verifying_context(ca_file)
    except (OSError, ValueError) as error:
        raise ConfigurationError("the business database's CA file can't be read") from error


def _here(host: str | None) -> bool:
    """Whether it is this machine; no host: a socket file."""
    if not host or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
