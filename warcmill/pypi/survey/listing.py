"""The feed of an index without a changelog: its list and pages, compared with what is published. Writes to the state.

The list is asked for by its ETag. Where it has serials, the pages of projects are asked for whose serial has changed;
else all, each by its validators, and the serial of a launch is its due time. A project whose page has other files, or
another status, is asked for by the launch, with its new files. A project that the list no longer has is asked for, too:
its page decides, and a file leaves when two pages in a row lack it. A list that has lost more than half of all projects
at once is believed when the next one has lost them, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

from warcmill import layout
from warcmill.base import clock
from warcmill.clients.package_index import ProjectList
from warcmill.errors import BadInput, NotReady
from warcmill.markers.claim import Claim
from warcmill.markers.facts.pulse import Fed
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Key, Window
from warcmill.pypi import feed, journal
from warcmill.pypi.feed import ChangedProject, EarlierDump, IndexSource, claim_of, is_launch, note
from warcmill.pypi.survey import pages
from warcmill.pypi.survey.pages import KnownIndex, PageSurvey

FEW = 10  # known projects: a list of so few may lose most of them


def full(state: MarkerStore, key: Key, source: IndexSource, *, is_first: bool = False) -> Claim:
    """The claim of 00.feed of a crawl of all projects; the first one, of an index with serials, asks for newest
    releases first. BadInput for an index without any project."""
    faults = list[str]()
    listed = source.index.projects(partial(note, faults))
    serials = feed.wanted_of(source, listed, faults)
    last = last_serial(listed, serials)
    up_to, first = last or int(key["due"]), bool(is_first and source.newest_first and last)
    checked = {name: _serial_of(name, serial, up_to, faults) for name, serial in serials.items()}
    found = feed.asked_whole(source, checked, newest=first)
    return claim_of(state, key, source, Window(0, up_to), found, faults, None, _facts(listed.etag, 0))


def increment(
    state: MarkerStore, key: Key, source: IndexSource, newest: EarlierDump, known: KnownIndex, sweep: int = 0
) -> Claim:
    """The claim of 00.feed of a crawl of what differs from what is known, and of what the newest dump lacks. `sweep`:
    so many pages are asked for besides, those first that were not the longest.

    NotReady if that dump is not published yet. Unavailable or BadInput for an index that is away, or is another.
    """
    if known.newest < newest.up_to:
        why = f"serials up to {known.newest} are published, and up to {newest.up_to} dumped"
        raise NotReady(f"what is known of {key['job']}", f"{why}; run 'warcmill scan' first, which publishes the rest")
    survey, last = PageSurvey(source, known, pages.wanted(source, known)), last_feed(state, key)
    dumped = Fed.from_claim(state.require(newest.feed).claim) if newest.feed else None
    etag = dumped.listed if dumped else ""
    listed = source.index.changed_projects(etag, partial(note, survey.faults))
    compared = _Compared(source, survey, newest, is_second=bool(last and last.lost))
    up_to = compared.take(listed, int(key["due"]))
    further = pages.swept(source, known, sweep, last.swept if last else "")
    asked = {**dict.fromkeys(further), **compared.asked}
    found = survey.ask({name: serial for name, serial in asked.items() if name not in compared.withheld})
    if listed is not None:  # one that is not kept is read anew: else no list would name again what failed or lags
        etag = listed.etag if compared.is_settled(found) else ""
    for name, lacked in newest.lacking.items():
        if source.wants(name):
            found.setdefault(name, ChangedProject()).lack(lacked)
    for waiting in journal.next_ones(state, newest.waiting, source.history, source.wants):
        found.setdefault(waiting.project, ChangedProject()).take_history(waiting)
    facts = {**_facts(etag, compared.lost), **_swept(further)}
    return claim_of(state, key, source, Window(newest.up_to, up_to), found, survey.faults, None, facts)


def swept(
    state: MarkerStore, key: Key, source: IndexSource, known: KnownIndex, sweep: int
) -> tuple[dict[str, ChangedProject], dict[str, Json]]:
    """The projects that differ from what is known among the next ones of a sweep, and the facts of that."""
    last = last_feed(state, key)
    further = pages.swept(source, known, sweep, last.swept if last else "")
    return PageSurvey(source, known, further).ask(dict.fromkeys(further)), _swept(further)


def _facts(etag: str, lost: int) -> dict[str, Json]:
    """The facts of a list. No validator outlives a list that was not believed."""
    facts: dict[str, Json] = {"changes": "simple"}
    if lost:
        return {**facts, "lost": lost}
    return {**facts, "listed": etag} if etag else facts


def _swept(further: pages.Records) -> dict[str, Json]:
    names = list(further)
    return {"swept": names[-1]} if names else {}


def last_feed(state: MarkerStore, key: Key) -> Fed | None:
    """The feed of a job before a due time, in its month or the one before; None without any."""
    first = datetime.strptime(key["due"][:6], "%Y%m").replace(tzinfo=UTC)
    for month in (key["due"], clock.digits(first - timedelta(days=1))):
        folder = layout.folder_of(layout.feed_key(key["job"], month))
        keys = filter(None, map(layout.parse_marker_name, state.store.names(folder)))
        before = (one for one in keys if one.task == key.task and one["job"] == key["job"] and one["due"] < key["due"])
        for one in sorted(before, key=lambda one: one["due"], reverse=True):
            if marker := state.read(one):
                return Fed.from_claim(marker.claim)
    return None


class _Compared:
    """A list of projects beside what is known. `take` it; `asked` then has those to ask for, with their serials, and
    `withheld` those of which nothing is asked yet."""

    def __init__(self, source: IndexSource, survey: PageSurvey, newest: EarlierDump, *, is_second: bool) -> None:
        self._source, self._survey, self._newest, self._is_second = source, survey, newest, is_second
        self._has_serials = not is_launch(newest.up_to)
        self.asked, self.lost, self.withheld = dict[str, int | None](), 0, frozenset[str]()

    def take(self, listed: ProjectList | None, due: int) -> int:
        """Compare a list; None: it is as it was. Return the last serial of the window."""
        known, faults = self._survey.records, self._survey.faults
        serials = feed.wanted_of(self._source, listed, faults) if listed else {}
        last = last_serial(listed, serials) if listed else self._newest.up_to
        if self._has_serials and last < self._newest.up_to:
            why = f"its list is of serial {last}, and serials up to {self._newest.up_to} are dumped: it is another"
            raise BadInput(self._source.index.url, f"{why} index, lags, or has no serials now; nothing is asked for")
        up_to = last if self._has_serials else max(due, self._newest.up_to)
        if listed is not None:
            self._compare(serials, up_to)
            self._take_lost(serials)
        if not self._has_serials:
            self.asked |= {name: None for name in known if listed is None or name in serials}
        self.asked |= {name: None for name, one in known.items() if one.missed and name not in self.asked}
        return up_to

    def is_settled(self, found: Mapping[str, ChangedProject]) -> bool:
        """True if no list has to name its projects again: each page differs, or was got and had no serial there."""
        known, failed = self._survey.records, self._survey.failed
        return all(
            name in found or (serial is None and name in known and name not in failed)
            for name, serial in self.asked.items()
        )

    def _compare(self, serials: Mapping[str, int | None], up_to: int) -> None:
        faults = self._survey.faults
        for name in {*serials, *(self._source.projects or ())}:
            record = self._survey.records.get(name)
            serial = _serial_of(name, serials.get(name), up_to, faults) if self._has_serials else None
            if record and serial is not None and record.serial is not None and serial < record.serial:
                why = f"its serial is {serial}, and its page was of {record.serial}"
                note(faults, f"{name}: {why}; it is left out")
            elif record is None or serial is None or serial != record.serial:
                self.asked[name] = serial

    def _take_lost(self, serials: Mapping[str, int | None]) -> None:
        known, survey = self._survey.records, self._survey
        away = [name for name in known if name not in serials and survey.is_there(name)]
        there = len(away) + sum(name in serials for name in known)
        if len(away) > FEW and len(away) * 2 > there:
            self.lost = len(away)
            note(survey.faults, f"its list has lost {self.lost} of {there} projects; {_LOST[self._is_second]}")
        if not self.lost or self._is_second:
            self.asked |= dict.fromkeys(away)
        else:
            self.withheld = frozenset(away)


_LOST = {
    False: "that is believed when the next one has lost them, too, and until then nothing is asked of them",
    True: "so had the one before, and their pages are asked for",
}


def last_serial(listed: ProjectList, serials: Mapping[str, object]) -> int:
    """The last serial of a list, as it has it, or else its projects; 0 without any."""
    return listed.serial or max((one for one in serials.values() if isinstance(one, int)), default=0)


def _serial_of(name: str, serial: int | None, up_to: int, faults: list[str]) -> int | None:
    """The serial that a list has of a project; None for one that is beyond the last of all."""
    if serial is not None and serial > up_to:
        note(faults, f"{name}: its serial is {serial}, beyond the last one, {up_to}; its page is asked for without it")
        return None
    return serial
