"""The books of a launch: each entry is in the WARC, in crawl.log, in the journal and in the frontier, or nowhere.

Entries are committed in groups, by one change of the frontier. Records are durable first, then the log lines and the
journal; then the frontier has the visits and what they found, and the register how long each file is. After a kill the
files are cut to these lengths.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill.base import clock
from warcmill.crawl.books.files import BookFiles, Folders, recover
from warcmill.crawl.books.replay import unheard
from warcmill.crawl.fetch.cookies import Cookie, Jar
from warcmill.crawl.frontier import (
    Begins,
    Change,
    Defer,
    Finish,
    Frontier,
    Intake,
    Lease,
    Offered,
    SiteRow,
    check_visit,
    journal,
    scheduled,
)
from warcmill.crawl.frontier.outbox import added_up
from warcmill.crawl.frontier.register import Register
from warcmill.crawl.render import RenderedPage
from warcmill.crawl.uri import Status, Uri, digest, shown
from warcmill.errors import Mismatch, NotReady, WarcmillError
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.bounds import BoundTally
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.formats.warc.records import Record
from warcmill.formats.warc.writer import RecordPlace, WarcFiles
from warcmill.layout import warc_serial
from warcmill.model import Json

GROUP, WAIT = 32, 0.25  # entries: fewer than a crawl has workers, as some of these read meanwhile; seconds


class CrawlResult(Struct, frozen=True):
    """A line of results.jsonl, but for the place of its record: its `kind`, and the message that its requester gets.

    `unless_followed`: the line is left out if its entry found a new URI: a redirect, whose target is then the page.
    """

    kind: str
    value: Mapping[str, Json]
    unless_followed: bool = False


class BookEntry(Struct, frozen=True):
    """The end of a visit: its `records` (all exchanges, in one WARC), its line in crawl.log, what it leaves and found.

    The URI is as it is now: Parsed, Failed or Removed; or Scheduled, to be tried again when its `not_before` has
    come. Without a lease it was fetched besides the frontier, as robots.txt is. `opens`, `again`: see Finish.
    `cookies` are those that its answers have changed in its crawl's jar; `site` is its answer about its site; `memory`
    is what its spider remembers from now on.
    `may_recall`: its first record answers a browser that asks for the URI later (`Books.find`), also by the URI with
    `asked` behind it, which stands for what a browser has sent. `is_part`: its URI
    is a page, which is still to be opened in its turn; `is_document`: it came as a page does, so that its first record
    is what is opened then (`Books.find_page`), and `is_opened` that this was done. `rendered` is the page as a browser
    had it, for those who hear of entries. `results` are for who asked for the URI. `left_out` is what bounds have left
    out of it.
    """

    uri: Uri
    lease: Lease | None = None
    records: Sequence[Record] = ()
    line: CrawlRecord | None = None
    history: bytes = b""
    found: Sequence[Uri] = ()
    opens: float = 0.0
    again: float = 0.0
    cookies: Sequence[Cookie] = ()
    site: SiteRow | None = None
    memory: Mapping[str, str] = field(default_factory=dict)
    may_recall: bool = False
    asked: str = ""
    is_part: bool = False
    is_document: bool = False
    is_opened: bool = False
    rendered: RenderedPage | None = None
    results: Sequence[CrawlResult] = ()
    left_out: BoundTally | None = None


class Kept(NamedTuple):
    """An entry that is durable: the places of its records, and the answers to what it found.

    `held` is False when its lease had ended before: then nothing of it was written.
    """

    held: bool
    places: Sequence[RecordPlace] = ()
    offered: Sequence[Offered] = ()


Fate = Kept | WarcmillError


class Books:
    """The books of one launch, from `open_books` to `close`. After an error of the disk they take nothing more.

    `hear` is called with each entry that is durable; `ask_left_out` is asked what bounds have left out of an entry's
    URI, and `left_out` has that of all durable entries of the launch. `set_back` is by how many seconds the clock was
    since the last; `mended` has a line for each file that was cut or set aside.
    """

    def __init__(self, frontier: Frontier, files: BookFiles, mended: Sequence[str], set_back: float) -> None:
        self.frontier, self.mended, self.set_back = frontier, tuple(mended), set_back
        self._files = files
        self._waiting: list[tuple[BookEntry, asyncio.Future[Kept]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._commits: set[asyncio.Task[None]] = set()
        self._results_length = files.results_length
        self.left_out = files.left_out
        frontier.note = files.note
        self.hear: Callable[[BookEntry, Kept], None] = _nothing
        self.ask_left_out: Callable[[Uri], BoundTally | None] = _no_bound

    @property
    def stopped(self) -> WarcmillError | None:
        """Why the books take nothing more; None while they do."""
        return self.frontier.stopped

    def stop(self, error: WarcmillError) -> None:
        """Take nothing more, for this reason."""
        self.frontier.stop(error)

    def jar(self, crawl: str = "") -> Jar:
        """Return the cookies of a crawl; what an answer changes there must be in its entry."""
        return self.frontier.jar(crawl)

    async def keep(self, entry: BookEntry) -> Kept:
        """Make an entry durable, with others of its time. BadInput for one that cannot be; Unavailable when a disk
        failed: nothing of its group is kept. A caller that is cancelled still waits for it, as its records are read."""
        if _ends(entry) or not entry.lease:
            check_visit(entry.uri, entry.history)
        if left_out := self.ask_left_out(entry.uri):
            entry = replace(entry, left_out=left_out)
        future: asyncio.Future[Kept] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, future))
        if len(self._waiting) >= GROUP or self._is_whole:
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WAIT, self._flush)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([future])
            future.exception()
            raise

    @property
    def _is_whole(self) -> bool:
        """True if nobody else would come to a group in its time."""
        return len(self._waiting) >= self.frontier.leased and not self.frontier.expects(WAIT)

    def end_group(self) -> None:
        """Commit what waits for others to come, if none would."""
        if self._is_whole:
            self._flush()

    async def holds(self, lease: Lease) -> bool:
        """True if a lease has not ended: its URI may have been visited besides the frontier meanwhile."""
        return await self.frontier.change(lambda changes: changes.holds(lease))

    async def find(self, crawl: str, uri: str) -> tuple[Path, int] | None:
        """Return the WARC of this launch that has the answer to a URI which it may recall, and where it begins there;
        None without one."""
        return await self.frontier.run(lambda: self._files.find(digest(crawl, uri)))

    async def find_page(self, crawl: str, uri: str) -> tuple[Path, int] | None:
        """The same of a page that a browser had as a part of another, and that was not opened since."""
        return await self.frontier.run(lambda: self._files.find(_page_digest(crawl, uri)))

    @property
    def results_length(self) -> int:
        """The length of results.jsonl that is durable in all books: no kill cuts off a line before it."""
        return self._results_length

    async def journal_length(self) -> int:
        """The length of the journal that no kill cuts off."""
        return await self.frontier.run(lambda: self._files.journal_length)

    async def tell(self, results: Sequence[CrawlResult]) -> None:
        """Make results durable that belong to no visit."""
        task = asyncio.create_task(self._tell([_result_line(one, None, uuid.uuid4().hex) for one in results]))
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)
        await asyncio.shield(task)

    async def settle(self) -> None:
        """Wait until all that was given is durable, or has failed."""
        self._flush()
        while self._commits:
            await asyncio.wait(self._commits)
        if not self.stopped and (twice := _twice(self.frontier)):
            self.left_out = await self.frontier.change(lambda _: self._files.leave_out(twice))

    async def rotate(self, stage: str) -> None:
        """Close the WARC, and rename the logs for a stage; new ones begin."""
        await self.settle()
        await self.frontier.run(lambda: self._files.rotate(stage))
        self._results_length = 0

    async def close(self) -> None:
        """Wait for what was given, and close all files and the frontier. The WARC has its final name."""
        await self.settle()
        if not self.stopped:
            await self.frontier.run(self._files.close)
        await self.frontier.close()

    def _flush(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            group, self._waiting = self._waiting, []
            task = asyncio.create_task(self._commit(group))
            self._commits.add(task)
            task.add_done_callback(self._commits.discard)

    async def _commit(self, group: Sequence[tuple[BookEntry, asyncio.Future[Kept]]]) -> None:
        entries, twice = [entry for entry, _ in group], _twice(self.frontier)
        try:
            fates, length, left_out = await self.frontier.change(
                lambda changes: self._write(changes, entries, twice), [uri for entry in entries for uri in entry.found]
            )
        except BaseException as error:
            for _, future in group:
                _settle(future, error)
            if not isinstance(error, WarcmillError):
                raise
            return
        self._results_length, self.left_out = length, left_out
        for (entry, future), fate in zip(group, fates, strict=True):
            if isinstance(fate, Kept) and fate.held:
                scheduled(self.frontier.transitions, entry.found, fate.offered)
                self.hear(entry, fate)
            _settle(future, fate)

    async def _tell(self, lines: Sequence[bytes]) -> None:
        def write(_: Change) -> int:
            self._files.end_group((), (), (), lines)
            return self._files.results_length

        self._results_length = await self.frontier.change(write)

    # On the thread of the frontier, within a change

    def _write(
        self, changes: Change, entries: Sequence[BookEntry], twice: Sequence[BoundTally]
    ) -> tuple[list[Fate], int, BoundTally]:
        """Write entries; return the fate of each, the length of results.jsonl, and all that bounds have left out.
        `twice` has the pages that were asked for once more."""
        fates = self._append_records(changes, entries)
        done = [
            (entry, fate) for entry, fate in zip(entries, fates, strict=True) if isinstance(fate, Kept) and fate.held
        ]
        is_shared = self.frontier.is_shared
        lines = _end_visits(changes, done, is_shared)
        documents = [(entry.uri, entry.line) for entry, _ in done if entry.line and entry.line.is_document]
        changes.spend(documents)
        lines += [journal.spent(added_up(documents))] if is_shared and documents else []
        found = [uri for entry, _ in done for uri in entry.found]
        offered = changes.offer(found)
        lines += journal.offered(found, offered, clock.steady())
        log = [_line(entry.line, fate.places) for entry, fate in done if entry.line]
        places = {
            digest(entry.uri.crawl, name): place
            for entry, fate in done if (place := _place(entry, fate))
            for name in (entry.uri.uri, *([f"{entry.uri.uri} {entry.asked}"] if entry.asked else []))
        }  # fmt: skip
        waiting = {
            _page_digest(entry.uri.crawl, entry.uri.uri): fate.places[0] for entry, fate in done if entry.is_document
        }
        opened = [_page_digest(entry.uri.crawl, entry.uri.uri) for entry, _ in done if entry.is_opened]
        self._files.keep_places({**places, **waiting}, opened)
        left_out = self._files.leave_out([*twice, *(entry.left_out for entry, _ in done if entry.left_out)])
        answers = iter(offered)
        results = [line for entry, fate in done for line in _results(entry, fate, [next(answers) for _ in entry.found])]
        self._files.end_group(log, lines, [place for _, fate in done for place in fate.places], results)
        answers = iter(offered)
        told = [
            fate._replace(offered=[next(answers) for _ in entry.found])
            if isinstance(fate, Kept) and fate.held
            else fate
            for entry, fate in zip(entries, fates, strict=True)
        ]
        return told, self._files.results_length, left_out

    def _append_records(self, changes: Change, entries: Sequence[BookEntry]) -> list[Fate]:
        """Append what still has its lease; a record that does not fit its header fails alone."""
        fates: list[Fate] = []
        ended: set[int] = set()
        for entry in entries:
            if entry.lease and (entry.lease.id in ended or not changes.holds(entry.lease)):
                fates.append(Kept(held=False))
                continue
            try:
                fates.append(Kept(True, self._files.append(entry.records)))
                ended.update([entry.lease.id] if entry.lease else [])
            except Mismatch as error:
                fates.append(error)
        return fates


async def open_books(
    frontier: Frontier, register: Register, launch: str, folders: Folders, warcs: Callable[[int], WarcFiles],
    begins: Begins = Begins.FRESH, *, results: bool = False,
) -> Books:  # fmt: skip
    """Open the books of a launch over its frontier; `warcs` makes its WARC files, from the number of the first on.
    `results`: it has results.jsonl.

    Files of a launch that was killed are cut first. For another launch than the register was last open for, the books
    begin (`begins`).
    """

    def cut() -> list[str]:
        is_killed = bool(register.launch) and not register.is_clean
        if is_killed:
            register.examine()
        if is_killed and register.launch != launch:
            why = f"launch {register.launch} was killed; open its books first, to put it in order"
            raise NotReady(f"launch {launch}", why)
        return recover(register, folders) if register.launch == launch else []

    def begin(changes: Change) -> tuple[Begins, float]:
        back, is_same = changes.move_back(), register.launch == launch
        changes.begin(launch, begins)
        if not is_same:
            register.begin(launch, has_places=bool(folders.earlier))
        register.open()
        return Begins.CONTINUES if is_same else begins, back

    def opened() -> BookFiles:
        files = warcs(_next_serial(file.name for file in register.files()))
        return BookFiles(folders, register, files, results=results)

    mended = await frontier.run(cut)
    await frontier.resend(unheard(folders))
    begun, set_back = await frontier.change(begin)
    files = await frontier.run(opened)
    await frontier.change(lambda _: files.note(_BEGUN[begun]))  # so that no journal is empty
    books = Books(frontier, files, mended, set_back)
    await frontier.purge_rest()
    return books


_BEGUN = {
    Begins.FRESH: [journal.fresh()],
    Begins.FOLLOWS: [journal.carried()],
    Begins.KEEPS: [journal.carried(seen=True)],
    Begins.CONTINUES: [],
}


def _next_serial(names: Iterable[str]) -> int:
    return max((serial.number + 1 for name in names if (serial := warc_serial(name))), default=0)


def _nothing(_entry: BookEntry, _kept: Kept) -> None:
    """Pass no entry on."""


def _twice(frontier: Frontier) -> list[BoundTally]:
    """The pages that were asked for once more, as a frontier had lost their visits, as one tally; none without any."""
    tally = BoundTally()
    for uri in frontier.take_twice():
        tally.add("twice", (0, True), shown(uri))
    return [tally] if tally.counts else []


def _no_bound(_uri: Uri) -> None:
    """Nothing was left out."""


def _ends(entry: BookEntry) -> bool:
    return entry.uri.status not in (Status.SCHEDULED, Status.SUSPENDED)


def _end_visits(changes: Change, done: Sequence[tuple[BookEntry, Kept]], is_shared: bool) -> list[str]:
    """End the leases, note visits without one, and return the lines that the journal has for all."""
    entries, places = [entry for entry, _ in done], {id(entry): _place(entry, fate) for entry, fate in done}
    leased = [(entry, entry.lease) for entry in entries if entry.lease]
    ends = [(entry, lease) for entry, lease in leased if _ends(entry)]
    visits = [changes.as_asked(Finish(lease, entry.history, entry.opens, entry.again)) for entry, lease in ends]
    waits = [
        changes.as_asked(Defer(entry.uri.crawl, entry.uri.key, entry.uri.not_before, lease, entry.opens))
        for entry, lease in leased
        if not _ends(entry)
    ]
    others = [entry for entry in entries if not entry.lease and not entry.is_part]
    changes.finish(visits)
    changes.defer(waits)
    for entry in others:
        changes.visit(entry.uri, entry.history)
    for entry in entries:
        if entry.cookies:
            changes.keep_cookies(entry.uri.crawl, entry.cookies)
        if entry.site:
            changes.keep_site(entry.site)
        if entry.memory:
            changes.remember(entry.uri.spider, entry.memory)
    return [
        *(
            journal.finished(visit, places[id(entry)], visit.opens if is_shared else 0.0)
            for visit, (entry, _) in zip(visits, ends, strict=True)
        ),
        *(journal.deferred(wait, wait.opens if is_shared else 0.0) for wait in waits),
        *(journal.visited(entry.uri, entry.history, place=places[id(entry)]) for entry in others),
        *(journal.cookies(entry.uri.crawl, entry.cookies) for entry in entries if entry.cookies),
        *(journal.site(entry.site) for entry in entries if entry.site),
        *(journal.memory(entry.uri.spider, entry.memory) for entry in entries if entry.memory),
    ]


def _place(entry: BookEntry, kept: Kept) -> RecordPlace | None:
    """The record that answers a browser which asks for an entry's URI."""
    return kept.places[0] if entry.may_recall and kept.places else None


