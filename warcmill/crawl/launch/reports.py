"""Reports of a launch: nine as Heritrix writes them when it ends, `bounds-report`, `summary.json`, and the reporter.

crawl-report      frontier-summary-report   hosts-report
mimetype-report   processors-report         responsecode-report
seeds-report      source-report             threads-report

Each is text, a row an item, greatest first. `bounds-report` has what bounds have left out. `Reporter` puts what a
launch hears of its crawl into its figures and logs. `summary.json`, in the launch's folder among the job's, is for who
began it. Reports are not evidence.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

from msgspec import Struct, field

from warcmill.crawl import durable
from warcmill.crawl.books.books import BookEntry, Kept
from warcmill.crawl.control.hosts import host_of
from warcmill.crawl.frontier import Waiting
from warcmill.crawl.logs import lines
from warcmill.crawl.logs.logs import Logs
from warcmill.crawl.logs.newest import NewestLines
from warcmill.crawl.logs.progress import duration, number, size
from warcmill.crawl.logs.statistics import Figure, Figures, Statistics
from warcmill.crawl.policies.decision import Decision
from warcmill.crawl.uri import Uri, shown
from warcmill.crawl.visit.offers import Offers, Refusals
from warcmill.errors import Unavailable
from warcmill.formats.logs import bounds, unrendered
from warcmill.formats.logs.bounds import BoundCut, BoundTally
from warcmill.formats.logs.crawllog import CrawlRecord, moment
from warcmill.formats.logs.unrendered import Unrendered
from warcmill.model import Json

MOST_QUEUES = 100_000
"""The number of queues that are named, the longest first."""


class Processor(Struct, frozen=True):
    """A part of the crawler that each URI passes, with lines on what it did."""

    name: str
    lines: Sequence[str] = ()


class Ending(Struct, frozen=True):
    """The end of a launch. `seconds` is the time for which it ran, without pauses; `how` describes the end as Heritrix
    does: `Finished`, `Finished - Ended by operator`. `threads` describes downloads that are under way."""

    job: str
    at: float
    seconds: float
    how: str
    state: str
    statistics: Statistics
    waiting: Waiting = field(default_factory=Waiting)
    chains: Mapping[str, Sequence[Processor]] = field(default_factory=dict)
    threads: Sequence[str] = ()
    left_out: Sequence[BoundCut] = ()


Row = TypeVar("Row")
Report = Callable[[Ending], Iterator[str]]


def write(folder: Path, ending: Ending, reports: Mapping[str, Report] | None = None) -> list[Path]:
    """Write the reports of a kind of job, by default those of a crawl, durable; return their paths."""
    durable.make_folder(folder)
    paths = []
    for name, report in (CRAWL if reports is None else reports).items():
        text = bytearray()  # a line at a time: there may be 100,000
        for line in report(ending):
            text += f"{line}\n".encode("utf-8", "backslashreplace")
        paths.append(folder / f"{name}.txt")
        durable.replace(paths[-1], text)
    return paths


def crawl(ending: Ending) -> Iterator[str]:
    """The totals."""
    found, total = ending.statistics, ending.statistics.total
    crawled = sum(seed.code > 0 for seed in found.seeds.values())
    seconds = ending.seconds
    kinds = _kinds(total)
    yield f"crawl name: {ending.job}"
    yield f"crawl status: {ending.how}"
    yield f"duration: {duration(seconds)}"
    yield from ("", f"seeds crawled: {crawled}", f"seeds uncrawled: {len(found.seeds) - crawled}")
    yield from ("", f"hosts visited: {sum(bool(host) and host != 'dns:' for host in found.hosts)}")
    yield from ("", f"URIs processed: {found.processed}", f"URI successes: {found.succeeded}")
    yield from (f"URI failures: {found.failed}", f"URI disregards: {found.disregarded}", "")
    yield from (f"{name} URIs: {count}" for name, count, _ in kinds)
    yield from ("", f"total crawled bytes: {total[Figure.BYTES]} ({size(total[Figure.BYTES])}) ")
    yield from (f"{name} crawled bytes: {n} ({size(n)}){' ' * (name != 'novel')}" for name, _, n in kinds)
    yield from ("", f"URIs/sec: {number(found.succeeded / seconds if seconds else 0, 2)}")
    yield f"KB/sec: {int(total[Figure.BYTES] / 1024 / seconds) if seconds else 0}"


def seeds(ending: Ending) -> Iterator[str]:
    """The result of each seed: those that were not crawled come first."""
    yield "[code] [status] [seed] [redirect]"
    rows = ending.statistics.seeds.items()
    for uri, seed in sorted(rows, key=lambda row: (row[1].code > 0, -row[1].code, len(row[0]), row[0])):
        status = "CRAWLED" if seed.code > 0 else "NOTCRAWLED"
        yield f"{seed.code} {status} {uri}{f' {seed.redirect}' if seed.redirect else ''}"


def hosts(ending: Ending) -> Iterator[str]:
    """The sums of each host; `dns:` has the look-ups."""
    names = "urls bytes host robots remaining novel-urls novel-bytes dup-by-hash-urls dup-by-hash-bytes"
    yield " ".join(f"[#{name}]" for name in f"{names} not-modified-urls not-modified-bytes".split()).replace(
        "[#host]", "[host]"
    )
    remaining = _remaining(ending.waiting.by_queue)
    for host, row in sorted(ending.statistics.hosts.items(), key=lambda item: (-item[1][0], item[0])):
        front, back = (" ".join(map(str, part)) for part in (row[:2], row[3:]))
        yield f"{front} {host or '-'} {row[Figure.ROBOTS]} {remaining.get(host, 0)} {back} "


def mime_types(ending: Ending) -> Iterator[str]:
    """The sums of all answers, by type."""
    yield "[#urls] [#bytes] [mime-types]"
    for mime, (urls, total) in _by_count(ending.statistics.mimes.items(), lambda row: row[0]):
        yield f"{urls} {total} {mime}"


def response_codes(ending: Ending) -> Iterator[str]:
    """The number of answers, by status."""
    yield "[#urls] [rescode]"
    for code, urls in sorted(ending.statistics.codes.items(), key=lambda row: (-row[1], len(row[0]), row[0])):
        yield f"{urls} {code}"


def sources(ending: Ending) -> Iterator[str]:
    """The number of URIs fetched for each source, by host."""
    yield "[source] [host] [#urls]"
    for source, table in sorted(ending.statistics.sources.items()):
        for host, urls in _by_count(table.items(), int):
            yield f"{source} {host} {urls}"


def processors(ending: Ending) -> Iterator[str]:
    """The work of each part of the crawler."""
    for chain, parts in ending.chains.items():
        yield f"{chain} - Processors report - {_minute(ending.at)}"
        yield from (f"  Number of Processors: {len(parts)}", "")
        for part in parts:
            yield f"Processor: {part.name}"
            yield from (f"  {line}" for line in part.lines)
            yield ""
        yield ""


def frontier(ending: Ending) -> Iterator[str]:
    """The numbers of URIs that were found, are done, and still wait."""
    found, waiting = ending.statistics, ending.waiting
    active = waiting.ready + waiting.snoozed + waiting.in_process
    yield from (f"Frontier report - {_minute(ending.at)}", f" Job being crawled: {ending.job}")
    yield from ("", " -----===== STATS =====-----")
    yield from (f" Discovered:    {waiting.discovered}", f" Queued:        {waiting.queued}")
    yield from (f" Finished:      {found.processed}", f"  Successfully: {found.succeeded}")
    yield from (f"  Failed:       {found.failed}", f"  Disregarded:  {found.disregarded}")
    yield from ("", " -----===== QUEUES =====-----", f" Already included size:     {waiting.discovered}")
    yield "               pending:     0"
    yield from ("", f" All class queues map size: {active + waiting.retired + waiting.exhausted}")
    yield from (f"             Active queues: {active}", f"                    In-process: {waiting.in_process}")
    yield from (
        f"                         Ready: {waiting.ready}",
        f"                       Snoozed: {waiting.snoozed}",
    )
    yield from ("           Inactive queues: 0", f"            Retired queues: {waiting.retired}")
    yield from (f"          Exhausted queues: {waiting.exhausted}", "", f"             Last state: {ending.state}")
    longest = list(waiting.by_queue.items())[:_LISTED]
    yield from ("", f" -----===== {len(longest)} LONGEST QUEUES =====-----")
    for place, (queue, items) in enumerate(longest):
        yield from (f"LONGEST#{place}:", f"Queue {queue}", f"  {items} items")
    yield from ("", " -----===== OF THE DISCOVERED =====-----", f" Prerequisites: {found.prerequisites}")
    yield f" Over quota:    {found.over_quota}"


def threads(ending: Ending) -> Iterator[str]:
    """The downloads that are under way."""
    yield from ending.threads or ["no ToeThreads"]


def left_out(ending: Ending) -> Iterator[str]:
    """The cuts of bounds."""
    return bounds.render(ending.left_out)


CRAWL: Mapping[str, Report] = {
    bounds.REPORT: left_out,
    "crawl-report": crawl,
    "frontier-summary-report": frontier,
    "hosts-report": hosts,
    "mimetype-report": mime_types,
    "processors-report": processors,
    "responsecode-report": response_codes,
    "seeds-report": seeds,
    "source-report": sources,
    "threads-report": threads,
}
"""The reports of a crawl. Another kind of job has a list of its own."""

_LISTED = 20


def _kinds(total: Sequence[int]) -> list[tuple[str, int, int]]:
    """Numbers of URIs and bytes that were new, and that were not; a kind without any is left out, as in Heritrix."""
    kinds = (("novel", Figure.NOVEL), ("duplicate-by-hash", Figure.DUPLICATE), ("not-modified", Figure.NOT_MODIFIED))
    return [(name, total[at], total[at + 1]) for name, at in kinds if at is Figure.NOVEL or total[at]]


def _remaining(by_queue: Mapping[str, int]) -> dict[str, int]:
    """The number of URIs that wait, by host: queues are by host and port."""
    found: dict[str, int] = {}
    for queue, items in by_queue.items():
        host = host_of(queue)
        found[host] = found.get(host, 0) + items
    return found


def _by_count(rows: Iterable[tuple[str, Row]], count: Callable[[Row], int]) -> list[tuple[str, Row]]:
    return sorted(rows, key=lambda row: (-count(row[1]), row[0]))


def _minute(at: float) -> str:
    return "".join(filter(str.isdigit, moment(at)))[:12]


class Reporter:
    """Counts what is durable, and logs what went wrong."""

    def __init__(self, figures: Figures, logs: Logs) -> None:
        self._figures, self._logs = figures, logs
        self.newest = NewestLines(figures)
        self.first_failure = ""
        self.policies_failed: Counter[str] = Counter()

    def kept(self, offers: Offers, result: BookEntry, kept: Kept) -> None:
        """A result is durable."""
        offers.taken(result.found, kept.offered)
        if result.line:
            self._figures.add(result.line)
            self.newest.add(result.line)

    def failed(self, line: CrawlRecord, why: str) -> None:
        """A URI got no answer, or was refused."""
        if line.status not in lines.REFUSED:
            self.first_failure = self.first_failure or f"{shown(line.uri)}: {why}"
        self._logs.nonfatal(line, why)

    def broke(self, line: CrawlRecord, trace: str, where: str = "Warcmill") -> None:
        """A fault while a URI was visited."""
        if line.status == lines.FAULT:
            self.first_failure = self.first_failure or f"{shown(line.uri)}: {trace.splitlines()[-1]}"
        self._logs.runtime(line, trace)
        self.alert("SEVERE", f"a fault in {where} at {line.uri}; runtime-errors.log has its traceback")

    def alert(self, level: str, text: str) -> None:
        """Report what a person should look at."""
        self._logs.alert(level, text)

    def policy_failed(self, name: str, uri: Uri, trace: str) -> None:
        """A policy of others failed; its first fault of a launch is logged whole, and all are counted."""
        self.policies_failed[name] += 1
        if self.policies_failed[name] == 1:
            self._logs.runtime(lines.of_failure(uri, lines.FAULT), trace)
            what = f"policy {name} failed at {shown(uri.uri)}, so it decided nothing there; the crawl continues"
            self._logs.alert("SEVERE", f"{what}. runtime-errors.log has its first traceback, summary.json their number")

    def judged(self, number: int, found: Decision, uri: Uri) -> None:
        """A policy rejected or deferred a link."""
        self._logs.judged(number, found, uri)

    def no_uri(self, via: str, why: str, text: str) -> None:
        """Log the text of a link that is not a URI."""
        self._logs.no_uri(via or "-", text, why)


NAME = "summary.json"


def figures(
    found: Figures, refused: Refusals, failed_first: str, policies_failed: Mapping[str, int], left_out: BoundTally
) -> dict[str, Json]:
    """The numbers of what was fetched, failed, was cut by limits or refused by policies, each with a first URI and why;
    what bounds have left out of pages, with that of the log; pages that were not rendered; and how often policies of
    others failed."""
    of_bounds = left_out.joined(found.left_out)
    return {
        "documents": found.documents,
        "failed": found.failed,
        "failed_first": failed_first,
        "statuses": dict(found.answers),
        "cut": dict(found.cut),
        "cut_first": dict(found.cut_first),
        "refused": dict(refused.counts),
        "refused_first": dict(refused.first),
        "policies_failed": dict(policies_failed),
        "bounds": dict(of_bounds.counts),
        "bounds_first": dict(of_bounds.first),
        "unrendered": dict(found.unrendered.counts),
        "unrendered_first": dict(found.unrendered.first),
    }


def added(one: Mapping[str, Json], other: Mapping[str, Json]) -> dict[str, Json]:
    """The numbers of two processes of one launch: counts are added, of texts the first counts."""
    found = dict(one)
    for name, value in other.items():
        mine = found.get(name)
        if isinstance(value, dict) and isinstance(mine, dict):
            found[name] = added(mine, value)
        elif isinstance(value, int) and isinstance(mine, int):
            found[name] = mine + value
        else:
            found[name] = mine or value
    return found


def write_summary(own: Path, end: str, found: Mapping[str, Json]) -> None:
    """Keep it."""
    durable.replace(own / NAME, json.dumps({"end": end, **found}, sort_keys=True, indent=1).encode() + b"\n")


def bounds_of(summary: Mapping[str, Json]) -> list[BoundCut]:
    """The cuts of bounds, by a summary; none where it is of an earlier version."""
    counts, first = summary.get("bounds", {}), summary.get("bounds_first", {})
    return bounds.cuts(cast("Mapping[str, int]", counts), cast("Mapping[str, str]", first))


def unrendered_of(summary: Mapping[str, Json]) -> tuple[Unrendered, ...]:
    """The pages that were to be rendered and were not, by a summary; none where it is of an earlier version."""
    counts, first = summary.get("unrendered", {}), summary.get("unrendered_first", {})
    return unrendered.listed(cast("Mapping[str, int]", counts), cast("Mapping[str, str]", first))


def read(own: Path) -> Mapping[str, Json]:
    """Return it; an empty one for a launch that was repaired by another process."""
    try:
        return cast("Mapping[str, Json]", json.loads((own / NAME).read_bytes()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Unavailable(str(own / NAME), str(error)) from error
