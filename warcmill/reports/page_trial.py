"""The report of a trial of some pages: in, out, and by which rule. Writes to the folder of the trial alone.

    {folder}/trial.json           the report, once the trial has ended
    {folder}/1.png, 2.png, 3.png  pictures of its first pages, if its job renders

It is made of the logs of the trial's crawl, so it can be made while that runs, too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct, field

from warcmill.base import clock
from warcmill.crawl import durable
from warcmill.crawl.job import file
from warcmill.crawl.job.job import End
from warcmill.crawl.job.rules import RuleBook, in_words
from warcmill.crawl.launch import intake, job_log
from warcmill.crawl.launch.folders import LaunchFolders, Places
from warcmill.crawl.logs.lines import BY_OWN, OUT_OF_SCOPE, ROBOTS_FORBID
from warcmill.crawl.logs.logs import SCOPE
from warcmill.errors import BadConfig, Unavailable
from warcmill.formats.index.cdxj import VIEW, url_of
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.formats.text.captures import Captured, DocumentHearer
from warcmill.formats.text.document import Kind
from warcmill.formats.text.titles import title_of
from warcmill.formats.warc import gate
from warcmill.formats.warc.hearers import Hearer, Listener, RecordHead
from warcmill.model import Json, Launch, stamp_time
from warcmill.reports.rule_trial import RuleHits, is_first, logged_uri, logs_in, refused_links
from warcmill.reports.seed_fates import reason

REPORT = "trial.json"
PICTURES = 3
_LARGEST = 16 << 20  # bytes of a picture
_OF_TITLE = 1 << 16  # bytes of a page in which its title is looked for
_MOST_RULES = 100
ENDS = {
    End.EMPTY: "nothing else was left to ask for",
    End.DOCUMENTS: "it had its pages",
    End.DATA: "it had as many bytes as a trial may have",
    End.TIME: "its time was over",
    End.STOPPED: "it was stopped",
}
"""The ends of a trial in words."""


class AnsweredPage(Struct):
    """A page that was answered. `picture`: the number of its picture; 0 without one."""

    url: str
    status: int
    type: str = ""
    size: int = 0
    title: str = ""
    picture: int = 0


class RuleOut(RuleHits):
    """The links that one rule has left out."""

    rule: str = ""


class FailedPage(Struct):
    """An address that was not got, and why."""

    url: str
    why: str


class PageTrial(Struct):
    """A trial of at most `most` pages. `ended`: why it has, in words; '' while it crawls. `next`: the links that it
    would have asked for then. `parts`: how much the browsers of its pages have asked for."""

    job: str
    most: int
    began: str = ""
    ended: str = ""
    pages: list[AnsweredPage] = field(default_factory=list)
    left_out: list[RuleOut] = field(default_factory=list)
    robots: RuleHits = field(default_factory=RuleHits)
    failed: list[FailedPage] = field(default_factory=list)
    next: RuleHits = field(default_factory=RuleHits)
    parts: int = 0

    @property
    def words(self) -> list[str]:
        """The trial in sentences."""
        out = sum(one.number for one in self.left_out)
        rules = ", ".join(f"{one.number:,} by {one.rule}" for one in self.left_out[:3])
        more = f", {len(self.left_out) - 3} more rules" if len(self.left_out) > 3 else ""
        number = sum(not 300 <= one.status < 400 for one in self.pages)
        found = [f"{number:,} of at most {self.most:,} pages{f': {self.ended}' if self.ended else ' so far'}"]
        found.append(f"left out {out:,} links{f': {rules}{more}' if rules else ''}")
        if self.robots.number:
            found.append(f"robots.txt forbids {self.robots.number:,} more")
        if self.failed:
            found.append(f"{len(self.failed):,} got no answer")
        if self.ended:
            found.append(f"would ask for {self.next.number:,} next")
        found.append(
            f"its browser asked for {self.parts:,} parts of pages" if self.parts
            else "the parts of pages, such as pictures and styles, were not asked for"
        )  # fmt: skip
        return found

    def json(self) -> dict[str, Json]:
        """The trial for programs."""
        found: dict[str, Json] = msgspec.to_builtins(self)
        return found


def read(folder: Path) -> PageTrial | None:
    """The report in the folder of a trial; None while there is none."""
    try:
        return msgspec.convert(json.loads((folder / REPORT).read_bytes()), PageTrial)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise Unavailable(str(folder / REPORT), f"it cannot be read: {error}; try the job once more") from error


def so_far(places: Places, job: str) -> PageTrial | None:
    """The report of a trial that crawls at these places, without titles; None before it has begun, and once its crawl
    is removed."""
    try:
        launch = _launch(places, job)
        return _of_logs(places.folders(launch), launch) if launch else None
    except (FileNotFoundError, BadConfig):  # it was removed while it was read
        return None


def finish(places: Places, job: str, folder: Path, ended: str) -> PageTrial:
    """Write the report of a trial that has ended at these places, and its pictures, into its folder."""
    launch = _launch(places, job)
    found = PageTrial(job, 0)
    if launch:
        found = _of_logs(places.folders(launch), launch)
        pages = {one.url: one for one in found.pages}
        for path in sorted(places.folders(launch).warcs.iterdir()):
            look_into(path, pages, folder)
        with intake.current(places, job, folder) as lines:
            for line in lines:
                if "uri" in line:
                    found.next.add(line["uri"])
    found.ended = ended
    durable.replace(folder / REPORT, f"{json.dumps(found.json(), sort_keys=True)}\n".encode())
    return found


def _launch(places: Places, job: str) -> Launch | None:
    last = job_log.last(places.job(job))
    return Launch.parse(job, last.launch) if last else None


def _of_logs(folders: LaunchFolders, launch: Launch) -> PageTrial:
    """The report, by the papers of the crawl and its logs."""
    job = file.described(file.files_in(folders.own), launch.job)
    found = PageTrial(launch.job, job.ceilings.documents, clock.text(stamp_time(launch.id)))
    outs, rules = _Outs(RuleBook(job)), {"crawl.log": list[bytes](), SCOPE: list[bytes]()}
    for plain, path in logs_in(folders.logs):
        with path.open("rb") as stream:
            rules[plain] += [line for block in crawllog.blocks(stream, crawllog.END) for line in block]
    pages, failed = dict[str, AnsweredPage](), dict[str, FailedPage]()
    for raw in rules["crawl.log"]:
        record = crawllog.parse(raw)
        if isinstance(record, CrawlRecord) and not record.is_asked_again and not is_first(record):
            _add(found, record, outs, pages, failed)
    for link in refused_links(rules[SCOPE]):
        outs.add(link.uri, link.hops, link.via, link.seed, link.policy)
    found.pages, found.failed, found.left_out = [*pages.values()], [*failed.values()], outs.by_rule()
    return found


def _add(
    found: PageTrial, record: CrawlRecord, outs: _Outs, pages: dict[str, AnsweredPage], failed: dict[str, FailedPage]
) -> None:
    """Count a line of crawl.log. The last line of an address counts."""
    status, hops = record.status or 0, record.hops or ""
    if hops.rstrip("R").endswith("E"):
        found.parts += status > 0
    elif status > 0:
        failed.pop(record.uri, None)
        pages[record.uri] = AnsweredPage(record.uri, status, record.mime or "", record.size or 0)
    elif status in (OUT_OF_SCOPE, BY_OWN):
        outs.add(record.uri, hops, record.via or "", record.source or "", reason(status, record.annotations))
    elif status == ROBOTS_FORBID:
        found.robots.add(record.uri)
    else:
        failed[record.uri] = FailedPage(record.uri, reason(status, record.annotations))


class _Outs:
    """The links that were left out, each once, by the rule that leaves it out."""

    def __init__(self, rules: RuleBook) -> None:
        self._rules, self._seen = rules, set[str]()
        self._hits: defaultdict[str, RuleOut] = defaultdict(RuleOut)

    def add(self, address: str, hops: str, via: str, seed: str, policy: str) -> None:
        """Count a link. `policy`: what has refused it, where no rule does."""
        if address in self._seen:
            return
        self._seen.add(address)
        uri = logged_uri(address, hops, via, seed)
        against = self._rules.against(uri) if uri else None
        rule = in_words(against)[0] if against else policy
        self._hits[rule if rule in self._hits or len(self._hits) < _MOST_RULES else "other rules"].add(address)

    def by_rule(self) -> list[RuleOut]:
        """The rules, those first that leave out most."""
        for rule, hits in self._hits.items():
            hits.rule = rule
        return sorted(self._hits.values(), key=lambda one: (-one.number, one.rule))


def look_into(path: Path, pages: dict[str, AnsweredPage], folder: Path) -> None:
    """Take titles and pictures out of a WARC."""

    def document(one: Captured) -> None:
        if one.kind is Kind.HTML and (page := pages.get(one.url)):
            page.title = title_of(one.payload, one.charset) or page.title

    def picture(url: str, data: bytes) -> None:
        number = 1 + max((one.picture for one in pages.values()), default=0)
        if number <= PICTURES and (page := pages.get(url)):
            durable.replace(picture_of(folder, number), data)
            page.picture = number

    with path.open("rb") as stream:
        gate.examine(stream, path.name, hearers=(DocumentHearer(document, _OF_TITLE), _Views(picture)))


def picture_of(folder: Path, number: int) -> Path:
    """The place of a picture in the folder of a trial."""
    return folder / f"{number}.png"


class _Views(Hearer):
    """Passes the pictures of rendered pages on."""

    def __init__(self, sink: Callable[[str, bytes], None]) -> None:
        self._sink = sink

    def begin(self, head: RecordHead, /) -> Listener | None:
        url = url_of(head.fields)
        if head.type != "resource" or not url.startswith(VIEW) or head.length > _LARGEST:
            return None
        return _View(url.removeprefix(VIEW), self._sink)


class _View(Listener):
    def __init__(self, url: str, sink: Callable[[str, bytes], None]) -> None:
        self._url, self._sink, self._data = url, sink, bytearray()

    def feed(self, piece: memoryview) -> None:
        self._data += piece

    def end(self, _offset: int, _length: int) -> None:
        self._sink(self._url, bytes(self._data))
