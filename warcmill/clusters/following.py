"""The journals of a job, read on from a place in each: group by group, with the lines of crawl.log that belong to each.
Reads only.

A launch has a journal for each stage. That of the stage to come may still be cut by a kill, so of it only what was
committed is read: the crawl that runs says how long that is. Without it the last group waits, as it may be cut, until
the launch is put in order. Nothing of Warcmill removes a journal.

Each worker of a job over Redis has journals of its own, in its root. Groups of all are read in the order of their
times. A root that is not there is a fault with a name: it is never read as one without news.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from heapq import merge
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base import disk
from warcmill.crawl.books.files import CRAWL_LOG
from warcmill.crawl.books.replay import journals
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.control.sites import NAME as SITES
from warcmill.crawl.control.sites import KeptSites
from warcmill.crawl.frontier import journal
from warcmill.crawl.frontier.journal import JournalGroup, JournalLine
from warcmill.crawl.launch import job_log
from warcmill.crawl.launch.folders import Places, require_root
from warcmill.errors import BadConfig, BadInput, Mismatch, NotReady, Unavailable, WarcmillError
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.formats.logs.retired import RETIRED
from warcmill.layout import split_log_name
from warcmill.model import Launch, WriterRoot

SECONDS = 10.0  # for the crawl to say how long its journal is
SOON, LOOKED = 0.1, 10.0  # seconds for which an answer of the crawl is good: about groups, and about who works
_TAIL = 32  # bytes by which a journal is told from another of its name
_FINAL = "final"
log = logging.getLogger(__name__)
OWN = ""
"""The writer of the journals that are in the output of the job: its own process."""


class JournalPlace(Struct, frozen=True):
    """A place in the journals of a job: all before it was read. `journal` counts those of the launch from 1, `stage` is
    the name of the last that was read whole; `read` and `log_read` are bytes of the journal and of its crawl.log."""

    launch: str = ""
    stage: str = ""
    journal: int = 0
    read: int = 0
    log_read: int = 0
    tail: bytes = b""


class FollowedGroup(NamedTuple):
    """A group of a journal, its lines of crawl.log, and the place after it. The end of a journal whose stage was closed
    is a group without entries, of that `stage`. `at`: when it was written, in seconds; 0 of a journal whose job has no
    other."""

    place: JournalPlace
    entries: list[JournalLine]
    lines: list[CrawlRecord]
    stage: str = ""
    writer: str = OWN
    at: float = 0.0

    @property
    def journal(self) -> int:
        """The number of its journal: the place after the end of one is in the next."""
        return self.place.journal - bool(self.stage)


class Committed:
    """Asks the crawl of a job how much of its journals was committed."""

    def __init__(self, crawl: RunningJob) -> None:
        self._crawl = crawl
        self._workers: list[list[Any]] = []  # of the last answer: name, host, register, group
        self._asked = -LOOKED

    def forget(self) -> None:
        """Ask again before the groups of workers are told."""
        self._asked = min(self._asked, time.monotonic() - 2 * SOON)

    def ask(self) -> Any:
        """Return what the crawl answers; NotReady without one."""
        found: Any = self._crawl.ask("journal", SECONDS)
        self._workers, self._asked = found.get("workers", []), time.monotonic()
        return found

    def groups(self) -> dict[str, int]:
        """The last committed group of each worker, by its register. NotReady without a crawl."""
        if time.monotonic() - self._asked > SOON:
            self.ask()
        return {str(one[2]): int(one[3]) for one in self._workers}

    def workers(self) -> dict[str, str]:
        """The workers that have journaled, each with its host, by their registers; as they were some seconds ago."""
        if time.monotonic() - self._asked > LOOKED:
            self._asked = time.monotonic() - 2 * SOON
            with suppress(WarcmillError):
                self.ask()
        return {str(one[2]): f"worker {one[0]} on {one[1]}" for one in self._workers if int(one[3])}


class JobJournals:
    """The journals of one process of a job, by its `writer`: its own, or a worker, whose `root` has them. `committed`
    says how much of the newest was committed."""

    def __init__(
        self, places: Places, name: str, committed: Committed, writer: str = OWN, root: Places | None = None
    ) -> None:  # fmt: skip
        self._own, self._places = places, root or places
        self.name, self._committed_by, self.writer = name, committed, writer

    def require(self) -> None:
        """Raise Unavailable or BadConfig unless the root of a worker is there."""
        if self.writer != OWN:
            require_root(self._places.output, WriterRoot(self.writer))

    def after(self, place: JournalPlace) -> Generator[FollowedGroup]:
        """Yield the groups after a place, as far as they are certain. Mismatch when the journal is not the one that was
        read; BadInput where it is damaged."""
        at = 0.0
        while True:
            every = self._every_launch(place.launch)
            launches = self._with_journal(every)
            if not place.launch and launches:
                place = JournalPlace(launches[0], journal=1)
            if not place.launch:
                return
            if path := self._next(place):
                stage = split_log_name(path.name)[1]
                opened = _opened(path)
                is_last = stage == _FINAL and every[-1:] <= [place.launch]
                limit = self._certain(place, path, opened, is_last=is_last) if opened else None
                if opened is None or limit is None:
                    continue  # its stage was closed meanwhile: it has another name
                with opened:
                    for group in _groups(place, path, opened, limit):
                        place, at = group.place, group.at
                        yield group._replace(writer=self.writer)
                if stage != _FINAL:
                    place = JournalPlace(place.launch, stage, place.journal + 1)
                    yield FollowedGroup(place, [], [], stage, self.writer, at)
                    continue
            later = [one for one in launches if one > place.launch]
            if not later:
                return
            place = JournalPlace(later[0], journal=1)

    def _next(self, place: JournalPlace) -> Path | None:
        """The journal at a place; None if it is not there yet."""
        logs = self._places.folders(Launch(self.name, place.launch)).logs
        paths = journals(logs, place.stage) if logs.is_dir() else []
        is_lost = place.stage and not (logs / f"{journal.NAME}.{place.stage}").exists()
        if is_lost or (not paths and place.read):
            if self.writer != OWN and not self._own.folders(Launch(self.name, place.launch)).own.is_dir():
                return None  # the job was recovered from the centre, and the disk of this worker was lost, too
            what = f"the journal of launch {place.launch}, stage {place.stage if is_lost else _FINAL}, which was read,"
            raise Mismatch(what, "a file", f"none in {logs}; bring it back. {_AGAIN.format(job=self.name)}")
        return paths[0] if paths else None

    @property
    def folder(self) -> Path:
        """The folder of the job, which has its papers."""
        return self._places.job(self.name)

    @property
    def sites(self) -> KeptSites:
        """The wishes of persons for sites of the job."""
        return KeptSites(self._places.state(self.name) / SITES)

    def waiting(self, place: JournalPlace) -> int:
        """The bytes of journals after a place."""
        total = 0
        try:
            for one in self._with_journal(self._every_launch(place.launch)):
                stage = place.stage if one == place.launch else ""
                paths = journals(self._places.folders(Launch(self.name, one)).logs, stage)
                total += sum(path.stat().st_size for path in paths if path.exists())
        except OSError as error:
            raise Unavailable(str(self._places.output), disk.reason(error, self._places.output)) from error
        return max(0, total - place.read)

    def register(self) -> str:
        """The name of the register that wrote the newest journal; '' without one."""
        for launch in reversed(self._every_launch("")):
            logs = self._places.folders(Launch(self.name, launch)).logs
            try:
                for path in journals(logs)[::-1] if logs.is_dir() else ():
                    with path.open("rb") as stream:
                        if first := next(journal.groups(stream), None):
                            return str(first.entries[-1].more.get("writer", ""))
            except FileNotFoundError:
                return ""  # it has another name by now
            except OSError as error:
                raise Unavailable(str(logs), disk.reason(error, logs)) from error
        return ""

    def _every_launch(self, first: str) -> list[str]:
        """The launches of the job from one on, the oldest first."""
        folder = self._places.job(self.name)
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unavailable(str(folder), disk.reason(error, folder)) from error
        return sorted(name for name in names if len(name) == 14 and name.isdigit() and name >= first)

    def _with_journal(self, launches: Sequence[str]) -> list[str]:
        """Those of some launches that have a journal here."""
        logs = ((name, self._places.folders(Launch(self.name, name)).logs) for name in launches)
        return [name for name, one in logs if one.is_dir() and journals(one)]

    def _certain(self, place: JournalPlace, path: Path, opened: _Journal, *, is_last: bool) -> _Limit | None:
        """The part of a journal that no kill cuts. None when another has its name now; `opened` is closed then."""
        try:
            if opened.size < place.read or opened.tail(place.read) != place.tail:
                found = f"another journal of {opened.size} bytes. {_AGAIN.format(job=self.name)}"
                raise Mismatch(f"{path}, up to byte {place.read}", "the journal that the centre has read", found)
            if not is_last or opened.size == place.read:
                return self._whole(place, opened)
            limit = self._limit(place.launch)
            if opened.has_its_name(path):
                return limit or self._whole(place, opened)
        except BaseException:
            opened.close()
            raise
        opened.close()
        return None

    def _whole(self, place: JournalPlace, opened: _Journal) -> _Limit:
        """All of a journal. A worker that was declared dead may have left a part of one at the end of its own."""
        report = self._own.folders(Launch(self.name, place.launch)).reports / RETIRED
        return _Limit(opened.size, is_torn=self.writer != OWN and report.exists())

    def _limit(self, launch: str) -> _Limit | None:
        """The committed part of the newest journal; None for all of it."""
        try:
            if self.writer != OWN:
                return _Limit(groups=self._committed_by.groups())
            found = self._committed_by.ask()
            return _Limit(int(found["length"])) if found["launch"] == launch else None
        except NotReady:
            last = job_log.last(self._places.job(self.name))
            is_whole = last is None or last.launch != launch or last.ended
            return None if is_whole else _Limit()
        except WarcmillError:
            return _Limit()


class _Limit(NamedTuple):
    """The part of a journal that is read: up to a `length`, or to the last of its register's `groups`; without either
    all but the last group. `is_torn`: its end may be a part of a group."""

    length: int = -1
    groups: Mapping[str, int] | None = None
    is_torn: bool = False

    def has(self, group: JournalGroup, start: int) -> bool:
        """True if a group is in it."""
        if self.groups is not None:
            more = group.entries[-1].more
            return bool(more.get("group", 0) <= self.groups.get(more.get("writer", ""), -1))
        return self.length < 0 or start + group.end <= self.length


_AGAIN = (
    "If the disk of the job came back from a copy, stop its crawl: 'warcmill group GROUP recover --cluster {job}' has"
    " it know what it visited since; or 'warcmill run updater {job} --again' reads all of it once more"
)


class _Journal:
    """A journal and its crawl.log, open."""

    def __init__(self, journal_file: BinaryIO, log: BinaryIO | None) -> None:
        self.journal, self.log = journal_file, log

    def __enter__(self) -> _Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close both."""
        self.journal.close()
        if self.log:
            self.log.close()

    @property
    def size(self) -> int:
        """The length of the journal now."""
        return os.fstat(self.journal.fileno()).st_size

    def tail(self, end: int) -> bytes:
        """The last bytes before a place."""
        begin = max(0, end - _TAIL)
        return os.pread(self.journal.fileno(), end - begin, begin)

    def has_its_name(self, path: Path) -> bool:
        """True if its name still means this file."""
        try:
            return os.path.samestat(os.stat(path), os.fstat(self.journal.fileno()))
        except FileNotFoundError:
            return False

    def lines(self, begin: int, end: int, path: Path) -> list[CrawlRecord]:
        """The records of its crawl.log between two places."""
        if begin >= end:
            return []
        raw = os.pread(self.log.fileno(), end - begin, begin) if self.log else b""
        if len(raw) != end - begin:
            raise Mismatch(f"the length of the crawl.log of {path}", end, begin + len(raw))
        return [line for line in crawllog.lines(BytesIO(raw)) if isinstance(line, CrawlRecord)]


