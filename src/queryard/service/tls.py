"""The server's side of TLS: a context per certificate, which takes over renewed files."""

from __future__ import annotations

import ssl
from pathlib import Path

from queryard.core.errors import QueryardError

from .config import Tls


def server_context(tls: Tls) -> ssl.SSLContext:
    """A context for all listeners: TLS 1.2 or newer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    take_certificate(context, tls)
    return context


def take_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    """Show the certificate as it is in its files now, to connections that come from now on."""
    for what, file in (("certificate", tls.cert), ("key", tls.key)):
        _check_readable(what, file)
    try:
        context.load_cert_chain(tls.cert, tls.key)
    except (ssl.SSLError, OSError) as error:
        raise QueryardError(
            f"tls: {tls.cert} and {tls.key} are no certificate and key that belong together, in "
            f"PEM and without a password ({error})"
        ) from error


def _check_readable(what: str, file: Path) -> None:
    try:
        with file.open("rb"):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise QueryardError(f"tls: {file}: the {what} cannot be read ({reason})") from error