def _page_digest(crawl: str, uri: str) -> bytes:
    return digest(crawl, f"page {uri}")


def _line(line: CrawlRecord, places: Sequence[RecordPlace]) -> bytes:
    return crawllog.render(line, places[0].name, places[0].offset) if places else crawllog.render(line)


def _results(entry: BookEntry, kept: Kept, offered: Sequence[Offered]) -> Iterator[bytes]:
    """The lines of an entry's results. Their `id` names the record, and the number of the result of it."""
    is_followed = any(one.answer is Intake.NEW for one in offered)
    wanted = [result for result in entry.results if not (result.unless_followed and is_followed)]
    for number, result in enumerate(wanted):
        place = kept.places[0] if kept.places else None
        name = f"{place.name}:{place.offset}" if place else uuid.uuid4().hex
        yield _result_line(result, place, f"{name}:{number}" if number else name)


def _result_line(result: CrawlResult, place: RecordPlace | None, name: str) -> bytes:
    line = {
        "id": name,
        "kind": result.kind,
        "offset": place.offset if place else None,
        "value": result.value,
        "warc": place.name if place else None,
    }
    return json.dumps(line, sort_keys=True).encode("ascii") + b"\n"


def _settle(future: asyncio.Future[Kept], fate: Kept | BaseException) -> None:
    if future.done():  # its holder has gone away
        return
    if isinstance(fate, Kept):
        future.set_result(fate)
    else:
        future.set_exception(fate)
