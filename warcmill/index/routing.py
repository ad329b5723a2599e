"""Which collection the captures of a key belong to: that of the longest prefix with which the key begins."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from warcmill.errors import BadInput
from warcmill.formats.urlkey import urlkey
from warcmill.versions.hidden import parse_entry, prefixes_of

_DOMAIN = re.compile(r"[a-z0-9_-]+(?:,[a-z0-9_-]+)*")


@dataclass(frozen=True)
class Routing:
    """The default collection, and the prefixes of keys that belong to others."""

    default: str
    routes: Mapping[bytes, str]

    @property
    def collections(self) -> tuple[str, ...]:
        """All collections, the default one first."""
        return tuple(dict.fromkeys((self.default, *sorted(self.routes.values()))))

    @property
    def digest(self) -> str:
        """Changes with what belongs where."""
        pairs = "".join(f"{prefix.decode()} {name}\n" for prefix, name in sorted(self.routes.items()))
        return hashlib.sha512(f"{self.default}\n{pairs}".encode()).hexdigest()

    def collection(self, key: bytes) -> str:
        """The collection of a key."""
        for length in self._lengths:
            if found := self.routes.get(key[:length]):
                return found
        return self.default

    @cached_property
    def _lengths(self) -> list[int]:
        return sorted({len(prefix) for prefix in self.routes}, reverse=True)


def routing(default: str, tables: Mapping[str, tuple[Iterable[str], Iterable[str]]]) -> Routing:
    """The routing of some collections, each with its hosts, which mean their subdomains too, and its SURT prefixes.

    BadInput for an entry that is none, or that two collections have.
    """
    routes: dict[bytes, str] = {}
    for name, (hosts, surts) in tables.items():
        for text, entry in [*((host, of_host(host)) for host in hosts), *((surt, _of_surt(surt)) for surt in surts)]:
            for prefix in prefixes_of(entry):
                if routes.setdefault(prefix, name) != name:
                    raise BadInput(text, f"is routed to both {routes[prefix]} and {name}")
    return Routing(default, routes)


def of_host(host: str) -> str:
    """The SURT of a host."""
    key = urlkey(f"http://{host}/").removesuffix(")/")
    if "/" in host or not _DOMAIN.fullmatch(key):
        raise BadInput(host, "not a host such as example.org")
    return key


def _of_surt(text: str) -> str:
    if " " in parse_entry(text):
        raise BadInput(text, "a time, where only captures of all times can be routed")
    return text
