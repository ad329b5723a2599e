"""Ways in which a site has no end: paths that repeat, ever new queries. The bounds are Heritrix's where it has one."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b

from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.uri import Uri

REMEMBERED = 100_000  # paths of which queries are counted


@dataclass(frozen=True, slots=True)
class Traps:
    """The most that a URI may have: bytes, segments of its path, times that segments repeat after each other; and how
    many queries a path may have.

    Only what the frontier took is counted. The counts begin again with each process; of very many paths, those
    that were met last are counted.
    """

    length: int = 2_083
    depth: int = 20
    repeats: int = 2
    queries: int = 1_000
    name: str = "traps"
    _counts: OrderedDict[bytes, int] = field(default_factory=OrderedDict)

    def judge(self, uri: Uri) -> Decision | None:
        """Return the trap that a URI looks like. A `data:` URI has no end of its own."""
        if not uri.uri.startswith(("http://", "https://")):
            return None
        why = self._against(uri.uri)
        return Decision(Verdict.REJECT, self.name, why) if why else None

    def taken(self, uri: Uri) -> None:
        """Count the query of a URI that the frontier took."""
        path, query, _ = uri.uri.partition("?")
        if query:
            key = _key(path)
            self._counts[key] = self._counts.pop(key, 0) + 1
            if len(self._counts) > REMEMBERED:
                self._counts.popitem(last=False)

    def _against(self, uri: str) -> str:
        path, query, _ = uri.partition("?")
        segments = path.split("/")[3:]
        if len(uri) > self.length:
            return f"{len(uri)} bytes long, {self.length} are allowed"
        if len(segments) > self.depth:
            return f"{len(segments)} segments in its path, {self.depth} are allowed"
        if repeated := _repeated(segments[:-1], self.repeats + 1):
            return f"{repeated} comes more than {self.repeats} times after itself"
        if query and self._counts.get(_key(path), 0) >= self.queries:
            return f"its path has been taken with {self.queries} queries"
        return ""


def _repeated(folders: list[str], times: int) -> str:
    """The folders that come so many times after each other; '' for none."""
    if len(set(folders)) == len(folders):
        return ""
    for size in range(1, len(folders) // times + 1):
        for begin in range(len(folders) - size * times + 1):
            one = folders[begin : begin + size]
            if folders[begin : begin + size * times] == one * times:
                return f"/{'/'.join(one)}/"
    return ""


def _key(path: str) -> bytes:
    return blake2b(path.encode(), digest_size=8).digest()