def _opened(path: Path) -> _Journal | None:
    """Open a journal, and its crawl.log; None when it has another name now."""
    log = path.with_name(path.name.replace(journal.NAME, CRAWL_LOG, 1))
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error
    try:
        found = _Journal(file, log.open("rb") if log.exists() else None)
    except FileNotFoundError:
        file.close()
        return None
    except OSError as error:
        file.close()
        raise Unavailable(str(log), disk.reason(error, log)) from error
    if not found.has_its_name(path):  # else the two may be of different stages
        with found:
            return None
    return found


def _groups(place: JournalPlace, path: Path, opened: _Journal, limit: _Limit) -> Iterator[FollowedGroup]:
    """The groups of a journal after a place, up to a limit."""
    opened.journal.seek(place.read)
    before: FollowedGroup | None = None
    is_sure = limit.length >= 0 or limit.groups is not None
    start = place.read
    for group in journal.groups(opened.journal):
        if not limit.has(group, start):
            break
        if before:
            yield before
        place = before.place if before else place
        more = group.entries[-1].more
        files: dict[str, int] = more.get("files", {})
        log_read = files.get(CRAWL_LOG, place.log_read)
        lines = opened.lines(place.log_read, log_read, path)
        read = start + group.end
        after = replace(place, read=read, log_read=log_read, tail=opened.tail(read))
        before = FollowedGroup(after, group.entries, lines, at=more.get("at", 0.0))
        if is_sure:
            yield before
            place, before = before.place, None
    if place.read < limit.length:
        if not limit.is_torn:
            raise BadInput(str(path), "a group of the journal cannot be read", place.read)
        log.warning(
            "%s: a worker is dead, and its last %d bytes are not a whole group", path, limit.length - place.read
        )
        yield FollowedGroup(replace(place, read=limit.length, tail=opened.tail(limit.length)), [], [])


