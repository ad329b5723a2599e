"""The centre beside the journals of its clusters: each difference by name. Reads only.

The journals of a cluster are read from their begin, line by line, by other code than wrote the rows; up to the place
that the centre has, so that an updater may run meanwhile. All URIs of a cluster are in memory, some 300 bytes each.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

from msgspec import Struct

from warcmill.clients.postgresql import Postgresql
from warcmill.clusters.centre import places_of
from warcmill.clusters.following import ClusterJournals
from warcmill.clusters.news import host_of
from warcmill.clusters.tables import STATUSES
from warcmill.crawl.books.replay import taken
from warcmill.crawl.frontier import journal
from warcmill.crawl.frontier.journal import JournalLine
from warcmill.crawl.uri import Status, digest, waits
from warcmill.errors import Unavailable

_WAITING = (Status.SCHEDULED, Status.SUSPENDED)
_VISITED = {word: status for status, word in journal.VISITED.items()}
_ROWS = "SELECT digest, uri, status, launch FROM uris WHERE cluster = $1"
_OTHERS = (
    "SELECT u.digest FROM uris u JOIN unnest($1::text[], $2::bytea[]) AS n(host, digest)"
    " ON u.host = n.host AND u.digest = n.digest WHERE u.cluster <> $3"
)
_THERE = (
    "SELECT u.digest FROM uris u JOIN unnest($1::text[], $2::bytea[]) AS n(host, digest)"
    " ON u.host = n.host AND u.digest = n.digest"
)
_ORDERED = (
    "SELECT EXISTS (SELECT 1 FROM orders WHERE cluster = $1 AND state = 'waiting' AND verb = 'take') OR EXISTS"
    " (SELECT 1 FROM hosts WHERE cluster = $1 AND moving IS NOT NULL)"
)
_MISCOUNTED = (
    "SELECT h.host, {columns} FROM hosts h LEFT JOIN (SELECT host, {counts} FROM uris GROUP BY host) u USING (host)"
    " WHERE {differ} ORDER BY h.host"
)
_AT_ONCE = 5000


class ClusterDifference(NamedTuple):
    """A URI of which the centre and the journals of a cluster differ: the status in each; '' where it is not known."""

    uri: str
    journals: str
    centre: str


class ClusterBooks(Struct, frozen=True):
    """The centre beside the journals of a cluster: how many URIs it has by both, the differences, and the bytes of
    journals that the centre has not read yet."""

    cluster: str
    uris: int
    differences: list[ClusterDifference]
    behind: int


async def compare(db: Postgresql, journals: ClusterJournals) -> ClusterBooks:
    """Compare the rows of a cluster with its journals. Unavailable without the root of a worker."""

    async def act(connection: Any) -> ClusterBooks:
        places, faults = await places_of(connection, journals.name), dict[str, str]()
        known, differences = _Expected(), list[ClusterDifference]()
        for group in journals.until(places):
            for entry in group.entries:
                known.take(entry, is_shared=bool(group.at))
        behind = sum(journals.waiting(places, faults).values())
        for name, fault in sorted(faults.items()):
            raise Unavailable(f"the journals of {journals.name} {name}", fault)
        waits = await connection.fetchval(_ORDERED, journals.name)
        expected, number = known.uris, len(known.uris)
        async for row in connection.cursor(_ROWS, journals.name, prefetch=_AT_ONCE):
            found = expected.pop(row["digest"], None)
            if found is None and not row["launch"] and (waits or row["status"] not in _WAITING or behind):
                continue  # it was handed over, and its order waits; or a rule forbids its host
            if found is None or found[1] != row["status"]:
                status = found[1] if found else ""
                differences.append(ClusterDifference(row["uri"], status, row["status"]))
        rest = iter(expected.items())
        while some := [*islice(rest, _AT_ONCE)]:
            hosts = [host_of(uri) for _, (uri, _, _) in some]
            others = await connection.fetch(_OTHERS, hosts, [name for name, _ in some], journals.name)
            theirs = {row["digest"] for row in others}  # their hosts are other clusters'
            differences += [ClusterDifference(one[0], one[1], "") for name, one in some if name not in theirs]
        handed = iter(known.handed.items())
        while part := [*islice(handed, _AT_ONCE)]:
            hosts = [host_of(uri) for _, uri in part]
            there = {row["digest"] for row in await connection.fetch(_THERE, hosts, [name for name, _ in part])}
            differences += [ClusterDifference(uri, "handed over", "") for name, uri in part if name not in there]
        return ClusterBooks(journals.name, number, sorted(differences), behind)

    return await db.whole(act, is_snapshot=True)


async def miscounted(db: Postgresql) -> list[str]:
    """Name the hosts whose counts are not those of their URIs."""
    columns = ", ".join(f"h.{one} AS {one}, coalesce(u.{one}, 0) AS u_{one}" for one in STATUSES)
    counts = ", ".join(f"count(*) FILTER (WHERE status = '{one.capitalize()}') AS {one}" for one in STATUSES)
    differ = " OR ".join(f"h.{one} <> coalesce(u.{one}, 0)" for one in STATUSES)
    rows = await db.rows(_MISCOUNTED.format(columns=columns, counts=counts, differ=differ))
    return [
        f"host '{row['host']}': the centre has {row[f'u_{one}']} URIs that are {one}, and counts {row[one]}"
        for row in rows for one in STATUSES if row[one] != row[f"u_{one}"]
    ]  # fmt: skip


class _Expected:
    """The URIs of a cluster by their digests, as its journals have them: the URI, its status, and its crawl."""

    def __init__(self) -> None:
        self.uris: dict[bytes, tuple[str, Status, str]] = {}
        self.handed: dict[bytes, str] = {}

    def take(self, entry: JournalLine, *, is_shared: bool) -> None:
        """Take a line. In a job over Redis (`is_shared`) a URI is taken once, unless it is renewed, and what ends was
        taken."""
        if entry.word == journal.TAKEN:
            uri = taken(entry)
            name = digest(uri.crawl, uri.key)
            if not (is_shared and uri.renew is None and name in self.uris):
                self.uris[name] = uri.uri, waits(uri.not_before), uri.crawl
            self.handed.pop(name, None)
        elif entry.word in _VISITED or entry.word == journal.DEFERRED:
            self._end(entry, is_shared=is_shared)
        elif entry.word == journal.HANDED:
            uri = taken(entry)
            name = digest(uri.crawl, uri.key)
            if entry.more.get("left") and name in self.uris and self.uris[name][1] in _WAITING:
                del self.uris[name]
            if name not in self.uris:
                self.handed[name] = uri.uri
        elif entry.word == journal.PURGED:
            gone = entry.more.get("crawl", "")
            self.uris = {name: one for name, one in self.uris.items() if one[2] != gone}
        elif entry.word == journal.ROUND:
            self.uris.clear()
        elif entry.word == journal.CARRIED and not entry.more.get("seen"):
            self.uris = {name: one for name, one in self.uris.items() if one[1] in _WAITING}

    def _end(self, entry: JournalLine, *, is_shared: bool) -> None:
        """Take the end of a visit, or of a wait."""
        more = entry.more
        text, crawl = more.get("uri", entry.columns[0]), more.get("crawl", "")
        name = digest(crawl, more.get("key", text))
        known = self.uris.get(name)
        is_waiting = known[1] in _WAITING if known else is_shared
        is_waiting = is_waiting or (is_shared and entry.word != journal.DEFERRED)
        if entry.word != journal.DEFERRED:
            again = more.get("again", 0.0)
            self.handed.pop(name, None)
            self.uris[name] = text, waits(again) if again and is_waiting else _VISITED[entry.word], crawl
        elif is_waiting:
            self.uris[name] = known[0] if known else text, waits(more.get("until", 0.0)), crawl
