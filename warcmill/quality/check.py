"""Check a launch: open its seeds and a sample of its pages in replay, and name what each lacks.

The sample is the same each time: those pages, and those seeds, whose URLs have the smallest SHA-256. So a check after a
patch opens the pages of the one before. One page is open at a time, and texts to compare wait on disk. The report is
written last: of a check that was killed there is none. Reads the archive; writes the report and, if need be, the list
of pages.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base import clock
from warcmill.crawl import uri as uris
from warcmill.crawl.job import file
from warcmill.crawl.job.rules import RuleBook, in_words
from warcmill.crawl.render import BrowserSettings
from warcmill.errors import BadConfig, BadInput, NotReady
from warcmill.extracts import text
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.text_workers import TextWorkers
from warcmill.formats.index.cdxj import VIEW
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.text.document import Kind
from warcmill.formats.warc.header import END_OF_HEADER, END_OF_RECORD, HEADER_LIMIT, content_length, parse_header
from warcmill.formats.warc.reader import MemberReader, PlainReader
from warcmill.launches import crawl_parts, holdings
from warcmill.launches.holdings import Holding
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.quality import judgement
from warcmill.quality.judgement import (
    MISSING,
    NOT_OPENED,
    SHOWN,
    CheckedPage,
    InIndex,
    MissingPart,
    words_of,
    worst_first,
)
from warcmill.quality.replayed import OpenedInReplay, ReplayBrowser
from warcmill.quality.reports import QualityReport, publish
from warcmill.reports import pages as page_lists
from warcmill.reports.pages import ListedUrl
from warcmill.stores import LocalStore, Store
from warcmill.versions import cdx, hidden_list
from warcmill.versions.publication import CdxLookup, hidden_now, open_version

PICTURE = 1 << 25  # bytes of a picture
_RECORDS = 8  # after that of a page, among which its picture is looked for
_CAPTURES = 1_000  # of a URL that are looked at
_EMBED = "E"  # the hop to a part


class CheckedArchive(Struct, frozen=True):
    """An archive, and what checks it. `replay` runs one, and yields the address before the time and URL of a capture.
    `papers`: those of the launch, by which its rules are known; empty where they are gone."""

    state: MarkerStore
    store: Store
    index: LocalStore
    replay: Callable[[], AbstractContextManager[str]]
    papers: Mapping[str, bytes]
    browser: BrowserSettings


def check(archive: CheckedArchive, launch: Launch, sample: int, say: Callable[[str], None]) -> QualityReport:
    """Check a launch, and keep the report. `say` gets a line for each page.

    NotReady without a published CDX, or where no stage of the launch is verified; Unavailable where no browser starts,
    or replay does not answer.
    """
    published, lookup = open_version(archive.index, cdx.NAME)
    with closing(lookup):
        hidden = tuple(hidden_now(archive.state.store, archive.index, cdx.NAME).prefixes())
        page_lists.make(archive.state, archive.store, archive.index, launch)
        with (
            page_lists.opened(archive.state, archive.index, launch) as listed,
            archive.state.scratch() as scratch,
            TextWorkers(1) as workers,
        ):
            if listed is None:
                raise NotReady(f"the list of pages of {launch}", "somebody removed it just now; check again")
            seeds, of_seeds = listed.sampled(sample, seeds=True)
            others, of_others = listed.sampled(sample, seeds=False)
            one = _Check(archive, launch, lookup, hidden, workers, scratch, published.number)
            with archive.replay() as address:
                found = asyncio.run(one.pages(address, seeds, others, say))
            judged = one.judged(found, listed.named({url for _, opened in found if opened for url in opened.missing}))
            report = QualityReport(
                launch.job, launch.id, clock.now(), published.number, of_seeds, of_others, listed.lacking,
                tuple(worst_first(judged)),
            )  # fmt: skip
    return publish(archive.state.store, report)


class _Check:
    """A check while it runs."""

    def __init__(
        self, archive: CheckedArchive, launch: Launch, lookup: CdxLookup, hidden: tuple[bytes, ...],
        workers: TextWorkers, scratch: Path, version: int,
    ) -> None:  # fmt: skip
        self._archive, self._launch, self._lookup, self._hidden = archive, launch, lookup, hidden
        self._workers, self._scratch, self._version = workers, scratch, version
        self._rules = _rules(archive.papers, launch.job)
        self._warcs = _warcs(archive.state, launch)

    async def pages(
        self, address: str, seeds: list[ListedUrl], others: list[ListedUrl], say: Callable[[str], None]
    ) -> list[tuple[CheckedPage, OpenedInReplay | None]]:
        """Open all pages; what is missing of them is not judged yet. One that is hidden is not opened."""
        rows = [(row, row in seeds) for row in [*seeds, *others]]
        self._keep_texts(row for row, _ in rows)
        found = list[tuple[CheckedPage, OpenedInReplay | None]]()
        browser = ReplayBrowser(address, self._archive.browser)
        try:
            for number, (row, is_seed) in enumerate(rows, 1):
                page, opened = await self._page(browser, row, is_seed=is_seed)
                found.append((page, opened and opened.without_dom()))
                lacks = f", {len(opened.missing)} missing" if opened else ""
                say(f"{number} of {len(rows)}: {page.state}{lacks}: {row.url}")
        finally:
            await browser.close()
        return found

    async def _page(
        self, browser: ReplayBrowser, row: ListedUrl, *, is_seed: bool
    ) -> tuple[CheckedPage, OpenedInReplay | None]:
        page = CheckedPage(row.url, row.time, row.title, is_seed, SHOWN)
        if self._seen(row.url, row.time) is InIndex.HIDDEN:
            return replace(page, state=NOT_OPENED, why="an access rule hides it"), None
        opened = await browser.open(row.url, row.time)
        if opened.failure:
            return replace(page, state=NOT_OPENED, why=opened.failure), opened
        if opened.end in opened.missing:
            return replace(page, state=MISSING), opened
        words = self._words(row, opened.dom)
        picture = self._picture(row)
        thumbnail = await browser.thumbnail(picture) if picture else ""
        return replace(page, words=words and words[0], common=words and words[1], thumbnail=thumbnail), opened

    def judged(
        self, found: Iterable[tuple[CheckedPage, OpenedInReplay | None]], rows: Mapping[str, ListedUrl]
    ) -> list[CheckedPage]:
        """The pages, each with what is missing of it and why."""
        judged = []
        for page, opened in found:
            if opened is None:
                judged.append(page)
                continue
            parts = {url: self._missing(url, status, rows.get(url), page) for url, status in opened.missing.items()}
            why = page.why or (parts[opened.end].why if page.state == MISSING else "")
            ordered = tuple(sorted(parts.values()))
            judged.append(replace(page, why=why, parts=opened.parts, missing=ordered, leaks=opened.leaks))
        return judged

    def _missing(self, url: str, status: int, row: ListedUrl | None, page: CheckedPage) -> MissingPart:
        rule = None if self._rules is None else _against(self._rules, url, page.url)
        return judgement.missing(url, self._seen(url, page.time), row, status=status, rule=rule, version=self._version)

    def _seen(self, url: str, time: str) -> InIndex:
        """The captures of a URL in the index version. One made after a decision has no line of what that hides."""
        key = urlkey(url)
        lines = [*islice(self._lookup.captures(key), _CAPTURES)]
        shown = [line for line in lines if not hidden_list.is_hidden(line, self._hidden)]
        if not shown:
            is_hidden = hidden_list.is_hidden(f"{key} {time} ".encode(), self._hidden)
            return InIndex.HIDDEN if lines or is_hidden else InIndex.NOTHING
        return InIndex.REVISITS if all(b'"warc/revisit"' in line for line in shown) else InIndex.CAPTURES

    def _keep_texts(self, rows: Iterable[ListedUrl]) -> None:
        """Write the text of each page that its crawl saw into the scratch folder, by the page's number."""
        wanted = defaultdict[str, dict[int, int]](dict)
        for row in rows:
            if row.warc and row.offset is not None:
                wanted[row.warc.removesuffix(".open")][row.offset] = row.id
        extracts = Extracts(self._archive.index)
        for name, offsets in wanted.items():
            if not (held := self._warcs.get(name)):
                continue
            try:
                for line in text.lines(extracts, str(held.stored.sha512)):
                    if (number := offsets.get(text.offset(line))) is not None:
                        (self._scratch / str(number)).write_text(json.loads(line).get("content", ""), "utf-8")
            except (NotReady, BadInput):
                continue  # the report has no words then: no text of this WARC was extracted

    def _words(self, row: ListedUrl, dom: bytes) -> tuple[int, int] | None:
        """The different words that the crawl saw, and how many of them are in replay; None where no text is known."""
        path = self._scratch / str(row.id)
        if not path.exists():
            return None
        crawled = words_of(path.read_text("utf-8"))
        replayed = self._workers.submit(Kind.HTML, dom, "utf-8").result()
        return len(crawled), len(crawled & words_of(replayed.text))

    def _picture(self, row: ListedUrl) -> bytes:
        """The picture that the crawl made of a page, in PNG; none if it made none."""
        held = self._warcs.get((row.warc or "").removesuffix(".open"))
        if held is None or row.offset is None:
            return b""
        path, wanted = held.stored.path, f"{VIEW}{row.url}".encode()
        with closing(self._archive.store.open(path, row.offset)) as stream:
            reader = (MemberReader if path.endswith(".gz") else PlainReader)(stream, path, row.offset)
            try:
                for _ in range(_RECORDS):
                    if not reader.begin():
                        break
                    fields = parse_header(reader.through(END_OF_HEADER, HEADER_LIMIT), reader.bad, lambda _: None)
                    length = content_length(fields, reader.bad)
                    if fields.get(b"WARC-Target-URI") == wanted and length <= PICTURE:
                        return b"".join(map(bytes, reader.take(length)))
                    reader.skip(length)
                    if not reader.end_after(0, END_OF_RECORD):
                        break
            except BadInput:
                return b""  # a damaged record: the gate has named it
        return b""


def _rules(papers: Mapping[str, bytes], job: str) -> RuleBook | None:
    """The rules that a launch had; None where its papers are gone, or of another engine."""
    try:
        return RuleBook(file.described(papers, job)) if papers else None
    except (BadConfig, BadInput):
        return None


def _against(rules: RuleBook, url: str, page: str) -> str:
    """The rule that refuses a part of a page; '' if none does."""
    try:
        found = rules.against(uris.make(url, hops=_EMBED, via=page))
    except BadInput as error:
        return error.why
    return in_words(found)[0] if found else ""


def _warcs(state: MarkerStore, launch: Launch) -> Mapping[str, Holding]:
    """The WARCs of a launch, and of those that it continues, by their closed names."""
    found = dict[str, Holding]()
    for part in crawl_parts.stages(state, crawl_parts.of(state, launch)):
        try:
            found |= {one.name.removesuffix(".open"): one for one in holdings.of_stage(state, *part).holdings}
        except NotReady:
            continue  # a stage that is not verified: the list of pages names it
    return found
