"""The TLS context of connections to MySQL; one place for the store and for the business database."""

import ssl
from os import PathLike

from sqlalchemy.engine import URL


def verifying_context(ca_file: "str | PathLike[str]") -> ssl.SSLContext:
    """Checks certificate and host name. For all connections of an engine: to read RDS's authorities takes 28 ms.

    Raises OSError, as ssl.SSLError is, or ValueError.
    """
    context = ssl.create_default_context(cafile=ca_file)
    # As PyMySQL does: authorities of databases are often older than the strict profile.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def without_tls_options(url: URL) -> URL:
    """For a connection whose TLS is chosen here: the URL could undo it by `ssl_disabled` or `ssl_verify_cert`."""
    return url.difference_update_query([name for name in url.query if name.startswith("ssl")])
