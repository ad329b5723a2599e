"""A host by one rule: as URLs have it, however a person or a page spells it. Pure.

The rule is the host parser of the WHATWG URL standard, by which browsers read hosts. A name is in lower-case ASCII, by
UTS 46 without its transitional mapping: `straße.example` and `strasse.example` are two sites. Escapes are undone. An
IPv4 address is four numbers, also where it was written in octal, in hexadecimal or as one number; an IPv6 address is in
brackets, in its shortest form. The dot at the end of a name counts for DNS alone, and is left out.

The keys of an index (`formats.index.urlkey`) have IDNA 2003, as those of other indexers have. So whoever looks for the
captures of a URL that a person typed writes its host by this rule first.
"""

from __future__ import annotations

import re
from functools import lru_cache

import ada_url

_ends_a_host = re.compile(r"[\s/\\?#@:]").search
_is_ipv6 = re.compile(r"\[[0-9a-f:.]++\]", re.IGNORECASE).fullmatch
_in_url = re.compile(
    r"(\s*+https?:[/\\]{2,}+(?:[^/?#@\\]*+@)?)(\[[0-9a-f:.]++\]|[^/?#@\\:\s]++)(.*)", re.IGNORECASE | re.DOTALL
).fullmatch
_in_surt = re.compile(r"(https?://\(|)(\[[^\]]*+\]|[^):/\s]*+)(.*)", re.DOTALL).fullmatch
_is_plain = re.compile(r"[a-z0-9_.,-]*+", re.ASCII).fullmatch


@lru_cache(10_000)
def canonical(name: str) -> str:
    """The host as URLs have it; ValueError for a text that is the host of no URL."""
    if _ends_a_host(name) and not _is_ipv6(name):
        raise ValueError(f"{name!r} is not a host")
    host = str(ada_url.URL(f"http://{name}/").hostname).rstrip(".")
    if not host:
        raise ValueError(f"{name!r} is not a host")
    return host


def in_url(url: str) -> str:
    """The http or https URL with its host so; a text without a valid host as it is."""
    match = _in_url(url)
    try:
        return f"{match[1]}{canonical(match[2])}{match[3]}" if match else url
    except ValueError:
        return url


def in_surt(prefix: str) -> str:
    """A SURT prefix, or the beginning of an index's key, with its host so; ValueError for an invalid host.

    Of a prefix that ends inside a label, that label has to be in ASCII.
    """
    match = _in_surt(prefix)
    if not match:
        return prefix
    scheme, host, rest = match.groups()
    if scheme and host and "," not in host and rest[:1] in (")", ":"):
        return f"{scheme}{canonical(host)}{rest}"  # an address, in the order of its parts
    if _is_plain(host):
        return prefix
    labels, commas = host.rstrip(","), host[len(host.rstrip(",")) :]
    name = canonical(".".join(reversed(labels.split(","))))
    return f"{scheme}{','.join(reversed(name.split('.')))}{commas}{rest}"
