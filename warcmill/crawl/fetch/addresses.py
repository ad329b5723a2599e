"""The addresses of a host, and a judge of those that may be connected to. Asks name servers; reads the hosts file.

Answers given by the operator (`--resolve HOST=ADDRESS`) come first, then the hosts file; both have Heritrix's status
1001 and no record. Then name servers are asked, for IPv4 and IPv6 at once; that has status 1. An answer is kept for the
WARC, and for its TTL.

Strangers' pages ask a crawler to go to addresses, inside ones too. Only what the public internet routes passes, by
IANA's registries of special-purpose addresses (RFC 6890). An IPv6 address with an IPv4 address in it (mapped, NAT64,
6to4, Teredo, ISATAP) is refused whatever that is: it leads to where the machine's network takes it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from warcmill.base import clock
from warcmill.crawl.fetch import heartbeat
from warcmill.crawl.fetch.limits import NO_ADDRESS, Failure
from warcmill.errors import BadConfig
from warcmill.formats.hosts import canonical
from warcmill.formats.warc import records
from warcmill.formats.warc.records import Capture, Record

if TYPE_CHECKING:
    import dns.asyncresolver
    import dns.resolver

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


BY_DNS, BY_FILE = 1, 1001
HOSTS = Path("/etc/hosts")
LIFETIME = 20.0  # seconds for the answer to one question, from all servers
TTL_LEAST, TTL_MOST = 5, 86_400  # seconds that an answer is kept, whatever its TTL
TTL_FAILURE = 60
KEPT = 20_000  # answers
NO_NAME = "no such name"
Fixed = Mapping[str, tuple[str, ...]]


class Judge:
    """A judge of the addresses that may be connected to: public ones, and those in the networks of `allow_private`."""

    def __init__(self, allow_private: Iterable[str] = ()) -> None:
        self._allowed = [_network(text) for text in allow_private]
        self.why_refused = lru_cache(maxsize=10_000)(self._why_refused)

    def _why_refused(self, address: str) -> str:
        """Return why the address is refused; '' when it is not. `address` is numeric, as a resolver returns it."""
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


class HostLookup(Struct, frozen=True):
    """The addresses of a host, IPv4 first. `status` is Heritrix's; `text` the block of its record, '' without one."""

    host: str
    addresses: tuple[str, ...]
    status: int
    ttl: int
    started: datetime
    took_ms: int = 0
    server: str = ""
    text: str = ""

    @property
    def uri(self) -> str:
        """The URI of the lookup, as Heritrix logs it."""
        return f"dns:{self.host}"


def record_of(lookup: HostLookup) -> Record | None:
    """The record of an answer by a name server; None for another's."""
    if not lookup.text:
        return None
    return records.dns(Capture(lookup.uri, clock.text(lookup.started), lookup.server), lookup.text)


def parse_fixed(options: Iterable[str]) -> Fixed:
    """Parse options of the form HOST=ADDRESS; a host may have several."""
    fixed: dict[str, tuple[str, ...]] = {}
    for option in options:
        host, equals, address = option.partition("=")
        if not equals or not host or not _is_address(address):
            raise BadConfig("resolve", f"{option[:80]!r} is not HOST=ADDRESS, such as www.example.org=127.0.0.1")
        fixed[_name(host)] = (*fixed.get(_name(host), ()), address)
    return fixed


def read_hosts(path: Path = HOSTS) -> Fixed:
    """Read a hosts file: an address and its names a line. A file that is not there names nothing."""
    if not path.exists():
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for line in path.read_text("utf-8", "replace").splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        for name in names if _is_address(address) else []:
            found[_name(name)] = (*found.get(_name(name), ()), address)
    return found


