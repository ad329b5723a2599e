"""The key under which the captures of a URL are sorted and found in a CDX index. Pure.

    https://www.Example.org:8443/News/?b=2&A=1   ->   org,example:8443)/news?a=1&b=2

The host's labels are in reverse order; `www.` and the scheme do not count; all is lower case; the query is sorted,
without session ids. The rules are the same as in the indexers in use, so that captures of one URL meet under one key,
with any of them; they were found by experiment, and a service test compares them. Nothing here asks DNS, as others do
about a host of digits.

`same_page` is for where a key has captures of several URLs: it distinguishes these.
"""

from __future__ import annotations

import re
import socket
from contextlib import suppress

import ada_url

_SCHEME = re.compile(rb"([a-zA-Z][a-zA-Z0-9+.-]*):")
_REPEATED_SCHEME = re.compile(rb"\A(?:https?://)+(?=https?://)")
_DROPPED = re.compile(rb"[\t\r\n]")
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")
_ESCAPE_TEXT, _UNRESERVED = re.compile("%([0-9a-fA-F]{2})"), re.compile("[A-Za-z0-9._~-]")
_ESCAPED = re.compile(rb"[\x00-\x20#%\x7f-\xff]")
_SLASHES = re.compile(rb"//+")
_WWW = re.compile(rb"\Awww\d*\.")
_DIGITS = re.compile(rb"[1-9][0-9.]*|0[0-7.]*|[0-9]+")
_PORTS = {b"http": 80, b"https": 443}
_SESSION_LIMIT = 2048  # bytes; in a longer path or query no session id is looked for: it could take quadratic time
_IDNA_LIMIT = 1024  # bytes of a host; a longer one is not a name
_ROUNDS = 8  # of undoing escapes of escapes, before a slower way that never takes quadratic time

_IN_QUERY = [
    re.compile(rb"(.*)" + session + rb"(?:&(.*))?", re.IGNORECASE | re.DOTALL)
    for session in (
        rb"jsessionid=[0-9a-z]{32}",
        rb"phpsessid=[0-9a-z]{32}",
        rb"sid=[0-9a-z]{32}",
        rb"aspsessionid[a-z]{8}=[a-z]{24}",
        rb"cfid=[^&]+&cftoken=[^&]+",
    )
]
_IN_PATH = [
    re.compile(rb"(.*/)" + session + rb"/([^?]+\.aspx.*)", re.IGNORECASE | re.DOTALL)
    for session in (rb"\([0-9a-z]{24}\)", rb"\((?:[a-z]\([0-9a-z]{24}\))+\)")
]

# Most URLs: nothing to escape or to undo, no dot segment, no user, a host with a letter in its last label.
_PLAIN = re.compile(
    r"http(s)?://(?:(?i:www)\d*\.)?+([\w-]+(?:\.[\w-]+)*\.(?!\d+(?:[:/?]|\Z))[\w-]+)(?::(\d{1,4}))?"
    r"((?:/(?!\.)[\w.~!$'*+,;=:@&|)-]+)*/?)(?:\?([\w.~!$'()*+,;=:@&|/?-]*))?",
    re.ASCII,
)
_MAY_HOLD_A_SESSION = re.compile("sid=|sessionid|cfid=")


def urlkey(url: str) -> str:
    """The key of a URL: printable ASCII without blanks. A URL that nobody can read is its own key, escaped."""
    match = _PLAIN.fullmatch(url)
    if match:
        secure, host, port, path, query = match.groups()
        query = query and query.lower()
        if not (query and _MAY_HOLD_A_SESSION.search(query)):
            labels = host.lower().split(".")
            labels.reverse()
            shown = "" if port is None or int(port) in (0, 443 if secure else 80) else f":{int(port)}"
            path = path.lower().rstrip("/") or "/"
            if not query:
                return f"{','.join(labels)}{shown}){path}"
            if "&" in query:
                query = _sorted(query)
            return f"{','.join(labels)}{shown}){path}?{query}"
    try:
        return _key(url.encode("utf-8", "surrogateescape")).decode("ascii")
    except ValueError:  # its port is not a number
        return _escaped(url.encode("utf-8", "surrogateescape")).decode("ascii")


def same_page(url: str) -> str:
    """A URL as it is compared with the URL that a person asks for: as browsers write it, with each escape in one
    spelling, and without scheme, default port and fragment."""
    try:
        text = str(ada_url.normalize_url(url))
    except (ValueError, UnicodeEncodeError):
        text = url.strip()
    text = _ESCAPE_TEXT.sub(_plain_or_upper, text.partition("#")[0])
    return text.partition("://")[2] or text


def _plain_or_upper(match: re.Match[str]) -> str:
    """An escape of a character that needs none (RFC 3986, 2.3) as that character; another one in upper case."""
    plain = chr(int(match[1], 16))
    return plain if _UNRESERVED.fullmatch(plain) else match[0].upper()


def _sorted(query: str) -> str:
    """A query's parts by their names, then by their values."""
    return "&".join(sorted(query.split("&"), key=lambda part: part.partition("=")))


