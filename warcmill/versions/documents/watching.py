"""The watched targets of a feed, and the one that a document is of. Reads only.

A document is of the target with the longest prefix that its landing page has, else that a URL of its own has. Prefixes
are those of the seeds, and by the reach of a target its sites. Of equal ones, that target counts whose title has the
publisher's name; then the one with the lowest id.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path

from warcmill import layout
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.formats import feed
from warcmill.formats.feed import Target, TargetScope
from warcmill.formats.index.urlkey import urlkey
from warcmill.launches.discovery import with_markers
from warcmill.markers.facts.pulse import Fed
from warcmill.markers.facts.reports import Seeds
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Key, Launch
from warcmill.versions.documents.entries import Entry
from warcmill.versions.documents.texts import sharable

LAUNCHES = 3  # without a page of a target, after which it is named
_MONTH = re.compile(r"\d{4}-\d{2}")
_NUMBER = re.compile(r"\d+")


class WatchedTargets:
    """Targets that are watched, by their prefixes."""

    def __init__(self, targets: Iterable[Target]) -> None:
        self.targets = {one.id: one for one in targets if one.watched}
        self._at = defaultdict[str, dict[str, None]](dict)
        for one in self.targets.values():
            for prefix in _prefixes(one):
                self._at[prefix][one.id] = None

    def target_of(self, entry: Entry) -> str:
        """The id of the target that a document is of; '' without one."""
        page, publisher = entry.shown("landing_page_url"), entry.shown("publisher")
        for url in (page, *entry.urls):
            for prefix in _beginnings(urlkey(url)) if url else ():
                if found := self._at.get(prefix):
                    return self._chosen(list(found), publisher)
        return ""

    def _chosen(self, ids: Sequence[str], publisher: str) -> str:
        name = sharable(publisher)
        named = [one for one in ids if name and name in sharable(self.targets[one].title)]
        return min(named or ids, key=_in_order)


def targets(state: MarkerStore, watched: str = "") -> WatchedTargets:
    """The watched targets: of the file at a path, if one is given, else of the newest feed. Unavailable for a file that
    cannot be read, BadInput for one without a valid target."""
    if not watched:
        kept = newest_feed(state)
        return WatchedTargets(feed.read(state.store.read(kept.path, feed.LARGEST), kept.path).targets if kept else ())
    try:
        found = feed.read(Path(watched).read_bytes(), watched)
    except OSError as error:
        raise Unavailable(f"[documents] watched: {watched}", error.strerror or str(error)) from error
    if not found.targets and found.faults:
        raise found.faults[0]
    return WatchedTargets(found.targets)


def name_of(state: MarkerStore, watched: str = "") -> str:
    """A name of the list of watched targets, as `targets` reads it: another one for each list."""
    if not watched:
        kept = newest_feed(state)
        return str(kept.sha512) if kept else ""
    try:
        status = Path(watched).stat()
    except OSError as error:
        raise Unavailable(f"[documents] watched: {watched}", error.strerror or str(error)) from error
    return f"{watched} {status.st_ino} {status.st_size} {status.st_mtime_ns}"


def newest_feed(state: MarkerStore) -> FileRef | None:
    """The file of the newest 00.feed of targets; None without one."""
    months = [entry.name for entry in state.store.list("") if _MONTH.fullmatch(entry.name)]
    for month in sorted(months, reverse=True):
        for key in sorted(_feeds_of(state, month), key=lambda key: (key["due"], key["job"]), reverse=True):
            marker = state.read(key)
            fed = Fed.from_claim(marker.claim) if marker else None
            if fed and fed.window is None:
                return fed.kept
    return None


def _feeds_of(state: MarkerStore, month: str) -> Iterator[Key]:
    for job in state.store.list(month):
        for name in state.store.names(job.path) if job.kind == "folder" else ():
            key = layout.parse_marker_name(name)
            if key and key.task == layout.feed_key("job", "20160101000000").task:
                yield key


def unseen(state: MarkerStore, watched: WatchedTargets) -> dict[str, tuple[str, str]]:
    """The watched targets of which the newest LAUNCHES launches of a job got no page, each with its title and the job.

    Launches count that have ended, and whose stages are verified: their seeds are listed.
    """
    by_job = defaultdict[str, list[Launch]](list)
    for launch in with_markers(state, date.min, date.max):
        by_job[launch.job].append(launch)
    found: dict[str, tuple[str, str]] = {}
    for job, launches in sorted(by_job.items()):
        without = [one.without_page for one in _listed(state, launches)]
        missed = set.intersection(*map(set, without)) if len(without) == LAUNCHES else set()
        found |= {one: (watched.targets[one].title, job) for one in missed & watched.targets.keys() if one not in found}
    return {one: found[one] for one in sorted(found, key=_in_order)}


def _listed(state: MarkerStore, launches: Iterable[Launch]) -> list[Seeds]:
    """The seeds of the newest launches that have them listed."""
    found = list[Seeds]()
    for launch in sorted(launches, reverse=True):
        with suppress(NotReady, BadInput):
            found.append(Seeds.from_claim(state.require(layout.step("seeds", launch)).claim))
        if len(found) == LAUNCHES:
            break
    return found


def _prefixes(target: Target) -> Iterator[str]:
    """The prefixes of a target, in the form of keys: an address, a folder, a host, or a domain with its subdomains."""
    for seed in target.seeds:
        key = urlkey(seed)
        yield key
        host, _, path = key.partition(")")
        if target.scope in (TargetScope.ROOT, TargetScope.SUBDOMAINS):
            folder, _, name = path.rpartition("/")
            yield f"{host}){folder if '.' in name and folder else '/'}"
            yield f"{host})/"
        if target.scope is TargetScope.SUBDOMAINS:
            yield host.partition(":")[0]
    if scheme := target.document_url_scheme:
        yield urlkey(scheme if "://" in scheme else f"http://{scheme}")


def _beginnings(key: str) -> Iterator[str]:
    """The prefixes that a key has, the longest first."""
    yield key
    host, _, path = key.partition(")")
    path = path.partition("?")[0]
    while path.strip("/"):
        yield f"{host}){path}"
        path = path.rpartition("/")[0]
    yield f"{host})/"
    domain = host.partition(":")[0]
    while domain:
        yield domain
        domain = domain.rpartition(",")[0]


def _in_order(id_: str) -> tuple[int, str]:
    """Numbers by their size, before words."""
    return (int(id_) if _NUMBER.fullmatch(id_) and len(id_) < 19 else 1 << 63, id_)
