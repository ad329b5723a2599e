"""Canonical URLs, and SURT prefixes as Heritrix compares them. Pure.

A SURT has the host's labels in reverse order, so that URLs of one domain share a prefix; all is lower case, and https
is written http:

    https://www.Example.org:8443/News/Today.html   ->   http://(org,example,www,:8443)/news/today.html

A prefix that ends in a comma covers a domain and its subdomains, one that ends in `)/` a host, one that ends in another
`/` a folder.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from ipaddress import AddressValueError, IPv4Address
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from warcmill.formats import hosts

if TYPE_CHECKING:
    from tldextract import TLDExtract

_PORTS = {"http": 80, "https": 443}
_is_host = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.ASCII).fullmatch
# What RFC 3986 allows in a path or a query, and '|'; a '%' counts as the beginning of an escape.
_AS_IT_IS = "!$%&'()*+,-./:;=?@_|~"
_IN_QUERIES = f"{_AS_IT_IS}[]^"  # the engine leaves {} too, but those mean something to its configuration


def canonical(url: str) -> str:
    """Return the URL with its host by the one rule (`hosts`), so that links on pages match, and all else escaped.

    Drops the fragment and a default port, and resolves dot segments (RFC 3986, section 5.2.4). ValueError if it is not
    an http or https URL, or has credentials, or a host that the engine would refuse.
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
    """The SURT of a canonical URL."""
    authority, _, rest = url.partition("://")[2].partition("/")
    return f"{_of_authority(authority)}/{rest.lower()}"


def folder_prefix(url: str) -> str:
    """The SURT prefix of the folder of a canonical URL: all up to its last '/'."""
    return _authority(url) + _rest(url).partition("?")[0].rpartition("/")[0].lower() + "/"


def domain_prefix(url: str) -> str:
    """The SURT prefix of a canonical URL's host without a leading `www.`, on any port, and of its subdomains.

    `www.` before a public suffix stays: www.gov.uk is a site, gov.uk a whole administration.
    For an IP address it is the prefix of that host and port only.
    """
    host = _split(url)[0]
    if is_address(host):
        return f"{_authority(url)}/"
    bare = host.removeprefix("www.")
    return f"http://({_reversed_labels(host if bare != host and is_public_suffix(bare) else bare)}"


def is_public_suffix(host: str) -> bool:
    """True if the names directly below this one belong to different owners: `gov.uk`, `gub.uy`, `blogspot.com`."""
    parts = suffixes()(host)
    return not parts.domain and bool(parts.suffix)


@lru_cache(10_000)
def registered(host: str) -> tuple[str, str]:
    """The registered domain that a host is of, and its public suffix: `example.co.uk` and `co.uk`.

    Of an address, and of a host below no public suffix, it is the host itself and ''.
    """
    parts = suffixes()(host)
    return (".".join((parts.domain, parts.suffix)) if parts.domain and parts.suffix else host), parts.suffix


@cache
def suffixes() -> TLDExtract:
    """The public suffix list that comes with tldextract, loaded on first use; it uses no network and no cache.

    Its private part counts, too: hosts under blogspot.com have different owners, as those under gub.uy.
    """
    from tldextract import TLDExtract  # noqa: PLC0415 it imports requests, a tenth of a second

    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


def with_and_without_www(url: str) -> tuple[str, str]:
    """The canonical URL, and the same with `www.` added or removed: most sites redirect from one to the other.

    Twice the same URL for an IP address.
    """
    host = _split(url)[0]
    if is_address(host):
        return url, url
    other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
    return url, url.replace(f"://{host}", f"://{other}", 1)


def _host(name: str) -> str:
    """A host by the one rule, ValueError for one that is invalid, or an IPv6 address."""
    try:
        host = "" if ":" in name else hosts.canonical(name)
    except ValueError as error:
        raise ValueError(f"{name!r} is no host name: {error}") from error
    if not _is_host(host):
        raise ValueError(f"{name!r} is no host name, and no IPv4 address")
    return host


@lru_cache(10_000)
def is_address(host: str) -> bool:
    """True if a host is an IP address; one of IPv6 is in brackets."""
    if host.startswith("["):
        return True
    try:
        IPv4Address(host)
    except AddressValueError:
        return False
    return True


def _reversed_labels(host: str) -> str:
    return "".join(f"{label}," for label in reversed(host.rstrip(".").split(".")))


def _split(url: str) -> tuple[str, str]:
    """Host and `:port` of a canonical URL."""
    return _host_and_port(url.partition("://")[2].partition("/")[0])


def _host_and_port(authority: str) -> tuple[str, str]:
    if authority.startswith("["):  # an IPv6 address
        host, bracket, port = authority.partition("]")
        return host + bracket, port
    host, colon, port = authority.partition(":")
    return host, colon + port


def _authority(url: str) -> str:
    return _of_authority(url.partition("://")[2].partition("/")[0])


@lru_cache(10_000)
def _of_authority(authority: str) -> str:
    host, port = _host_and_port(authority)
    return f"http://({host}{port})" if is_address(host) else f"http://({_reversed_labels(host)}{port})"


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
