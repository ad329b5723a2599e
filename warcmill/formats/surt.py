"""URLs in one spelling, and SURT prefixes, as Heritrix compares them.

A SURT has the host's labels turned round, so that what belongs together begins
alike; all is lower case, and https is written http:

    https://www.Example.org:8443/News/Today.html   ->   http://(org,example,www,:8443)/news/today.html

A prefix that ends in a comma covers a domain and all below it, one that ends
in `)/` a host, one that ends in another `/` a folder.
"""

from __future__ import annotations

import re
from functools import cache
from ipaddress import AddressValueError, IPv4Address
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from tldextract import TLDExtract

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.ASCII)
# What RFC 3986 lets stand in a path or a query, and '|'; a '%' is taken to be an escape already.
_AS_IT_IS = "!$%&'()*+,-./:;=?@_|~"
_IN_QUERIES = f"{_AS_IT_IS}[]^"  # the engine leaves {} too, but those mean something to its configuration


def canonical(url: str) -> str:
    """The URL with its host in ASCII and lower case, and nothing in it that would need escaping.

    No fragment and no default port; dot segments resolved (RFC 3986, section 5.2.4). Host names are
    written by IDNA 2003, as the engine does, so that links on the pages meet them. ValueError: it
    is no http or https URL, or has credentials, or a host that the engine would not take.
    """
    parts = urlsplit(url.strip())
    if parts.username is not None:
        raise ValueError("a URL with credentials in it, which are not shown here")
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"{url[:80]!r} is no http or https URL")
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    path = _without_dots(quote(parts.path.replace("\\", "/") or "/", safe=_AS_IT_IS))
    query = f"?{quote(parts.query, safe=_IN_QUERIES)}" if parts.query else ""
    return f"{parts.scheme}://{_host(parts.hostname)}{port}{path}{query}"


def surt(url: str) -> str:
    """The SURT of one canonical URL."""
    return _authority(url) + _rest(url).lower()


def folder_prefix(url: str) -> str:
    """The prefix of all at and below the URL's last '/'."""
    return _authority(url) + _rest(url).partition("?")[0].rpartition("/")[0].lower() + "/"


def domain_prefix(url: str) -> str:
    """The prefix of the URL's host, without a leading `www.`, on any port, and of all its subdomains.

    The `www.` of a name that is no one's own stays: www.gov.uk is a site, gov.uk a whole administration.
    An IP address has none: it is the prefix of that host and port alone.
    """
    host = _split(url)[0]
    if _is_address(host):
        return f"{_authority(url)}/"
    bare = host.removeprefix("www.")
    return f"http://({_turned(host if bare != host and is_public_suffix(bare) else bare)}"


def is_public_suffix(host: str) -> bool:
    """Whether names directly under this one belong to different owners: `gov.uk`, `gub.uy`, `blogspot.com`."""
    found = _suffixes()(host)
    return not found.domain and bool(found.suffix)


@cache
def _suffixes() -> TLDExtract:
    """The public suffix list that comes with tldextract, read when it is first asked; never the network, nor a cache.

    With its private part: who takes a host under blogspot.com is as foreign to his neighbour as under gub.uy.
    """
    from tldextract import TLDExtract  # noqa: PLC0415 it brings requests along, a tenth of a second

    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


def with_and_without_www(url: str) -> tuple[str, str]:
    """The URL, and the one whose host has, or has not, a `www.` before it: most sites lead from one to the other."""
    host = _split(url)[0]
    if _is_address(host):
        return url, url
    other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
    return url, url.replace(f"://{host}", f"://{other}", 1)


def _host(name: str) -> str:
    """A host name as DNS has it."""
    try:
        host = name.rstrip(".").encode("idna").decode("ascii").lower()
    except UnicodeError as error:
        raise ValueError(f"{name!r} is no host name: {error}") from error
    if not _HOST.fullmatch(host):
        raise ValueError(f"{name!r} is no host name, and no IPv4 address")
    return host


def _is_address(host: str) -> bool:
    try:
        IPv4Address(host)
    except AddressValueError:
        return False
    return True


def _turned(host: str) -> str:
    return "".join(f"{label}," for label in reversed(host.split(".")))


def _split(url: str) -> tuple[str, str]:
    """Host and `:port` of a canonical URL."""
    host, colon, port = url.partition("://")[2].partition("/")[0].partition(":")
    return host, colon + port


def _authority(url: str) -> str:
    host, port = _split(url)
    return f"http://({host}{port})" if _is_address(host) else f"http://({_turned(host)}{port})"


def _rest(url: str) -> str:
    return "/" + url.partition("://")[2].partition("/")[2]


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(kept) + ("/" if segments[-1] in (".", "..") and kept else "")