class Resolver:
    """Looks hosts up. `servers` are addresses and ports of name servers; without any, those of the machine."""

    def __init__(self, fixed: Fixed | None = None, hosts: Fixed | None = None, servers: Sequence[tuple[str, int]] = ()):
        self._fixed = {**(hosts or {}), **(fixed or {})}
        self._servers = servers
        self._kept: OrderedDict[str, tuple[float, HostLookup | Failure]] = OrderedDict()
        self._asked: dict[str, asyncio.Task[HostLookup | Failure]] = {}

    def known(self, host: str) -> HostLookup | Failure | None:
        """Return what is known of a host without asking; None when it has to be asked, or asked anew."""
        name = _name(host)
        if addresses := (name,) if _is_address(name) else self._fixed.get(name):
            return HostLookup(name, addresses, BY_FILE, TTL_MOST, datetime.now(UTC))
        until, lookup = self._kept.get(name, (0.0, None))
        return lookup if asyncio.get_running_loop().time() < until else None

    async def lookup(self, host: str) -> HostLookup | Failure:
        """Return the addresses of a host; several who ask at once share one question."""
        if known := self.known(host):
            return known
        name = _name(host)
        if name not in self._asked:
            self._asked[name] = asyncio.create_task(self._ask(name))
            self._asked[name].add_done_callback(lambda _: self._asked.pop(name, None))
        return await asyncio.shield(self._asked[name])

    async def _ask(self, name: str) -> HostLookup | Failure:
        started = datetime.now(UTC)
        four, six = await asyncio.gather(self._question(name, "A"), self._question(name, "AAAA"))
        answers = [answer for answer in (four, six) if not isinstance(answer, str)]
        addresses = tuple(str(data) for answer in answers for data in answer.rrset or ())
        if not addresses:
            why = next((answer for answer in (four, six) if isinstance(answer, str) and answer), "it has no address")
            certain = all(not isinstance(answer, str) or answer == NO_NAME for answer in (four, six))
            return self._keep(name, Failure(NO_ADDRESS, f"{name}: {why}", final=certain), TTL_FAILURE)
        ttl = min(answer.chaining_result.minimum_ttl for answer in answers if answer.rrset)
        took = round((datetime.now(UTC) - started).total_seconds() * 1000)
        server = str(answers[0].nameserver or "")
        lookup = HostLookup(name, addresses, BY_DNS, ttl, started, took, server, _text(started, answers))
        return self._keep(name, lookup, ttl)

    @cached_property
    def _resolver(self) -> dns.asyncresolver.Resolver:
        return _resolver(self._servers)

    async def _question(self, name: str, kind: str) -> dns.resolver.Answer | str:
        """The answer to one question; else why there is none, '' when the name has no record of this kind."""
        import dns.exception  # noqa: PLC0415 see _resolver
        import dns.resolver  # noqa: PLC0415

        beats = heartbeat.current()
        end = beats.now() + LIFETIME
        try:
            while (left := end - beats.now()) > 0:
                with suppress(dns.exception.Timeout):  # the resolver counts what the loop stood, too
                    return await self._resolver.resolve(
                        f"{name}.", kind, raise_on_no_answer=False, search=False, lifetime=left
                    )
                await asyncio.sleep(0)  # the heart beats
            return f"no name server answered in {LIFETIME:g} s"
        except dns.resolver.NXDOMAIN:
            return NO_NAME
        except (dns.exception.DNSException, OSError, ValueError) as error:
            return " ".join(str(error).split())[:200] or type(error).__name__

    def _keep(self, name: str, lookup: HostLookup | Failure, ttl: int) -> HostLookup | Failure:
        until = asyncio.get_running_loop().time() + min(max(ttl, TTL_LEAST), TTL_MOST)
        self._kept[name] = (until, lookup)
        self._kept.move_to_end(name)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return lookup


def _resolver(servers: Sequence[tuple[str, int]]) -> dns.asyncresolver.Resolver:
    import dns.asyncresolver  # noqa: PLC0415 a tenth of the crawler's start, and a site may need none
    import dns.nameserver  # noqa: PLC0415
    import dns.resolver  # noqa: PLC0415

    try:
        resolver = dns.asyncresolver.Resolver(configure=not servers)
    except dns.resolver.NoResolverConfiguration:
        resolver = dns.asyncresolver.Resolver(configure=False)  # each question then fails, as there is no server
    if servers:
        resolver.nameservers = [dns.nameserver.Do53Nameserver(address, port) for address, port in servers]
    return resolver


def _text(started: datetime, answers: Iterable[dns.resolver.Answer]) -> str:
    """The records of the answers, as Heritrix writes them: the time, then a record a line."""
    import dns.rdatatype  # noqa: PLC0415 see _resolver

    lines = [
        f"{rrset.name}\t\t{rrset.ttl}\tIN\t{dns.rdatatype.to_text(rrset.rdtype)}\t{data}\n"
        for answer in answers
        for rrset in answer.response.answer
        for data in rrset
    ]
    return f"{clock.digits(started)}\n{''.join(dict.fromkeys(lines))}"


def _name(host: str) -> str:
    """A host as URIs have it, without brackets."""
    try:
        return canonical(host).strip("[]")
    except ValueError:
        return host.strip("[]").rstrip(".").lower()


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