def _key(url: bytes) -> bytes:
    """The key of any URL; ValueError if its port is not a number."""
    text = _DROPPED.sub(b"", url.strip())
    if not text:
        return b"-"
    if text.startswith((b"filedesc", b"warcinfo")):
        return _escaped(text)
    scheme, host, port, path, query = _split(text)
    host = _WWW.sub(b"", _host(host)) if host else b""
    path = _path(path, normal=bool(host))
    query = _query(query)
    begin = b",".join(reversed(host.split(b"."))) + _port(port, scheme) + b")" if host else scheme + b":"
    return begin + (path or (b"/" if host or query else b"")) + (b"?" + query if query else b"")


def _split(text: bytes) -> tuple[bytes, bytes, int, bytes, bytes]:
    """Scheme, host, port (0: none), path and query, lenient as browsers are: `http:/host` and `host/path` will do."""
    text = _REPEATED_SCHEME.sub(b"", text.partition(b"#")[0])
    if not _SCHEME.match(text):
        text = b"http://" + text
    scheme, _, rest = text.partition(b":")
    rest, _, query = rest.partition(b"?")
    host, port, path = b"", 0, rest
    if rest.startswith(b"//"):
        authority, slash, path = rest[2:].partition(b"/")
        path = slash + path
        host, port = _authority(authority)
    if scheme in _PORTS and not host:
        first, slash, more = path.lstrip(b"/").partition(b"/")
        host, path = (first, slash + more or b"/") if first else (b"", path[:1])
    return scheme.lower(), host, port, path, query


def _authority(authority: bytes) -> tuple[bytes, int]:
    """Host and port of what is between `//` and the path (RFC 3986, 3.2). ValueError if the port is not a number."""
    place = authority.rpartition(b"@")[2].rstrip(b":")
    before, bracket, inside = place.partition(b"[")
    if bracket:
        host, _, after = inside.partition(b"]")
        port = after.partition(b":")[2]
    else:
        host, _, port = before.partition(b":")
    if port and (not port.isdigit() or len(port) > 64 or int(port) > 0xFFFF):
        raise ValueError(f"{port[:20]!r} is no port")
    return host, int(port or 0)


def _port(port: int, scheme: bytes) -> bytes:
    return b"" if port in (0, _PORTS.get(scheme.lower())) else b":%d" % port


def _host(name: bytes) -> bytes:
    """A host's name in lower-case ASCII, by IDNA 2003 if that can be; a number as the address that it stands for."""
    name = _unescaped(name)
    if len(name) <= _IDNA_LIMIT:
        with suppress(UnicodeError):  # what is not a name for DNS stays as it is
            name = name.decode("utf-8", "ignore").encode("idna")
    name = name.replace(b"..", b".").strip(b".")
    return _escaped(_address(name) or name.lower())


def _address(name: bytes) -> bytes:
    """The IPv4 address of a host of digits, as inet_aton(3) reads it; empty if it is invalid."""
    if not _DIGITS.fullmatch(name) or len(name) > _IDNA_LIMIT:
        return b""
    if name.isdigit():
        return socket.inet_ntoa((int(name) & 0xFFFFFFFF).to_bytes(4, "big")).encode()
    try:
        return socket.inet_ntoa(socket.inet_aton(name.decode())).encode()
    except OSError:
        return b""


def _path(path: bytes, *, normal: bool) -> bytes:
    path = _unescaped(path)
    path = _escaped(_without_dots(path) if normal else path)
    if len(path) <= _SESSION_LIMIT and b".aspx" in path.lower():
        for session in _IN_PATH:
            path = b"".join(match.groups()) if (match := session.fullmatch(path)) else path
    return (path if path == b"/" else path.removesuffix(b"/")).lower()


def _without_dots(path: bytes) -> bytes:
    """Resolve dot segments and empty ones. A `..` above the root stays, unless another one follows."""
    kept: list[bytes] = []
    for segment in path[1:].split(b"/"):
        if segment == b".." and kept:
            kept.pop()
        elif segment != b".":
            kept.append(segment)
    return _SLASHES.sub(b"/", b"/" + b"/".join(kept))


def _query(query: bytes) -> bytes:
    query = _escaped(_unescaped(query))
    if len(query) <= _SESSION_LIMIT:
        for session in _IN_QUERY:
            query = b"".join(match.groups(b"")) if (match := session.fullmatch(query)) else query
    return _sorted(query.lower().decode("ascii")).encode("ascii")


def _escaped(text: bytes) -> bytes:
    return _ESCAPED.sub(lambda match: b"%%%02x" % ord(match[0]), text)


def _unescaped(text: bytes) -> bytes:
    """Undo escapes, also escapes of escapes, until none is left."""
    for _ in range(_ROUNDS):
        plain = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), text)
        if plain == text:
            return text
        text = plain
    return _unescaped_at_once(text)


def _unescaped_at_once(text: bytes) -> bytes:
    """The same from left to right: each byte is added and taken away at most once."""
    plain = bytearray()
    for byte in text:
        plain.append(byte)
        while _ESCAPE.fullmatch(plain, max(0, len(plain) - 3)):
            plain[-3:] = bytes([int(plain[-2:], 16)])
    return bytes(plain)
