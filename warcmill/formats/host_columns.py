"""The parts of a host name that Common Crawl's URL index has a column for."""

from __future__ import annotations

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
    known = suffixes().extract_urllib(SplitResult("", host, "", "", ""))  # it need not be cut out of a URL
    return (
        host,
        *(*last[:_PARTS], *(None,) * _PARTS)[:_PARTS],
        known.registry_suffix or None,
        known.top_domain_under_registry_suffix or None,
        known.suffix or None,
        known.top_domain_under_public_suffix or None,
        ".".join(last),
    )


def _is_address(host: str) -> bool:
    if not (host[-1:].isdigit() or ":" in host):
        return False  # as most names: an error costs more
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
