"""The columns of URLs, and of their hosts, in Common Crawl's URL index. Pure; needs the extra `columns`.

The part before the path is looked at once for all URLs that share it. Nearly all URLs are of the Web, and are cut at
their slashes; a pattern is for those that remain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import SplitResult

import pyarrow as pa
import pyarrow.compute as pc

from warcmill.formats import hosts
from warcmill.formats.surt import suffixes

_USUAL = r"^https?://[^/?#@:\[]+(:[0-9]{1,5})?/[^#]*$"
_URL = re.compile(
    r"(?P<protocol>[A-Za-z][A-Za-z0-9+.-]*):"
    r"(?://(?:[^/?#@]*@)?(?P<host>\[[^\]]*\]|[^:/?#]*)(?::(?P<port>[0-9]{1,5})?)?)?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?"
)


class _Parts(NamedTuple):
    """The parts of some URLs; empty where there is none. Many share those of the first three columns."""

    protocol: Any
    host: Any
    port: Any
    path: Any
    query: Any


def url_columns(urls: Any) -> dict[str, Any]:
    """The columns of some URLs, by name."""
    parts = _parts(urls.combine_chunks())
    known = [*map(host_columns, parts.host.dictionary.to_pylist())]
    columns = {name: [one[at] for one in known] for at, name in enumerate(HOST_COLUMNS)}
    return {
        "url": urls,
        **{name: _mapped(parts.host, values) for name, values in columns.items()},
        "url_protocol": parts.protocol,
        "url_port": parts.port.cast(pa.string()).cast(pa.int32()),
        "url_path": parts.path,
        "url_query": parts.query,
    }


def _parts(urls: Any) -> _Parts:
    usual = pc.match_substring_regex(urls, _USUAL)
    if pc.all(usual).as_py():
        return _of_the_web(urls)
    others = pc.invert(usual)
    both = zip(_of_the_web(urls.filter(usual)), _of_any(urls.filter(others)), strict=True)
    joined = (pa.table({"": pa.chunked_array(one)}).unify_dictionaries().combine_chunks()[""].chunk(0) for one in both)
    back = pc.array_sort_indices(pc.array_sort_indices(others.cast(pa.int8())))  # the usual ones come first
    return _Parts(*(one.take(back) for one in joined))


def _of_the_web(urls: Any) -> _Parts:
    """The parts of URLs that are as `_USUAL` has them."""
    pieces = pc.split_pattern(urls, "/", max_splits=3)
    scheme, authority, rest = (pc.list_element(pieces, at) for at in (0, 2, 3))
    schemes, authorities = scheme.dictionary_encode(), authority.dictionary_encode()
    places = [one.partition(":") for one in authorities.dictionary.to_pylist()]
    cut = pc.split_pattern(rest, "?", max_splits=1)
    begins, flat = cut.offsets.slice(0, len(cut)), cut.flatten()
    second = pc.if_else(pc.equal(pc.list_value_length(cut), 2), pc.add(begins, 1), pa.scalar(None, pa.int32()))
    return _Parts(
        _mapped(schemes, [one.removesuffix(":") for one in schemes.dictionary.to_pylist()]),
        _mapped(authorities, [_host(host) for host, _, _ in places]),
        _mapped(authorities, [port for _, _, port in places]),
        pc.binary_replace_slice(flat.take(begins), 0, 0, "/"),
        _or_none(flat.take(second)),
    )


def _of_any(urls: Any) -> _Parts:
    """The parts of any URLs."""
    matches = map(_URL.match, urls.to_pylist())
    found = [match.groups() if match else (None,) * len(_Parts._fields) for match in matches]
    protocols, names, ports, paths, queries = ([row[at] for row in found] for at in range(len(_Parts._fields)))
    return _Parts(
        _shared([one and one.lower() for one in protocols]),
        _shared([one and _host(one) for one in names]),
        _shared(ports),
        *(_or_none(pa.array(texts, pa.string())) for texts in (paths, queries)),
    )


def _host(name: str) -> str:
    """A host by the one rule; one that no URL can have in lower case."""
    try:
        return hosts.canonical(name)
    except ValueError:
        return name.lower()


def _mapped(coded: Any, values: Sequence[str | None]) -> Any:
    """A column with a value for each text of another one."""
    known = _shared(values)
    return pa.DictionaryArray.from_arrays(known.indices.take(coded.indices), known.dictionary)


def _shared(values: Sequence[str | None]) -> Any:
    return pa.array([value or None for value in values], pa.string()).dictionary_encode()


def _or_none(texts: Any) -> Any:
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


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
    """The columns of a host by the one rule, `""` for a URL that has none. An address is a name without parts."""
    if not host:
        return _NONE
    if _is_address(host):
        return (host, *_NONE[2:], host)
    last = [*reversed(host.split("."))]
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
