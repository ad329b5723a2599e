"""The parts of a host name that Common Crawl's URL index has a column for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import SplitResult

from warcmill.formats.surt import suffixes

HOST_COLUMNS = (
    "url_host_name",
    "url_host_tld",
    "url_host_2nd_last_part",
    "url_host_3rd_last_part",
    "url_host_4th_last_part",
    "url_host_5th_last_part",
    "url_host_registry_suffix",
    "url_host_registered_domain",
    "url_host_private_suffix",
    "url_host_private_domain",
    "url_host_name_reversed",
)
_PARTS = 5
_USUAL = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
HostColumns = tuple[str | None, ...]  # as long as HOST_COLUMNS
_NONE: HostColumns = (None,) * len(HOST_COLUMNS)


def host_columns(host: str) -> HostColumns:
    """The columns of a host name in lower case, `""` for a URL that has none. An address is a name without parts."""
    if not host:
        return _NONE
    if _is_address(host):
        return (host, *_NONE[2:], host)
    labels = host.rstrip(".").split(".")
    last = [*reversed(labels)]
    return (
        host,
        *(*last[:_PARTS], *(None,) * _PARTS)[:_PARTS],
        *(_usual_domains(labels) if _USUAL.fullmatch(host) else _domains(host)),
        ".".join(last),
    )


def _domains(host: str) -> HostColumns:
    """The two suffixes of a host, each with the domain below it."""
    known = suffixes().extract_urllib(SplitResult("", host, "", "", ""))  # it need not be cut out of a URL
    return (
        known.registry_suffix or None,
        known.top_domain_under_registry_suffix or None,
        known.suffix or None,
        known.top_domain_under_public_suffix or None,
    )


def _usual_domains(labels: Sequence[str]) -> HostColumns:
    """The same of a usual name, whose labels can be looked up as they are: a fifth of the time."""
    found = suffixes()._get_tld_extractor().suffix_index([*labels])  # noqa: SLF001 what extract_urllib itself asks
    if found is None:
        return (None,) * 4
    (public, node), (registry, _) = found
    if not node.is_private:
        registry = public
    if not 0 < public <= registry < len(labels):  # it is a suffix itself, for one
        return _domains(".".join(labels))
    return tuple(".".join(labels[begin:]) for begin in (registry, registry - 1, public, public - 1))


def _is_address(host: str) -> bool:
    if not (host[-1:].isdigit() or ":" in host):
        return False  # as most names: an error costs more
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
