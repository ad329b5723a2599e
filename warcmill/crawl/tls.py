"""TLS as an archive needs it: a certificate that is not valid is noted, not refused, and old servers are still read.

A first handshake verifies and demands what is sound today. When that fails, a
second one on a new connection takes what the server has, and the reason of the
first is the note.
"""

from __future__ import annotations

import ssl
from functools import cache

ALPN = ["http/1.1"]  # HTTP/2 has no agreed form in a WARC
REFUSED = (ssl.SSLError, ConnectionResetError)  # old servers end what they do not know without an alert
ENDED = "the server ended the connection during the handshake"
_OLD = "ALL:!aNULL:!eNULL:@SECLEVEL=0"


@cache
def strict() -> ssl.SSLContext:
    """The context that verifies."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(ALPN)
    return context


@cache
def lax() -> ssl.SSLContext:
    """The context that takes any certificate, and protocols and ciphers of old."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.set_ciphers(_OLD)
    context.options |= getattr(ssl, "OP_LEGACY_SERVER_CONNECT", 0x4)
    context.set_alpn_protocols(ALPN)
    return context


def why(error: ssl.SSLError | ConnectionResetError) -> str:
    """The reason of a failed handshake, for the note."""
    if isinstance(error, ConnectionResetError):
        return ENDED
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (error.reason or str(error)).replace("_", " ").lower()
