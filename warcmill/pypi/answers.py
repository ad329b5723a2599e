"""Answers from the published data sets of a package index: the requirements of a file, a project's files, and how far
each step has come. Each is the answer that `--json` prints. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime

from msgspec import Struct

from warcmill import layout
from warcmill.errors import NotReady
from warcmill.formats.pypi import data_sets, filenames
from warcmill.formats.pypi.data_sets import DEPGRAPH, DISTRIBUTIONS, Dependencies
from warcmill.formats.pypi.lives import DistributionLife
from warcmill.launches import discovery
from warcmill.launches.discovery import with_markers
from warcmill.markers.facts.pulse import Fed, Started
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, JsonObject
from warcmill.pypi import dumps, journal
from warcmill.pypi.data_sets import newest_serial, open_history, place_of
from warcmill.stores import LocalStore
from warcmill.versions.inputs import Lists
from warcmill.versions.leveldb import reading
from warcmill.versions.publication import Payloads, Published, set_back


class PublishedData(Struct, frozen=True):
    """The places of the published data sets: their lists in the state, their databases in the index root."""

    state: LocalStore
    index: LocalStore

    def serial(self, name: str, published: Published) -> int:
        """The last serial of a version of a data set."""
        return newest_serial(Lists(self.state, name).read(published.number).inputs)

    def newest(self, name: str) -> int:
        """The last serial of the current version of a data set; 0 without one."""
        found = Payloads(self.index, name).current()
        return self.serial(name, found) if found else 0

    def current(self, name: str) -> Published:
        """The current version of a data set; NotReady without one, or if it is not the newest."""
        if why := set_back(self.state, self.index, name):
            raise NotReady(f"the current version of {name}", why)
        if found := Payloads(self.index, name).current():
            return found
        raise NotReady(f"the current version of {name}", "none is published yet; pypi.UpdateLevelDb does so")


def requires(data: PublishedData, filename: str, project: str = "") -> JsonObject | None:
    """The requirements of a file; None if it is unknown. `project`: for a name that is ambiguous."""
    name = filenames.parse(filename, project)
    found = data.current(DEPGRAPH)
    if name is None:
        return None
    with reading(data.index, found) as database:
        pairs = database.beginning_with(data_sets.joined(name.project, ""))
        known = (Dependencies.parse(key, value) for key, value in pairs)
        one = next((one for one in known if one.filename == filename), None)
    if one is None:
        return None
    listed: Json = None if one.requires_dist is None else [*one.requires_dist]
    return {
        "filename": one.filename,
        "project": one.project,
        "version": one.version or None,
        "type": one.dist_type,
        "sha256": one.sha256,
        "requires_python": one.requires_python or None,
        "requires_dist": listed,
        "serial": data.serial(DEPGRAPH, found),
    }


def show(data: PublishedData, project: str, serial: int | None = None) -> JsonObject:
    """The files that a project had at a serial, the last one by default."""
    with closing(open_history(data.state, data.index, data.current(DISTRIBUTIONS))) as history:
        at = history.newest if serial is None else serial
        if at > history.newest:
            raise NotReady(f"serial {at}", f"the last one that is published is {history.newest}")
        lives = list(history.lives(project))
        if serial is None:  # a page of the full crawl may be younger than its window
            at = max((at, *(life.first for life in lives)))
        files: list[Json] = [_file(life, at) for life in lives if life.was_there(at)]
        status = history.status(project, at)
        away: list[Json] = [life.file.filename for life in lives if (one := life.at(at)) and one.is_quarantined]
    found: dict[str, Json] = {"project": project, "serial": at, "newest": history.newest, "files": files}
    if away:
        found["quarantined"] = away
    if status and lives:
        found["status"] = {"from": status.first, "reason": status.reason, "status": status.status}
    return found


def serial_at(state: MarkerStore, data: PublishedData, begin: int, end: int) -> int:
    """The serial of the last event before the end of a time, in seconds since 1970, by the journal that feeds keep.

    NotReady if the time begins after the last published window, or ends before what is known.
    """
    found = data.current(DISTRIBUTIONS)
    inputs = Lists(data.state, DISTRIBUTIONS).read(found.number).inputs
    newest, is_first = newest_serial(inputs), True
    for due, fed in _feeds(state, place_of(inputs[0]).job):
        if fed.window is None or fed.window.up_to > newest:
            continue
        times = journal.times(state, fed.events) if fed.events else None
        if is_first and begin > max(due, times[1] if times else 0):
            why = f"the last serial that is published is {newest}, and it was crawled before"
            raise NotReady("the index at that time", why)
        is_first = False
        if fed.events and times and times[0] <= end:
            window, events = fed.window, journal.events_of(state, fed.events)
            before = (one.serial for _, one in events if one.serial > window.after and one.time <= end)
            if (last := max(before, default=0)) > 0:
                return last
        if (fed.window.after == 0 or fed.is_simple) and due <= end:
            return fed.window.up_to
    why = "it is before the first full crawl, and before the first event that was kept since"
    raise NotReady("the index at that time", why)


def _feeds(state: MarkerStore, job: str) -> Iterator[tuple[int, Fed]]:
    """The feeds of a job's launches, the newest first, each with the time at which it was due."""
    for launch in discovery.of_job(state, job):
        if started := state.read(layout.key("pulse.Started", launch)):
            due = Started.from_claim(started.claim).due
            if fed := state.read(layout.feed_key(job, due)):
                moment = datetime.strptime(due, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
                yield int(moment.timestamp()), Fed.from_claim(fed.claim)


def _file(life: DistributionLife, serial: int) -> JsonObject:
    found = life.at(serial) or life.newest
    listed, row, (first, last) = found.file, found.row, life.presence(serial)
    modules: Json = None if row is None or row.modules is None else [*row.modules]
    answer: JsonObject = {
        "filename": listed.filename,
        "version": row.version if row else None,
        "url": listed.url or None,
        "sha256": listed.sha256,
        "requires_python": listed.requires_python,
        "from": first,
        "to": last,
        "yanked": listed.yanked,
        "modules": modules,
    }
    return answer | marked(row.modules_of if row else None)


def marked(file: str | None) -> JsonObject:
    """The mark of a file whose modules are those of another one, which differs in its platform."""
    return {"modules_of": file} if file else {}


def lag(state: MarkerStore, data: PublishedData | None, job: str, at_index: int | None) -> JsonObject:
    """The last serials of a job, step by step: of the index, of the last crawl that ended, of the last whole dump, of
    the data sets; and the older releases that wait for later launches. None: not there yet, or not known."""
    dumped = dumps.newest(state, job)
    waiting = dumped.waiting if dumped else None
    published = min(data.newest(name) for name in data_sets.NAMES) if data else 0
    found: JsonObject = {
        "job": job,
        "index": at_index,
        "crawled": _crawled(state, job),
        "dumped": dumped.up_to if dumped else None,
        "published": published or None,
    }
    return found | (waiting.facts() if waiting else {})


def _crawled(state: MarkerStore, job: str) -> int | None:
    launches = (launch for launch in with_markers(state, date.min, date.max) if launch.job == job)
    for launch in sorted(launches, key=lambda launch: launch.id, reverse=True):
        started = state.read(layout.key("pulse.Started", launch))
        if started is None or not state.holds(layout.step("process", launch)):
            continue
        fed = state.read(layout.feed_key(job, Started.from_claim(started.claim).due))
        if window := Fed.from_claim(fed.claim).window if fed else None:
            return window.up_to
    return None
