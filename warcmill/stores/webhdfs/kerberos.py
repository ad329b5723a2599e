"""SPNEGO (RFC 4559) for WebHDFS behind Kerberos, by the system's own GSSAPI library (MIT krb5, RFC 2744).

The ticket comes from the system: from the cache that `kinit` filled, or from the keytab that KRB5_CLIENT_KTNAME names,
with which the library gets and renews tickets by itself.
"""

from __future__ import annotations

import base64
import ctypes
import threading
from ctypes import POINTER, byref, c_char_p, c_size_t, c_uint32, c_void_p
from ctypes.util import find_library
from functools import cache

from warcmill.errors import BadConfig, Unavailable
from warcmill.stores.webhdfs.http import Address

_SPNEGO = b"\x2b\x06\x01\x05\x05\x02"  # 1.3.6.1.5.5.2 (RFC 4178)
_HOST_BASED = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04"  # GSS_C_NT_HOSTBASED_SERVICE (RFC 2744, section 4.4)
_FAILED = 0xFFFF0000  # the bits of a status that stand for errors (section 3.9.1)
_GSS_CODE, _MECHANISM_CODE = 1, 2


class _Buffer(ctypes.Structure):
    _fields_ = (("length", c_size_t), ("value", c_void_p))


class _Oid(ctypes.Structure):
    _fields_ = (("length", c_uint32), ("elements", c_char_p))


class Kerberos:
    """Authenticate by a Kerberos ticket. The cookie that a NameNode gives in return is used until it is refused."""

    def __init__(self) -> None:
        self._cookies: dict[Address, str] = {}
        self._lock = threading.Lock()

    def query(self) -> dict[str, str]:
        return {}

    def headers(self, at: Address) -> dict[str, str]:
        """Return the header with the kept cookie, else with a new token."""
        with self._lock:
            if at in self._cookies:
                return {"Cookie": self._cookies[at]}
            return {"Authorization": f"Negotiate {base64.b64encode(token(f'HTTP@{at.host}')).decode()}"}

    def learn(self, at: Address, cookie: str) -> None:
        """Keep the cookie of an answer, `hadoop.auth=...`."""
        name, _, value = cookie.partition(";")[0].partition("=")
        if name == "hadoop.auth" and value:
            self._cookies[at] = f"{name}={value}"

    def forget(self, at: Address) -> bool:
        """Drop a cookie that was refused; False when there was none, so that the ticket itself was refused."""
        return self._cookies.pop(at, None) is not None


def token(service: str) -> bytes:
    """Return the first token of a context with a service, `HTTP@host`; Unavailable when there is no ticket."""
    library, minor = _library(), c_uint32()
    name, context, made = c_void_p(), c_void_p(), _Buffer()
    text = service.encode()
    raw = _Buffer(len(text), ctypes.cast(c_char_p(text), c_void_p))
    kind, spnego = _Oid(len(_HOST_BASED), _HOST_BASED), _Oid(len(_SPNEGO), _SPNEGO)
    try:
        status = library.gss_import_name(byref(minor), byref(raw), byref(kind), byref(name))
        _check(status, minor, service)
        status = library.gss_init_sec_context(
            byref(minor), None, byref(context), name, byref(spnego), 0, 0, None, None, None, byref(made), None, None
        )
        _check(status, minor, service)
        return ctypes.string_at(made.value, made.length)
    finally:
        library.gss_release_buffer(byref(minor), byref(made))
        library.gss_delete_sec_context(byref(minor), byref(context), None)
        library.gss_release_name(byref(minor), byref(name))


def _check(status: int, minor: c_uint32, service: str) -> None:
    if status & _FAILED:
        why = "; ".join(filter(None, (_text(status, _GSS_CODE), _text(minor.value, _MECHANISM_CODE))))
        raise Unavailable(f"a Kerberos ticket for {service}", f"{why}. 'kinit', or set KRB5_CLIENT_KTNAME to a keytab")


def _text(status: int, kind: int) -> str:
    library, minor, more, found = _library(), c_uint32(), c_uint32(), _Buffer()
    library.gss_display_status(byref(minor), status, kind, None, byref(more), byref(found))
    try:
        return ctypes.string_at(found.value, found.length).decode("utf-8", "replace") if found.value else ""
    finally:
        library.gss_release_buffer(byref(minor), byref(found))


@cache
def _library() -> ctypes.CDLL:
    """Load the system's library, and declare the types of the functions that are used."""
    path = find_library("gssapi_krb5")
    if path is None:
        raise BadConfig("[warcmill] store", "auth=kerberos needs MIT Kerberos: on Debian, apt-get install krb5-user")
    library, out, oid, buffer = ctypes.CDLL(path), POINTER(c_void_p), POINTER(_Oid), POINTER(_Buffer)
    status, word = POINTER(c_uint32), c_uint32
    library.gss_import_name.argtypes = (status, buffer, oid, out)
    library.gss_init_sec_context.argtypes = (
        status, c_void_p, out, c_void_p, oid, word, word, c_void_p, buffer, c_void_p, buffer, status, status
    )  # fmt: skip
    library.gss_display_status.argtypes = (status, word, ctypes.c_int, oid, status, buffer)
    library.gss_release_buffer.argtypes = (status, buffer)
    library.gss_delete_sec_context.argtypes = (status, out, buffer)
    library.gss_release_name.argtypes = (status, out)
    for function in ("import_name", "init_sec_context", "display_status"):
        getattr(library, f"gss_{function}").restype = c_uint32
    return library
