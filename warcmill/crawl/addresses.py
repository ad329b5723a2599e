"""Judge an address before it is dialled: a crawler is asked by strangers' pages to go to addresses, inside ones too.

Only what the public internet routes passes, by IANA's registries of special-purpose
addresses (RFC 6890). An IPv6 address with an IPv4 address in it (mapped, NAT64,
6to4, Teredo, ISATAP) is refused whatever that is: it leads to where the machine's
network takes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from warcmill.errors import BadConfig

Network = IPv4Network | IPv6Network

_REFUSED = {
    "0.0.0.0/8": "unspecified: this host",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "shared by a provider",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "for protocols",
    "192.0.2.0/24": "for documentation",
    "192.31.196.0/24": "of a name server's sink",
    "192.52.193.0/24": "of a relay",
    "192.88.99.0/24": "of a 6to4 relay",
    "192.168.0.0/16": "private",
    "192.175.48.0/24": "of a name server's sink",
    "198.18.0.0/15": "for benchmarks",
    "198.51.100.0/24": "for documentation",
    "203.0.113.0/24": "for documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved, or broadcast",
    "::/128": "unspecified",
    "::1/128": "loopback",
    "::/96": "an IPv4 address in IPv6",
    "::ffff:0:0/96": "an IPv4 address in IPv6",
    "::ffff:0:0:0/96": "an IPv4 address in IPv6",
    "64:ff9b::/96": "NAT64",
    "64:ff9b:1::/48": "NAT64",
    "100::/64": "discarded",
    "2001::/32": "Teredo",
    "2001::/23": "for protocols",
    "2001:db8::/32": "for documentation",
    "2002::/16": "6to4",
    "2620:4f:8000::/48": "of a name server's sink",
    "3fff::/20": "for documentation",
    "5f00::/16": "of segment routing",
    "fc00::/7": "private",
    "fe80::/10": "link-local",
    "fec0::/10": "site-local",
    "ff00::/8": "multicast",
}
_TABLE = [(ip_network(text), why) for text, why in _REFUSED.items()]
_PUBLIC_V6 = IPv6Network("2000::/3")  # all that is given out for unicast (RFC 4291, 2.4)
_ISATAP = (0x00005EFE, 0x02005EFE)  # begin of an interface's part that continues with an IPv4 address (RFC 5214, 6.1)


class Judge:
    """Which addresses may be dialled: public ones, and those in the networks of `allow_private`."""

    def __init__(self, allow_private: Iterable[str] = ()) -> None:
        self._allowed = [_network(text) for text in allow_private]
        self.why_refused = lru_cache(maxsize=10_000)(self._why_refused)

    def _why_refused(self, address: str) -> str:
        """Return why the address is not dialled; '' when it may be. `address` is numeric, as a resolver returns it."""
        try:
            parsed = ip_address(address)
        except ValueError:
            return "it is no address"
        if isinstance(parsed, IPv6Address) and parsed.scope_id:
            return "it names an interface of this machine"
        if any(parsed in network for network in self._allowed):
            return ""
        return _special(parsed)


def _special(address: IPv4Address | IPv6Address) -> str:
    for network, why in _TABLE:
        if address in network:
            return why
    if isinstance(address, IPv6Address):
        if address not in _PUBLIC_V6:
            return "not given out for public use"
        if int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
            return "ISATAP: an IPv4 address in IPv6"
    return ""


def _network(text: str) -> Network:
    try:
        return ip_network(text.strip())
    except ValueError as error:
        raise BadConfig("allow_private", f"{error}; it takes networks like 10.20.0.0/16 or fd00:1::/48") from error
