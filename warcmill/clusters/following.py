"""The journal of a job, read on from a place: group by group, with the lines of crawl.log that belong to each. Reads
only.

A launch has a journal for each stage. That of the stage to come may still be cut by a kill, so of it only what was
committed is read: the crawl that runs says how long that is. Without it the last group waits, as it may be cut, until
the launch is put in order. Nothing of Warcmill removes a journal.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
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
from warcmill.crawl.frontier.journal import JournalLine
from warcmill.crawl.launch import job_log
from warcmill.crawl.launch.folders import Places
from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable, WarcmillError
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.layout import split_log_name
from warcmill.model import Launch

SECONDS = 10.0  # for the crawl to say how long its journal is
_TAIL = 32  # bytes by which a journal is told from another of its name
_FINAL = "final"


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
    is a group without entries, of that `stage`."""

    place: JournalPlace
    entries: list[JournalLine]
    lines: list[CrawlRecord]
    stage: str = ""


class JobJournals:
    """The journals of a job on this machine; `crawl` is asked how much of the newest was committed."""

    def __init__(self, places: Places, name: str, crawl: RunningJob) -> None:
        self._places, self.name, self._crawl = places, name, crawl

    def after(self, place: JournalPlace) -> Generator[FollowedGroup]:
        """Yield the groups after a place, as far as they are certain. Mismatch when the journal is not the one that was
        read; BadInput where it is damaged."""
        while True:
            launches = [one for one in self._launches() if one >= place.launch]
            if not place.launch and launches:
                place = JournalPlace(launches[0], journal=1)
            if not place.launch:
                return
            has_later = launches[-1:] > [place.launch]
            if path := self._next(place):
                stage = split_log_name(path.name)[1]
                opened = _opened(path)
                limit = (
                    self._certain(place, path, opened, is_last=stage == _FINAL and not has_later) if opened else None
                )
                if opened is None or limit is None:
                    continue  # its stage was closed meanwhile: it has another name
                with opened:
                    for group in _groups(place, path, opened, limit):
                        place = group.place
                        yield group
                if stage != _FINAL:
                    place = JournalPlace(place.launch, stage, place.journal + 1)
                    yield FollowedGroup(place, [], [], stage)
                    continue
            if not has_later:
                return
            place = JournalPlace(next(one for one in launches if one > place.launch), journal=1)

    def _next(self, place: JournalPlace) -> Path | None:
        """The journal at a place; None if it is not there yet."""
        logs = self._places.folders(Launch(self.name, place.launch)).logs
        paths = journals(logs, place.stage) if logs.is_dir() else []
        is_lost = place.stage and not (logs / f"{journal.NAME}.{place.stage}").exists()
        if is_lost or (not paths and place.read):
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
        for one in self._launches():
            if one >= place.launch:
                stage = place.stage if one == place.launch else ""
                paths = journals(self._places.folders(Launch(self.name, one)).logs, stage)
                total += sum(path.stat().st_size for path in paths if path.exists())
        return max(0, total - place.read)

    def _launches(self) -> list[str]:
        """The launches that have a journal, the oldest first."""
        folder = self._places.job(self.name)
        try:
            names = sorted(name for name in os.listdir(folder) if len(name) == 14 and name.isdigit())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unavailable(str(folder), disk.reason(error, folder)) from error
        logs = ((name, self._places.folders(Launch(self.name, name)).logs) for name in names)
        return [name for name, one in logs if one.is_dir() and journals(one)]

    def _certain(self, place: JournalPlace, path: Path, opened: _Journal, *, is_last: bool) -> int | None:
        """The length up to which no kill cuts a journal; -1 for all but its last group. None when another has its name
        now; `opened` is closed then."""
        try:
            if opened.size < place.read or opened.tail(place.read) != place.tail:
                found = f"another journal of {opened.size} bytes. {_AGAIN.format(job=self.name)}"
                raise Mismatch(f"{path}, up to byte {place.read}", "the journal that the centre has read", found)
            if not is_last or opened.size == place.read:
                return opened.size
            length = self._committed(place.launch)
            if opened.has_its_name(path):
                return opened.size if length is None else length
        except BaseException:
            opened.close()
            raise
        opened.close()
        return None

    def _committed(self, launch: str) -> int | None:
        """The committed length of the newest journal: None for all of it, -1 for all but its last group."""
        try:
            found: Any = self._crawl.ask("journal", SECONDS)
            return int(found["length"]) if found["launch"] == launch else None
        except NotReady:
            last = job_log.last(self._places.job(self.name))
            is_whole = last is None or last.launch != launch or last.ended
            return None if is_whole else -1
        except WarcmillError:
            return -1


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


def _groups(place: JournalPlace, path: Path, opened: _Journal, limit: int) -> Iterator[FollowedGroup]:
    """The groups of a journal after a place, up to a length; -1: all but the last."""
    opened.journal.seek(place.read)
    before: FollowedGroup | None = None
    start = place.read
    for group in journal.groups(opened.journal):
        if 0 <= limit < start + group.end:
            break
        if before:
            yield before
        place = before.place if before else place
        files: dict[str, int] = group.entries[-1].more.get("files", {})
        log_read = files.get(CRAWL_LOG, place.log_read)
        lines = opened.lines(place.log_read, log_read, path)
        read = start + group.end
        after = replace(place, read=read, log_read=log_read, tail=opened.tail(read))
        before = FollowedGroup(after, group.entries, lines)
        if limit >= 0:
            yield before
            place, before = before.place, None
    if 0 <= limit and place.read < limit:
        raise BadInput(str(path), "a group of the journal cannot be read", place.read)