class ClusterJournals:
    """The journals of a job on this machine: of its own process, and of its workers."""

    def __init__(self, own: JobJournals, workers: Sequence[JobJournals], committed: Committed) -> None:
        self._own, self._committed_by = own, committed
        self.every = {one.writer: one for one in (own, *workers)}
        self.name, self.folder, self.sites = own.name, own.folder, own.sites
        self._registers = set[str]()

    def after(self, places: Mapping[str, JournalPlace], faults: dict[str, str]) -> Generator[FollowedGroup]:
        """Yield the groups after a place in the journals of each writer, as far as they are certain, in the order of
        their times. A worker whose journals cannot be read is put into the `faults`; errors of the own ones are
        raised."""
        self._committed_by.forget()
        with ExitStack() as stack:
            each = [
                stack.enter_context(closing(self._after(one, places.get(name, JournalPlace()), faults)))
                for name, one in self.every.items()
            ]
            yield from merge(*each, key=lambda one: (one.place.launch, one.at))

    def _after(self, one: JobJournals, place: JournalPlace, faults: dict[str, str]) -> Generator[FollowedGroup]:
        try:
            one.require()
            yield from one.after(place)
        except (Unavailable, Mismatch, BadInput, BadConfig) as error:
            if one is self._own:
                raise
            faults[one.writer] = str(error)

    def until(self, places: Mapping[str, JournalPlace]) -> Iterator[FollowedGroup]:
        """Yield the groups of all journals from their begin up to a place in each, in the order of their times."""
        each = [_until(one, places.get(name, JournalPlace())) for name, one in self.every.items()]
        return merge(*each, key=lambda one: (one.place.launch, one.at))

    def waiting(self, places: Mapping[str, JournalPlace], faults: dict[str, str]) -> dict[str, int]:
        """The bytes of journals after a place, by writer; those that cannot be read are put into the `faults`."""
        found = dict[str, int]()
        for name, one in self.every.items():
            try:
                one.require()
                found[name] = one.waiting(places.get(name, JournalPlace()))
            except (Unavailable, BadConfig) as error:
                if one is self._own:
                    raise
                faults[name] = str(error)
        return found

    def strangers(self) -> list[str]:
        """The workers whose journals are in no root that is known here, by name and host. While a root cannot be read
        nobody is named: it may have them."""
        working = self._committed_by.workers()
        if working.keys() - self._registers:
            try:
                for one in self.every.values():
                    one.require()
                    self._registers.add(one.register())
            except (Unavailable, BadConfig):
                return []
        return sorted(shown for register, shown in working.items() if register not in self._registers)


def _until(journals: JobJournals, place: JournalPlace) -> Iterator[FollowedGroup]:
    """The groups of journals, from their begin up to a place."""
    if place in (JournalPlace(), JournalPlace(place.launch, journal=1)):
        return
    journals.require()
    for group in journals.after(JournalPlace()):
        yield group
        if group.place == place:
            return
    what = f"a group that ends at {place.launch}:{place.read}"
    raise Mismatch(f"the journals of {' '.join(filter(None, (journals.name, journals.writer)))}", what, "none")
