"""The rules of a group, that say which cluster has a host: `default`, and `[[rule]]` by what a host is. Pure, but for
the operator's file of countries, which is read.

    default = "web-east"

    [[rule]]
    domain = "example.org"            # it, and all under it
    network = "192.0.2.0/24"          # of one of its addresses
    cluster = "web-west"

    [[rule]]
    prefix = "http://(org,example,"   # a SURT
    forbid = true

A rule fits when all of its conditions do. The first that fits counts; before `default` comes the cluster that has
another host of one of its addresses, as politeness counts by address. Once a host is assigned, no rule is asked of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any

from msgspec import Struct

from warcmill.errors import BadConfig
from warcmill.formats import hosts, surt

Network = IPv4Network | IPv6Network
Country = Callable[[str], str]
"""The country of an address, in two letters; '' where it is not known."""

DEFAULT = "default"
CONDITIONS = ("prefix", "domain", "network", "country")
LONGEST = 1 << 20  # bytes of a file
_KEYS = (*CONDITIONS, "cluster", "forbid")


class HostRule(Struct, frozen=True):
    """A rule: its number from 1, its conditions, and the `cluster`; '' forbids the host."""

    number: int
    cluster: str
    prefix: str = ""
    domain: str = ""
    network: Network | None = None
    country: str = ""

    @property
    def needs_address(self) -> bool:
        """True if a host without a known address cannot fit."""
        return bool(self.network or self.country)

    def fits(self, host: str, addresses: Sequence[str], country: Country) -> bool:
        """True if all conditions fit a host with these addresses."""
        if self.prefix and not f"{surt.surt(f'http://{host}/')}".startswith(self.prefix):
            return False
        if self.domain and not (host == self.domain or host.endswith(f".{self.domain}")):
            return False
        if self.network and not any(ip_address(one) in self.network for one in addresses):
            return False
        return not self.country or any(country(one) == self.country for one in addresses)

    @property
    def name(self) -> str:
        """The rule as people name it."""
        conditions = [(name, getattr(self, name)) for name in CONDITIONS if getattr(self, name)]
        words = ", ".join(f"{name} {value}" for name, value in conditions)
        return f"rule {self.number} ({words})"


class Judgement(Struct, frozen=True):
    """The cluster of a host, '' where it is forbidden, and the name of the rule that says so."""

    cluster: str
    rule: str


class HostRules(Struct, frozen=True):
    """The rules of a group, as a file has them; `digest` is that of its text."""

    default: str
    rules: tuple[HostRule, ...]
    text: str

    @property
    def digest(self) -> str:
        """The sha256 of the text."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def needs_countries(self) -> bool:
        """True if a rule is by country."""
        return any(rule.country for rule in self.rules)

    def judge(
        self, host: str, addresses: Sequence[str], *, country: Country, known: Mapping[str, str],
        gone: Collection[str] = (),
    ) -> Judgement:  # fmt: skip
        """Judge a host. `known`: the clusters of the addresses that other hosts have; `gone`: clusters that are
        retired, whose rules are passed over."""
        for rule in self.rules:
            if rule.cluster not in gone and rule.fits(host, addresses, country):
                return Judgement(rule.cluster, rule.name)
        for address in addresses:
            if (cluster := known.get(address)) and cluster not in gone:
                return Judgement(cluster, f"another host of {address}")
        return Judgement(self.default, DEFAULT)


def no_country(_: str) -> str:
    """Know no country."""
    return ""


def parse(text: str, path: str, clusters: Collection[str]) -> HostRules:
    """Read the text of a file; BadConfig names the file, the rule by number, and the key. `clusters`: the jobs of the
    group."""
    if len(text) > LONGEST:
        raise BadConfig(path, f"it is longer than {LONGEST:,} bytes")
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadConfig(path, f"it is not TOML: {error}") from error
    for key in found:
        if key not in (DEFAULT, "rule"):
            raise BadConfig(f"{path} {key}", f"is not known; it has '{DEFAULT}', and [[rule]]")
    default = _cluster(found.get(DEFAULT), f"{path} {DEFAULT}", clusters)
    listed = found.get("rule", [])
    if not isinstance(listed, list):
        raise BadConfig(f"{path} rule", "is no [[rule]]; write the two brackets")
    rules = tuple(_rule(one, number, path, clusters) for number, one in enumerate(listed, 1))
    return HostRules(default, rules, text)


def _rule(found: Any, number: int, path: str, clusters: Collection[str]) -> HostRule:
    where = f"{path} rule {number}"
    if not isinstance(found, dict):
        raise BadConfig(where, "is not a table; write [[rule]]")
    for key in found:
        if key not in _KEYS:
            raise BadConfig(f"{where} {key}", f"is not known; a rule has {', '.join(_KEYS)}")
    if not any(key in found for key in CONDITIONS):
        raise BadConfig(where, f"has no condition: one or more of {', '.join(CONDITIONS)}")
    if ("cluster" in found) == ("forbid" in found):
        raise BadConfig(where, "has one of 'cluster' and 'forbid'")
    if "forbid" in found and found["forbid"] is not True:
        raise BadConfig(f"{where} forbid", "is true, or not there")
    texts = {key: found[key] for key in CONDITIONS if key in found}
    for key, value in texts.items():
        if not isinstance(value, str) or not value:
            raise BadConfig(f"{where} {key}", "is not a text")
    cluster = _cluster(found["cluster"], f"{where} cluster", clusters) if "cluster" in found else ""
    network = _network(texts["network"], f"{where} network") if "network" in texts else None
    country = texts.get("country", "").upper()
    if country and not (len(country) == 2 and country.isascii() and country.isalpha()):
        raise BadConfig(f"{where} country", "is not a country of two letters, such as 'ET' (ISO 3166-1)")
    prefix, domain = texts.get("prefix", ""), texts.get("domain", "")
    return HostRule(
        number, cluster, _prefix(prefix, f"{where} prefix") if prefix else "",
        _domain(domain, f"{where} domain") if domain else "", network, country,
    )  # fmt: skip


def _cluster(found: Any, where: str, clusters: Collection[str]) -> str:
    if found not in clusters:
        raise BadConfig(where, f"is not one of the group's jobs: {', '.join(clusters)}")
    return str(found)


def _network(text: str, where: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise BadConfig(where, f"{error}; it takes networks like 192.0.2.0/24 or 2001:db8::/32") from error


def _prefix(text: str, where: str) -> str:
    """A SURT prefix of hosts, as those of `http:` have it. A path in it would make parts of a host different."""
    _, paren, rest = text.partition("(")
    labels, _, path = rest.partition(")")
    if not paren or not labels or path.strip("/") or text.partition("(")[0] not in ("", "http://", "https://"):
        raise BadConfig(where, "is not a SURT prefix of whole hosts, such as 'http://(org,example,'")
    return f"http://({rest.rstrip('/')}"


def _domain(text: str, where: str) -> str:
    try:
        found = hosts.canonical(text).lstrip(".")
    except ValueError as error:
        raise BadConfig(where, f"is not a domain: {error}") from error
    return found


def countries(path: Path | None) -> Country:
    """The countries of addresses, by the operator's file in the format MMDB; without one, none is known. BadConfig for
    one that cannot be read."""
    if path is None:
        return no_country
    try:
        import maxminddb  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise BadConfig("countries", "needs maxminddb; pip install 'warcmill[clusters]'") from error
    try:
        reader = maxminddb.open_database(str(path))
    except (OSError, ValueError, maxminddb.InvalidDatabaseError) as error:
        raise BadConfig("countries", f"{path} cannot be read: {error}") from error

    def of(address: str) -> str:
        try:
            found: Any = reader.get(address)
        except (ValueError, maxminddb.InvalidDatabaseError):
            return ""
        country = found.get("country") if isinstance(found, dict) else None
        code = country.get("iso_code") if isinstance(country, dict) else country
        return str(code or "").upper()

    return of
